//! A policy: what whoever deploys demands of an attestation, written in a file of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::dispute::Dispute;
use crate::error::{Class, Fault};
use crate::pins::{Commit, VersionRange};
use crate::plan::Plan;
use crate::provenance::{Attestation, KeyError, PublicKey, ResourceDescriptor};

/// The schema of policies that this version reads.
pub const SCHEMA: u32 = 1;

/// The most bytes that a policy may have.
const LARGEST: u64 = 1 << 20;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("cannot read the policy {path}")]
    Read {
        /// The policy.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML, has an unknown key, or a value of another form.
    #[error("the policy {path} is not valid\n{error}")]
    Syntax {
        /// The policy.
        path: PathBuf,
        /// The parser's report, with line and caret.
        error: toml::de::Error,
    },
    /// It parses, and says something that cannot be.
    #[error("the policy {path} is not valid: {reason}")]
    Invalid {
        /// The policy.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// One of its keys cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Fault for PolicyError {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Key(error) => error.hint(),
            Self::Read { .. } => Some("name another file with --policy".into()),
            Self::Syntax { .. } | Self::Invalid { .. } => None,
        }
    }
}

/// A policy. What it does not mention it does not demand.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Beginnings of the addresses that inputs may come from.
    pub sources: Option<Vec<String>>,
    /// The commits that a git source may be at, by the source's name in the attestation.
    pub commits: BTreeMap<String, Vec<Commit>>,
    /// Who may have built.
    pub builders: Option<Vec<BuilderRule>>,
    /// Steps without network must have run without one.
    pub isolation: bool,
    /// Every input must have had a recorded digest.
    pub recorded: bool,
    /// Who must have signed.
    pub signatures: Option<Signatures>,
}

/// A builder that is trusted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuilderRule {
    /// Its id.
    pub id: String,
    /// The versions of rebuild-model.
    pub version: Option<VersionRange>,
}

