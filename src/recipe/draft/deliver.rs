//! The last two steps of a recipe: what is judged, and what is delivered.

use std::collections::BTreeMap;

use super::{Draft, Result, cost};
use crate::pins::{Encoding, Name};
use crate::step::{Action, ArtifactSpec, Gate, GatedFile, GatedLibrary, OutputRef, Package, Step};

/// A file or directory to be delivered.
pub(in crate::recipe) struct Delivery {
    from: String,
    path: String,
    role: &'static str,
    compressed: bool,
    library: Option<LibraryDraft>,
}

/// What a model library must say of itself; its files as templates.
#[derive(Debug, Clone, Default)]
pub(in crate::recipe) struct LibraryDraft {
    /// Settings in its metadata.
    pub settings: BTreeMap<Name, u64>,
    /// MLC's name of the quantization.
    pub quantization: Option<String>,
    /// The model's `mlc-chat-config.json`.
    pub config: Option<String>,
    /// The weights' `tensor-cache.json`.
    pub tensor_cache: Option<String>,
}

const BROWSER_MODULE: &str = "browser-module";

impl Delivery {
    /// A model library.
    pub(in crate::recipe) fn library(from: String, path: String, library: LibraryDraft) -> Self {
        Self { from, path, role: "model-library", compressed: true, library: Some(library) }
    }

    /// The module that the libraries are to run with.
    pub(in crate::recipe) fn browser_module(from: &str, path: &str) -> Self {
        Self::compressed(from, path, BROWSER_MODULE)
    }

    /// Another file.
    pub(in crate::recipe) fn compressed(from: &str, path: &str, role: &'static str) -> Self {
        Self { from: from.to_owned(), path: path.to_owned(), role, compressed: true, library: None }
    }

    /// A file or directory that is delivered as it is.
    pub(in crate::recipe) fn uncompressed(from: &str, path: &str, role: &'static str) -> Self {
        Self { compressed: false, ..Self::compressed(from, path, role) }
    }
}

impl Draft<'_> {
    /// Step `gates`, which judges all that is delivered, and step `package`, which waits for its word.
    pub(in crate::recipe) fn deliver(&mut self, deliveries: &[Delivery]) -> Result<()> {
        let gate = self.gate(deliveries)?;
        self.add(
            "gates",
            "judge the artifacts before they are packaged",
            Action::Gate(gate),
            &["gate.json"],
            false,
            cost(2, 128, 1),
        )?;
        let packaging = &self.pins.packaging;
        let mut artifacts = Vec::new();
        for delivery in deliveries {
            artifacts.push(ArtifactSpec {
                from: self.template(&delivery.from)?,
                path: self.path(&delivery.path)?,
                role: delivery.role.to_owned(),
                encoding: if delivery.compressed { packaging.encoding } else { Encoding::Identity },
            });
        }
        let package = Package {
            artifacts,
            level: packaging.level,
            size_limit: packaging.size_limit,
            split: packaging.split,
            destination: packaging.destination.clone(),
            manifest: packaging.manifest.get_ref().clone(),
        };
        self.push(Step {
            id: self.id("package")?,
            title: "encode the artifacts and check their sizes".to_owned(),
            action: Action::Package(package),
            // Nothing is packaged before it is judged.
            inputs: vec![OutputRef { step: self.id("gates")?, output: "gate.json".to_owned() }],
            outputs: vec!["package".to_owned()],
            environment: BTreeMap::new(),
            network: false,
            cost: cost(2, 64, 64),
        });
        Ok(())
    }

    fn gate(&self, deliveries: &[Delivery]) -> Result<Gate> {
        let template = |text: &Option<String>| text.as_deref().map(|text| self.template(text)).transpose();
        let mut gate = Gate {
            libraries: Vec::new(),
            browser_module: None,
            files: Vec::new(),
            accept: self.pins.gates.accept.clone(),
        };
        for delivery in deliveries {
            let (from, path) = (self.template(&delivery.from)?, self.path(&delivery.path)?);
            if delivery.role == BROWSER_MODULE {
                gate.browser_module = Some(from.clone());
            }
            if let Some(library) = &delivery.library {
                gate.libraries.push(GatedLibrary {
                    library: from.clone(),
                    path: path.clone(),
                    settings: library.settings.clone(),
                    quantization: library.quantization.clone(),
                    config: template(&library.config)?,
                    tensor_cache: template(&library.tensor_cache)?,
                });
            }
            gate.files.push(GatedFile { from, path });
        }
        Ok(gate)
    }
}
