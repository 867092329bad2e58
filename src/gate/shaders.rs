//! Will a browser take the shaders? One that it refuses shows in no exception: the kernel does
//! nothing, and all logits are zero.

use std::collections::BTreeMap;

use super::{Findings, list};
use crate::artifact::browser::BrowserModule;
use crate::artifact::library::{Kernel, Library};
use crate::artifact::wgsl::{BindingKind, Wgsl};
use crate::pins::Rule;

/// A device's limits when nothing is asked for (W3C WebGPU, section 3.6.2 "Limits", default values).
const DEFAULTS: [(&str, u64); 8] = [
    ("maxComputeInvocationsPerWorkgroup", 256),
    ("maxComputeWorkgroupSizeX", 256),
    ("maxComputeWorkgroupSizeY", 256),
    ("maxComputeWorkgroupSizeZ", 64),
    ("maxComputeWorkgroupStorageSize", 16384),
    ("maxStorageBuffersPerShaderStage", 8),
    ("maxUniformBuffersPerShaderStage", 12),
    ("maxBindingsPerBindGroup", 1000),
];

pub(super) fn judge(library: &Library, browser: Option<&BrowserModule>, findings: &mut Findings<'_>) {
    if library.shaders.is_empty() {
        let hint = "the model was compiled for another target than webgpu, or its device code was not linked";
        return findings.error(Rule::Shaders, "expected shaders in linear memory, found none".to_owned(), Some(hint));
    }
    for kernel in &library.shaders {
        if let Some(error) = &kernel.error {
            let message = format!("shader {} ({}) is not valid: {error}", kernel.name, kernel.place);
            findings.error(
                Rule::Shaders,
                message,
                Some("a browser makes no pipeline of it, and the kernel does nothing"),
            );
        } else if kernel.wgsl.as_ref().is_some_and(|wgsl| wgsl.entry_points.is_empty()) {
            findings.error(
                Rule::Shaders,
                format!("shader {} ({}) has no entry point", kernel.name, kernel.place),
                None,
            );
        }
    }
    judge_access(library, findings);
    judge_half(library, findings);
    judge_limits(library, browser, findings);
}

/// The runtime makes a layout from the library's word of which buffers a kernel writes; a shader
/// that declares another access is refused (WebGPU, "validating shader binding").
fn judge_access(library: &Library, findings: &mut Findings<'_>) {
    let of_kind = |kind| {
        library
            .shaders
            .iter()
            .filter_map(|kernel| kernel.wgsl.as_ref())
            .flat_map(|wgsl| &wgsl.bindings)
            .filter(move |binding| binding.kind == kind)
    };
    let (reads, writes) = (of_kind(BindingKind::StorageRead).count(), of_kind(BindingKind::StorageReadWrite).count());
    // A kernel that only writes exists; a library of nothing else does not.
    if reads == 0 && writes > 1 {
        let message =
            format!("expected buffers that are only read, found all {writes} storage bindings declared read_write");
        let hint = "the WGSL generator of apache-tvm 0.26.0 has this fault (apache/tvm#20079, mended by #20113): the browser refuses such kernels and the logits are all zero";
        findings.error(Rule::Access, message, Some(hint));
    }
    let mismatched: Vec<&str> =
        library.shaders.iter().filter(|kernel| contradicts(kernel)).map(|kernel| kernel.name.as_str()).collect();
    if !mismatched.is_empty() {
        let message = format!(
            "{} shaders declare buffers in another way than the runtime binds them: {}",
            mismatched.len(),
            list(&mismatched)
        );
        let hint = "a read_write variable bound as read-only storage, or the reverse, makes no pipeline; compiler and passes are of different versions";
        findings.error(Rule::Access, message, Some(hint));
    }
}

/// Whether a shader's storage buffers are others than those that the library announces.
fn contradicts(kernel: &Kernel) -> bool {
    let (Some(wgsl), Some(writes)) = (&kernel.wgsl, &kernel.writes) else { return false };
    let mut buffers: Vec<_> = wgsl
        .bindings
        .iter()
        .filter(|binding| matches!(binding.kind, BindingKind::StorageRead | BindingKind::StorageReadWrite))
        .collect();
    buffers.sort_by_key(|binding| (binding.group, binding.binding));
    let declared: Vec<bool> = buffers.iter().map(|binding| binding.kind == BindingKind::StorageReadWrite).collect();
    declared != *writes
}

