//! What OpenAI's two formats share: the URL of a request, the header of the key, and the form of images.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderValue};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::compat::{Addressing, Compat};
use super::{EncodedRequest, endpoint, json_request};
use crate::{AnswerFormat, ImageContent, ModelError, ModelRequest};

/// A request with this body, to the URL that the host of its model requires.
pub(crate) fn encoded(
    request: &ModelRequest<'_>,
    compat: &Compat,
    body: &impl Serialize,
) -> Result<EncodedRequest, ModelError> {
    let model = request.model;
    let url = match compat.addressing {
        Addressing::Usual => endpoint::call_url(model.api, &model.base_url)?,
        Addressing::Unversioned => endpoint::unversioned_url(model.api, &model.base_url)?,
        Addressing::Azure => endpoint::azure_url(model.api, &model.base_url, &model.id)?,
    };
    let mut encoded = json_request(request, url, body)?;
    if compat.addressing == Addressing::Azure {
        azure_key(&mut encoded.headers);
    }
    Ok(encoded)
}

/// Azure takes a token as `authorization: Bearer`, but a key as `api-key`. Tokens are JSON, written in Base64.
fn azure_key(headers: &mut HeaderMap) {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok());
    let Some(key) = key.and_then(|value| value.strip_prefix("Bearer ")) else { return };
    if let Some(Ok(mut value)) = (!key.starts_with("ey")).then(|| HeaderValue::from_str(key)) {
        value.set_sensitive(true);
        headers.remove("authorization");
        headers.insert("api-key", value);
    }
}

/// A format that is a schema, as an object without the fields that it leaves open.
pub(crate) fn schema_fields(format: &AnswerFormat) -> Map<String, Value> {
    let fields = serde_json::to_value(format).ok();
    let mut fields = fields.and_then(|value| value.as_object().cloned()).unwrap_or_default();
    fields.remove("type");
    fields
}

/// An image as a `data:` URL, written without a copy of the image.
pub(crate) struct DataUrl<'a>(pub(crate) &'a ImageContent);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "data:{};base64,{}", self.0.mime_type, self.0.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
