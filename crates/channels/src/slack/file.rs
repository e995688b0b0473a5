//! Files, in both directions.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{ApiError, Refused, Token};
use super::event::File;
use super::{SLACK, Slack};
use crate::taking::load;
use crate::{Attachment, AttachmentContent, Part, PartFile, SendFailure};

#[derive(Deserialize)]
struct Upload {
    upload_url: String,
    file_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FileInfo {
    file: File,
}

impl Slack {
    pub(super) async fn load_files(&self, files: &[(&File, Attachment)]) -> Vec<AttachmentContent> {
        let most = self.options.most_file_bytes;
        let mut contents = Vec::with_capacity(files.len());
        for (file, _) in files {
            contents.push(load(None, most, || self.download(file, most)).await);
        }
        contents
    }

    async fn download(&self, file: &File, most: u64) -> Result<Vec<u8>, ApiError> {
        let unusable = |reason: String| ApiError::Refused(Refused::said(&reason));
        // In channels that are shared with another workspace the event holds the id only.
        let asked;
        let file = match file.file_access.as_deref() {
            Some("check_file_info") => {
                let info: FileInfo =
                    self.api.call(Token::Bot, "files.info", &json!({"file": file.id})).await?;
                asked = info.file;
                &asked
            }
            _ => file,
        };
        if let Some(size) = file.size.filter(|size| *size > most) {
            return Err(unusable(format!(
                "it has {size} bytes, and at most {most} are downloaded"
            )));
        }
        let Some(address) = &file.url_private else {
            return Err(unusable("Slack names no address for it".to_owned()));
        };
        self.api.download(address, most).await
    }

    /// Keeps which file of Slack is that of a part, before anybody can see it: a file carries no metadata.
    async fn note_file(&self, part: &Part, file: &str) -> Result<(), SendFailure> {
        let later = |reason: String| SendFailure::Later { after: None, reason };
        let keeper =
            self.keeper.get().ok_or_else(|| later("the channel is starting".to_owned()))?;
        let text = format!("{} {file}", part.id);
        let kept = keeper.remember(&self.file_key(part), &text).await;
        kept.map_err(|refusal| later(format!("the store: {refusal}")))
    }

    /// The file of Slack that was to be shown for a part; `None` if it did not come so far.
    pub(super) async fn noted_file(&self, part: &Part) -> Result<Option<String>, SendFailure> {
        let later = |reason: String| SendFailure::Later { after: None, reason };
        let keeper =
            self.keeper.get().ok_or_else(|| later("the channel is starting".to_owned()))?;
        let kept = keeper.recall(&self.file_key(part)).await;
        let kept = kept.map_err(|refusal| later(format!("the store: {refusal}")))?;
        let noted = kept.and_then(|text| {
            let (id, file) = text.split_once(' ')?;
            (id == part.id).then(|| file.to_owned())
        });
        Ok(noted)
    }

    /// The parts of a conversation are sent one after the other, so one note for each is enough.
    fn file_key(&self, part: &Part) -> String {
        format!("{SLACK} {} file {}", self.options.account, part.target.to_text())
    }

    /// Sends a file; gives Slack's id of it.
    pub(super) async fn send_file(
        &self,
        part: &Part,
        file: &PartFile,
    ) -> Result<String, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let bytes = file.read().await?;
        if bytes.len() as u64 > self.options.most_file_bytes {
            return Err(never(format!(
                "the file has {} bytes, which is too much (mediaMaxMb)",
                bytes.len()
            )));
        }
        let chat = &part.target.chat;
        // Until the last call nobody sees anything, so whatever fails before it can be repeated.
        let storing = async {
            let params = json!({"filename": file.name, "length": bytes.len()});
            let upload: Upload =
                self.api.call(Token::Bot, "files.getUploadURLExternal", &params).await?;
            self.api.upload(&upload.upload_url, bytes).await?;
            Ok(upload.file_id)
        };
        let id = storing.await.map_err(|error| match self.failure(chat, error) {
            SendFailure::Unknown { reason } => SendFailure::Later { after: None, reason },
            failure => failure,
        })?;
        self.note_file(part, &id).await?;
        self.posts.wait(chat).await;
        let mut params = json!({
            "files": [{"id": id, "title": file.name}], "channel_id": part.target.chat,
        });
        if let Some(thread) = &part.target.thread {
            params["thread_ts"] = json!(thread);
        }
        let sent =
            self.api.call::<Value>(Token::Bot, "files.completeUploadExternal", &params).await;
        sent.map(|_| id).map_err(|error| self.failure(chat, error))
    }
}
