//! Groups that have become supergroups. Telegram gives such a group another id; here it stays the chat that it was, with its
//! session, its rules and what is kept for it.

use std::collections::HashMap;

use super::update::Message;
use super::{TELEGRAM, Telegram};
use crate::Intake;

/// The new ids of groups, by the old ones.
pub(super) type Moves = HashMap<i64, i64>;

impl Telegram {
    fn moves_key(&self) -> String {
        format!("{TELEGRAM} {} moves", self.options.account)
    }

    /// Reads which groups have moved.
    pub(super) async fn recall_moves(&self, intake: &dyn Intake) -> Result<(), String> {
        let kept = intake.recall(&self.moves_key()).await;
        let kept = kept.map_err(|refusal| format!("the store: {refusal}"))?;
        let kept: Moves =
            kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.moves.lock().extend(kept);
        Ok(())
    }

    /// The old and the new id of a group that has moved, by one of them.
    pub(super) fn move_of(&self, chat: i64) -> Option<(i64, i64)> {
        self.moves
            .lock()
            .iter()
            .map(|(old, new)| (*old, *new))
            .find(|(old, new)| [*old, *new].contains(&chat))
    }

    /// Notes what a message says about the move of its group.
    pub(super) async fn note_move_of(&self, message: &Message, intake: &dyn Intake) {
        let chat = message.chat.id;
        let to = message.migrate_to_chat_id.map(|new| (chat, new));
        if let Some((old, new)) = to.or(message.migrate_from_chat_id.map(|old| (old, chat))) {
            self.note_move(old, new, Some(intake)).await;
        }
    }

    pub(super) async fn note_move(&self, old: i64, new: i64, intake: Option<&dyn Intake>) {
        if self.moves.lock().insert(old, new) == Some(new) {
            return;
        }
        tracing::info!(channel = TELEGRAM, old, new, "a group has become a supergroup");
        let text = serde_json::to_string(&*self.moves.lock()).unwrap_or_default();
        let Some(intake) = intake.or(self.keeper.get().map(|keeper| &**keeper)) else { return };
        if let Err(refusal) = intake.remember(&self.moves_key(), &text).await {
            // The next message to the group learns it again.
            tracing::warn!(%refusal, "the move of a group is not kept");
        }
    }
}
