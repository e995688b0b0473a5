//! Rows in the order that a session needs: each call has one result directly behind its message.

use std::collections::VecDeque;

use myclaw_engine::message_to_row;
use myclaw_llm::{ContentBlock, Message, ToolResultMessage};
use serde_json::{Value, json};

use super::Import;
use super::message::{Converter, Row};
use myclaw_front::exit::CliError;

/// The result of a call for which the file has none.
const NO_RESULT: &str =
    "The result of this call is not in the file that this session was imported from.";

/// Adds messages to an import, and results that are missing.
pub(super) struct Pairing {
    converter: Converter,
    /// Ids and names of calls without a result.
    open: VecDeque<(String, String)>,
    ts: u64,
}

impl Pairing {
    pub(super) fn new() -> Self {
        Self { converter: Converter::new(0), open: VecDeque::new(), ts: 0 }
    }

    /// From here on, rows have this time.
    pub(super) fn set_time(&mut self, ts: Option<u64>) {
        self.ts = ts.unwrap_or(self.ts);
        self.converter.set_time(self.ts);
    }

    /// The time of the last row, in milliseconds since the Unix epoch.
    pub(super) fn time(&self) -> u64 {
        self.ts
    }

    /// A message of the user, or an answer with the calls in it, as `calls` names them.
    pub(super) fn message(
        &mut self,
        message: &Value,
        calls: impl IntoIterator<Item = (String, String)>,
        import: &mut Import,
    ) -> Result<(), CliError> {
        self.close(import)?;
        let rows = self.converter.convert(message, None, &mut import.left_out);
        import.rows(rows)?;
        self.open.extend(calls);
        Ok(())
    }

    /// The result of a call; it is left out if no open call has this id.
    pub(super) fn result(
        &mut self,
        id: &str,
        content: &Value,
        is_error: bool,
        import: &mut Import,
    ) -> Result<(), CliError> {
        let Some(at) = self.open.iter().position(|(open, _)| open == id) else {
            import.left_out.add("result without its call");
            return Ok(());
        };
        let name = self.open.remove(at).map(|(_, name)| name).unwrap_or_default();
        let message = json!({
            "role": "tool", "tool_call_id": id, "name": name, "content": content, "is_error": is_error,
        });
        let rows = self.converter.convert(&message, None, &mut import.left_out);
        import.rows(rows)
    }

    /// Gives each open call a result that says that there is none.
    pub(super) fn close(&mut self, import: &mut Import) -> Result<(), CliError> {
        while let Some((id, name)) = self.open.pop_front() {
            import.repaired += 1;
            let result = Message::ToolResult(ToolResultMessage {
                tool_call_id: id,
                tool_name: name,
                content: vec![ContentBlock::text(NO_RESULT)],
                is_error: true,
                details: None,
                timestamp: self.ts,
            });
            import.rows([Row { row: message_to_row(&result), answer: None }])?;
        }
        Ok(())
    }
}
