//! Texts with places in them that are known only when a step runs.
//!
//! `${out}` is the step's output directory, `${tmp}` its scratch directory, `${cache}` the build's
//! private cache directory, `${step:ID/PATH}` a path below an output of an earlier step, and
//! `${tool:NAME}` a program. `$$` is a dollar sign.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::StepId;
use crate::pins::Name;

/// A text with references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Reference(Reference),
}

/// A place in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The step's own output directory.
    Out,
    /// The step's own scratch directory, gone when it succeeds.
    Tmp,
    /// A directory private to the build in which tools keep what they want to keep.
    Cache,
    /// A path below an earlier step's output directory; the first part is the output's name.
    Step(StepId, String),
    /// The program of a pinned tool.
    Tool(Name),
}

/// A text that is not a template.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a template: {reason}")]
pub struct TemplateError {
    text: String,
    reason: String,
}

impl Template {
    /// A template without references that stands for `text` as it is.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Text(text.into())] }
    }

    /// The references in it, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })
    }

    /// The text with every reference replaced by what `resolve` gives for it.
    pub fn fill<E>(&self, mut resolve: impl FnMut(&Reference) -> Result<String, E>) -> Result<String, E> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Reference(reference) => text.push_str(&resolve(reference)?),
            }
        }
        Ok(text)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let refused = |reason: String| TemplateError { text: text.to_owned(), reason };
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            literal.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
                continue;
            }
            let inside = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let (name, after) = inside.ok_or_else(|| refused("a `$` begins neither `$$` nor `${…}`".into()))?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Reference(name.parse().map_err(refused)?));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self { pieces })
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("step:") {
            let (step, path) = path.split_once('/').ok_or_else(|| format!("`{text}` names no output"))?;
            if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
                return Err(format!("`{path}` leaves its step's outputs"));
            }
            return Ok(Self::Step(step.parse().map_err(|error| format!("{error}"))?, path.to_owned()));
        }
        if let Some(tool) = text.strip_prefix("tool:") {
            return tool.parse().map(Self::Tool).map_err(|error| format!("{error}"));
        }
        match text {
            "out" => Ok(Self::Out),
            "tmp" => Ok(Self::Tmp),
            "cache" => Ok(Self::Cache),
            _ => Err(format!("`${{{text}}}` is none of out, tmp, cache, step:ID/PATH, tool:NAME")),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out => f.write_str("out"),
            Self::Tmp => f.write_str("tmp"),
            Self::Cache => f.write_str("cache"),
            Self::Step(step, path) => write!(f, "step:{step}/{path}"),
            Self::Tool(tool) => write!(f, "tool:{tool}"),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(&text.replace('$', "$$"))?,
                Piece::Reference(reference) => write!(f, "${{{reference}}}")?,
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;
    fn try_from(text: String) -> Result<Self, TemplateError> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_survive_being_written_and_read() {
        for text in ["", "plain", "$$HOME", "-I${step:tvm/tree/include}", "${out}/a${tmp}$$${cache}", "${tool:emcc}"] {
            assert_eq!(text.parse::<Template>().unwrap().to_string(), text);
        }
        assert_eq!(Template::literal("a$b").to_string(), "a$$b");
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in ["$HOME", "${}", "${out", "${home}", "${step:tvm}", "${step:tvm/../x}", "${step:TVM/x}", "${tool:}"]
        {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }

    #[test]
    fn filling_replaces_every_reference() {
        let template: Template = "${tool:cc} -o ${out}/a $$x".parse().unwrap();
        let filled = template.fill(|reference| Ok::<_, ()>(format!("<{reference}>")));
        assert_eq!(filled.unwrap(), "<tool:cc> -o <out>/a $x");
    }
}
