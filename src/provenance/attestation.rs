//! An attestation as it stands in a file: a bare statement, or one in a signed envelope.
//!
//! Reading trusts nothing. What is carried must have the digest that stands beside it, a step's key
//! must follow from its parts, and everything is bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::dependencies::PINS;
use super::descriptor::ResourceDescriptor;
use super::dsse::{Envelope, MOST_SIGNATURES, PAYLOAD_TYPE};
use super::error::AttestationError;
use super::keys::PrivateKey;
use super::statement::Statement;
use super::step_record::{self, StepRecord};
use super::{BUILD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE};
use crate::digest::Digest;
use crate::pins::RelativePath;
use crate::printable::{cut, escape_name};
use crate::replace::replace;
use crate::step::StepId;
use crate::unique::Unique;

/// The most bytes that an attestation may have.
pub const LARGEST: u64 = 32 << 20;

type Result<T, E = AttestationError> = std::result::Result<T, E>;

/// An attestation, read and checked for contradictions in itself.
#[derive(Debug, Clone)]
pub struct Attestation {
    path: PathBuf,
    payload: Vec<u8>,
    envelope: Option<Envelope>,
    statement: Statement,
    steps: BTreeMap<StepId, StepRecord>,
}

impl Attestation {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |source| AttestationError::Read { path: path.to_owned(), source };
        // Asked before it is opened: opening a pipe would wait for ever.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(failed(std::io::Error::other("it is not a regular file")));
        }
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)).map_err(failed)?;
        Self::parse(path, &bytes)
    }

    /// Reads `bytes`; `path` is for errors only.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        if bytes.len() as u64 > LARGEST {
            return Err(AttestationError::TooLarge { path: path.to_owned() });
        }
        read_json::<Unique>(path, bytes)?;
        let envelope = read_envelope(path, bytes)?;
        let payload = envelope.as_ref().map_or_else(|| bytes.to_vec(), |envelope| envelope.payload.0.clone());
        if envelope.is_some() {
            read_json::<Unique>(path, &payload)?;
        }
        let statement = read_statement(path, &payload)?;
        let steps = read_steps(path, &statement)?;
        let attestation = Self { path: path.to_owned(), payload, envelope, statement, steps };
        attestation.check_contents()?;
        Ok(attestation)
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The statement's bytes: what signatures are about.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The envelope it stands in, when it stands in one.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_ref()
    }

    /// Adds the signatures that `standing`, an attestation of the same, has.
    pub fn join(&mut self, standing: &Self) -> Result<()> {
        if standing.payload != self.payload {
            return Err(AttestationError::OtherPayload { path: standing.path.clone(), signed: self.path.clone() });
        }
        let Some(theirs) = &standing.envelope else { return Ok(()) };
        let mut envelope = theirs.clone();
        for signature in self.envelope.iter().flat_map(|envelope| &envelope.signatures) {
            if !envelope.signatures.iter().any(|other| other.sig == signature.sig) {
                envelope.signatures.push(signature.clone());
            }
        }
        self.envelope = Some(envelope);
        Ok(())
    }

    /// Adds the signature of `key` to the attestation at its place; gives `false` when it was there.
    ///
    /// The file becomes an envelope if it was a bare statement.
    pub fn sign(&mut self, key: &PrivateKey, into: &Path) -> Result<bool> {
        let mut envelope = self.envelope.clone().unwrap_or_else(|| Envelope::new(self.payload.clone()));
        let added = envelope.sign(key);
        // It could not be read again.
        if envelope.signatures.len() > MOST_SIGNATURES {
            let count = envelope.signatures.len();
            return Err(invalid(into, &format!("the envelope would have {count} signatures")));
        }
        if added || into != self.path {
            replace(into, &envelope.to_bytes())?;
        }
        self.envelope = Some(envelope);
        Ok(added)
    }

    /// What it states.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The record of every step.
    pub fn steps(&self) -> &BTreeMap<StepId, StepRecord> {
        &self.steps
    }

    /// Name and text of the pins file.
    pub fn pins(&self) -> Result<(&str, &str)> {
        let (name, bytes) = self
            .dependencies()
            .find(|dependency| dependency.kind() == PINS)
            .and_then(|dependency| Some((dependency.name(), &dependency.content.as_ref()?.0)))
            .ok_or_else(|| AttestationError::NotCarried { path: self.path.clone(), what: "the pins file".into() })?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.contradiction(name, "it is not UTF-8"))?;
        Ok((name, text))
    }

    /// The files beside the pins, by path from their directory. One that was too large to be carried
    /// is an error.
    pub fn files(&self) -> Result<BTreeMap<RelativePath, &[u8]>> {
        let kinds = ["patch", "requirements", "file"];
        let mut files = BTreeMap::new();
        for dependency in self.dependencies() {
            // What has an address is fetched, not carried.
            if !kinds.contains(&dependency.kind()) || dependency.uri.is_some() {
                continue;
            }
            let name = dependency.name();
            let path = name.parse().map_err(|_| self.contradiction(name, "its name is not a path"))?;
            let content = dependency.content.as_ref();
            let content = content.ok_or_else(|| AttestationError::NotCarried {
                path: self.path.clone(),
                what: escape_name(&cut(name, 200)),
            })?;
            files.insert(path, content.0.as_slice());
        }
        Ok(files)
    }

    /// Everything that went in.
    pub fn dependencies(&self) -> impl Iterator<Item = &ResourceDescriptor> {
        self.statement.predicate.build_definition.resolved_dependencies.iter()
    }

    fn check_contents(&self) -> Result<()> {
        let details = &self.statement.predicate.run_details;
        for descriptor in self.statement.subject.iter().chain(self.dependencies()).chain(&details.byproducts) {
            let Some(content) = &descriptor.content else { continue };
            let found = Digest::of(&content.0);
            if descriptor.sha256_of() != Some(found) {
                let stated = descriptor.digest.get("sha256").map_or("none", String::as_str);
                let reason = format!("its content has sha256 {found}, and {} is stated", cut(stated, 80));
                return Err(self.contradiction(descriptor.name(), &reason));
            }
        }
        Ok(())
    }

    fn contradiction(&self, what: &str, reason: &str) -> AttestationError {
        contradiction(&self.path, what, reason)
    }
}

