//! Who answered the newest questions about tool calls.

use serde::{Deserialize, Serialize};

use crate::GatewayError;
use crate::ledger::{Ledger, now_ms};
use crate::questions::{Answer, Question};

/// Kind and key of the record.
const KIND: &str = "approvals";
const KEY: &str = "answered";
/// Most answers that are kept.
const MOST: usize = 200;

/// An answer to a question, and who gave it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredQuestion {
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
pub(crate) struct Answered {
    ledger: Ledger,
    /// Held while the record is changed.
    changing: tokio::sync::Mutex<()>,
}

impl Answered {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, changing: tokio::sync::Mutex::default() }
    }

    /// Adds an answer.
    pub(crate) async fn note(
        &self,
        question: &Question,
        answer: Answer,
        by: &str,
    ) -> Result<(), GatewayError> {
        let _changing = self.changing.lock().await;
        let (version, mut answers) = match self.read().await? {
            Some((version, answers)) => (Some(version), answers),
            None => (None, Vec::new()),
        };
        let (id, session, tool_name) = question.names();
        let (answered_by, answered_at) = (by.to_owned(), now_ms());
        answers.push(AnsweredQuestion { id, session, tool_name, answer, answered_by, answered_at });
        let surplus = answers.len().saturating_sub(MOST);
        answers.drain(..surplus);
        self.ledger.put(KIND, KEY, &answers, version, None).await.map(drop)
    }

    /// The newest answers, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<AnsweredQuestion>, GatewayError> {
        Ok(self.read().await?.map(|(_, answers)| answers).unwrap_or_default())
    }

    async fn read(
        &self,
    ) -> Result<Option<(myclaw_store::Version, Vec<AnsweredQuestion>)>, GatewayError> {
        self.ledger.record(KIND, KEY).await
    }
}
