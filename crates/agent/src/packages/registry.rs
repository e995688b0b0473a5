//! A package of npm: the archive of the registry, compared with what the registry says of its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_packages::Tree;
use ring::digest::{SHA512, digest};
use serde_json::Value;
use url::Url;

use super::download::{check_address, download};
use crate::blocking::blocking;
use crate::{AgentError, FailureClass, SessionConfig};

/// The registry, unless the config names another.
const REGISTRY: &str = "https://registry.npmjs.org/";
/// Largest description of a package: some have thousands of versions.
const MAX_DESCRIPTION_BYTES: u64 = 64 << 20;
/// Largest archive.
const MAX_ARCHIVE_BYTES: u64 = 32 << 20;

/// Whether a package may be called so: `name`, or `@scope/name`.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
    };
    match name.strip_prefix('@').map(|name| name.split_once('/')) {
        Some(Some((scope, name))) => is_part(scope) && is_part(name),
        Some(None) => false,
        None => is_part(name),
    }
}

/// Gets a version of a package; its files, the version, and the digest of the archive.
///
/// # Errors
/// There is no such package or version, or the archive is not the one of which the registry speaks.
pub(super) async fn fetch(
    session: &SessionConfig,
    name: &str,
    wanted: Option<&str>,
) -> Result<(Tree, String, String), AgentError> {
    let failed = |why: String| AgentError::new(FailureClass::Packages, why);
    let registry = session.config.packages.registry.as_deref().unwrap_or(REGISTRY);
    let unusable = |error: &dyn std::fmt::Display| {
        AgentError::config(format!("`packages.registry` cannot be used: {error}"))
    };
    let base = Url::parse(&format!("{}/", registry.trim_end_matches('/')))
        .map_err(|error| unusable(&error))?;
    check_address(&base).map_err(|error| unusable(&error.message))?;
    let place = base.join(&name.replace('/', "%2f")).map_err(|error| unusable(&error))?;
    let bytes = download(&session.home, &place, MAX_DESCRIPTION_BYTES).await?;
    let described: Value = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("{place} answers no JSON: {error}")))?;
    let wanted = wanted.unwrap_or("latest");
    let version = described["dist-tags"][wanted].as_str().unwrap_or(wanted);
    let found = &described["versions"][version]["dist"];
    let (Some(archive), Some(integrity)) = (found["tarball"].as_str(), found["integrity"].as_str())
    else {
        return Err(failed(format!(
            "{name} has no version {wanted} with an archive and its digest; name another version with npm:{name}@VERSION"
        )));
    };
    let archive = place
        .join(archive)
        .map_err(|error| failed(format!("the archive of {name} has no address: {error}")))?;
    check_address(&archive)?;
    let bytes = download(&session.home, &archive, MAX_ARCHIVE_BYTES).await?;
    let expected = integrity
        .split_whitespace()
        .find_map(|one| one.strip_prefix("sha512-"))
        .and_then(|text| STANDARD.decode(text).ok())
        .ok_or_else(|| failed(format!("the registry gives no SHA-512 for {name}@{version}")))?;
    if digest(&SHA512, &bytes).as_ref() != expected {
        return Err(failed(format!(
            "the archive {archive} is not the one of which the registry speaks; nothing was changed"
        )));
    }
    let tree = blocking(move || Tree::of_archive(&bytes)).await??;
    Ok((tree, version.to_owned(), integrity.to_owned()))
}
