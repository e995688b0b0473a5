//! Who answered the newest questions about tool calls.

use myclaw_store::{Change, Records};
use serde::{Deserialize, Serialize};

use crate::DeliveryError;
use crate::ledger::{Ledger, now_ms};
use crate::questions::{Answer, Question};

const ANSWERS: Records<Vec<AnsweredQuestion>> = Records::new("approvals");
/// Key of the record.
const KEY: &str = "answered";
/// Most answers that are kept.
const MOST: usize = 200;

/// An answer to a question, and who gave it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredQuestion {
    id: String,
    session: String,
    tool_name: String,
    answer: Answer,
    /// `owner`, name and id of a device, or `channel:id` of the owner in a chat.
    answered_by: String,
    /// Milliseconds since the Unix epoch.
    answered_at: u64,
}

/// The record of answers.
pub struct Answered {
    ledger: Ledger,
}

impl Answered {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger }
    }

    /// Adds an answer.
    pub async fn note(
        &self,
        question: &Question,
        answer: Answer,
        by: &str,
    ) -> Result<(), DeliveryError> {
        let (id, session, tool_name) = question.names();
        let (answered_by, answered_at) = (by.to_owned(), now_ms());
        let new = AnsweredQuestion { id, session, tool_name, answer, answered_by, answered_at };
        let add = |answers: Option<Vec<AnsweredQuestion>>| {
            let mut answers = answers.unwrap_or_default();
            answers.push(new.clone());
            let surplus = answers.len().saturating_sub(MOST);
            answers.drain(..surplus);
            Change::put(answers, None)
        };
        ANSWERS.update(self.ledger.store(), KEY, add).await?;
        Ok(())
    }

    /// The newest answers, the oldest first.
    pub async fn list(&self) -> Result<Vec<AnsweredQuestion>, DeliveryError> {
        let known = ANSWERS.get(self.ledger.store(), KEY).await?;
        Ok(known.map(|known| known.row).unwrap_or_default())
    }
}
