//! Prompts, and the commands in them.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, ContentChunk,
    Error, NoticeSeverity, PromptRequest, RequestId, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use myclaw_agent::{
    Accepted, FailureClass, Foreground, Session, SessionCommand, goal::GoalOrder,
    skills::FoundSkills,
};
use myclaw_engine::{CompactionOutcome, CompactionReport};
use myclaw_llm::ContentBlock as Block;
use myclaw_session::SessionKey;
use myclaw_skills::Skill;
use tokio_util::sync::CancellationToken;

use myclaw_front::memory;
use myclaw_front::print::columns;
use myclaw_front::report::first_line;
use myclaw_front::requests;
use myclaw_front::servers::ServerCommand;

use super::agent::Agent;
use super::client_sessions::{ClientSessions, prompt_response};
use super::failure::failed;
use super::markdown::fenced;
use super::prompt::content;
use super::wire::Wire;

/// The name of the command that summarises older messages.
const COMPACT: &str = "compact";

/// The name of the command that asks the agent to use a skill.
const SKILL: &str = "skill";

/// The name of the command that shows or changes what the agent remembers.
const MEMORY: &str = "memory";
/// The name of the command that asks aside.
const ASIDE: &str = "btw";
/// The name of the command for MCP servers.
const MCP: &str = "mcp";

/// The commands that a prompt can begin with.
pub(super) fn commands() -> SessionUpdate {
    let command = |name, does, hint| {
        AvailableCommand::new(name, does)
            .input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)))
    };
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(vec![
        command(
            COMPACT,
            "Summarise older messages to make room",
            "what the summary should focus on",
        ),
        command(SKILL, "Use a skill, or list them", "the skill's name, and a message"),
        command(
            MEMORY,
            "Show or change what is remembered",
            "search WORDS, why ID, edit ID TEXT, forget ID",
        ),
        command(
            MCP,
            "List the MCP servers, or approve the tools of one",
            "approve, and the server's name",
        ),
        command(ASIDE, "Ask without adding anything to the session", "the question"),
        command(
            "rewind",
            "List your messages, or go back to before one, in files too",
            "its number",
        ),
        AvailableCommand::new("undo", "Undo the file changes of the last turn"),
        AvailableCommand::new("redo", "Make the changes again that were undone last"),
        AvailableCommand::new("diff", "Show what the agent's tools have changed"),
        AvailableCommand::new("usage", "Show tokens and cost"),
        AvailableCommand::new("context", "Show what fills the context window"),
        AvailableCommand::new("todos", "Show the steps of the agent's plan"),
        AvailableCommand::new("agents", "List the agents that are files"),
        command(
            "goal",
            "Work until a condition holds",
            "the condition, or !COMMAND; `stop`, `resume`",
        ),
        command("init", "Write an AGENTS.md for this project", "what else it should say"),
        command("review", "Review the working tree, a branch or a pull request", "what to review"),
    ]))
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
    let mut content = content(prompt).await?;
    let session = Arc::clone(&agent.session(&key)?.session);
    if let [Block::Text(text)] = &content[..]
        && let Some(focus) = argument_of(COMPACT, &text.text)
    {
        let focus = Some(focus.to_owned()).filter(|focus| !focus.is_empty());
        compact(agent, key, session, request.clone(), focus).await;
        return Ok(());
    }
    if let [Block::Text(text)] = &content[..]
        && obeyed(agent, &key, &session, request, &text.text).await
    {
        return Ok(());
    }
    if let [Block::Text(text)] = &mut content[..]
        && let Some(message) = requests::expand(&text.text)
    {
        text.text = message;
    }
    if let Some(Block::Text(text)) = content.first_mut()
        && let Some(argument) = argument_of(SKILL, &text.text)
    {
        let skills = session.config().read_skills().await.map_err(failed)?;
        if argument.is_empty() {
            say(&agent.client_sessions, &agent.wire(), &key, request.clone(), listed(&skills));
            return Ok(());
        }
        let (name, message) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        text.text = skills.request(name, message).map_err(failed)?;
    }
    let content = session.config().with_server_texts_noted(content).await.map_err(failed)?;
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

/// Obeys a command that begins no turn. False if `text` is none.
async fn obeyed(
    agent: &Agent,
    key: &SessionKey,
    session: &Arc<Session>,
    request: &RequestId,
    text: &str,
) -> bool {
    if let Some(argument) = argument_of(MEMORY, text) {
        let obeyed = memory::obey(session.config(), argument.to_owned()).await;
        let said = obeyed.unwrap_or_else(|error| error.message);
        say(&agent.client_sessions, &agent.wire(), key, request.clone(), said);
    } else if let Some(argument) = argument_of(MCP, text) {
        servers(agent, key, session, request.clone(), argument);
    } else if let Some(question) = argument_of(ASIDE, text) {
        aside(agent, key, Arc::clone(session), request.clone(), question.to_owned());
    } else {
        // Model and thinking level are options of the session, which the editor shows.
        let is_option = |command: &SessionCommand| {
            matches!(command, SessionCommand::Model(_) | SessionCommand::Thinking(_))
        };
        match SessionCommand::parse(text).filter(|command| !is_option(command)) {
            Some(SessionCommand::Goal(order)) if order.is_work() => {
                pursue(agent, key, session, request, order).await;
            }
            Some(command) => tell(agent, key, Arc::clone(session), request.clone(), command),
            None => return false,
        }
    }
    true
}