fn judge_half(library: &Library, findings: &mut Findings<'_>) {
    let quantization = library.metadata.first().and_then(|metadata| metadata.quantization.as_deref());
    let Some((name, wanted)) = quantization.and_then(|name| Some((name, wants_half(name)?))) else { return };
    let with: Vec<&str> = library
        .shaders
        .iter()
        .filter(|kernel| kernel.wgsl.as_ref().is_some_and(|wgsl| wgsl.f16))
        .map(|kernel| kernel.name.as_str())
        .collect();
    if wanted && with.is_empty() {
        let message = format!("{name} computes with 16-bit floats, but no shader enables them");
        findings.error(Rule::F16, message, Some("the model was compiled with another quantization than it says"));
    }
    if !wanted && !with.is_empty() {
        let message =
            format!("{name} computes without 16-bit floats, but {} shaders enable them: {}", with.len(), list(&with));
        findings.error(
            Rule::F16,
            message,
            Some("devices without shader-f16 refuse them, and such a library is meant for those"),
        );
    }
}

/// Whether a quantization's name says that the model computes with 16-bit floats (`q4f16_1`), or
/// with 32-bit ones (`q4f32_1`). Of others nothing is known.
fn wants_half(name: &str) -> Option<bool> {
    let has = |type_name: &str| name.match_indices(type_name).any(|(at, _)| !name[..at].ends_with('b'));
    match (has("f16"), has("f32")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

fn judge_limits(library: &Library, browser: Option<&BrowserModule>, findings: &mut Findings<'_>) {
    // For each limit the shader that needs most of it.
    let mut most: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for kernel in &library.shaders {
        let Some(wgsl) = &kernel.wgsl else { continue };
        for (limit, needed) in needs(wgsl) {
            let entry = most.entry(limit).or_insert((0, ""));
            if needed > entry.0 {
                *entry = (needed, &kernel.name);
            }
        }
    }
    for (limit, default) in DEFAULTS {
        let Some(&(needed, kernel)) = most.get(limit).filter(|(needed, _)| *needed > default) else { continue };
        let asked = browser.and_then(|browser| browser.limits.get(limit)).copied();
        match asked {
            Some(asked) if needed <= asked => {
                let message = format!(
                    "{kernel} needs {limit} {needed}, above WebGPU's default of {default}; the browser module asks for {asked}"
                );
                findings.note(Rule::Limits, message, Some("devices that cannot give it cannot run the library"));
            }
            // Without the module nobody knows what is asked for.
            None if browser.is_none() => {
                let message = format!("{kernel} needs {limit} {needed}, above WebGPU's default of {default}");
                findings.note(Rule::Limits, message, Some("the browser module has to ask the device for it"));
            }
            _ => {
                let asked =
                    asked.map_or_else(|| "does not ask for more".to_owned(), |asked| format!("asks for {asked}"));
                let message = format!(
                    "{kernel} needs {limit} {needed}, above WebGPU's default of {default}, and the browser module {asked}"
                );
                findings.error(Rule::Limits, message, Some("no device that the module opens runs this kernel"));
            }
        }
    }
}

/// What a shader needs, by name of the limit.
fn needs(wgsl: &Wgsl) -> Vec<(&'static str, u64)> {
    let count =
        |wanted: fn(BindingKind) -> bool| wgsl.bindings.iter().filter(|binding| wanted(binding.kind)).count() as u64;
    let mut needs = vec![
        ("maxComputeWorkgroupStorageSize", wgsl.workgroup_bytes),
        (
            "maxStorageBuffersPerShaderStage",
            count(|kind| matches!(kind, BindingKind::StorageRead | BindingKind::StorageReadWrite)),
        ),
        ("maxUniformBuffersPerShaderStage", count(|kind| kind == BindingKind::Uniform)),
        // A binding's number must be below the limit.
        (
            "maxBindingsPerBindGroup",
            wgsl.bindings.iter().map(|binding| u64::from(binding.binding) + 1).max().unwrap_or(0),
        ),
    ];
    for entry in &wgsl.entry_points {
        let [x, y, z] = entry.workgroup_size.map(u64::from);
        needs.push(("maxComputeInvocationsPerWorkgroup", x.saturating_mul(y).saturating_mul(z)));
        needs.extend([
            ("maxComputeWorkgroupSizeX", x),
            ("maxComputeWorkgroupSizeY", y),
            ("maxComputeWorkgroupSizeZ", z),
        ]);
    }
    needs
}
