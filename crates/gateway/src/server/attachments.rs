//! Pictures and other files that come with a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_delivery::message::MessageFile;
use myclaw_delivery::routing::file_name;
use myclaw_llm::ImageContent;
use myclaw_tools::picture_from_base64;
use serde::Deserialize;

use crate::GatewayError;

/// Most pictures of a message, and most files.
pub(super) const MOST_ATTACHMENTS: usize = 8;
/// How pictures begin that models can see: PNG, JPEG, GIF, and WebP, which has its mark after its size.
const PICTURES: [&[u8]; 3] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8"];

/// A picture or another file that comes with a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attachment {
    /// What the sender believes it to be. The gateway looks at the picture itself.
    #[serde(default, rename = "mediaType")]
    _media_type: Option<String>,
    /// Standard base64.
    data: String,
    /// Its name, if it may be something else than a picture.
    #[serde(default)]
    name: Option<String>,
}

impl Attachment {
    pub(super) fn new(base64: String) -> Self {
        Self { _media_type: None, data: base64, name: None }
    }
}

/// What comes with a message: pictures, and files with a name that are none.
pub(super) async fn attached(
    attachments: Vec<Attachment>,
) -> Result<(Vec<ImageContent>, Vec<MessageFile>), GatewayError> {
    let (mut seen, mut files) = (Vec::new(), Vec::new());
    for attachment in attachments {
        let name = attachment.name.as_deref().filter(|name| !name.trim().is_empty());
        let bytes = name.map(|_| STANDARD.decode(attachment.data.trim_ascii()));
        match (name, bytes) {
            (Some(name), Some(Ok(bytes))) if !is_picture(&bytes) => {
                files.push(MessageFile { name: file_name(name), bytes });
            }
            (Some(name), Some(Err(_))) => {
                let why = format!("the data of the file \"{}\" is not base64", file_name(name));
                return Err(GatewayError::Unusable(why));
            }
            _ => seen.push(attachment),
        }
    }
    if files.len() > MOST_ATTACHMENTS {
        let why = format!("a message has at most {MOST_ATTACHMENTS} files; send the others later");
        return Err(GatewayError::Unusable(why));
    }
    Ok((pictures(seen).await?, files))
}

/// Checks pictures before they are stored: a provider would refuse the session from then on.
pub(super) async fn pictures(
    attachments: Vec<Attachment>,
) -> Result<Vec<ImageContent>, GatewayError> {
    if attachments.len() > MOST_ATTACHMENTS {
        let why =
            format!("a message has at most {MOST_ATTACHMENTS} pictures; send the others later");
        return Err(GatewayError::Unusable(why));
    }
    let checking = tokio::task::spawn_blocking(move || {
        let pictures = attachments.iter().enumerate().map(|(number, attachment)| {
            picture_from_base64(&attachment.data).map_err(|why| {
                let number = number + 1;
                GatewayError::Unusable(format!("attachment {number} cannot be used: {why}"))
            })
        });
        pictures.collect()
    });
    checking.await.map_err(|error| GatewayError::Internal(error.to_string()))?
}

/// Whether it is a picture that models can see.
pub(super) fn is_picture(bytes: &[u8]) -> bool {
    PICTURES.iter().any(|start| bytes.starts_with(start))
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}
