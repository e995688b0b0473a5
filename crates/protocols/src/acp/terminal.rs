//! Commands in the editor's terminals.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest,
    ReleaseTerminalRequest, SessionId, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest,
};
use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolError, ToolInvocation, ToolOutput, ToolUpdate};
use myclaw_executor::CallHandler;
use myclaw_llm::ContentBlock;
use myclaw_llm::outside::harmless_output;
use serde_json::{Map, Value, json};

use super::requests::Requests;
use super::tools::TERMINAL_FIELD;

/// Longest wait for an answer that needs no command to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time limit of a command, as the tool has it.
const MOST_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Most bytes of a character.
const LONGEST_CHAR: usize = 4;
/// Characters of a result that are kept free for notes.
const NOTE_CHARS: usize = 300;

/// The calls of `bash` of one session.
pub(super) struct TerminalCalls {
    pub(super) requests: Arc<Requests>,
    pub(super) session: SessionId,
    /// The time limit of a command without one of its own.
    pub(super) limit: Duration,
}

/// How a command ended.
enum Ending {
    Exited {
        code: Option<u64>,
        signal: Option<String>,
    },
    TimedOut(Duration),
    Aborted,
    /// The editor says no more about it.
    Lost(String),
}

impl CallHandler for TerminalCalls {
    fn handle<'a>(
        &'a self,
        tool: &'a dyn Tool,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            // What a terminal of the editor cannot do stays with the tool: background jobs, and variables, which it checks.
            let is_plain = |name: &str| matches!(name, "command" | "timeout" | "workdir");
            if !invocation.call.arguments.as_map().keys().all(|name| is_plain(name)) {
                return tool.execute(invocation).await;
            }
            match self.create(&invocation).await {
                Ok(terminal) => self.attend(&terminal, &invocation).await,
                Err(why) => {
                    tracing::debug!(%why, "the editor opens no terminal");
                    tool.execute(invocation).await
                }
            }
        })
    }
}

impl TerminalCalls {
    async fn create(&self, invocation: &ToolInvocation<'_>) -> Result<TerminalId, String> {
        // As it was judged.
        let command = invocation.call.subject.commands().next();
        let Some(command) = command.filter(|command| command.directory.is_dir()) else {
            return Err("the tool says what is wrong".to_owned());
        };
        let most = invocation.context.max_result_chars.saturating_mul(LONGEST_CHAR);
        let request = CreateTerminalRequest::new(self.session.clone(), "bash")
            .args(vec!["-c".to_owned(), command.command.clone()])
            .cwd(command.directory.clone())
            .output_byte_limit(most as u64);
        let asking = self
            .requests
            .ask::<CreateTerminalResponse>(CLIENT_METHOD_NAMES.terminal_create, request);
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        answer.unwrap_or_else(|_| Err("it gives no answer".to_owned())).map(|it| it.terminal_id)
    }

    /// Waits for the end of a command, or ends it.
    async fn attend(
        &self,
        terminal: &TerminalId,
        invocation: &ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let mut details = Map::from_iter([(TERMINAL_FIELD.to_owned(), json!(terminal.0))]);
        (invocation.on_update)(ToolUpdate {
            text: String::new(),
            details: Some(Value::Object(details.clone())),
        });
        let seconds = invocation.call.arguments.get("timeout").and_then(Value::as_u64);
        let limit = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let limit = limit.unwrap_or(self.limit).min(MOST_TIME.max(self.limit));
        let request = WaitForTerminalExitRequest::new(self.session.clone(), terminal.clone());
        let waiting =
            self.requests.ask::<Value>(CLIENT_METHOD_NAMES.terminal_wait_for_exit, request);
        let ending = tokio::select! {
            exited = waiting => exited.map_or_else(Ending::Lost, |status| Ending::Exited {
                code: status.get("exitCode").and_then(Value::as_u64),
                signal: status.get("signal").and_then(Value::as_str).map(str::to_owned),
            }),
            () = tokio::time::sleep(limit) => Ending::TimedOut(limit),
            () = invocation.cancel.cancelled() => Ending::Aborted,
        };
        if matches!(ending, Ending::TimedOut(_) | Ending::Aborted) {
            let request = KillTerminalRequest::new(self.session.clone(), terminal.clone());
            self.tell(CLIENT_METHOD_NAMES.terminal_kill, request).await;
        }
        let request = TerminalOutputRequest::new(self.session.clone(), terminal.clone());
        let asking = self
            .requests
            .ask::<TerminalOutputResponse>(CLIENT_METHOD_NAMES.terminal_output, request);
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        let output = answer.unwrap_or_else(|_| Err("it gives no answer".to_owned()));
        let request = ReleaseTerminalRequest::new(self.session.clone(), terminal.clone());
        self.tell(CLIENT_METHOD_NAMES.terminal_release, request).await;
        let most = invocation.context.max_result_chars.saturating_sub(NOTE_CHARS);
        let text = report(output, &ending, most);
        details.insert(
            "exitCode".to_owned(),
            match &ending {
                Ending::Exited { code, .. } => json!(code),
                _ => Value::Null,
            },
        );
        if matches!(ending, Ending::Aborted) {
            return Err(ToolError::Aborted(text));
        }
        Ok(ToolOutput {
            content: vec![ContentBlock::text(text)],
            details: Some(Value::Object(details)),
            is_error: !matches!(ending, Ending::Exited { code: Some(0), .. }),
        })
    }

    /// Asks for something whose answer says nothing.
    async fn tell(&self, method: &'static str, request: impl serde::Serialize) {
        let asking = self.requests.ask::<Value>(method, request);
        if let Ok(Err(why)) = tokio::time::timeout(PATIENCE, asking).await {
            tracing::debug!(method, %why, "the editor refuses");
        }
    }
}

/// The end of the output, and how the command ended.
fn report(
    output: Result<TerminalOutputResponse, String>,
    ending: &Ending,
    most_chars: usize,
) -> String {
    let mut notes = Vec::new();
    let text = match output {
        Ok(response) => {
            let total = response.output.chars().count();
            let cut = total.saturating_sub(most_chars);
            if response.truncated || cut > 0 {
                notes.push("the beginning of the output is left out".to_owned());
            }
            let shown: String = response.output.chars().skip(cut).collect();
            harmless_output(&shown).into_owned()
        }
        Err(why) => {
            notes.push(format!("the editor does not give the output: {why}"));
            String::new()
        }
    };
    notes.extend(match ending {
        Ending::Exited { code: Some(0), .. } => None,
        Ending::Exited { code: Some(code), .. } => Some(format!("exit code {code}")),
        Ending::Exited { signal: Some(signal), .. } => Some(format!("ended by signal {signal}")),
        Ending::Exited { .. } => Some("nobody knows how it ended".to_owned()),
        Ending::TimedOut(limit) => {
            Some(format!("it was ended after {} s, its time limit", limit.as_secs()))
        }
        Ending::Aborted => Some("it was aborted".to_owned()),
        Ending::Lost(why) => Some(format!("the editor has lost it: {why}")),
    });
    let text = text.trim_end_matches('\n');
    let mut report = if text.is_empty() { "(no output)".to_owned() } else { text.to_owned() };
    for note in notes {
        report.push_str(&format!("\n[{note}]"));
    }
    report
}
