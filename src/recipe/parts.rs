//! Parts of plans that several recipes share: the compiler's Python, the browser's runtime from the
//! sources in the wheels, the link of a model library and the browser module.

use super::draft::{Draft, cost};
use crate::plan::PlanError;

type Result = std::result::Result<(), PlanError>;

/// The interpreter of the environment that [`python`] makes.
pub(super) const PYTHON: &str = "${step:python/venv}/bin/python";

const SIGN: &str = include_str!("parts/sign.py");

/// Steps `wheels` and `python`: a Python environment with the pinned wheels and nothing else.
pub(super) fn python(draft: &mut Draft<'_>) -> Result {
    python_of_size(draft, 120, 400)
}

/// [`python`], where the wheels and what is installed of them have about these sizes in MiB.
pub(super) fn python_of_size(draft: &mut Draft<'_>, wheels_mib: u32, installed_mib: u32) -> Result {
    draft.wheels("wheels", cost(8, 128, wheels_mib))?;
    let mut install = vec!["${tool:uv}", "pip", "install", "--quiet", "--python", "${out}/venv/bin/python"];
    install.extend(FROM_WHEELS);
    install.extend(["--require-hashes", "-r", "${step:wheels/requirements.txt}"]);
    let signs = draft.is_macos();
    let mut step = draft
        .run("python", "make the Python environment")
        // Otherwise uv notes the time stamps of the wheels that it installed from.
        .env("UV_NO_INSTALLER_METADATA", "1")
        .command(&[
            "${tool:uv}",
            "venv",
            "--quiet",
            "--no-config",
            "--no-cache",
            "--relocatable",
            "--python",
            "${tool:python}",
            "${out}/venv",
        ])
        .command(&install);
    if signs {
        step = step.command(&["${out}/venv/bin/python", "-c", SIGN, "${out}/venv"]);
    }
    step.makes(&["venv"], cost(3, 128, installed_mib))
}

/// What makes uv install from the pinned wheels alone.
pub(super) const FROM_WHEELS: [&str; 9] = [
    "--no-config",
    "--no-cache",
    "--offline",
    "--link-mode",
    "copy",
    "--no-deps",
    "--no-index",
    "--find-links",
    "${step:wheels/wheels}",
];

/// Steps `sources` and `patched`: the browser's runtime as the apache-tvm and apache-tvm-ffi wheels
/// have it, with `more` laid over it, in `tree/tvm`. The packages are unpacked by the caller.
pub(super) fn runtime_sources(draft: &mut Draft<'_>, more: &[(&str, &str)]) -> Result {
    let mut copies = vec![
        ("${step:apache-tvm/tree/tvm/include}", "tree/tvm/include"),
        ("${step:apache-tvm/tree/tvm/src/runtime}", "tree/tvm/src/runtime"),
        ("${step:apache-tvm/tree/tvm/web/emcc}", "tree/tvm/web/emcc"),
        ("${step:apache-tvm/tree/tvm/web/src}", "tree/tvm/web/src"),
        ("${step:apache-tvm/tree/tvm/web/tsconfig.json}", "tree/tvm/web/tsconfig.json"),
        ("${step:apache-tvm-ffi/tree/tvm_ffi/include}", "tree/tvm/3rdparty/tvm-ffi/include"),
        ("${step:apache-tvm-ffi/tree/tvm_ffi/src}", "tree/tvm/3rdparty/tvm-ffi/src"),
    ];
    copies.extend(more);
    draft.collect("sources", "lay the sources of the runtime together", &copies, cost(1, 64, 8))?;
    draft.patch("patched", "apache-tvm", "${step:sources/tree}", cost(1, 64, 8))
}

/// The directories of the apache-tvm wheel that [`runtime_sources`] reads.
pub(super) const RUNTIME_DIRECTORIES: [&str; 3] = ["tvm/include/", "tvm/src/runtime/", "tvm/web/"];

/// What makes a link give a library without a page of its own.
const STANDALONE: [&str; 4] = ["--no-entry", "-sSTANDALONE_WASM=1", "-sWASM_BIGINT=1", "-sALLOW_MEMORY_GROWTH=1"];

/// Step `emscripten`.
pub(super) fn emscripten(draft: &mut Draft<'_>) -> Result {
    // A compiler that cannot compile nothing is found out before anything waits for it, and the system
    // libraries, which an Emscripten with an empty cache compiles when it links, are there before two
    // links want them.
    let mut link = vec!["${tool:emcc}"];
    link.extend(STANDALONE);
    link.extend(["${out}/empty.o", "-o", "${tmp}/empty.wasm"]);
    draft
        .run("emscripten", "try the toolchain and warm its cache")
        .command(&["${tool:emcc}", "-x", "c++", "/dev/null", "-c", "-o", "${out}/empty.o"])
        .command(&link)
        .makes(&["empty.o"], cost(1, 128, 1))
}

