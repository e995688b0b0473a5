//! Messages that come in, over signal-cli's stream of events.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};

use super::api::ApiError;
use super::envelope::{Data, Event, File, Said};
use super::send::receiver;
use super::{SIGNAL, Signal};
use crate::arrival::{Whereabouts, store_dropped, store_unreadable};
use crate::pause::{Pause, until_stored};
use crate::taking::hand_over;
use crate::{
    Arrival, Attachment, AttachmentContent, Chat, ChatKind, FileOf, Intake, State, Target,
};

/// signal-cli writes a comment each 15 seconds. After this time without one the connection is dead.
const SILENCE: Duration = Duration::from_secs(60);
/// Where an event names its chat and its sender.
const WHEREABOUTS: Whereabouts = Whereabouts {
    chats: &[
        "/envelope/dataMessage/groupInfo/groupId",
        "/envelope/sourceNumber",
        "/envelope/sourceUuid",
    ],
    senders: &["/envelope/sourceNumber", "/envelope/sourceUuid"],
};
/// Longest event, in bytes. Files are not in it.
const MOST_EVENT: usize = 4 * 1024 * 1024;

impl Signal {
    /// Receives messages forever.
    pub(super) async fn receive_events(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        loop {
            let reason = match self.listen(intake, &mut pause).await {
                Ok(()) => "signal-cli has closed the connection".to_owned(),
                Err(reason) => reason,
            };
            self.account.set(State::Waiting(reason));
            pause.wait().await;
        }
    }

    /// What signal-cli is, if it knows the account.
    pub(super) async fn check(&self) -> Result<String, String> {
        let explain = |error: ApiError| {
            format!("{error}; check `signal-cli daemon --http`, baseUrl and account")
        };
        let version = self.api.call("version", Map::new()).await.map_err(explain)?;
        self.api.call("listGroups", Map::new()).await.map_err(explain)?;
        Ok(version["version"].as_str().unwrap_or_default().to_owned())
    }

    async fn listen(&self, intake: &dyn Intake, pause: &mut Pause) -> Result<(), String> {
        let key = format!("{SIGNAL}:{}", self.options.number);
        let last = intake.recall(&key).await.map_err(|refusal| refusal.to_string())?;
        // The stream of an account that is not there would stay empty forever.
        self.check().await?;
        self.read_contacts().await;
        let mut stream = self.api.events(last.as_deref()).await?;
        self.account.set(State::Working);
        *pause = Pause::new();
        let mut lines = Lines::default();
        loop {
            let chunk = tokio::time::timeout(SILENCE, stream.chunk()).await;
            let chunk = chunk.map_err(|_| "signal-cli is silent".to_owned())?;
            let Some(chunk) = chunk.map_err(|_| "the connection to signal-cli broke".to_owned())?
            else {
                return Ok(());
            };
            lines.push(&chunk)?;
            while let Some(event) = lines.next_event() {
                self.take_event(&event.data, intake).await;
                if let Some(id) = &event.id {
                    // Without it, signal-cli gives the event again, and it is recognised.
                    if let Err(refusal) = intake.remember(&key, id).await {
                        tracing::warn!(channel = SIGNAL, %refusal, "how far the stream is read is not stored");
                    }
                }
            }
        }
    }

