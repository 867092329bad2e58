//! A miniature of the example: the same recipe and so the same steps, with inputs of a few bytes and
//! scripts in place of compilers.

use std::io::Write;

use git2::{Oid, Repository};
use rebuild_model::digest::Digest;
use zip::write::SimpleFileOptions;

use crate::env::TestEnv;
use crate::repositories::{Item, commit_items, file, tree};
use crate::small_library::{METADATA, SmallLibrary};

/// A pack source's content enters the library, so that a change of input changes the output.
const TVM: [(&str, &str); 9] = [
    ("tvm/include/tvm.h", "// tvm\n"),
    ("tvm/src/runtime/runtime.cc", "// runtime\n"),
    ("tvm/web/emcc/ffi_pack.cc", "ffi pack\n"),
    ("tvm/web/emcc/vm_pack.cc", "vm pack\n"),
    ("tvm/web/emcc/wasm_runtime.cc", "wasm runtime\n"),
    ("tvm/web/emcc/webgpu_runtime.cc", "webgpu runtime\n"),
    ("tvm/web/emcc/tvmjs_support.cc", "tvmjs support\n"),
    ("tvm/web/src/index.ts", "one\ntwo\nthree\n"),
    ("tvm/web/tsconfig.json", "{}\n"),
];

const FFI: [(&str, &str); 3] = [
    ("tvm_ffi/include/ffi.h", "// ffi\n"),
    ("tvm_ffi/src/ffi.cc", "// ffi\n"),
    ("tvm_ffi/lib/libtvm_ffi.so", "the wheel's own\n"),
];

pub const PATCH: &str = "\
--- a/tvm/web/src/index.ts
+++ b/tvm/web/src/index.ts
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
";

const PYTHON: &str = r#"case "$*" in
  --version) echo 'Python 3.11.7'; exit;;
  *python_version*) echo 3.11.7; exit;;
  *sys.executable*) echo "$0"; exit;;
