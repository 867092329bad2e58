//! The miniature upstreams, the tools that stand in for large ones, and runs of the program.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};
use rebuild_model::digest::Digest;
use tempfile::TempDir;

use crate::repositories::{Item, commit_items, file, tree};
use crate::small_library::{KERNEL, METADATA, SmallLibrary};

/// The engine's bundle in small: the wrapper of TVM's module between other modules.
pub const ENGINE: &str = "function earlier() {}\nfunction requireLib () {\n\tif (hasRequiredLib) return lib.exports;\n\
    \thasRequiredLib = 1;\n\t(function (module, exports) {\nexports.createPolyfillWASI = OLD;\n\
    exports.detectGPUDevice = 1;\n\t} (lib, lib.exports));\n\treturn lib.exports;\n}\nfunction later() {}\n";

const FFI: &str = "int TVMFFIFunctionCall(void) { return 0; }\n";
const INDEX: &str = "import \"./tvmjs_runtime_wasi\";\nexport const kind = \"browser module\";\n";
const PATCHED: &str = "// patched\nexport const kind = \"browser module\";\n";

/// The library that the stand-in of MLC-LLM writes: of a model in need of nothing.
pub fn library() -> SmallLibrary {
    let half = format!("enable f16;\n{KERNEL}");
    SmallLibrary {
        metadata: vec![METADATA.replace("q4f32_1", "q4f16_1")],
        kernels: vec![("copy_kernel".into(), half, "paramWriteAccess:[0,1]".into())],
        imports: Vec::new(),
        ..SmallLibrary::default()
    }
}

/// A whole world: upstreams, tools, pins.
pub struct Mini {
    root: TempDir,
    variables: BTreeMap<String, String>,
    /// The commit of tvm-ffi.
    pub ffi: Oid,
}

/// What a run gave.
pub struct Ran {
    code: Option<i32>,
    /// Standard output and standard error.
    pub text: String,
}

impl Ran {
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.text);
        self
    }
}

