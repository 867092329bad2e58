//! A model of nothing, tools that stand in for large ones, and runs of the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rebuild_model::digest::Digest;
use tempfile::TempDir;

use crate::onnx::{Message, good, model};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tool.sh");

/// A whole world: model, tools, pins.
pub struct Mini {
    root: TempDir,
    variables: BTreeMap<String, String>,
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
        let mut mini = Self { root: tempfile::tempdir().unwrap(), variables: BTreeMap::new() };
        for name in ["home", "bin", "tmp", "vendor", "site"] {
            std::fs::create_dir(mini.path(name)).unwrap();
        }
        let python = which::which("python3").unwrap().display().to_string();
        for (name, script) in [
            ("uv", include_str!("upstream/uv.sh")),
            ("venv", include_str!("upstream/venv.sh")),
            ("python3", include_str!("upstream/python.sh")),
            ("npm", "case $1 in --version) echo 9.0.0;; *) exit 1;; esac"),
        ] {
            let world = mini.root.path().display().to_string();
            let script = script.replace("REAL_PYTHON", &python).replace("WORLD", &world).replace("TOOL", TOOL);
            mini.write(&format!("bin/{name}.script"), script);
            if name != "venv" {
                std::os::unix::fs::symlink(TOOL, mini.path("bin").join(name)).unwrap();
            }
        }
        let bin = mini.path("bin").display().to_string();
        for (name, value) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "cache")] {
            let value = mini.path(value).display().to_string();
            mini.variables.insert(name.to_owned(), value);
        }
        mini.variables.insert("PATH".to_owned(), format!("{bin}:/usr/bin:/bin"));
        for module in ["torch", "transformers", "onnx", "onnxruntime", "tokenizers"] {
            mini.write(&format!("modules/{module}.py"), "__version__ = '1.0'\n");
        }
        mini.export(&good());
        mini.plant();
        mini
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// What the export makes, and so what is delivered.
    pub fn export(&self, parts: &[(u64, Message)]) {
        self.write("exported.onnx", model(parts));
    }

    /// Another file of the model, pinned.
    pub fn replace_pinned(&self, name: &str, content: &str) {
        let path = format!("site/model/{name}");
        let before = Digest::of(&std::fs::read(self.path(&path)).unwrap()).to_string();
        self.write(&path, content);
        self.change_pins(&before, &Digest::of(content.as_bytes()).to_string());
    }

    pub fn change_pins(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path("site/pins.toml")).unwrap();
        assert!(text.contains(from), "{from}");
        self.write("site/pins.toml", text.replace(from, to));
    }

    pub fn build(&self) -> Ran {
        self.build_in("work")
    }

    pub fn build_in(&self, workspace: &str) -> Ran {
        let workspace = self.path(workspace).display().to_string();
        let (vendor, hub) = (self.path("vendor").display().to_string(), self.path("hub").display().to_string());
        let mirror = format!("https://models.invalid={hub}");
        self.run(&["build", "--pins", "pins.toml", "--workspace", &workspace, "--vendor", &vendor, "--mirror", &mirror])
    }

    /// Runs the program beside the pins.
    pub fn run(&self, arguments: &[&str]) -> Ran {
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

    fn plant(&self) {
        let words: Vec<String> = (0..7).map(|id| format!("\"w{id}\": {id}")).collect();
        let added = "[{\"id\": 7, \"content\": \"end\"}]";
        let tokenizer = format!("{{\"added_tokens\": {added}, \"model\": {{\"vocab\": {{{}}}}}}}", words.join(", "));
        let config = "{\"model_type\": \"gpt_neo\", \"vocab_size\": 8, \"max_position_embeddings\": 16}";
        let weights = "PK\u{3}\u{4} an archive of torch";
        let requirements = format!("torch==1.0 --hash=sha256:{}\n", Digest::of(b"a wheel"));
        self.write("vendor/torch-1.0-py3-none-any.whl", "a wheel");
        let mut pins = include_str!("upstream/pins.toml").to_owned();
        for (key, path, content) in [
            ("@config", "model/config.json", config),
            ("@weights", "model/pytorch_model.bin", weights),
            ("@tokenizer", "model/tokenizer.json", &tokenizer),
            ("@requirements", "requirements.txt", &requirements),
        ] {
            self.write(&format!("site/{path}"), content);
            pins = pins.replace(key, &Digest::of(content.as_bytes()).to_string());
        }
        pins = pins.replace("@runtime", &self.pack().to_string());
        self.write("site/pins.toml", pins);
    }

    /// Packs the files of the web's runtime as npm does, and gives the archive's digest.
    fn pack(&self) -> Digest {
        let mut packed = tar::Builder::new(Vec::new());
        for name in ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm", "ort.all.min.js"]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(name.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            packed.append_data(&mut header, Path::new("package/dist").join(name), name.as_bytes()).unwrap();
        }
        let bytes = packed.into_inner().unwrap();
        self.write("vendor/onnxruntime-web-1.0.0.tgz", &bytes);
        Digest::of(&bytes)
    }
}
