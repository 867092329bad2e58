//! Recipes: each turns pins into steps and does nothing else.
//!
//! A new recipe is one file below this module and one line in [`Recipe`].

mod draft;
mod mlc_webgpu;
mod onnx_int8;
mod parts;
mod tvm_webgpu;

use serde::{Deserialize, Serialize};

use crate::pins::{Pins, Platform};
use crate::plan::{Plan, PlanError};

use draft::Draft;

/// The `[recipe.<name>]` table: which recipe, and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// A WebGPU model library from the sources and the compiler of the apache-tvm wheel.
    TvmWebgpu(tvm_webgpu::Parameters),
    /// WebGPU model libraries compiled by MLC-LLM, with the browser module that runs them.
    MlcWebgpu(mlc_webgpu::Parameters),
    /// A language model as an ONNX file with 8-bit weights.
    OnnxInt8(Box<onnx_int8::Parameters>),
}

/// A pins file for any recipe.
pub type AnyPins = Pins<Recipe>;

impl Recipe {
    /// The recipe's name, as it stands in pins files and in the default workspace's path.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TvmWebgpu(_) => "tvm-webgpu",
            Self::MlcWebgpu(_) => "mlc-webgpu",
            Self::OnnxInt8(_) => "onnx-int8",
        }
    }
}

/// The plan of `pins` for `platform`.
pub fn plan(pins: &AnyPins, platform: &Platform) -> Result<Plan, PlanError> {
    let mut draft = Draft::new(pins, platform)?;
    match &pins.recipe {
        Recipe::TvmWebgpu(parameters) => tvm_webgpu::add_steps(&mut draft, parameters)?,
        Recipe::MlcWebgpu(parameters) => mlc_webgpu::add_steps(&mut draft, parameters)?,
        Recipe::OnnxInt8(parameters) => onnx_int8::add_steps(&mut draft, parameters)?,
    }
    draft.finish()
}