fn contradiction(path: &Path, what: &str, reason: &str) -> AttestationError {
    let (what, reason) = (escape_name(&cut(what, 200)), escape_name(reason));
    AttestationError::Contradiction { path: path.to_owned(), what, reason }
}

fn invalid(path: &Path, reason: &str) -> AttestationError {
    AttestationError::Invalid { path: path.to_owned(), reason: escape_name(&cut(reason, 400)) }
}

fn read_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| invalid(path, &error.to_string()))
}

/// The fields that say what a document is. They are looked at first: one of another type may differ in
/// everything else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Types {
    #[serde(rename = "_type")]
    kind: Option<Value>,
    payload_type: Option<Value>,
    predicate_type: Option<Value>,
    predicate: Option<PredicateTypes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PredicateTypes {
    build_definition: Option<BuildTypes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuildTypes {
    build_type: Option<Value>,
}

/// The envelope that `bytes` are, or nothing when they do not look like one.
fn read_envelope(path: &Path, bytes: &[u8]) -> Result<Option<Envelope>> {
    let types: Types = read_json(path, bytes)?;
    if types.kind.is_some() || types.payload_type.is_none() {
        return Ok(None);
    }
    check_type(path, "payloadType", PAYLOAD_TYPE, types.payload_type)?;
    let envelope: Envelope = read_json(path, bytes)?;
    match envelope.signatures.len() {
        0 => Err(invalid(path, "the envelope has no signature: it was stripped, or never signed")),
        count if count > MOST_SIGNATURES => Err(invalid(path, &format!("the envelope has {count} signatures"))),
        _ => Ok(Some(envelope)),
    }
}

fn check_type(path: &Path, field: &'static str, expected: &'static str, found: Option<Value>) -> Result<()> {
    match found {
        Some(Value::String(found)) if found == expected => Ok(()),
        None => Err(invalid(path, &format!("`{field}` is missing"))),
        Some(found) => {
            let found = escape_name(&cut(&found.to_string(), 80));
            Err(AttestationError::Type { path: path.to_owned(), field, expected, found })
        }
    }
}

fn read_statement(path: &Path, payload: &[u8]) -> Result<Statement> {
    let types: Types = read_json(path, payload)?;
    check_type(path, "_type", STATEMENT_TYPE, types.kind)?;
    check_type(path, "predicateType", PREDICATE_TYPE, types.predicate_type)?;
    let definition = types.predicate.and_then(|predicate| predicate.build_definition);
    check_type(path, "buildType", BUILD_TYPE, definition.and_then(|definition| definition.build_type))?;
    read_json(path, payload)
}

fn read_steps(path: &Path, statement: &Statement) -> Result<BTreeMap<StepId, StepRecord>> {
    let mut steps = BTreeMap::new();
    for descriptor in &statement.predicate.run_details.byproducts {
        let Some(id) = descriptor.name().strip_prefix(step_record::PREFIX) else { continue };
        let wrong = |reason: &str| contradiction(path, descriptor.name(), reason);
        let record = StepRecord::read(descriptor).map_err(|reason| wrong(&cut(&reason, 400)))?;
        let id = id.parse::<StepId>().map_err(|_| wrong("this is no step's id"))?;
        if steps.insert(id, record).is_some() {
            return Err(wrong("it stands there twice"));
        }
    }
    Ok(steps)
}
