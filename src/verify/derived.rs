//! An attestation against itself: the plan follows from the pins that it carries, each step from the
//! plan and the steps before it, what went in from the pins, what was delivered from the last step.
//!
//! None of this says that the build took place; it says that the attestation can be true. Whoever edits
//! one part has to edit all that follows from it, and then the signature does not fit.

use std::collections::{BTreeMap, BTreeSet};

use super::dispute::Dispute;
use super::traced::trace;
use crate::digest::{Digest, digest_of_files};
use crate::error::Error;
use crate::key::KeyParts;
use crate::manifest::{Entries, Manifest};
use crate::pins::{self, Commit, Platform};
use crate::plan::Plan;
use crate::provenance::{Attestation, AttestationError, ResourceDescriptor, StepRecord, pinned, wheel_url};
use crate::recipe::{self, AnyPins};
use crate::step::{Action, Step};

/// What follows from the carried pins.
pub(super) struct Derived {
    pub pins: AnyPins,
    pub plan: Plan,
}

/// Derives the plan and holds everything against it.
pub(super) fn derive(attestation: &Attestation, entries: &Entries) -> (Option<Derived>, Vec<Dispute>) {
    let mut disputes = Vec::new();
    let derived = derive_plan(attestation, &mut disputes);
    if let Some(derived) = &derived {
        let mut checks = Checks { attestation, derived, disputes: &mut disputes };
        checks.steps();
        checks.dependencies();
        checks.tools();
        checks.delivered(entries);
        disputes.extend(trace(attestation, &derived.plan, entries));
    }
    (derived, disputes)
}

fn derive_plan(attestation: &Attestation, disputes: &mut Vec<Dispute>) -> Option<Derived> {
    let definition = &attestation.statement().predicate.build_definition;
    let internal = &definition.internal_parameters;
    let (name, text) = match attestation.pins() {
        Ok(pins) => pins,
        Err(AttestationError::NotCarried { what, .. }) => {
            disputes.push(Dispute::NotCarried { what });
            return None;
        }
        Err(error) => {
            disputes.push(Dispute::PinsInvalid { reason: error.to_string() });
            return None;
        }
    };
    let pins = &definition.external_parameters.pins;
    let wanted = Digest::of(text.as_bytes());
    if pins.sha256_of() != Some(wanted) {
        let stated = pins.digest.get("sha256").cloned().unwrap_or_else(|| "nothing".into());
        disputes.push(Dispute::Differs { what: "digest of the pins", expected: wanted.to_string(), stated });
    }
    if pins.name() != name {
        let (expected, stated) = (pins.name().to_owned(), name.to_owned());
        disputes.push(Dispute::Differs { what: "name of the pins", expected, stated });
    }
    let derived = match plan(text, name, &internal.platform) {
        Ok(derived) => derived,
        Err(error) => {
            disputes.push(Dispute::PinsInvalid { reason: error.to_string() });
            return None;
        }
    };
    let digest = derived.plan.digest();
    if digest != internal.plan {
        let by = built_by(attestation).filter(|version| *version != env!("CARGO_PKG_VERSION"));
        let by = by.map(|version| format!("rebuild-model {version}"));
        disputes.push(Dispute::PlanDiffers { derived: digest, stated: internal.plan, by });
        // All that follows would differ as well, and say nothing more.
        return None;
    }
    let differs = |what, expected: &str, stated: &str| {
        (expected != stated).then(|| Dispute::Differs {
            what,
            expected: expected.to_owned(),
            stated: stated.to_owned(),
        })
    };
    disputes.extend(differs("recipe", derived.plan.recipe.as_str(), internal.recipe.as_str()));
    let byproducts = &attestation.statement().predicate.run_details.byproducts;
    let stated = byproducts.iter().find(|byproduct| byproduct.kind() == "plan");
    let stated = stated.and_then(|byproduct| byproduct.digest.get("sha256")).map_or("nothing", String::as_str);
    disputes.extend(differs("byproduct plan", &digest.to_string(), stated));
    Some(derived)
}

fn plan(text: &str, name: &str, platform: &Platform) -> Result<Derived, Error> {
    let pins = pins::parse(text, name)?;
    let plan = recipe::plan(&pins, platform)?;
    Ok(Derived { pins, plan })
}

fn built_by(attestation: &Attestation) -> Option<&str> {
    attestation.statement().predicate.run_details.builder.version.get("rebuild-model").map(String::as_str)
}

struct Checks<'a> {
    attestation: &'a Attestation,
    derived: &'a Derived,
    disputes: &'a mut Vec<Dispute>,
}

