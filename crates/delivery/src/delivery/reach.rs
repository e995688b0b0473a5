//! What only the gateway can do that has a session, wherever on the store that is.
//!
//! Each of these looks here first, and asks the other gateways then. What ends in `_here` is what another gateway asks for.

use std::collections::HashSet;
use std::sync::Arc;

use myclaw_engine::Mode;
use serde_json::{Value, json};

use super::Delivery;
use crate::DeliveryError;
use crate::questions::{AnswerError, FullAnswer};
use crate::route::Route;
use crate::sharing::desk_of;

impl Delivery {
    /// Whether another gateway says yes about a session.
    pub(super) async fn asks_others(&self, method: &'static str, session: &str) -> bool {
        let answers = self.process.others.ask(method, json!({"session": session})).await;
        answers.contains(&Value::Bool(true))
    }

    /// Aborts what a session and its sub-agents do. False if they do nothing. Its messages get a report.
    pub async fn abort(&self, session: &str) -> Result<bool, DeliveryError> {
        let key = self.session_config(session)?.session_key;
        Ok(self.abort_here(key.as_str()) || self.asks_others("abort", key.as_str()).await)
    }

    /// The same for the session with this key in this process.
    pub fn abort_here(&self, session: &str) -> bool {
        self.abort_family(session)
    }

    /// The keys of all sessions that work at this moment.
    pub async fn all_working(&self) -> HashSet<String> {
        let mut working = self.working();
        for others in self.process.others.ask("working", json!({})).await {
            working.extend(serde_json::from_value::<Vec<String>>(others).unwrap_or_default());
        }
        working
    }

    /// The open questions, of the session with this key or of all, as clients read them.
    pub async fn open_questions(&self, session: Option<&str>) -> Vec<Value> {
        let here = self.questions().list(session).into_iter().map(|question| json!(question));
        let mut open: Vec<Value> = here.collect();
        for others in self.process.others.ask("approvals", json!({"session": session})).await {
            open.extend(serde_json::from_value::<Vec<Value>>(others).unwrap_or_default());
        }
        open.sort_by_key(|question| question["askedAt"].as_u64());
        open
    }

    /// Answers a question. `by` says who answers.
    pub async fn answer_question(
        &self,
        id: &str,
        given: FullAnswer,
        by: String,
    ) -> Result<Result<(), AnswerError>, DeliveryError> {
        let mut asked = json!(given);
        let here = self.answer_here(id, given, by.clone()).await?;
        if here != Err(AnswerError::NoQuestion) {
            return Ok(here);
        }
        (asked["id"], asked["by"]) = (json!(id), json!(by));
        for answer in self.process.others.ask("approve", asked).await {
            match serde_json::from_value(answer) {
                Ok(Err(AnswerError::NoQuestion)) | Err(_) => {}
                Ok(known) => return Ok(known),
            }
        }
        Ok(here)
    }

    /// The same for a question of this process.
    pub async fn answer_here(
        &self,
        id: &str,
        given: FullAnswer,
        by: String,
    ) -> Result<Result<(), AnswerError>, DeliveryError> {
        match self.questions().answer(id, given, by.clone()) {
            Ok((question, answer)) => {
                self.answered().note(&question, answer, &by).await?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// What the others say to an answer that was given in a chat; `None` if none of them asks that question.
    pub(super) async fn answer_in_chat_elsewhere(
        &self,
        code: &str,
        given: &FullAnswer,
        (route, by): (&Route, &str),
    ) -> Option<String> {
        let mut asked = json!(given);
        (asked["code"], asked["route"], asked["by"]) = (json!(code), json!(route), json!(by));
        let said = self.process.others.ask("approve_in_chat", asked).await;
        said.into_iter().find_map(|said| said.as_str().map(str::to_owned))
    }

    /// Changes the permission mode of a session, from its next call on.
    ///
    /// # Errors
    /// The name is none of a session, or the mode cannot be stored.
    pub async fn set_mode(self: &Arc<Self>, name: &str, mode: Mode) -> Result<(), DeliveryError> {
        let key = self.session_config(name)?.session_key;
        let is_here = self.ledger().claims().holds(&desk_of(key.as_str()));
        let asked = json!({"session": key.as_str(), "mode": mode});
        if !is_here && !self.process.others.ask("mode", asked).await.is_empty() {
            return Ok(());
        }
        self.set_mode_here(key.as_str(), mode).await
    }
}
