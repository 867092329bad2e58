//! A bill of materials of everything that went into a build: [CycloneDX 1.6][1], in JSON.
//!
//! It follows from what a statement says of artifacts and dependencies, and holds no time: two builds
//! of the same have the same, with the same serial number. The statement has its digest.
//!
//! [1]: https://cyclonedx.org/docs/1.6/json/

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::dependencies::PINS;
use super::descriptor::ResourceDescriptor;
use super::statement::{BuildDefinition, Builder};
use super::subjects::PACKED;
use crate::digest::Digest;

/// The bill for the artifacts `subjects`, which `builder` made by `definition`.
pub(super) fn bill(subjects: &[ResourceDescriptor], definition: &BuildDefinition, builder: &Builder) -> Vec<u8> {
    let internal = &definition.internal_parameters;
    let artifacts = subjects.iter().filter(|subject| subject.annotation("form") == PACKED);
    let artifacts: Vec<_> = artifacts.map(|subject| component(subject, "artifact")).collect();
    let root = format!("build:{}", internal.recipe);
    let mut components: Vec<_> =
        definition.resolved_dependencies.iter().map(|found| component(found, found.kind())).collect();
    make_unique(&mut components);
    let references: Vec<_> = components.iter().map(|component| component["bom-ref"].clone()).collect();
    let tools: Vec<_> = builder
        .version
        .iter()
        .map(|(name, version)| json!({ "type": "application", "name": name, "version": version }))
        .collect();
    let mut graph = vec![json!({ "ref": root, "dependsOn": references })];
    graph.extend(references.iter().map(|reference| json!({ "ref": reference })));
    let metadata = json!({
        "tools": { "components": tools },
        "component": {
            "type": "application",
            "bom-ref": root,
            "name": internal.recipe,
            "version": internal.plan,
            "components": artifacts,
            "properties": [{ "name": "rebuild-model:platform", "value": internal.platform }],
        },
    });
    let serial = serial_number(&Digest::of_value(&(&metadata, &components)));
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial,
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": graph,
    });
    format!("{bill:#}\n").into_bytes()
}

/// Files of different places can have one name; a reference stands for one of them.
fn make_unique(components: &mut [Value]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for component in components {
        let reference = component["bom-ref"].as_str().unwrap_or_default().to_owned();
        let count = seen.entry(reference.clone()).or_default();
        *count += 1;
        if *count > 1 {
            component["bom-ref"] = format!("{reference}#{count}").into();
        }
    }
}

/// A UUID of one's own making (RFC 9562, version 8) from the first bytes of `digest`.
fn serial_number(digest: &Digest) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The component for something of the given kind.
fn component(found: &ResourceDescriptor, kind: &str) -> Value {
    let mut component = Map::new();
    let mut set = |key: &str, value: Value| drop(component.insert(key.to_owned(), value));
    set("type", component_type(kind).into());
    set("bom-ref", format!("{kind}:{}", found.name()).into());
    let commit = found.digest.get("gitCommit");
    let package = found.uri.as_deref().and_then(Package::read);
    match (&package, commit) {
        (Some(package), _) => {
            if let Some(group) = &package.group {
                set("group", group.as_str().into());
            }
            set("name", package.name.as_str().into());
            set("version", package.version.as_str().into());
        }
        (None, Some(commit)) => {
            set("name", found.name().into());
            set("version", commit.as_str().into());
        }
        (None, None) => {
            set("name", found.name().into());
            if !found.annotation("version").is_empty() {
                set("version", found.annotation("version").into());
            }
        }
    }
    if let Some(digest) = found.digest.get("sha256") {
        set("hashes", json!([{ "alg": "SHA-256", "content": digest }]));
    }
    if let Some(url) = package_url(found) {
        set("purl", url.into());
    }
    // Software Heritage's ids of a commit and of a tree are git's.
    let ids = [("rev", commit), ("dir", found.digest.get("gitTree"))];
    let ids: Vec<_> = ids.iter().filter_map(|(kind, id)| Some(format!("swh:1:{kind}:{}", (*id)?))).collect();
    if !ids.is_empty() {
        set("swhid", ids.into());
    }
    if let Some(uri) = found.uri.as_deref().filter(|_| package.is_none()) {
        let kind = if commit.is_some() { "vcs" } else { "distribution" };
        set("externalReferences", json!([{ "type": kind, "url": repository(uri) }]));
    }
    if package.is_some() {
        set("properties", json!([{ "name": "rebuild-model:file", "value": found.name() }]));
    }
    Value::Object(component)
}

