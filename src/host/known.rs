//! What is known of particular tools: their names, how they are asked, what they need.

use std::collections::BTreeMap;
use std::path::Path;

use super::tool::ask_text;
use crate::interrupt::Interrupt;
use crate::step::Template;

/// How a tool is found and questioned.
#[derive(Debug)]
pub(super) struct Probe {
    /// Names that it goes by, most exact first; its own when there is none.
    programs: &'static [&'static str],
    /// Ways of asking for the version; a wrapper that lies usually knows only one of them.
    pub(super) questions: &'static [&'static [&'static str]],
    /// A question whose answer is the path of the real program behind a launcher.
    pub(super) real_path: Option<&'static [&'static str]>,
    /// Files beside the program that say what it launches.
    pub(super) companions: &'static [&'static str],
    /// Gives what the host's tool, which lies at this path, needs in its environment.
    pub(super) environment: fn(&Path, &Interrupt) -> BTreeMap<String, Template>,
    /// Gives the same of a copy that was unpacked from an archive.
    pub(super) unpacked_environment: fn(&Path) -> BTreeMap<String, Template>,
}

/// Of a tool that nothing particular is known of.
const ANY: Probe = Probe {
    programs: &[],
    questions: &[&["--version"]],
    real_path: None,
    companions: &[],
    environment: |_, _| BTreeMap::new(),
    unpacked_environment: |_| BTreeMap::new(),
};

const PYTHON_VERSION: &str = "import platform; print(platform.python_version())";
const PYTHON_PATH: &str = "import sys; print(sys.executable)";

/// What stands on `PATH` may be a launcher (pyenv, asdf) that looks elsewhere in another environment.
const PYTHON: Probe = Probe {
    programs: &["python3", "python"],
    questions: &[&["--version"], &["-c", PYTHON_VERSION]],
    real_path: Some(&["-c", PYTHON_PATH]),
    ..ANY
};

/// `emcc` is a launcher that is the same in many versions.
const EMCC: Probe = Probe {
    questions: &[&["--version"], &["-dumpversion"]],
    companions: &["emscripten-version.txt", "emcc.py"],
    environment: emscripten_cache,
    unpacked_environment: unpacked_emscripten,
    ..ANY
};

const NODE: Probe =
    Probe { programs: &["node", "nodejs"], questions: &[&["--version"], &["-p", "process.versions.node"]], ..ANY };

const CC: Probe = Probe { programs: &["cc", "gcc", "clang"], ..ANY };
const CXX: Probe = Probe { programs: &["c++", "g++", "clang++"], ..ANY };

/// What is known of the tool called `name`.
pub(super) fn probe_of(name: &str) -> &'static Probe {
    match name {
        "python" => &PYTHON,
        "emcc" => &EMCC,
        "node" => &NODE,
        "cc" => &CC,
        "cxx" => &CXX,
        _ => &ANY,
    }
}

impl Probe {
    /// The programs that the tool called `name` may be.
    pub(super) fn programs<'a>(&self, name: &'a str) -> Vec<&'a str> {
        if self.programs.is_empty() { vec![name] } else { self.programs.to_vec() }
    }
}

/// A frozen cache, such as Debian's, holds every system library already and is never written; an
/// empty one in its place would fail. Any other cache may be read-only or raced for by other builds,
/// so the build gets its own.
fn emscripten_cache(emcc: &Path, interrupt: &Interrupt) -> BTreeMap<String, Template> {
    let frozen = ask_text(&emcc.with_file_name("em-config"), &["FROZEN_CACHE"], interrupt);
    if frozen.is_ok_and(|answer| answer.trim() == "True") {
        return BTreeMap::new();
    }
    private_cache().collect()
}

fn private_cache() -> impl Iterator<Item = (String, Template)> {
    let private = "${cache}/emscripten".parse();
    private.into_iter().map(|place| ("EM_CACHE".to_owned(), place))
}

/// Emscripten's own archives hold `bin`, `lib` and `emscripten` side by side, and no configuration:
/// emsdk writes that, with paths of the host. Variables set the same, but are only looked at beside a
/// file, so the template that the archive carries serves as one.
fn unpacked_emscripten(emcc: &Path) -> BTreeMap<String, Template> {
    let mut environment: BTreeMap<String, Template> = private_cache().collect();
    let place =
        emcc.parent().and_then(|directory| Some((directory.join("tools/config_template.py"), directory.parent()?)));
    if let Some((template, root)) = place
        && template.is_file()
    {
        let literal = |path: &Path| Template::literal(path.display().to_string());
        environment.insert("EM_CONFIG".to_owned(), literal(&template));
        environment.insert("EM_LLVM_ROOT".to_owned(), literal(&root.join("bin")));
        environment.insert("EM_BINARYEN_ROOT".to_owned(), literal(root));
        environment.insert("EM_NODE_JS".to_owned(), Template::literal("node"));
    }
    environment
}

/// What the tool called `name` needs in its environment when it was unpacked to `path`.
pub fn unpacked_environment(name: &str, path: &Path) -> BTreeMap<String, Template> {
    (probe_of(name).unpacked_environment)(path)
}
