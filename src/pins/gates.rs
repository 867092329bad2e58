//! `[gates]`: which rules of the gates before packaging a build may break.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// `[gates]`. Without it every rule holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gates {
    /// Rules that do not stop the build. What they find is still reported.
    #[serde(deserialize_with = "each_once")]
    pub accept: BTreeSet<Rule>,
}

/// A rule that is there twice is a slip, most likely for another one.
fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Rule>, D::Error> {
    let mut rules = BTreeSet::new();
    for rule in Vec::<Rule>::deserialize(deserializer)? {
        if !rules.insert(rule) {
            return Err(de::Error::custom(format_args!("`{rule}` stands here twice")));
        }
    }
    Ok(rules)
}

/// What an artifact is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The library describes its model, with the settings that were asked for.
    Metadata,
    /// Its parameters are those of the weights.
    Parameters,
    /// The browser module provides all that it imports.
    Imports,
    /// It exports all that the browser module uses.
    Exports,
    /// Its memory is one that a page can give it.
    Memory,
    /// It has shaders, and each is valid.
    Shaders,
    /// Each shader declares its buffers as the runtime binds them.
    Access,
    /// Shaders use 16-bit floats exactly where the quantization wants them.
    F16,
    /// Shaders stay within what the device is asked for.
    Limits,
    /// Nothing names the machine that built it.
    Leaks,
}

impl Rule {
    /// The name as it stands in pins and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Parameters => "parameters",
            Self::Imports => "imports",
            Self::Exports => "exports",
            Self::Memory => "memory",
            Self::Shaders => "shaders",
            Self::Access => "access",
            Self::F16 => "f16",
            Self::Limits => "limits",
            Self::Leaks => "leaks",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
