//! The URL of a request: a base URL as users write it, and the path of a format.

use url::{Host, Url};

use crate::{Api, ErrorClass, ModelError};

/// The URL of a model call for `base_url`.
pub(crate) fn call_url(api: Api, base_url: &str) -> Result<Url, ModelError> {
    let path: &[&str] = match api {
        Api::AnthropicMessages => &["messages"],
        Api::OpenaiCompletions | Api::Builtin => &["chat", "completions"],
        Api::OpenaiResponses => &["responses"],
        // These two put the model into the path: their encoders write it.
        Api::GoogleGenerativeAi | Api::BedrockConverse => &[],
    };
    endpoint(api, base_url, path)
}

/// The URL of a call to a host whose paths have no version.
pub(crate) fn unversioned_url(api: Api, base_url: &str) -> Result<Url, ModelError> {
    let mut url = call_url(api, base_url)?;
    if let Some(path) = url.path().strip_prefix("/v1/").filter(|_| !base_url.contains("/v1")) {
        let path = format!("/{path}");
        url.set_path(&path);
    }
    Ok(url)
}

/// The URL of a call to an Azure resource. A base URL that names a deployment, or `/openai/v1`, is taken as it is; a
/// resource alone means its `/openai/v1`. With `?api-version=…` it means the deployment of the model's name, but for
/// the Responses format, which names the deployment in its body alone.
pub(crate) fn azure_url(api: Api, base_url: &str, deployment: &str) -> Result<Url, ModelError> {
    let mut url = endpoint(api, base_url, &[])?;
    let is_resource_alone = matches!(url.path().trim_matches('/'), "" | "v1" | "openai");
    if is_resource_alone {
        let has_version = url.query_pairs().any(|(name, _)| name == "api-version");
        let path = match (has_version, api) {
            (false, _) => "/openai/v1".to_owned(),
            (true, Api::OpenaiResponses) => "/openai".to_owned(),
            (true, _) => format!("/openai/deployments/{deployment}"),
        };
        url.set_path(&path);
    }
    call_url(api, url.as_str())
}

/// The URL of the list of models for `base_url`.
pub(crate) fn models_url(api: Api, base_url: &str) -> Result<Url, ModelError> {
    let mut url = endpoint(api, base_url, &["models"])?;
    if api == Api::GoogleGenerativeAi {
        // Google returns fifty by default; this is its maximum.
        url.query_pairs_mut().append_pair("pageSize", "1000");
    }
    Ok(url)
}

/// `base_url` with the format's path appended. Base URLs come with and without the version and the slash at the
/// end: a host alone means its `/v1` (Google's: `/v1beta`), and so does a path of Anthropic's or Google's format that ends
/// with none. A base that already ends with the path is taken as it is; a query is kept.
fn endpoint(api: Api, base_url: &str, path: &[&str]) -> Result<Url, ModelError> {
    let mut url = parse_base(base_url)?;
    let mut segments: Vec<String> = url
        .path_segments()
        .into_iter()
        .flatten()
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
        .collect();
    let mut is_whole = false;
    for known in [&["chat", "completions"][..], &["messages"], &["responses"]] {
        if segments.ends_with(&known.iter().map(|&segment| segment.to_owned()).collect::<Vec<_>>())
        {
            segments.truncate(segments.len() - known.len());
            is_whole = true;
            break;
        }
    }
    if api == Api::GoogleGenerativeAi {
        drop_model_path(&mut segments);
    }
    let lacks_version = match (api, segments.last()) {
        (_, None) => true,
        // The clients of these formats write the version themselves, so vendors' base URLs end before it.
        (Api::AnthropicMessages, Some(last)) => !is_whole && !is_version(last),
        (Api::GoogleGenerativeAi, Some(last)) => {
            !is_version(last) && !segments.iter().any(|segment| segment == "publishers")
        }
        (_, Some(_)) => false,
    };
    if lacks_version {
        let version = if api == Api::GoogleGenerativeAi { "v1beta" } else { "v1" };
        segments.push(version.to_owned());
    }
    segments.extend(path.iter().map(|&segment| segment.to_owned()));
    url.set_path(&segments.join("/"));
    Ok(url)
}

/// A base URL as the user wrote it, without parts that a base URL cannot have.
pub(crate) fn parse_base(base_url: &str) -> Result<Url, ModelError> {
    let mut url = Url::parse(base_url.trim()).map_err(|error| {
        bad_base_url(base_url, &format!("{error}; write it like https://host/v1"))
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad_base_url(
            base_url,
            "it must begin with http:// or https:// and name a host",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Whether it is `v1`, `v1beta`, `v4` or the like.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Removes what follows the version in a copied URL of Google's: `models`, or `models/ID:METHOD`.
fn drop_model_path(segments: &mut Vec<String>) {
    if segments.last().is_some_and(|last| last.contains(':')) {
        segments.pop();
    }
    if segments.last().is_some_and(|last| last == "models") {
        segments.pop();
    }
}

fn bad_base_url(base_url: &str, why: &str) -> ModelError {
    // A base URL may hold a password; the part before an `@` is not shown.
    let shown = base_url.rsplit_once('@').map_or(base_url, |(_, host)| host);
    ModelError::new(ErrorClass::Unknown, format!("the base URL {shown:?} is not usable: {why}"))
}

/// Host and, where it is not the scheme's own, port: how messages name a server.
pub fn host_label(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether the URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
        }
        None => false,
    }
}

/// Whether the URL names a link-local address, or one of those that the clouds' metadata services have. Other unique local
/// addresses of IPv6 (`fc00::/7`) are those of a private network, such as `10.0.0.0/8`.
pub fn is_link_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_link_local(),
        Some(Host::Ipv6(address)) => {
            // `fd00:ec2::/32` is Amazon's, `fd20:ce::/32` Google's.
            address.is_unicast_link_local()
                || matches!(address.segments(), [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, ..])
        }
        Some(Host::Domain(_)) | None => false,
    }
}

#[cfg(test)]
mod tests;
