//! Whether a key can be had from where it is kept, as far as that shows without asking anybody: commands are not run,
//! and no keyring is opened.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use myclaw_auth::{AuthFile, AuthProfile};
use myclaw_config::{Config, ExposeSecret as _, KeySource};
use myclaw_llm::{Api, Model};

use super::{Check, find_program};
use crate::settings::Home;

/// Most of a file that is read for a key.
const MAX_KEY_FILE: u64 = 64 * 1024;
/// The program that reads the system's keyring.
const KEYRING_PROGRAM: &str = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };

/// What shows of a key without asking for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there.
    There,
    /// It comes from somewhere that is not asked here.
    NotTried(&'static str),
    /// It cannot be had: why.
    Missing(String),
}

/// Looks for the key of `profile`. One that comes out of a login is there, whatever its age.
pub(super) fn look_for(profile: &AuthProfile, home: &Home) -> Found {
    match &profile.source {
        Some(source) if profile.login.is_none() => look_for_key(source, home),
        _ => Found::There,
    }
}

/// Looks for the key that is kept in `source`.
pub(crate) fn look_for_key(source: &KeySource, home: &Home) -> Found {
    match source {
        KeySource::Literal(key) if key.expose_secret().trim().is_empty() => {
            Found::Missing("it is empty".to_owned())
        }
        KeySource::Literal(_) => Found::There,
        KeySource::Environment(name) => match home.environment.get(name).map(str::trim) {
            None | Some("") => Found::Missing(format!("the variable {name} is not set")),
            Some(_) => Found::There,
        },
        KeySource::File(path) => look_in_file(path),
        KeySource::Command(_) => Found::NotTried("from a command"),
        KeySource::Keyring { .. } if find_program(KEYRING_PROGRAM).is_none() => {
            Found::Missing(format!(
                "{KEYRING_PROGRAM}, which reads the keyring, is not installed (in Debian and Ubuntu it is in \
                 libsecret-tools)"
            ))
        }
        KeySource::Keyring { .. } => Found::NotTried("from the keyring"),
    }
}

fn look_in_file(path: &Path) -> Found {
    let holds_key = || -> io::Result<Option<bool>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() && !metadata.is_dir() {
            // A named pipe waits for somebody who writes.
            return Ok(None);
        }
        let mut text = String::new();
        File::open(path)?.take(MAX_KEY_FILE).read_to_string(&mut text)?;
        Ok(Some(!text.trim().is_empty()))
    };
    match holds_key() {
        Ok(Some(true)) => Found::There,
        Ok(Some(false)) => Found::Missing(format!("the key file {} is empty", path.display())),
        Ok(None) => Found::NotTried("from a pipe"),
        Err(error) => {
            Found::Missing(format!("the key file {} cannot be read: {error}", path.display()))
        }
    }
}

/// The files that hold keys of the settings or of the store.
pub(super) fn key_files(config: &Config, stored: &AuthFile) -> Vec<std::path::PathBuf> {
    let of_provider = config.provider.iter().flat_map(|provider| &provider.auth_profiles);
    let written = of_provider
        .map(|profile| &profile.api_key)
        .chain(config.models.providers.values().filter_map(|own| own.api_key.as_ref()));
    let configured =
        written.filter_map(|key| KeySource::from_settings(key, config.paths.as_ref()).ok());
    let kept = stored.profiles().filter_map(|(name, profile)| {
        let mut profiles = stored.profiles_of(&profile.provider).into_iter();
        profiles.find(|found| found.id == name)?.source
    });
    let mut files: Vec<_> = configured
        .chain(kept)
        .filter_map(|source| match source {
            KeySource::File(path) => Some(path),
            _ => None,
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

/// What is to be said of a cloud's own credentials, which only a call really finds.
pub(super) fn check_cloud(model: &Model, home: &Home) -> Check {
    const NAME: &str = "key";
    let provider = &model.provider;
    if model.api != Api::BedrockConverse {
        let message = format!("the cloud's own credentials for {provider}, not tried");
        return Check::ok(NAME, message);
    }
    let is_set = |name: &&str| home.environment.get(name).is_some_and(|value| !value.is_empty());
    let has_file = |variable: &str, name: &str| {
        let in_home = || home.environment.os_home().map(|home| home.join(".aws").join(name));
        let path = home.environment.get(variable).map(Into::into).or_else(in_home);
        path.is_some_and(|path| path.is_file())
    };
    let has_files = has_file("AWS_CONFIG_FILE", "config")
        || has_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let needs_region = model.base_url.contains("{region}") && !model.id.starts_with("arn:");
    if needs_region && !has_files && !["AWS_REGION", "AWS_DEFAULT_REGION"].iter().any(is_set) {
        return Check::fail(
            NAME,
            format!("no AWS region is set for {provider}"),
            "set AWS_REGION, such as us-east-1, or `region` in ~/.aws/config",
        );
    }
    let variables = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    if !has_files && !variables.iter().any(is_set) {
        return Check::warn(
            NAME,
            format!(
                "no AWS credentials for {provider} in the variables or in ~/.aws; only a machine of Amazon's gives some \
                 itself"
            ),
            format!("`aws configure`, or `myclaw auth add {provider}`"),
        );
    }
    Check::ok(NAME, format!("AWS credentials for {provider}, not tried"))
}
