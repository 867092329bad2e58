//! What is judged before anything is packaged, and against what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Template;
use crate::pins::{Name, RelativePath, Rule};

/// See [`Action::Gate`](super::Action::Gate). Output: `gate.json`, what was found.
///
/// Every rule of [`Rule`] holds; what this machine is called, which no file may tell, is known only
/// where the step runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The model libraries.
    pub libraries: Vec<GatedLibrary>,
    /// The browser module that they are to run with.
    pub browser_module: Option<Template>,
    /// Everything that will be delivered.
    pub files: Vec<GatedFile>,
    /// Rules that may be broken.
    pub accept: BTreeSet<Rule>,
}

/// A model library, and what it must say of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatedLibrary {
    /// The library.
    pub library: Template,
    /// The path that it will be delivered to.
    pub path: RelativePath,
    /// Settings in its metadata, by name.
    pub settings: BTreeMap<Name, u64>,
    /// MLC's name of the quantization.
    pub quantization: Option<String>,
    /// The model's `mlc-chat-config.json`: what it says of the library's settings must have stayed,
    /// but for those above.
    pub config: Option<Template>,
    /// The weights' `tensor-cache.json`: its parameters must be the library's.
    pub tensor_cache: Option<Template>,
}

/// A file, or a directory of files, that will be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatedFile {
    /// The file or directory.
    pub from: Template,
    /// The path that it will be delivered to.
    pub path: RelativePath,
}

impl Gate {
    /// Every template in it.
    pub(super) fn templates(&self) -> Vec<&Template> {
        let of_libraries = self
            .libraries
            .iter()
            .flat_map(|gated| [Some(&gated.library), gated.config.as_ref(), gated.tensor_cache.as_ref()]);
        let files = self.files.iter().map(|file| Some(&file.from));
        of_libraries.chain([self.browser_module.as_ref()]).chain(files).flatten().collect()
    }
}
