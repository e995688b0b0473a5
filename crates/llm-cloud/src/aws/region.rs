//! Finds the region of a call.

use url::Url;

use myclaw_llm::{ErrorClass, Model, ModelError, Variables};

/// Stands for the region in a base URL.
const PLACEHOLDER: &str = "{region}";

/// The beginning of the part of a host name that precedes the region, as in
/// `bedrock-runtime.us-east-1.amazonaws.com` and `vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com`.
const SERVICE_LABEL: &str = "bedrock-runtime";

/// Whether `base_url` leaves the region open.
pub(super) fn is_open(base_url: &str) -> bool {
    base_url.contains(PLACEHOLDER)
}

/// The region of a call, unless only a file names it: the one in its base URL, because no other would work; else the
/// one in an ARN that is the model id; else that of `AWS_REGION` or `AWS_DEFAULT_REGION`.
pub(super) fn named(model: &Model, variables: &Variables) -> Option<String> {
    host_region(&model.base_url)
        .or_else(|| arn_region(&model.id).map(str::to_owned))
        .or_else(|| variables.get("AWS_REGION").map(str::to_owned))
        .or_else(|| variables.get("AWS_DEFAULT_REGION").map(str::to_owned))
}

/// `region`, if it is present and can be the name of a region.
///
/// # Errors
/// Otherwise; the message says what to set.
pub(super) fn checked(region: Option<String>) -> Result<String, ModelError> {
    let region = region.ok_or_else(|| {
        let message =
            "no AWS region is set: set AWS_REGION, such as us-east-1, or `region` in ~/.aws/config";
        ModelError::new(ErrorClass::Unknown, message)
    })?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !region.is_empty() && region.bytes().all(is_name) {
        return Ok(region);
    }
    let message = format!("{region:?} is no AWS region: write it like us-east-1");
    Err(ModelError::new(ErrorClass::Unknown, message))
}

/// `base_url` with the region in its place.
pub(super) fn base_url(base_url: &str, region: &str) -> String {
    let filled = base_url.replace(PLACEHOLDER, region);
    // China is a partition of its own.
    if filled != base_url && region.starts_with("cn-") && filled.ends_with(".amazonaws.com") {
        return format!("{filled}.cn");
    }
    filled
}

fn host_region(base_url: &str) -> Option<String> {
    let url = Url::parse(base_url.trim()).ok()?;
    let mut labels = url.host_str()?.split('.');
    labels.find(|label| label.starts_with(SERVICE_LABEL))?;
    let region = labels.next().filter(|label| label.contains('-'))?;
    Some(region.to_owned())
}

/// The fourth part of `arn:aws:bedrock:eu-central-1:123456789012:inference-profile/…`.
fn arn_region(id: &str) -> Option<&str> {
    id.strip_prefix("arn:")?.split(':').nth(2).filter(|region| !region.is_empty())
}

#[cfg(test)]
mod tests;
