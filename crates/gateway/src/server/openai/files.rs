//! Files within a request: a text becomes part of the message, a picture one of its pictures, and others, such as PDFs, are
//! files of the message, as those of channels are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_delivery::message::{MAX_TEXT_BYTES, MessageFile};
use myclaw_delivery::routing::{file_name, text_of};
use myclaw_llm::outside::quote;
use serde::Deserialize;

use super::Said;
use crate::GatewayError;
use crate::server::attachments::{Attachment, is_picture};

/// Longest name that is shown, in characters.
const MOST_NAME: usize = 200;
/// Name of a file that has none.
const UNNAMED: &str = "file";
/// A file: chat completions have it in an object, responses in the part itself.
#[derive(Default, Deserialize)]
pub(super) struct File {
    #[serde(default)]
    filename: Option<String>,
    /// A data URL, or standard base64.
    #[serde(default)]
    file_data: Option<String>,
    #[serde(default)]
    file_id: Option<String>,
    #[serde(default)]
    file_url: Option<String>,
}

impl File {
    /// Adds the file to what a message says.
    ///
    /// # Errors
    /// It is not in the request.
    pub(super) fn add_to(self, said: &mut Said) -> Result<(), GatewayError> {
        let name = self.filename.as_deref().map(plain).filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| UNNAMED.to_owned());
        let refuse = |why: &str| Err(GatewayError::Unusable(format!("the file `{name}` {why}")));
        let Some(data) = self.file_data else {
            return match (self.file_id, self.file_url) {
                (Some(_), _) => refuse(
                    "is named by an id, and the gateway keeps no files; send it as `file_data`",
                ),
                (_, Some(_)) => refuse("is not fetched; send it as `file_data`"),
                _ => refuse("has no `file_data`; send `data:text/plain;base64,…`"),
            };
        };
        let base64 = match data.strip_prefix("data:") {
            Some(rest) => rest.split_once(";base64,").map(|(_, base64)| base64),
            None => Some(data.as_str()),
        };
        let bytes = base64.and_then(|base64| STANDARD.decode(base64.trim_ascii()).ok());
        let (Some(base64), Some(bytes)) = (base64, bytes) else {
            return refuse("is not standard base64; send `data:text/plain;base64,…`");
        };
        if is_picture(&bytes) {
            said.pictures.push(Attachment::new(base64.to_owned()));
            return Ok(());
        }
        let Some(text) = text_of(&bytes).filter(|text| text.len() <= MAX_TEXT_BYTES) else {
            said.files.push(MessageFile { name: file_name(&name), bytes });
            return Ok(());
        };
        if !said.text.is_empty() {
            said.text.push_str("\n\n");
        }
        said.text.push_str(&format!(
            "[the file \"{name}\", quoted]\n{}\n",
            quote(text.trim_end_matches('\n'), "> ")
        ));
        Ok(())
    }
}

/// A name on one line, which cannot end its quotes.
fn plain(name: &str) -> String {
    let name = name.chars().filter(|char| !char.is_control() && *char != '"');
    name.take(MOST_NAME).collect()
}