/// A step of [`compile_runtime`].
pub(super) struct Unit<'a> {
    /// The step's id.
    pub id: &'a str,
    /// Stems of files in `web/emcc`.
    pub sources: &'a [&'a str],
    /// Its expected processor time in seconds.
    pub cpu_s: u32,
}

/// How the browser's runtime is compiled.
pub(super) struct Flavour<'a> {
    /// The root of TVM's sources, a template.
    pub root: &'a str,
    /// Flags before the include paths.
    pub flags: &'a [&'a str],
    /// Include paths from `root`, as flags.
    pub includes: &'a [&'a str],
    /// `o` or `bc`.
    pub suffix: &'a str,
}

/// Steps that compile parts of the browser's runtime, side by side.
pub(super) fn compile_runtime(draft: &mut Draft<'_>, flavour: &Flavour<'_>, units: &[Unit<'_>]) -> Result {
    for unit in units {
        let mut step = draft
            .run(unit.id, "compile a part of the browser's runtime")
            // Relative include paths from the tree's root: macros such as __PRETTY_FUNCTION__ keep the
            // path that the compiler was given, and prefix maps do not reach them.
            .directory(flavour.root)
            .after("emscripten", "empty.o");
        let outputs: Vec<String> = unit.sources.iter().map(|source| format!("{source}.{}", flavour.suffix)).collect();
        for (source, output) in unit.sources.iter().zip(&outputs) {
            let (from, to) = (format!("web/emcc/{source}.cc"), format!("${{out}}/{output}"));
            let mut words = vec!["${tool:emcc}"];
            words.extend(flavour.flags);
            words.extend(flavour.includes);
            words.extend(["-c", &from, "-o", &to]);
            step = step.command(&words);
        }
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        step.makes(&outputs, cost(unit.cpu_s, 384, 8))?;
    }
    Ok(())
}

/// Runtime objects from the sources in the wheels and what was added to them.
pub(super) fn runtime_objects(draft: &mut Draft<'_>, units: &[Unit<'_>]) -> Result {
    let flavour = Flavour {
        root: "${step:patched/tree}/tvm",
        // -Os compiles in two thirds of -O2's time, and the kernels run on the GPU.
        flags: &["-Os", "-std=c++17", "-Wno-ignored-attributes", "-ffile-prefix-map=${step:patched/tree}=."],
        includes: &["-I.", "-Iinclude", "-I3rdparty/tvm-ffi/include"],
        suffix: "o",
    };
    compile_runtime(draft, &flavour, units)
}

/// A step that links `objects` to the model library `library`. `imports` is the list of what the
/// page's TVM module provides.
pub(super) fn link(draft: &mut Draft<'_>, id: &str, library: &str, imports: &str, objects: &[&str]) -> Result {
    let to = format!("${{out}}/{library}");
    let mut words = vec![
        "${tool:emcc}",
        "-O1",
        "-Wl,--strip-all",
        // An import that the page does not provide must fail here, not at the visitor.
        "-sERROR_ON_UNDEFINED_SYMBOLS=1",
        "--js-library",
        imports,
    ];
    words.extend(STANDALONE);
    words.extend(objects);
    words.extend(["-o", &to]);
    draft.run(id, "link the model library").command(&words).makes(&[library], cost(2, 256, 8))
}

/// Step `browser`: TVM's browser module as one `CommonJS` file. `web` is TVM's directory of that name,
/// with the WASI adapter in its `src`.
pub(super) fn browser_module(draft: &mut Draft<'_>, web: &str) -> Result {
    draft.package("esbuild", 1, &["bin/"], &[])?;
    // What only Node has stays out; the browser never gets to those imports.
    let bundle = [
        "${step:esbuild/tree}/bin/esbuild",
        "src/index.ts",
        "--bundle",
        "--format=cjs",
        "--platform=browser",
        "--log-level=warning",
        "--external:fs",
        "--external:path",
        "--external:ws",
        "--external:perf_hooks",
        "--external:crypto",
        "--external:node:*",
        "--outfile=${out}/tvmjs.cjs",
    ];
    draft
        .run("browser", "bundle the browser module")
        .directory(web)
        .command(&bundle)
        .makes(&["tvmjs.cjs"], cost(1, 128, 1))
}
