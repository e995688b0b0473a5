//! Reactions, edits and removals. Polls are no part of the specification yet.

use serde_json::{Map, Value};

use super::api::encode;
use super::event::REACTION;
use super::press::reaction;
use super::send::{Sent, edit_of, text_content};
use super::{MOST_BYTES, Matrix};
use crate::{Part, SendFailure};

impl Matrix {
    pub(super) async fn set_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let content = reaction(message, &part.text);
        match self.put_event(&part.target.chat, REACTION, &part.id, content).await {
            Ok(_) => Ok(()),
            // It is there already.
            Err(SendFailure::Never { reason }) if reason.contains("M_DUPLICATE_ANNOTATION") => {
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn edit_text(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        if part.text.len() > MOST_BYTES {
            let reason = format!("the text has more than {MOST_BYTES} bytes; send a new message");
            return Err(SendFailure::Never { reason });
        }
        let content = edit_of(message, &text_content(&part.text, part.kind));
        self.put(&part.target.chat, &part.id, content).await.map(|_| ())
    }

    pub(super) async fn remove(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let [room, message, id] = [&part.target.chat, message, &part.id].map(encode);
        let path = format!("/_matrix/client/v3/rooms/{room}/redact/{message}/{id}");
        let sent = self.api.put::<Sent>(&path, &Value::Object(Map::new())).await;
        sent.map(|_| ()).map_err(|error| self.failure(error))
    }
}