    /// Takes an event, until it is stored: signal-cli will not have it for long.
    async fn take_event(&self, data: &str, intake: &dyn Intake) {
        let event: Event = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(error) => {
                let raw = serde_json::from_str(data).unwrap_or_else(|_| data.into());
                let drop = || store_unreadable(intake, &self.account, &raw, &WHEREABOUTS, &error);
                return until_stored(drop).await;
            }
        };
        let envelope = event.envelope;
        if !envelope.is_message() {
            return;
        }
        until_stored(async || {
            let sender = self.person(&envelope, intake).await?;
            match envelope.clone().said(&self.own(), |_| sender) {
                Some(said) => self.take(&said, intake).await,
                None => Ok(()),
            }
        })
        .await;
    }

    async fn take(&self, said: &Said, intake: &dyn Intake) -> Result<(), String> {
        let Said { data, edits, sender, dropped } = said;
        let own = self.own();
        let (chat, text) = (said.chat(), data.text_for(&own));
        let id_at = |time: u64| format!("{time}:{}", sender.id);
        let id = id_at(data.timestamp);
        let mut files: Vec<(File, Attachment)> =
            data.attachments.iter().map(|file| (file.clone(), file.attachment())).collect();
        files.extend(self.answered_files(data));
        let arrival = Arrival {
            channel: SIGNAL.to_owned(),
            account: self.options.account.clone(),
            mentions_me: chat.kind == ChatKind::Direct || data.mentions(&own),
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            chat: chat.clone(),
            // The next edit may name this one.
            source_id: match edits {
                Some(edited) if *edited == data.timestamp => format!("{id}:edit"),
                _ => id.clone(),
            },
            reply_id: Some(id.clone()),
            sender: sender.clone(),
            text: text.clone(),
            passages: data.passages(),
            edits: edits.map(id_at),
            reply_to: data.quoted(),
            answers: data.answered_id(&own),
            ..Arrival::default()
        };
        if let Some(reason) = dropped {
            return store_dropped(intake, arrival, reason.as_str()).await;
        }
        let loading = self.load_files(&files, &chat);
        let receipt = hand_over(intake, arrival, &self.with_files, loading).await?;
        if receipt.is_some_and(|receipt| receipt.dropped.is_none()) {
            self.texts().put(&id, text);
            if !data.attachments.is_empty() {
                for author in [Some(&sender.id), sender.other_id.as_ref()].into_iter().flatten() {
                    self.files()
                        .put(&format!("{}:{author}", data.timestamp), data.attachments.clone());
                }
            }
            self.say_read(&sender.id, data.timestamp).await;
        }
        Ok(())
    }

    /// The files of the message that is answered: as they came, or the small pictures in the quote.
    fn answered_files(&self, data: &Data) -> Vec<(File, Attachment)> {
        let Some((time, authors)) = data.answered() else { return Vec::new() };
        let mut keys = authors.into_iter().flatten().map(|author| format!("{time}:{author}"));
        let known = keys.find_map(|key| self.files().get(&key).cloned());
        let answered = |file: File| {
            let attachment = file.attachment().of(FileOf::Answered);
            (file, attachment)
        };
        let known = known.map(|files| files.into_iter().map(answered).collect());
        known.unwrap_or_else(|| data.quoted_files())
    }

    /// Tells a person that the message was read.
    async fn say_read(&self, person: &str, time: u64) {
        let mut params = Map::new();
        params.insert("recipient".to_owned(), json!(person));
        params.insert("targetTimestamp".to_owned(), json!(time));
        params.insert("type".to_owned(), json!("read"));
        if let Err(error) = self.api.call("sendReceipt", params).await {
            tracing::debug!(channel = SIGNAL, %error, "a receipt is not sent");
        }
    }

    async fn load_files(
        &self,
        files: &[(File, Attachment)],
        chat: &Chat,
    ) -> Vec<AttachmentContent> {
        let mut contents = Vec::with_capacity(files.len());
        for (file, _) in files {
            contents.push(self.download(file, chat).await);
        }
        contents
    }

    async fn download(&self, file: &File, chat: &Chat) -> AttachmentContent {
        let missing = |reason: &str| AttachmentContent::Missing(reason.to_owned());
        let most = self.options.most_file_bytes;
        let Some(id) = &file.id else { return missing("signal-cli did not load it") };
        if let Some(size) = file.size.filter(|size| *size > most) {
            return missing(&format!("it has {size} bytes, and at most {most} are loaded"));
        }
        let mut params = receiver(&Target { chat: chat.id.clone(), thread: None });
        params.insert("id".to_owned(), json!(id));
        match self.api.call("getAttachment", params).await {
            Ok(found) => {
                let data = found["data"].as_str().and_then(|data| STANDARD.decode(data).ok());
                data.map_or_else(|| missing("signal-cli gave no file"), AttachmentContent::Bytes)
            }
            Err(error) => missing(&error.to_string()),
        }
    }
}

/// Bytes of a stream of events, until they are whole events.
#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<u8>,
    current: StreamEvent,
}

/// An event of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct StreamEvent {
    id: Option<String>,
    data: String,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() + self.current.data.len() > MOST_EVENT {
            return Err("signal-cli sent an event that is too long".to_owned());
        }
        Ok(())
    }

    /// The next whole event. An empty line ends it; lines that begin with a colon are comments.
    fn next_event(&mut self) -> Option<StreamEvent> {
        while let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.waiting.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let event = std::mem::take(&mut self.current);
                if !event.data.is_empty() {
                    return Some(event);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => {
                    if !self.current.data.is_empty() {
                        self.current.data.push('\n');
                    }
                    self.current.data.push_str(value);
                }
                "id" => self.current.id = Some(value.to_owned()),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_any_pieces() {
        let stream =
            ": hello\n\nid: 1-2\nevent: receive\ndata: {\"a\":\ndata: 1}\n\n:\n\ndata:x\r\n\r\n";
        for size in [1, 7, stream.len()] {
            let mut lines = Lines::default();
            let mut events = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                assert_eq!(lines.push(piece), Ok(()));
                events.extend(std::iter::from_fn(|| lines.next_event()));
            }
            let event = |id: Option<&str>, data: &str| StreamEvent {
                id: id.map(str::to_owned),
                data: data.to_owned(),
            };
            assert_eq!(events, [event(Some("1-2"), "{\"a\":\n1}"), event(None, "x")]);
        }
    }
}
