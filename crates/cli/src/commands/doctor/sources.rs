//! Which files hold keys, and whether a cloud's own credentials are there.

use myclaw_agent::Home;
use myclaw_auth::AuthFile;
use myclaw_config::{Config, KeySource};
use myclaw_llm::Model;

use super::Check;

/// The provider whose credentials are those of AWS.
const AMAZON_BEDROCK: &str = "amazon-bedrock";

/// The files that hold keys of the config or of the store.
pub(super) fn key_files(config: &Config, stored: &AuthFile) -> Vec<std::path::PathBuf> {
    let of_provider = config.provider.iter().flat_map(|provider| &provider.auth_profiles);
    let written = of_provider
        .map(|profile| &profile.api_key)
        .chain(config.models.providers.values().filter_map(|own| own.api_key.as_ref()));
    let configured =
        written.filter_map(|key| KeySource::from_config(key, config.paths.as_ref()).ok());
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

/// The check of a cloud's own credentials, as far as it is possible without a call.
pub(super) fn check_cloud(model: &Model, home: &Home) -> Check {
    const NAME: &str = "key";
    let provider = &model.provider;
    if provider != AMAZON_BEDROCK {
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
