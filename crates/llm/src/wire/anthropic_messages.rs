//! Anthropic's Messages API.

mod decode;
mod encode;
pub(super) mod thinking;

pub use decode::Decoder;
pub use encode::encode;

/// The `anthropic-version` header: the only version that has been current since the API exists.
pub(crate) const API_VERSION: &str = "2023-06-01";

/// Keys that begin so are OAuth tokens, which go into `authorization` instead of `x-api-key`.
pub(crate) const OAUTH_KEY_PREFIX: &str = "sk-ant-oat";

/// The header that names what a request needs beyond the version of the API. It may come more than once.
pub(super) const BETA_HEADER: &str = "anthropic-beta";

/// Without it, OAuth tokens are refused.
pub(super) const OAUTH_BETA: &str = "oauth-2025-04-20";
