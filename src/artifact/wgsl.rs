//! Looking into a shader with naga, which parses WGSL and holds it against its rules, among them that
//! nothing is written that is declared `read`.

use naga::valid::{Capabilities, GlobalUse, ValidationFlags, Validator};
use naga::{AddressSpace, StorageAccess};
use serde::Serialize;

/// What a shader declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wgsl {
    /// Its entry points.
    pub entry_points: Vec<EntryPoint>,
    /// Its buffers.
    pub bindings: Vec<Binding>,
    /// Whether it asks for 16-bit floats (`enable f16;`).
    pub f16: bool,
    /// Bytes of its variables in workgroup memory.
    pub workgroup_bytes: u64,
}

/// An entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryPoint {
    /// Its name.
    pub name: String,
    /// The workgroup's extent.
    pub workgroup_size: [u32; 3],
}

/// A buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding {
    /// `@group`.
    pub group: u32,
    /// `@binding`.
    pub binding: u32,
    /// The variable's name.
    pub name: String,
    /// What it is.
    pub kind: BindingKind,
    /// Whether some entry point writes it.
    pub written: bool,
}

/// What a binding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingKind {
    /// `var<uniform>`.
    Uniform,
    /// `var<storage, read>`.
    StorageRead,
    /// `var<storage, read_write>`, or one with another access that may write.
    StorageReadWrite,
    /// A texture or sampler.
    Other,
}

/// What is wrong with a shader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", line.map(|line| format!(", in line {line}")).unwrap_or_default())]
pub struct WgslError {
    /// What is wrong.
    pub reason: String,
    /// Where, in lines from 1.
    pub line: Option<u32>,
}

/// Reads the shader `text`.
pub fn read(text: &str) -> Result<Wgsl, WgslError> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| WgslError {
        reason: error.message().to_owned(),
        line: error.location(text).map(|place| place.line_number),
    })?;
    // What a shader may use is for the device to say; here everything is allowed.
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module).map_err(|error| {
        let mut reasons = vec![error.as_inner().to_string()];
        let mut next = std::error::Error::source(error.as_inner());
        while let Some(cause) = next {
            reasons.push(cause.to_string());
            next = cause.source();
        }
        WgslError { reason: reasons.join(": "), line: error.location(text).map(|place| place.line_number) }
    })?;
    let context = module.to_ctx();
    let mut bindings = Vec::new();
    let mut workgroup_bytes = 0_u64;
    for (handle, variable) in module.global_variables.iter() {
        let kind = match variable.space {
            AddressSpace::Uniform => BindingKind::Uniform,
            AddressSpace::Storage { access } if access == StorageAccess::LOAD => BindingKind::StorageRead,
            AddressSpace::Storage { .. } => BindingKind::StorageReadWrite,
            AddressSpace::WorkGroup => {
                workgroup_bytes += u64::from(module.types[variable.ty].inner.size(context));
                continue;
            }
            _ => BindingKind::Other,
        };
        let Some(place) = variable.binding else { continue };
        let writes = |index| info.get_entry_point(index)[handle].intersects(GlobalUse::WRITE | GlobalUse::ATOMIC);
        bindings.push(Binding {
            group: place.group,
            binding: place.binding,
            name: variable.name.clone().unwrap_or_default(),
            kind,
            written: (0..module.entry_points.len()).any(writes),
        });
    }
    let entry_points = module.entry_points.iter();
    Ok(Wgsl {
        entry_points: entry_points
            .map(|point| EntryPoint { name: point.name.clone(), workgroup_size: point.workgroup_size })
            .collect(),
        bindings,
        f16: enables_f16(text),
        workgroup_bytes,
    })
}

/// Directives stand before every declaration (WGSL, section 4), so comments aside the text begins
/// with them.
fn enables_f16(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else if let Some(directive) =
            ["enable", "requires", "diagnostic"].iter().find_map(|word| rest.strip_prefix(word))
        {
            let (names, after) = directive.split_once(';').unwrap_or((directive, ""));
            if rest.starts_with("enable") && names.split([',', ' ', '\n', '\t']).any(|name| name == "f16") {
                return true;
            }
            rest = after.trim_start();
        } else {
            return false;
        }
    }
}