/// Who must have signed.
#[derive(Debug, Clone)]
pub struct Signatures {
    /// The keys.
    pub keys: Vec<PublicKey>,
    /// How many different ones of them.
    pub threshold: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    schema: u32,
    sources: Option<Vec<String>>,
    #[serde(default)]
    commits: BTreeMap<String, Vec<Commit>>,
    builders: Option<Vec<BuilderRule>>,
    #[serde(default)]
    isolation: bool,
    #[serde(default)]
    recorded: bool,
    signatures: Option<SignaturesFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignaturesFile {
    keys: Vec<PathBuf>,
    threshold: Option<usize>,
}

impl Policy {
    /// Reads the policy at `path`; the keys that it names are relative to it.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let failed = |source| PolicyError::Read { path: path.to_owned(), source };
        let metadata = path.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Err(failed(io::Error::other("it is not a regular file of at most 1 MiB")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let invalid = |reason: String| PolicyError::Invalid { path: path.to_owned(), reason };
        let file: PolicyFile =
            toml::from_str(&text).map_err(|error| PolicyError::Syntax { path: path.to_owned(), error })?;
        if file.schema != SCHEMA {
            return Err(invalid(format!("it has schema {}, and this version reads schema {SCHEMA}", file.schema)));
        }
        if let Some(bad) = file.sources.iter().flatten().find(|source| !is_place(source)) {
            return Err(invalid(format!(
                "`{bad}` in `sources` is not the beginning of an address: a scheme, and a host up to a `/`, are wanted"
            )));
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        let signatures = file.signatures.map(|file| signatures(&file, directory, &invalid)).transpose()?;
        let policy = Self {
            sources: file.sources,
            commits: file.commits,
            builders: file.builders,
            isolation: file.isolation,
            recorded: file.recorded,
            signatures,
        };
        // A forgotten table must not pass for a policy.
        let demands = policy.sources.is_some()
            || !policy.commits.is_empty()
            || policy.builders.is_some()
            || policy.isolation
            || policy.recorded
            || policy.signatures.is_some();
        if demands { Ok(policy) } else { Err(invalid("it demands nothing".into())) }
    }
}

fn signatures(
    file: &SignaturesFile,
    directory: &Path,
    invalid: &dyn Fn(String) -> PolicyError,
) -> Result<Signatures, PolicyError> {
    let mut keys: Vec<PublicKey> = Vec::new();
    for path in &file.keys {
        let key = PublicKey::read(&directory.join(path))?;
        if keys.contains(&key) {
            return Err(invalid(format!("{} in `signatures.keys` is there twice", path.display())));
        }
        keys.push(key);
    }
    let threshold = file.threshold.unwrap_or(keys.len());
    if threshold == 0 || threshold > keys.len() {
        return Err(invalid(format!("`signatures.threshold` is {threshold}, and there are {} keys", keys.len())));
    }
    Ok(Signatures { keys, threshold })
}

/// Whether `source` fixes whom it trusts: a package type, or a scheme and a whole host.
fn is_place(source: &str) -> bool {
    if let Some(package) = source.strip_prefix("pkg:") {
        return package.split_once('/').is_some_and(|(kind, _)| !kind.is_empty());
    }
    let rest = source.split_once("://").filter(|(scheme, _)| !scheme.is_empty());
    rest.and_then(|(_, rest)| rest.split_once('/'))
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains(['@', '*']))
}

/// Whether `uri` lies below `place`. Beginnings end at a boundary, so that `…/apache` does not stand for
/// `…/apache-other`.
fn is_below(uri: &str, place: &str) -> bool {
    let bare = |uri: &str| uri.strip_prefix("git+").unwrap_or(uri).to_owned();
    let (uri, place) = (bare(uri), bare(place));
    let path = uri.split(['?', '#']).next().unwrap_or_default().to_lowercase().replace("%2e", ".");
    // What a server makes of such parts nobody knows.
    if path.split(['/', '\\']).any(|part| part == ".." || part == ".") {
        return false;
    }
    uri.strip_prefix(&place).is_some_and(|rest| {
        place.ends_with('/')
            || rest.is_empty()
            || rest.starts_with(['/', '@', '?', '#'])
            || rest == ".git"
            || rest.starts_with(".git@")
    })
}

/// A policy and what it is held against.
pub(super) struct Demand<'a> {
    pub policy: &'a Policy,
    pub attestation: &'a Attestation,
    /// The plan, when it follows from the carried pins.
    pub plan: Option<&'a Plan>,
}

impl Demand<'_> {
    /// Everything in which the policy is not met, but for signatures.
    pub(super) fn disputes(&self) -> Vec<Dispute> {
        let mut disputes = Vec::new();
        let mut refuse = |rule: &'static str, culprit: &str, reason: String| {
            disputes.push(Dispute::Policy { rule, culprit: culprit.to_owned(), reason });
        };
        if self.policy.sources.is_some() || !self.policy.commits.is_empty() {
            self.check_sources(&mut refuse);
        }
        self.check_builder(&mut refuse);
        if self.policy.isolation {
            self.check_isolation(&mut refuse);
        }
        if self.policy.recorded {
            self.check_recorded(&mut refuse);
        }
        disputes
    }

    fn check_sources(&self, refuse: &mut dyn FnMut(&'static str, &str, String)) {
        let mut unseen = self.policy.commits.clone();
        for dependency in self.attestation.dependencies() {
            let is_git = ["git", "submodule"].contains(&dependency.kind());
            let named = unseen.remove(dependency.name()).filter(|_| is_git);
            if let Some(commits) = &named {
                let commit = dependency.digest.get("gitCommit").map_or("nothing", String::as_str);
                if !commits.iter().any(|allowed| allowed.as_str() == commit) {
                    let allowed: Vec<_> = commits.iter().map(Commit::as_str).collect();
                    let reason = format!("it is at commit {commit}, and {} is demanded", allowed.join(" or "));
                    refuse("commits", dependency.name(), reason);
                }
            }
            if let Some(reason) = self.refuse_source(dependency, named.is_some()) {
                refuse("sources", dependency.name(), reason);
            }
        }
        for name in unseen.keys() {
            refuse("commits", name, "no git source of this name went in".into());
        }
    }

    /// Why the dependency's source is not allowed.
    fn refuse_source(&self, dependency: &ResourceDescriptor, has_commit: bool) -> Option<String> {
        let places = self.policy.sources.as_ref()?;
        match &dependency.uri {
            Some(uri) => {
                let allowed = places.iter().any(|place| is_below(uri, place));
                (!allowed).then(|| format!("it comes from {uri}, which is below none of the allowed addresses"))
            }
            // A commit that is demanded by id is the same wherever it comes from.
            None if ["git", "submodule"].contains(&dependency.kind()) && !has_commit => {
                Some("it comes from a repository that only its builder has".into())
            }
            // Files beside the pins are part of what was reviewed; tools are those of the host.
            None => None,
        }
    }

    fn check_builder(&self, refuse: &mut dyn FnMut(&'static str, &str, String)) {
        let Some(rules) = &self.policy.builders else { return };
        let builder = &self.attestation.statement().predicate.run_details.builder;
        let version = builder.version.get("rebuild-model").map_or("", String::as_str);
        let suits = |rule: &BuilderRule| {
            rule.id == builder.id
                && rule.version.as_ref().is_none_or(|range| version.parse().is_ok_and(|found| range.accepts(&found)))
        };
        if !rules.iter().any(suits) {
            let show = |rule: &BuilderRule| match &rule.version {
                Some(version) => format!("{} {version}", rule.id),
                None => rule.id.clone(),
            };
            let wanted: Vec<_> = rules.iter().map(show).collect();
            refuse("builders", &format!("{} {version}", builder.id), format!("expected {}", wanted.join(" or ")));
        }
    }

    fn check_isolation(&self, refuse: &mut dyn FnMut(&'static str, &str, String)) {
        if !self.attestation.statement().predicate.build_definition.internal_parameters.isolation {
            refuse("isolation", "the host", "it could not run steps without a network".into());
        }
        let open =
            self.attestation.steps().iter().filter(|(_, step)| step.kind == "run" && !step.network && !step.isolated);
        for (id, _) in open {
            refuse("isolation", &format!("step {id}"), "its commands were not kept from the network".into());
        }
    }

    fn check_recorded(&self, refuse: &mut dyn FnMut(&'static str, &str, String)) {
        match self.plan {
            None => refuse("recorded", "the plan", "it does not follow from the pins, so nothing can be told".into()),
            Some(plan) => {
                for input in plan.unrecorded_inputs() {
                    refuse("recorded", &input, "the pins have no digest of it".into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_whole_host_and_ends_at_a_boundary() {
        let cases = [
            ("git+https://github.com/apache/tvm@1234", "https://github.com/apache/", true),
            ("git+https://github.com/apache/tvm@1234", "https://github.com/apache/tvm", true),
            ("git+https://github.com/apache/tvm.git@1234", "https://github.com/apache/tvm", true),
            ("git+https://github.com/apache/tvm-evil@1234", "https://github.com/apache/tvm", false),
            ("git+https://github.com/apache-evil/tvm@1234", "https://github.com/apache", false),
            ("git+https://github.com/apache/../evil/tvm@1234", "https://github.com/apache/", false),
            ("git+https://github.com/apache/%2E%2e/evil/tvm@1234", "https://github.com/apache/", false),
            ("https://github.com@evil.example/x", "https://github.com/", false),
            ("http://github.com/apache/tvm", "https://github.com/apache/", false),
            ("pkg:pypi/numpy@2.0", "pkg:pypi/", true),
            ("pkg:pypi/numpy@2.0", "pkg:pypi/numpy", true),
            ("pkg:pypi/numpy-evil@2.0", "pkg:pypi/numpy", false),
            ("pkg:npm/%40esbuild/linux-x64@1", "pkg:npm/%40esbuild/", true),
        ];
        for (uri, place, expected) in cases {
            assert_eq!(is_below(uri, place), expected, "{uri} {place}");
        }
        for place in ["https://github.com", "github.com/", "https:///x", "", "pkg:pypi", "https://a@b/", "https://*/"] {
            assert!(!is_place(place), "{place}");
        }
        for place in ["https://github.com/", "pkg:pypi/", "git+https://github.com/apache/tvm"] {
            assert!(is_place(place), "{place}");
        }
    }
}
