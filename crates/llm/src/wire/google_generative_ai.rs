//! Google's Generative Language API, as AI Studio and Vertex AI speak it.

mod decode;
mod encode;
mod thinking;

use url::Url;

pub use decode::Decoder;
pub use encode::encode;
pub(super) use thinking::thinking_control;

use crate::Model;
use crate::wire::endpoint::host_label;

/// The provider name of Vertex AI.
const VERTEX_PROVIDER: &str = "google-vertex";

/// The host of Vertex AI for the location `global`.
pub const VERTEX_HOST: &str = "aiplatform.googleapis.com";

/// Follows the region in the host name of Vertex AI: `europe-west4-aiplatform.googleapis.com`.
pub const REGIONAL_HOST: &str = "-aiplatform.googleapis.com";

/// Precede and follow a location of several regions in the host name of Vertex AI: `aiplatform.eu.rep.googleapis.com`.
pub const VERTEX_MULTI_REGION: (&str, &str) = ("aiplatform.", ".rep.googleapis.com");

/// The header that carries an API key.
pub const KEY_HEADER: &str = "x-goog-api-key";

/// The tokens of Google's logins begin with this.
pub const TOKEN_PREFIX: &str = "ya29.";

/// Google's two services. They speak the same format except for a few fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// `generativelanguage.googleapis.com`, and servers that copy it.
    AiStudio,
    /// Vertex AI in Google Cloud, which requires a project, a location and a token.
    Vertex,
}

impl Service {
    /// The service of `model`: by its host, or by its provider's name if the host says nothing (a proxy).
    pub fn of(model: &Model) -> Self {
        let host = Url::parse(model.base_url.trim()).map(|url| host_label(&url));
        let (prefix, suffix) = VERTEX_MULTI_REGION;
        let is_vertex_host = |host: String| {
            host == VERTEX_HOST
                || host.ends_with(REGIONAL_HOST)
                || host.starts_with(prefix) && host.ends_with(suffix)
        };
        let is_vertex = model.provider == VERTEX_PROVIDER || host.is_ok_and(is_vertex_host);
        if is_vertex { Self::Vertex } else { Self::AiStudio }
    }
}

/// The generation of a Gemini model (`3` of `gemini-3.1-pro-preview`); `None` for other names, `gemini-pro-latest`
/// among them.
fn generation(id: &str) -> Option<u32> {
    let version = bare_id(id).strip_prefix("gemini-")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether `id` names a model of the third generation or later. A name without a number (`gemini-flash-latest`) means
/// the newest model; families other than Gemini follow the newest rules too.
fn is_generation_3(id: &str) -> bool {
    generation(id).is_none_or(|generation| generation >= 3)
}

/// The id without the collection that the service's own list puts before it.
fn bare_id(id: &str) -> &str {
    id.strip_prefix("models/").unwrap_or(id)
}

#[cfg(test)]
mod tests;