esac
# work
dest= links= want=
case "$*" in *"pip download"*)
  for word in "$@"; do case "$word" in *==*) want=$(echo "$word" | tr - _ | sed 's/==/-/');; esac; done
  while [ $# -gt 0 ]; do
    case "$1" in --dest) dest=$2;; --find-links) links=$2;; esac
    shift
  done
  if [ -n "$links" ]; then cp "$links"/*.whl "$dest"; else cp "${0%/bin/*}/vendor/$want"-*.whl "$dest"; fi;;
esac"#;

const EMCC: &str = r#"case "$1" in
  --version) echo 'emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) 3.1.6 ()'; exit;;
  -dumpversion) echo 3.1.6; exit;;
esac
# work
out= inputs=
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2; shift;; --js-library) shift;; -x) shift;; -*) ;; *) inputs="$inputs $1";; esac
  shift
done
cat $inputs > "$out"
case "$out" in *.wasm)
  # A library, with what it is made from in a section of its own.
  byte() { printf "\\$(printf %03o $1)"; }
  size=$(($(wc -c < "$out") + 7))
  {
    cat "${0%/*}/library.wasm"
    printf '\000'
    byte $((size & 127 | 128)); byte $((size >> 7 & 127 | 128)); byte $((size >> 14 & 127))
    printf '\006inputs'
    cat "$out"
  } > "$out.whole"
  mv "$out.whole" "$out";;
esac"#;

const CXX: &str = r#"case "$1" in --version) echo 'c++ (GCC) 12.2.0'; exit;; esac
# work
while [ $# -gt 0 ]; do case "$1" in -o) out=$2;; esac; shift; done
cp LIBRARY "$out""#;

pub const UV: &str = r#"case "$1" in --version) echo 'uv 0.9.1'; exit;; esac
# work
case "$1" in venv)
  for out in "$@"; do :; done
  mkdir -p "$out/bin"
  cat > "$out/bin/python" <<'END'
#!/bin/sh
module=$2
while [ $# -gt 0 ]; do case "$1" in --out) out=$2;; esac; shift; done
case "$module" in
  *.compile) for name in devc.o lib0.o metadata.json; do echo "$name" > "$out/$name"; done;;
  *.weights) mkdir "$out"; echo 0123456789 > "$out/params_shard_0.bin"; echo '{"records": []}' > "$out/tensor-cache.json";;
esac
END
  chmod +x "$out/bin/python";;
esac"#;

const ESBUILD: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --outfile=*) out=${word#--outfile=};; esac; done
cat "$1" > "$out"
"#;

/// An environment with everything that a build needs, `pins.toml` in `site`.
pub fn mini() -> TestEnv {
    let env = TestEnv::new();
    add_tools(&env);
    let repositories = add_repositories(&env);
    let tvm = zip(&TVM);
    let ffi = zip(&FFI);
    let esbuild = tgz("package/bin/esbuild", ESBUILD);
    let one = zip(&[("one.py", "")]);
    let requirements = format!("one==1.0 --hash=sha256:{}\n", Digest::of(&one));
    env.write("vendor/apache_tvm-1.0-py3-none-any.whl", &tvm);
    env.write("vendor/apache_tvm_ffi-1.0-py3-none-any.whl", &ffi);
    env.write("vendor/linux-x64-1.0.0.tgz", &esbuild);
    env.write("vendor/one-1.0-py3-none-any.whl", &one);
    env.write("bin/library.wasm", library().bytes());
    env.write("site/requirements.txt", &requirements);
    env.write("site/patches/two.patch", PATCH);
    let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
    let blob = |text: &str| Oid::hash_object(git2::ObjectType::Blob, text.as_bytes()).unwrap().to_string();
    let pins = PINS
        .replace("MODEL", &repositories.model.to_string())
        .replace("ADAPTER", &repositories.adapter.to_string())
        .replace("RECORDED", &repositories.recorded.to_string())
        .replace("OVERLAY", &repositories.overlay.to_string())
        .replace("TVM_SHA", &digest(&tvm))
        .replace("FFI_SHA", &digest(&ffi))
        .replace("ESBUILD_SHA", &digest(&esbuild))
        .replace("PATCH_SHA", &digest(PATCH.as_bytes()))
        .replace("BEFORE", &blob("one\ntwo\nthree\n"))
        .replace("AFTER", &blob("one\nTWO\nthree\n"))
        .replace("REQUIREMENTS_SHA", &digest(requirements.as_bytes()));
    env.write("site/pins.toml", pins);
    env
}

/// The library that the stand-in of emcc links: of a model without parameters, in need of nothing.
pub fn library() -> SmallLibrary {
    let params = METADATA.find("\"params\"").unwrap()..METADATA.find(", \"memory_usage\"").unwrap();
    let metadata = METADATA.replace(&METADATA[params], "\"params\": []");
    SmallLibrary { metadata: vec![metadata], imports: Vec::new(), ..SmallLibrary::default() }
}

const PINS: &str = r#"# The miniature.
schema = 1

[recipe.tvm-webgpu]
model = "decoder"
max_batch_size = 1
ffi_version = "1.0.0"
ffi_exports = ["_Unwind_Backtrace"]

[git.decoder]
url = "./repositories/decoder.git"
commit = "MODEL"

[git.decoder.submodules]
"3rdparty/adapter" = { commit = "ADAPTER" }
"3rdparty/overlay" = { commit = "RECORDED", source = "overlay" } # a newer one

[git.overlay]
url = "./repositories/overlay.git"
commit = "OVERLAY"

[package.apache-tvm]
registry = "pypi"
name = "apache-tvm"
version = "1.0"
files = [{ platform = "any", file = "apache_tvm-1.0-py3-none-any.whl", sha256 = "TVM_SHA" }]

[package.apache-tvm-ffi]
registry = "pypi"
name = "apache-tvm-ffi"
version = "1.0"
files = [{ platform = "any", file = "apache_tvm_ffi-1.0-py3-none-any.whl", sha256 = "FFI_SHA" }]

[package.esbuild]
registry = "npm"
name = "@esbuild/linux-x64"
version = "1.0.0"
files = [{ platform = "any", file = "linux-x64-1.0.0.tgz", sha256 = "ESBUILD_SHA" }]

[patch.two]
file = "patches/two.patch"
sha256 = "PATCH_SHA" # of the text
target = "apache-tvm"

[patch.two.images]
"tvm/web/src/index.ts" = { before = "BEFORE", after = "AFTER" }

[python]
version = "3.11"
requirements = "requirements.txt"
sha256 = "REQUIREMENTS_SHA"

[tool.emcc]
version = ">=3.1.6"
install = "install Emscripten 3.1.6 or newer"

[tool.cxx]
version = ">=9"

[tool.uv]
version = ">=0.4"

[tool.npm]
version = ">=8"

[packaging]
destination = "dist"
manifest = "dist/manifest.json"
"#;

fn add_tools(env: &TestEnv) {
    // A library that certainly exports something is the one that this test itself is linked to.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.split_whitespace().find(|word| word.contains("/libgcc_s.so")).expect("libgcc_s");
    env.tool("python3", PYTHON);
    env.tool("emcc", EMCC);
    env.tool("c++", &CXX.replace("LIBRARY", library));
    env.tool("uv", UV);
    env.tool("npm", "echo 10.0.0");
}

struct Repositories {
    model: Oid,
    adapter: Oid,
    recorded: Oid,
    overlay: Oid,
}

fn add_repositories(env: &TestEnv) -> Repositories {
    let make = |name: &str| {
        let repository = Repository::init_bare(env.path("site/repositories").join(name)).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        repository
    };
    let adapter = commit_items(&make("adapter.git"), &[("tvmjs_runtime_wasi.js", file("// wasi\n"))]);
    let overlay_repository = make("overlay.git");
    let recorded = commit_items(&overlay_repository, &[("README", file("not finished\n"))]);
    let of = |name, text| Item::Tree(tree(&overlay_repository, &[(name, file(text))]));
    let native = tree(&overlay_repository, &[("check.py", file("")), ("tvm_ffi.cc", file("// native\n"))]);
    let overlay = commit_items(
        &overlay_repository,
        &[
            ("link", of("imports.js", "// imports\n")),
            ("native", Item::Tree(native)),
            ("tvm", of("lacking.h", "// lacking\n")),
        ],
    );
    let decoder = make("decoder.git");
    let modules = "[submodule \"a\"]\n\tpath = 3rdparty/adapter\n\turl = ../adapter.git\n\
                   [submodule \"o\"]\n\tpath = 3rdparty/overlay\n\turl = ../overlay.git\n";
    let third = tree(&decoder, &[("adapter", Item::Submodule(adapter)), ("overlay", Item::Submodule(recorded))]);
    let model = commit_items(
        &decoder,
        &[(".gitmodules", file(modules)), ("3rdparty", Item::Tree(third)), ("config.json", file("{}\n"))],
    );
    Repositories { model, adapter, recorded, overlay }
}

fn zip(members: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default().unix_permissions(0o644)).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub fn tgz(name: &str, content: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}