/// Begins to work on a goal. The request is answered when that is over.
async fn pursue(
    agent: &Agent,
    key: &SessionKey,
    session: &Arc<Session>,
    request: &RequestId,
    order: GoalOrder,
) {
    let client_sessions = &agent.client_sessions;
    match session.goal(order).await {
        Ok(_) if session.work().is_some() => client_sessions.wait(key, request.clone()),
        Ok(said) => say(client_sessions, &agent.wire(), key, request.clone(), said),
        Err(error) => say(client_sessions, &agent.wire(), key, request.clone(), error.message),
    }
}

/// Says what a command about the session says. After going back the editor opens the session that goes on.
fn tell(
    agent: &Agent,
    key: &SessionKey,
    session: Arc<Session>,
    request: RequestId,
    command: SessionCommand,
) {
    let (client_sessions, wire) = (Arc::clone(&agent.client_sessions), agent.wire());
    let key = key.clone();
    agent.driver.spawn(async move {
        let said = match session.obey(command, key.as_str()).await {
            Ok(answer) => {
                let mut lines = columns(&answer.rows);
                lines.push(answer.text);
                lines.extend(answer.session.map(|to| {
                    format!(
                        "Load the session `{to}` to go on there. The message was not sent again:"
                    )
                }));
                lines.extend(answer.unsent.map(|message| fenced("", &message)));
                lines.join("\n")
            }
            Err(error) => error.message,
        };
        say(&client_sessions, &wire, &key, request, said);
    });
}

/// Answers a question aside; the editor waits for nothing else meanwhile.
fn aside(
    agent: &Agent,
    key: &SessionKey,
    session: Arc<Session>,
    request: RequestId,
    question: String,
) {
    let (client_sessions, wire) = (Arc::clone(&agent.client_sessions), agent.wire());
    let key = key.clone();
    agent.driver.spawn(async move {
        let foreground =
            Foreground { cancel: CancellationToken::new(), on_event: Arc::new(|_| {}) };
        let said = match session.ask_aside(&question, foreground).await {
            Ok(result) => result.reply,
            Err(error) => error.message,
        };
        say(&client_sessions, &wire, &key, request, said);
    });
}

/// Says something about the MCP servers, or approves one. A server may take long to start, so the editor waits for nothing else.
fn servers(agent: &Agent, key: &SessionKey, session: &Session, request: RequestId, argument: &str) {
    let command = ServerCommand::parse(argument);
    let (client_sessions, wire) = (Arc::clone(&agent.client_sessions), agent.wire());
    let (key, config) = (key.clone(), session.config());
    agent.driver.spawn(async move {
        let said = match command {
            Some(command) => command.run(&config).await,
            None => ServerCommand::USAGE.to_owned(),
        };
        say(&client_sessions, &wire, &key, request, said);
    });
}

/// Shows the text of a command as the agent's, and ends its request.
fn say(
    client_sessions: &ClientSessions,
    wire: &Wire,
    key: &SessionKey,
    request: RequestId,
    text: String,
) {
    let reply = ContentChunk::new(ContentBlock::from(text));
    client_sessions.send(key, SessionUpdate::AgentMessageChunk(reply));
    wire.answer(request, Ok(prompt_response(StopReason::EndTurn)));
}

/// Answers the request for a message that no coming turn of this process takes: a turn that has just ended took it, or
/// a turn of another process takes it.
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

/// The text after `/command` if `text` begins with it.
fn argument_of<'a>(command: &str, text: &'a str) -> Option<&'a str> {
    let rest = text.trim().strip_prefix('/')?.strip_prefix(command)?;
    let is_longer_word = rest.starts_with(|char: char| !char.is_whitespace());
    (!is_longer_word).then_some(rest.trim())
}

/// The skills that the agent can use, as a list.
fn listed(skills: &FoundSkills) -> String {
    let line = |skill: &Skill| format!("- {}: {}", skill.name, first_line(&skill.description));
    let lines: Vec<String> = skills.offered().map(line).collect();
    match lines.is_empty() {
        true => "There are no skills. `myclaw skills list` says what keeps some from being used."
            .to_owned(),
        false => lines.join("\n"),
    }
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
