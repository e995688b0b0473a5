//! What messages of the owner name of MCP servers: resources and prompts.

use myclaw_agent::{SessionConfig, workspace::Party};
use myclaw_llm::ContentBlock;
use myclaw_session::PeerKind;

use super::Delivery;
use super::desk::Desk;
use crate::ledger::OpenMessage;

impl Delivery {
    /// What is `said` in a message, with what it names of MCP servers if the owner wrote it.
    pub(super) async fn with_server_texts(
        &self,
        desk: &Desk,
        message: &OpenMessage,
        said: Option<ContentBlock>,
    ) -> Vec<ContentBlock> {
        let config = desk.session.config();
        let (Some(said), true) = (&said, self.is_of_owner(&config)) else {
            return said.into_iter().collect();
        };
        let row = &message.row;
        // In a chat the sender's words are a part of the text; elsewhere they are all of it.
        let words = match row.origin.outside.as_slice() {
            [] => row.text.clone(),
            parts => parts.iter().filter_map(|part| row.text.get(part.clone())).collect(),
        };
        let asked = ContentBlock::text(words);
        match config.with_server_texts_noted(vec![asked.clone()]).await {
            Ok(mut made) => {
                if let Some(first) = made.first_mut().filter(|first| **first == asked) {
                    *first = said.clone();
                }
                made
            }
            Err(error) => vec![said.clone(), ContentBlock::text(format!("[{}]", error.message))],
        }
    }

    /// Whether the owner alone writes in a session.
    fn is_of_owner(&self, config: &SessionConfig) -> bool {
        let parts = config.session_key.parts();
        let is_alone = parts.peer_kind == PeerKind::Direct;
        let approvals = &self.config().tools.approvals;
        config.party() == Party::Owner
            || is_alone && approvals.is_owner(&parts.channel, [parts.peer()])
    }
}