impl Mini {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut mini = Self { root, variables: BTreeMap::new(), ffi: Oid::ZERO_SHA1 };
        for name in ["home", "bin", "tmp", "vendor", "site"] {
            std::fs::create_dir(mini.path(name)).unwrap();
        }
        for (name, script) in [
            ("uv", include_str!("upstream/uv.sh")),
            ("emcc", include_str!("upstream/emcc.sh")),
            ("python3", include_str!("upstream/python.sh")),
            ("cmake", "echo 3.25.1"),
            ("ninja", "echo 1.11.0"),
            ("npm", "case $1 in --version) echo 9.0.0;; *) exit 1;; esac"),
        ] {
            let python = which::which("python3").unwrap();
            mini.write(&format!("bin/{name}.script"), script.replace("REAL_PYTHON", &python.display().to_string()));
            std::os::unix::fs::symlink(
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tool.sh"),
                mini.path("bin").join(name),
            )
            .unwrap();
        }
        std::os::unix::fs::symlink(which::which("node").unwrap(), mini.path("bin/node")).unwrap();
        for (name, value) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "cache")] {
            let value = mini.path(value).display().to_string();
            mini.set(name, &value);
        }
        let bin = mini.path("bin").display().to_string();
        mini.set("PATH", &format!("{bin}:/usr/bin:/bin"));
        mini.ffi = mini.plant();
        mini
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Replaces words in the script that stands in for a tool.
    pub fn replace_tool(&self, name: &str, from: &str, to: &str) {
        self.replace_in(&format!("bin/{name}.script"), from, to);
    }

    pub fn change_pins(&self, from: &str, to: &str) {
        self.replace_in("site/pins.toml", from, to);
    }

    fn replace_in(&self, path: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{from}");
        self.write(path, text.replace(from, to));
    }

    /// Another configuration of the model, pinned.
    pub fn configure(&self, config: &str) {
        let before = std::fs::read(self.path("site/mlc-chat-config.json")).unwrap();
        self.write("site/mlc-chat-config.json", config);
        self.change_pins(&Digest::of(&before).to_string(), &Digest::of(config.as_bytes()).to_string());
    }

    /// Another bundle of the engine, pinned.
    pub fn publish_engine(&self, bundle: &str) {
        let before = Digest::of(&std::fs::read(self.path("vendor/web-llm-1.0.0.tgz")).unwrap());
        let after = self.pack("vendor/web-llm-1.0.0.tgz", "package/lib/index.js", bundle, 0o644);
        self.change_pins(&before.to_string(), &after.to_string());
    }

    pub fn build(&self) -> Ran {
        self.build_in("work")
    }

    pub fn build_in(&self, workspace: &str) -> Ran {
        let workspace = self.path(workspace).display().to_string();
        self.run(&["build", "--pins", "pins.toml", "--workspace", &workspace])
    }

    pub fn resume_in(&self, workspace: &str) -> Ran {
        let workspace = self.path(workspace).display().to_string();
        self.run(&["build", "--pins", "pins.toml", "--workspace", &workspace, "--resume"])
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let vendor = self.path("vendor").display().to_string();
        self.start(&[arguments, &["--vendor", &vendor]].concat())
    }

    /// The program with exactly these arguments.
    pub fn start(&self, arguments: &[&str]) -> Ran {
        #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rebuild-model"))
            .args(arguments)
            .current_dir(self.path("site"))
            .env_clear()
            .envs(&self.variables)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Ran { code: output.status.code(), text }
    }

    pub fn lock(&self) -> Ran {
        self.run(&["pins", "lock", "--pins", "pins.toml"])
    }

    pub fn digest(&self, path: &str) -> Digest {
        Digest::of(&std::fs::read(self.path(path)).unwrap())
    }

    /// A delivered artifact, decoded.
    pub fn unpacked(&self, name: &str) -> String {
        let packed = std::fs::File::open(self.path(&format!("site/dist/{name}.gz"))).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn repository(&self, name: &str) -> Repository {
        let path = self.path("site/repositories").join(name);
        std::fs::create_dir_all(&path).unwrap();
        let repository = Repository::init_bare(path).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        repository
    }

    /// Makes the repositories, the packages and the pins.
    fn plant(&self) -> Oid {
        let ffi = self.repository("tvm-ffi.git");
        let ffi_source = tree(&ffi, &[("ffi.c", file(FFI))]);
        let ffi = commit_items(&ffi, &[("src", Item::Tree(ffi_source))]);
        let tvm = self.plant_tvm(ffi);
        let mlc_llm = self.plant_mlc_llm();

        let patch = format!(
            "One line for another.\n\n--- a/web/src/index.ts\n+++ b/web/src/index.ts\n@@ -1,2 +1,2 @@\n-{}\n+// patched\n {}\n",
            INDEX.lines().next().unwrap(),
            INDEX.lines().nth(1).unwrap()
        );
        let config = "{\"context_window_size\": 256}";
        let wheel = "a wheel of the compiler";
        let requirements = format!("other==1.0 --hash=sha256:{}\n", Digest::of(b"another wheel"));
        self.write("site/index.patch", &patch);
        self.write("site/mlc-chat-config.json", config);
        self.write("site/requirements.txt", &requirements);
        self.write("vendor/compiler-1.0-py3-none-any.whl", wheel);
        self.write("vendor/other-1.0-py3-none-any.whl", "another wheel");
        let esbuild = include_str!("upstream/esbuild.sh");
        let esbuild = self.pack("vendor/esbuild-1.0.0.tgz", "package/bin/esbuild", esbuild, 0o755);
        let engine = self.pack("vendor/web-llm-1.0.0.tgz", "package/lib/index.js", ENGINE, 0o644);
        let blob = |text: &str| Oid::hash_object(git2::ObjectType::Blob, text.as_bytes()).unwrap().to_string();
        let mut pins = include_str!("upstream/pins.toml").to_owned();
        for (key, value) in [
            ("@ffi", ffi.to_string()),
            ("@tvm", tvm.to_string()),
            ("@mlc", mlc_llm.to_string()),
            ("@patch", Digest::of(patch.as_bytes()).to_string()),
            ("@before", blob(INDEX)),
            ("@after", blob(PATCHED)),
            ("@config", Digest::of(config.as_bytes()).to_string()),
            ("@requirements", Digest::of(requirements.as_bytes()).to_string()),
            ("@wheel", Digest::of(wheel.as_bytes()).to_string()),
            ("@esbuild", esbuild.to_string()),
            ("@engine", engine.to_string()),
        ] {
            pins = pins.replace(key, &value);
        }
        self.write("site/pins.toml", pins);
        ffi
    }

    fn plant_tvm(&self, ffi: Oid) -> Oid {
        let tvm = self.repository("tvm.git");
        let emcc = tree(
            &tvm,
            &[
                ("decorate_as_wasi.py", file(include_str!("upstream/decorate_as_wasi.py"))),
                ("preload.js", file("// preload\n")),
                ("tvmjs_support.cc", file("tvmjs_support v1\n")),
                ("wasm_runtime.cc", file("wasm_runtime v1\n")),
                ("webgpu_runtime.cc", file("webgpu_runtime v1\n")),
            ],
        );
        let source = tree(&tvm, &[("index.ts", file(INDEX))]);
        let web =
            tree(&tvm, &[("emcc", Item::Tree(emcc)), ("src", Item::Tree(source)), ("tsconfig.json", file("{}\n"))]);
        let parties = tree(&tvm, &[("tvm-ffi", Item::Submodule(ffi))]);
        let modules = "[submodule \"ffi\"]\n\tpath = 3rdparty/tvm-ffi\n\turl = ../tvm-ffi.git\n";
        commit_items(
            &tvm,
            &[(".gitmodules", file(modules)), ("3rdparty", Item::Tree(parties)), ("web", Item::Tree(web))],
        )
    }

    fn plant_mlc_llm(&self) -> Oid {
        let mlc_llm = self.repository("mlc-llm.git");
        let library = library().bytes().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let compiler = include_str!("upstream/mlc_llm.py").replace("@library", &library);
        let package = tree(&mlc_llm, &[("__init__.py", file("")), ("__main__.py", file(&compiler))]);
        let python = tree(&mlc_llm, &[("mlc_llm", Item::Tree(package))]);
        let emcc = tree(&mlc_llm, &[("mlc_wasm_runtime.cc", file("mlc_wasm_runtime v1\n"))]);
        let web = tree(&mlc_llm, &[("emcc", Item::Tree(emcc))]);
        // An older TVM is recorded than the one that the pins put there.
        let recorded = Oid::from_str("00000000000000000000000000000000000000ff").unwrap();
        let parties = tree(&mlc_llm, &[("tvm", Item::Submodule(recorded))]);
        let modules = "[submodule \"tvm\"]\n\tpath = 3rdparty/tvm\n\turl = ../gone.git\n";
        commit_items(
            &mlc_llm,
            &[
                (".gitmodules", file(modules)),
                ("3rdparty", Item::Tree(parties)),
                ("python", Item::Tree(python)),
                ("web", Item::Tree(web)),
            ],
        )
    }

    /// The compiler as an archive of Emscripten's layout, pinned, and none on PATH.
    pub fn archive_emcc(&self) {
        let script = include_str!("upstream/emcc.sh");
        let emcc = format!(
            "#!/bin/sh\nmkdir -p \"${{0%/*}}/__pycache__\" && echo $$ > \"${{0%/*}}/__pycache__/emcc.pyc\"\n\
             [ -e \"$EM_CONFIG\" ] && [ -e \"$EM_LLVM_ROOT/clang\" ] && [ \"$EM_BINARYEN_ROOT/bin\" = \"$EM_LLVM_ROOT\" ] || exit 9\n\
             mkdir -p \"$EM_CACHE\" && : > \"$EM_CACHE/libc.a\"\n{script}"
        );
        let members = [
            ("install/bin/clang", "", 0o755),
            ("install/emscripten/emcc", emcc.as_str(), 0o755),
            ("install/emscripten/tools/config_template.py", "", 0o644),
        ];
        let digest = self.pack_all("vendor/emscripten.tar.gz", &members);
        std::fs::remove_file(self.path("bin/emcc")).unwrap();
        let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        let archive = format!(
            "{{ url = \"https://upstream.invalid/emscripten.tar.gz\", sha256 = \"{digest}\", \
             program = \"install/emscripten/emcc\" }}"
        );
        self.change_pins("emcc = { ", &format!("emcc = {{ archive.{platform} = {archive}, "));
    }

    /// Packs one file as npm does, and gives the archive's digest.
    fn pack(&self, archive: &str, member: &str, content: &str, mode: u32) -> Digest {
        self.pack_all(archive, &[(member, content, mode)])
    }

    fn pack_all(&self, archive: &str, members: &[(&str, &str, u32)]) -> Digest {
        let mut packed = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()));
        for (member, content, mode) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(*mode);
            header.set_cksum();
            packed.append_data(&mut header, Path::new(member), content.as_bytes()).unwrap();
        }
        let mut encoder = packed.into_inner().unwrap();
        encoder.flush().unwrap();
        let bytes = encoder.finish().unwrap();
        self.write(archive, &bytes);
        Digest::of(&bytes)
    }
}