impl Checks<'_> {
    #[expect(clippy::needless_pass_by_value, reason = "callers have both texts and values")]
    fn step(&mut self, step: &str, what: impl Into<String>, expected: impl ToString, stated: impl ToString) {
        let (expected, stated) = (expected.to_string(), stated.to_string());
        if expected != stated {
            self.disputes.push(Dispute::Step { step: step.to_owned(), what: what.into(), expected, stated });
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers have both texts and values")]
    fn dependency(&mut self, name: &str, what: &str, expected: impl ToString, stated: impl ToString) {
        let (expected, stated) = (expected.to_string(), stated.to_string());
        if expected != stated {
            let (name, what) = (name.to_owned(), what.to_owned());
            self.disputes.push(Dispute::Dependency { name, what, expected, stated });
        }
    }

    fn steps(&mut self) {
        let records = self.attestation.steps();
        let derived = self.derived;
        for id in records.keys().filter(|id| derived.plan.step(id.as_str()).is_none()) {
            self.step(id.as_str(), "record", "none, since it is not in the plan", "one");
        }
        for step in &derived.plan.steps {
            match records.get(&step.id) {
                Some(record) => self.record(step, record),
                None => self.step(step.id.as_str(), "record", "one", "none"),
            }
        }
    }

    fn record(&mut self, step: &Step, record: &StepRecord) {
        let id = step.id.as_str();
        self.step(id, "kind", step.action.kind(), &record.kind);
        self.step(id, "action", KeyParts::action_of(step), record.parts.action);
        self.step(id, "network", step.network, record.network);
        let made: Vec<_> = record.outputs.keys().map(String::as_str).collect();
        let mut declared: Vec<_> = step.outputs.iter().map(String::as_str).collect();
        declared.sort_unstable();
        self.step(id, "outputs", declared.join(", "), made.join(", "));
        let mut wanted = BTreeMap::new();
        for input in &step.inputs {
            let output = self.attestation.steps().get(&input.step).and_then(|from| from.outputs.get(&input.output));
            wanted.insert(format!("{}/{}", input.step, input.output), output.map(|output| output.sha256));
        }
        let names = wanted.keys().chain(record.parts.inputs.keys()).collect::<BTreeSet<_>>();
        let show = |digest: Option<Digest>| digest.map_or_else(|| "nothing".to_owned(), |digest| digest.to_string());
        for name in names {
            let made = wanted.get(name).copied().flatten();
            self.step(id, format!("input {name}"), show(made), show(record.parts.inputs.get(name).copied()));
        }
        let names = record.tools.keys().chain(record.parts.tools.keys()).collect::<BTreeSet<_>>();
        for name in names {
            let found = record.tools.get(name).map(Digest::of_value);
            self.step(id, format!("tool {name}"), show(found), show(record.parts.tools.get(name).copied()));
        }
    }

    /// What was pinned must have gone in, and nothing else.
    fn dependencies(&mut self) {
        let pinned = pinned(&self.derived.plan);
        // By kind and name, of which there may be several: files of different places can have one name.
        let mut stated: BTreeMap<(&str, &str), Vec<&ResourceDescriptor>> = BTreeMap::new();
        for dependency in self.attestation.dependencies() {
            stated.entry((dependency.kind(), dependency.name())).or_default().push(dependency);
            if !has_digests(dependency) {
                let stated: Vec<_> =
                    dependency.digest.iter().map(|(name, digest)| format!("{name} {digest}")).collect();
                self.dependency(dependency.name(), "digest", "sha256, or gitCommit and gitTree", stated.join(", "));
            }
        }
        let text = |text: Option<&String>| text.cloned().unwrap_or_else(|| "nothing".into());
        for wanted in &pinned {
            let alike = stated.get_mut(&(wanted.kind(), wanted.name())).filter(|alike| !alike.is_empty());
            let Some(alike) = alike else {
                self.dependency(wanted.name(), wanted.kind(), "one, since it is pinned", "none");
                continue;
            };
            let found = alike.remove(alike.iter().position(|found| found.uri == wanted.uri).unwrap_or(0));
            for (algorithm, digest) in &wanted.digest {
                self.dependency(wanted.name(), algorithm, digest, text(found.digest.get(algorithm)));
            }
            // Of a submodule without a url of its own only the repository above it knows where it is.
            if wanted.uri.is_some() {
                self.dependency(wanted.name(), "uri", text(wanted.uri.as_ref()), text(found.uri.as_ref()));
            }
        }
        let allowed = self.allowed_wheels();
        for ((kind, name), found) in stated.iter().flat_map(|(key, list)| list.iter().map(move |found| (*key, *found)))
        {
            match kind {
                "pins" | "tool" if stated[&(kind, name)].len() == 1 => {}
                "wheel" => {
                    let digest = text(found.digest.get("sha256"));
                    if !allowed.contains(&digest) {
                        self.dependency(name, "sha256", "one that the requirements allow", digest);
                    }
                    let url = wheel_url(name);
                    self.dependency(name, "uri", text(url.as_ref()), text(found.uri.as_ref()));
                }
                _ => self.dependency(name, kind, "none, since nothing pins it", "one"),
            }
        }
    }

    /// The digests that the requirements files and the pins allow for wheels.
    fn allowed_wheels(&self) -> BTreeSet<String> {
        let mut allowed = BTreeSet::new();
        let requirements = self.attestation.dependencies().filter(|dependency| dependency.kind() == "requirements");
        for content in requirements.filter_map(|dependency| dependency.content.as_ref()) {
            let text = String::from_utf8_lossy(&content.0);
            let hashes = text.split("--hash=sha256:").skip(1);
            allowed.extend(hashes.map(|rest| rest.split_whitespace().next().unwrap_or_default().to_owned()));
        }
        let python = self.derived.pins.python.iter();
        let pins = python.flat_map(|python| python.wheels.values()).filter_map(|pin| pin.sha256.known());
        allowed.extend(pins.map(ToString::to_string));
        allowed
    }

    /// The tools that the plan wants of the host, in versions that will do, and those that steps ran.
    fn tools(&mut self) {
        let stated: BTreeMap<&str, &ResourceDescriptor> = self
            .attestation
            .dependencies()
            .filter(|dependency| dependency.kind() == "tool")
            .map(|dependency| (dependency.name(), dependency))
            .collect();
        let wanted = self.derived.plan.tools.iter().filter(|(_, tool)| tool.provided.is_none());
        let wanted: BTreeMap<&str, _> = wanted.map(|(name, tool)| (name.as_str(), tool)).collect();
        for name in stated.keys().filter(|name| !wanted.contains_key(**name)) {
            self.dependency(name, "tool", "none, since nothing pins it", "one");
        }
        for (name, tool) in wanted {
            let Some(found) = stated.get(name) else {
                self.dependency(name, "tool", "one, since it is pinned", "none");
                continue;
            };
            let version = found.annotation("version");
            if !version.parse().is_ok_and(|version| tool.version.accepts(&version)) {
                self.dependency(name, "version", &tool.version, version);
            }
            for (id, record) in self.attestation.steps() {
                let Some((_, ran)) = record.tools.iter().find(|(other, _)| other.as_str() == name) else { continue };
                let show = |digest: Option<Digest>, version: &str| {
                    format!("{version}, sha256 {}", digest.map_or_else(|| "nothing".to_owned(), |d| d.to_string()))
                };
                let expected = show(found.sha256_of(), version);
                self.step(id.as_str(), format!("tool {name}"), expected, show(Some(ran.sha256), &ran.version));
            }
        }
    }

    /// The subjects are what the package step made.
    fn delivered(&mut self, entries: &Entries) {
        let mut packages = self.derived.plan.steps.iter().filter(|step| matches!(step.action, Action::Package(_)));
        // The package holds a manifest, whose text only the version that wrote it is sure to write again.
        let (Some(step), None) = (packages.next(), packages.next()) else { return };
        if built_by(self.attestation) != Some(env!("CARGO_PKG_VERSION")) || entries.is_empty() {
            return;
        }
        let Some(record) = self.attestation.steps().get(&step.id) else { return };
        let Some(output) = record.outputs.get("package") else { return };
        let follows = digest_of_package(entries);
        self.step(step.id.as_str(), "output package, from the subjects", follows, output.sha256);
    }
}

/// Whether it has the digests that a thing of its kind must have, and they are some.
fn has_digests(dependency: &ResourceDescriptor) -> bool {
    let is_git = ["git", "submodule"].contains(&dependency.kind());
    let names: Vec<_> = dependency.digest.keys().map(String::as_str).collect();
    if !is_git {
        return names == ["sha256"] && dependency.sha256_of().is_some();
    }
    names == ["gitCommit", "gitTree"] && dependency.digest.values().all(|id| id.parse::<Commit>().is_ok())
}

/// The digest that a package step's output has when it delivers `entries`.
fn digest_of_package(entries: &Entries) -> Digest {
    let manifest = ("manifest.json".to_owned(), Digest::of(Manifest::fresh(entries).as_bytes()));
    let files = entries.iter().map(|(path, entry)| (format!("files/{path}"), entry.packed.sha256));
    digest_of_files(files.chain([manifest]))
}