fn component_type(kind: &str) -> &'static str {
    match kind {
        "tool" => "application",
        "git" | "submodule" | "pypi" | "npm" | "wheel" => "library",
        PINS | "patch" | "requirements" | "file" | "artifact" => "file",
        _ => "data",
    }
}

/// The parts of a package url.
struct Package {
    group: Option<String>,
    name: String,
    version: String,
}

impl Package {
    fn read(uri: &str) -> Option<Self> {
        let (_, path) = uri.strip_prefix("pkg:")?.split_once('/')?;
        let (path, version) = path.rsplit_once('@')?;
        let (group, name) = path.rsplit_once('/').map_or((None, path), |(group, name)| (Some(group), name));
        let plain = |text: &str| text.replace("%40", "@").replace("%2B", "+");
        Some(Self { group: group.map(plain), name: plain(name), version: plain(version) })
    }
}

/// The repository's address in a git uri.
fn repository(uri: &str) -> &str {
    let bare = uri.strip_prefix("git+").unwrap_or(uri);
    if bare.len() == uri.len() { uri } else { bare.rsplit_once('@').map_or(bare, |(url, _)| url) }
}

/// Its package url (ECMA-427): its own, or that of a repository by commit.
fn package_url(found: &ResourceDescriptor) -> Option<String> {
    let uri = found.uri.as_deref();
    if let Some(url) = uri.filter(|uri| uri.starts_with("pkg:")) {
        return Some(url.to_owned());
    }
    let commit = found.digest.get("gitCommit")?;
    let url = uri.map(repository);
    let on_github = url.and_then(|url| url.strip_prefix("https://github.com/"));
    let path = on_github.map(|path| path.trim_end_matches('/').trim_end_matches(".git"));
    if let Some((owner, name)) = path.and_then(|path| path.split_once('/')).filter(|(_, name)| !name.contains('/')) {
        // Names there are case-insensitive, and lower case in package urls.
        return Some(format!("pkg:github/{}/{}@{commit}", owner.to_lowercase(), name.to_lowercase()));
    }
    let name = found.name().rsplit('/').next().unwrap_or_default();
    Some(match url {
        Some(url) => {
            format!("pkg:generic/{}@{commit}?vcs_url={}", escape(name), escape(&format!("git+{url}@{commit}")))
        }
        None => format!("pkg:generic/{}@{commit}", escape(name)),
    })
}

/// Percent-encoded but for what package urls leave as it is.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(uri: Option<&str>) -> ResourceDescriptor {
        let mut found =
            ResourceDescriptor { uri: uri.map(str::to_owned), ..ResourceDescriptor::named("m/3rdparty/tvm") };
        found.digest.insert("gitCommit".into(), "c".repeat(40));
        found
    }

    #[test]
    fn repositories_have_package_urls() {
        let commit = "c".repeat(40);
        let url = |uri: Option<&str>| package_url(&git(uri)).unwrap().replace(&commit, "COMMIT");
        let at = |url: &str| format!("git+{url}@{commit}");
        assert_eq!(url(Some(&at("https://github.com/Apache/TVM.git"))), "pkg:github/apache/tvm@COMMIT");
        assert_eq!(url(Some(&at("https://github.com/mlc-ai/relax"))), "pkg:github/mlc-ai/relax@COMMIT");
        assert_eq!(
            url(Some(&at("https://git.example.org/a/b"))),
            "pkg:generic/tvm@COMMIT?vcs_url=git%2Bhttps://git.example.org/a/b%40COMMIT"
        );
        assert_eq!(url(None), "pkg:generic/tvm@COMMIT");
    }

    #[test]
    fn references_are_unique() {
        let mut components = vec![json!({ "bom-ref": "file:a" }), json!({ "bom-ref": "file:a" })];
        make_unique(&mut components);
        assert_eq!(components[1]["bom-ref"], "file:a#2");
    }

    #[test]
    fn serial_numbers_are_uuids_of_version_8() {
        let serial = serial_number(&Digest::of(b""));
        assert_eq!(serial, "urn:uuid:e3b0c442-98fc-8c14-9afb-f4c8996fb924");
    }
}
