//! Answers to questions about tool calls, which only the owner gives.

use myclaw_channels::{Arrival, Receipt};
use myclaw_config::{Config, Persona};

use super::{Command, Router, incoming, receipt};
use crate::DeliveryError;
use crate::delivery::ChatAnswer;
use crate::ledger::Again;
use crate::route::Route;
use crate::rows::{MessageId, Origin};

const NOT_THE_OWNER: &str =
    "the sender answers a question, which only the people in tools.approvals.owners may";
const FOR_THE_OWNER: &str = "Only the owner may answer questions.";

/// The answer that a message gives by a command.
fn command(arrival: &Arrival, route: &Route, persona: &Persona) -> Option<ChatAnswer> {
    let read = |text: &str| ChatAnswer::of_command(text.trim().strip_prefix(['/', '!'])?);
    // What somebody passes on, or changed afterwards, is no answer.
    if !route.is_chat() || !arrival.is_plain() || arrival.edits.is_some() {
        return None;
    }
    read(&arrival.text).or_else(|| read(persona.called_at_start_of(&arrival.text)?))
}

impl Router {
    /// The answer of the owner to a question, whichever rules hold for others in the chat.
    pub(super) async fn answer_of_owner(
        &self,
        config: &Config,
        persona: &Persona,
        (arrival, route): (&Arrival, &Route),
    ) -> Result<Option<ChatAnswer>, DeliveryError> {
        let sender = &arrival.sender;
        // No handle: names change hands.
        let ids = [Some(sender.id.as_str()), sender.other_id.as_deref()].into_iter().flatten();
        if !config.tools.approvals.is_owner(&arrival.channel, ids) {
            return Ok(None);
        }
        if let Some(answer) = command(arrival, route, persona) {
            return Ok(Some(answer));
        }
        let is_words = route.is_chat() && arrival.is_plain() && arrival.edits.is_none();
        match arrival.answers.as_deref().filter(|_| is_words) {
            Some(message) => self.delivery.answer_to_message(route, message, &arrival.text).await,
            None => Ok(None),
        }
    }

    /// Does what an answer of the owner says. What is said about it is stored with the message.
    pub(super) async fn heed_answer(
        &self,
        answer: ChatAnswer,
        arrival: &Arrival,
        route: Route,
    ) -> Result<Receipt, DeliveryError> {
        let id = MessageId::of(&route, &arrival.source_id);
        let by = format!("{}:{}", arrival.channel, arrival.sender.id);
        let (said, parts) = self.delivery.heed_answer(answer, (&route, by, id.as_str())).await?;
        let origin = Origin { reply_id: arrival.reply_id.clone(), ..Origin::default() };
        let session = self.chat_session(arrival);
        let row = incoming(arrival, route, &session, origin, arrival.text.clone());
        let row = if parts.is_empty() {
            self.delivery.settle_at_once(row, Some(said), None).await?
        } else {
            let again = Again { parts, writes: Vec::new() };
            let settled = self.delivery.answer_again(row, again).await?;
            settled.ok_or_else(|| DeliveryError::Internal("a page has no conditions".to_owned()))?
        };
        Ok(receipt(&id, &row.state))
    }

    /// Why the answer of somebody else counts for nothing, or a press that is no command, and what its sender is told. `None`
    /// for every other message.
    pub(super) fn refused_answer(
        persona: &Persona,
        (arrival, route): (&Arrival, &Route),
    ) -> Option<(&'static str, Option<String>)> {
        if command(arrival, route, persona).is_some() {
            // A press is answered where it was made.
            return Some((NOT_THE_OWNER, (!arrival.is_press).then(|| FOR_THE_OWNER.to_owned())));
        }
        let is_nothing = arrival.is_press && Command::of(arrival, route, persona).is_none();
        is_nothing.then_some(("nothing belongs to the button that was pressed", None))
    }
}
