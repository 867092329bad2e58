//! Do library and browser module fit each other?

use super::{Findings, list};
use crate::artifact::browser::BrowserModule;
use crate::artifact::library::Library;
use crate::artifact::wasm::PAGE;
use crate::pins::Rule;

/// What a memory without a maximum can grow to (WebAssembly JavaScript interface: 65536 pages).
const MOST_PAGES: u64 = 65536;

/// Exports that TVM's loader needs whatever the module's text says.
const ALWAYS: [&str; 1] = ["memory"];

pub(super) fn judge(library: &Library, browser: Option<&BrowserModule>, findings: &mut Findings<'_>) {
    if let Some(browser) = browser {
        judge_imports(library, browser, findings);
    }
    judge_exports(library, browser, findings);
    judge_memory(library, findings);
}

fn judge_imports(library: &Library, browser: &BrowserModule, findings: &mut Findings<'_>) {
    let mut silent = Vec::new();
    for import in &library.imports {
        let Some(provided) = browser.provides.get(&import.module) else {
            if !silent.contains(&&import.module) {
                silent.push(&import.module);
                let message = format!(
                    "the library imports from `{}`, and the browser module provides nothing there that could be found",
                    import.module
                );
                let hint = "no object literal in the module is its import object: is it TVM's, with an adapter, and not minified?";
                findings.error(Rule::Imports, message, Some(hint));
            }
            continue;
        };
        if import.kind != "function" {
            let message = format!(
                "expected the library to import functions only, it imports the {} {}",
                import.kind, import.name
            );
            findings.error(Rule::Imports, message, None);
        } else if !provided.contains(&import.name) {
            let message = format!(
                "the library imports {}.{}, which the browser module does not provide",
                import.module, import.name
            );
            findings.error(Rule::Imports, message, Some(explain(&import.name)));
        }
    }
}

/// Why a library may import what no page provides. The linker only warns of an undefined symbol
/// (`ERROR_ON_UNDEFINED_SYMBOLS=0`), and makes an import of it.
fn explain(name: &str) -> &'static str {
    match name {
        "TVMFFIGetCustomAllocator" | "TVMFFISetCustomAllocator" => {
            "web/emcc/wasm_runtime.cc lacks `#include \"3rdparty/tvm-ffi/src/ffi/custom_allocator.cc\"`; the page dies at its first look-up of a function"
        }
        _ if name.starts_with("invoke_")
            || name.starts_with("__cxa_")
            || name.starts_with("_Unwind")
            || name == "getTempRet0"
            || name == "setTempRet0" =>
        {
            "some object was compiled with exceptions and the library was linked without them"
        }
        _ if name.starts_with("TVM") || name.starts_with("_ZN") => {
            "a symbol that no object defines: a part of the runtime was not linked, or is of another version than the compiler"
        }
        _ if name.starts_with("emscripten_") || name.starts_with("__syscall") || name.starts_with("_emscripten") => {
            "a service of Emscripten's JavaScript that TVM's environment does not have; something that needs a file system, threads or the page was linked in"
        }
        _ => "the adapter lacks it, or a symbol is undefined: the linker makes an import of either",
    }
}

fn judge_exports(library: &Library, browser: Option<&BrowserModule>, findings: &mut Findings<'_>) {
    let required = browser.iter().flat_map(|browser| browser.requires.iter().map(String::as_str)).chain(ALWAYS);
    let mut missing: Vec<&str> =
        required.filter(|name| !library.exports.iter().any(|export| export.name == *name)).collect();
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        let message = format!("the library does not export what the browser module calls: {}", list(&missing));
        let hint =
            "library and module are of different versions, or the linker dropped what nothing in the library calls";
        findings.error(Rule::Exports, message, Some(hint));
    }
}

fn judge_memory(library: &Library, findings: &mut Findings<'_>) {
    let [memory] = library.memories.as_slice() else {
        let message = format!("expected one memory, found {}", library.memories.len());
        return findings.error(Rule::Memory, message, None);
    };
    if memory.imported {
        let hint = "TVM's loader gives none: link without IMPORTED_MEMORY and without threads";
        findings.error(Rule::Memory, "expected a memory of its own, the library imports it".to_owned(), Some(hint));
    }
    if memory.shared {
        let hint = "a page may share memory only when it is cross-origin isolated: link without threads";
        findings.error(
            Rule::Memory,
            "expected a memory of its own, found one that threads share".to_owned(),
            Some(hint),
        );
    }
    if memory.wide {
        let hint = "TVM's loader computes with addresses of 32 bits: link without MEMORY64";
        findings.error(Rule::Memory, "expected addresses of 32 bits, found 64".to_owned(), Some(hint));
    }
    let bytes = memory.minimum.saturating_mul(PAGE);
    if bytes < library.data_end {
        let message = format!("the memory begins with {bytes} bytes, but the data ends at {}", library.data_end);
        findings.error(Rule::Memory, message, Some("the module cannot be instantiated"));
    }
    let maximum = memory.maximum.unwrap_or(MOST_PAGES);
    if maximum <= memory.minimum {
        let message =
            format!("expected a memory that can grow, found one that begins and ends with {} pages", memory.minimum);
        findings.error(
            Rule::Memory,
            message,
            Some("link with -sALLOW_MEMORY_GROWTH=1: caches are allocated at run time"),
        );
    }
}
