//! Prompts, and the commands in them.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, ContentChunk,
    Error, NoticeSeverity, PromptRequest, RequestId, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use myclaw_agent::llm::ContentBlock as Block;
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{Accepted, CompactionOutcome, CompactionReport, FailureClass, Session};

use super::agent::Agent;
use super::client_sessions::prompt_response;
use super::failure::failed;
use super::prompt::content;

/// The name of the command that summarises older messages.
const COMPACT: &str = "compact";

/// The commands that a prompt can begin with.
pub(super) fn commands() -> SessionUpdate {
    let hint = "what the summary should focus on";
    let compact = AvailableCommand::new(COMPACT, "Summarise older messages to make room")
        .input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(vec![compact]))
}

/// Sends a prompt. The request is answered when its turn and all that follow are over.
///
/// # Errors
/// The message is not accepted.
pub(super) async fn prompt(
    agent: &mut Agent,
    request: &RequestId,
    PromptRequest { session_id, prompt, .. }: PromptRequest,
) -> Result<(), Error> {
    let key = agent.open_key(&session_id)?;
    let content = content(prompt).await?;
    let session = Arc::clone(&agent.session(&key)?.session);
    if let Some(Focus(focus)) = compact_command(&content) {
        compact(agent, key, session, request.clone(), focus).await;
        return Ok(());
    }
    let accepted = session.send(content, None).await.map_err(failed)?;
    if session.work().is_some() {
        if matches!(accepted, Accepted::Interrupting(_)) {
            agent.client_sessions.cancel(&key);
        }
        // The current work cannot end before this code yields, because it runs on the same thread.
        agent.client_sessions.wait(&key, request.clone());
    } else {
        answered_elsewhere(agent, &key, &session, request, &accepted).await;
    }
    agent.list(&key).await;
    Ok(())
}

/// Answers for a message that no turn of this process is about to take: a turn that has just ended has taken it, or a
/// turn of another process takes it.
async fn answered_elsewhere(
    agent: &Agent,
    key: &SessionKey,
    session: &Session,
    request: &RequestId,
    accepted: &Accepted,
) {
    let (Accepted::Started(id) | Accepted::Queued(id) | Accepted::Interrupting(id)) = accepted;
    let pending = session.pending().await.unwrap_or_default();
    if pending.iter().any(|message| message.id == *id) {
        let line = "another process works on this session and takes the message; load the session later to see \
                    the answer";
        agent.client_sessions.notice(key, NoticeSeverity::Warning, line.to_owned());
    }
    agent.wire().answer(request.clone(), agent.client_sessions.last(key).map(prompt_response));
}

/// The focus of a summary, if any.
struct Focus(Option<String>);

/// The focus of `/compact`, if the prompt is that command.
fn compact_command(content: &[Block]) -> Option<Focus> {
    let [Block::Text(text)] = content else { return None };
    let rest = text.text.trim().strip_prefix('/')?.strip_prefix(COMPACT)?;
    if rest.starts_with(|char: char| !char.is_whitespace()) {
        return None;
    }
    Some(Focus(Some(rest.trim().to_owned()).filter(|focus| !focus.is_empty())))
}

/// Summarises older messages, and answers the request afterwards.
async fn compact(
    agent: &Agent,
    key: SessionKey,
    session: Arc<Session>,
    request: RequestId,
    focus: Option<String>,
) {
    let (client_sessions, wire) = (Arc::clone(&agent.client_sessions), agent.wire());
    client_sessions.begin_command(&key, request.clone());
    agent.driver.spawn(async move {
        let outcome = match session.compact(focus).await {
            Ok(report) => {
                let content = ContentBlock::from(describe(&report));
                client_sessions
                    .send(&key, SessionUpdate::AgentMessageChunk(ContentChunk::new(content)));
                Ok(prompt_response(StopReason::EndTurn))
            }
            Err(error) if error.class == FailureClass::Aborted => {
                Ok(prompt_response(StopReason::Cancelled))
            }
            Err(error) => Err(failed(error)),
        };
        client_sessions.end_command(&key, &request);
        wire.answer(request, outcome);
    });
    // It begins before the next line is read, because that line may cancel it.
    tokio::task::yield_now().await;
}

fn describe(report: &CompactionReport) -> String {
    match report.outcome {
        CompactionOutcome::Done => format!(
            "Older messages are summarised: {} messages became {}, about {} tokens became {}.",
            report.old_count, report.new_count, report.tokens_before, report.tokens_after
        ),
        CompactionOutcome::NothingOlder => "There is nothing to summarise yet.".to_owned(),
        CompactionOutcome::NotShorter => {
            "A summary of the older messages would be no shorter than they are.".to_owned()
        }
        CompactionOutcome::Forbidden => {
            "Nothing is summarised, because a hook forbids it.".to_owned()
        }
    }
}
