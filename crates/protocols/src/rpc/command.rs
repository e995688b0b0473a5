//! Executes the commands of the client program.

mod branches;

use std::collections::HashMap;
use std::sync::Arc;

use myclaw_agent::{
    Accepted, AgentError, Driver, FailureClass, Foreground, Session, SessionConfig, SessionOptions,
    UndoMode, check_agent,
};
use myclaw_engine::PendingMessage;
use myclaw_llm::{ContentBlock, joined_text};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use myclaw_tools::{Direction, JobRecord, WhichTurn};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::approvals::Approvals;
use super::choices::{changes, set_mode, set_model, set_thinking, thinking};
use super::reply::Compacted;
use super::request::{
    Approve, AskAside, Block, Command, Compact, Export, GetMessages, KillJob, ListModels, Memory,
    Message, Name, Prompt, Rename, Request, Spoken, Undo, described,
};
use super::{bash, stats};
use crate::content::picture;
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::models::{ModelFilter, find_models};
use myclaw_front::sessions::Sessions;
use myclaw_front::time::new_session_name;
use myclaw_front::{custom_commands, memory, requests};

/// Messages of a reply if the command gives no limit.
const SOME_MESSAGES: usize = 100;
/// Most messages of a reply; older ones are read with `before`.
const MOST_MESSAGES: usize = 1_000;
/// Sessions of a reply if the command gives no limit.
const SOME_SESSIONS: usize = 100;
/// Most sessions of a reply: a line of about 2 MB.
const MOST_SESSIONS: usize = 10_000;

/// Most open sessions. Beyond it idle ones are closed, and lose a model that was set with `set_model`.
const MOST_OPEN_SESSIONS: usize = 1_000;

/// The open sessions, and the state that commands need.
pub(super) struct Controller {
    driver: Arc<Driver>,
    /// The config from the command line; other sessions have the same with another key.
    session_config: SessionConfig,
    options: SessionOptions,
    sessions: Sessions,
    open: HashMap<SessionKey, Arc<Session>>,
    current: Arc<Session>,
    approvals: Approvals,
    /// Fires when everything is to end.
    stop: CancellationToken,
}

impl Controller {
    /// Opens the session of the command line.
    pub(super) fn begin(
        driver: Arc<Driver>,
        session_config: SessionConfig,
        args: &SessionArgs,
        approvals: Approvals,
        stop: CancellationToken,
    ) -> Self {
        let options = args.options();
        let current = Session::open(Arc::clone(&driver), session_config.clone(), &options);
        current.notice_reminders();
        Self {
            sessions: Sessions::of_agent(&session_config),
            open: HashMap::from([(current.key().clone(), Arc::clone(&current))]),
            driver,
            session_config,
            options,
            current,
            approvals,
            stop,
        }
    }

    /// The session for commands that name no session.
    pub(super) fn current(&self) -> &Arc<Session> {
        &self.current
    }

    /// Executes a command and replies. Long commands reply later.
    pub(super) async fn obey(
        &mut self,
        request: Request,
        answer: impl FnOnce(Result<Value, CliError>) + Send + 'static,
    ) {
        let session = match &request.session {
            None => Ok(Arc::clone(&self.current)),
            Some(name) => self.key(name).and_then(|key| self.session(&key)),
        };
        let session = match session {
            Ok(session) => session,
            Err(error) => return answer(Err(error)),
        };
        if let Command::Bash(wanted) = request.command {
            let stop = self.stop.child_token();
            self.driver.spawn(async move { answer(bash::run(&session, wanted, stop).await) });
            return;
        }
        if let Command::AskAside(AskAside { question }) = request.command {
            let foreground =
                Foreground { cancel: self.stop.child_token(), on_event: Arc::new(|_| {}) };
            self.driver.spawn(async move {
                let answered = session.ask_aside(&question, foreground).await;
                answer(answered.map_err(CliError::from).and_then(to_value));
            });
            return;
        }
        if let Command::Compact(Compact { focus }) = request.command {
            // A compaction calls a model, so it replies later.
            self.driver.spawn(async move {
                answer(
                    session
                        .compact(focus)
                        .await
                        .map_err(CliError::from)
                        .and_then(|report| to_value(Compacted::from(&report))),
                );
            });
            return;
        }
        answer(self.answer(session, request.command).await);
    }

    async fn answer(&mut self, session: Arc<Session>, command: Command) -> Result<Value, CliError> {
        match command {
            Command::Prompt(Prompt { message, mode }) => {
                let content = content(message, &session.config()).await?;
                Ok(accepted(&session.send(content, mode).await?))
            }
            Command::Steer(message) => meanwhile(&session, QueuedKind::Steer, message).await,
            Command::FollowUp(message) => meanwhile(&session, QueuedKind::FollowUp, message).await,
            Command::Abort => Ok(json!({
                "aborted": session.abort(),
                "busyElsewhere": is_busy_elsewhere(&session).await?,
            })),
            Command::Approve(answer) => self.approve(&session, answer),
            Command::SetModel(wanted) => set_model(&session, wanted).await,
            Command::SetThinking(wanted) => set_thinking(&session, &wanted).await,
            Command::SetMode(wanted) => set_mode(&session, &wanted).await,
            Command::Undo(wanted) => undo(&session, wanted).await,
            Command::GetChanges => changes(&session).await,
            Command::GetState => state(&session).await,
            Command::GetMessages(wanted) => self.messages(&session, wanted).await,
            Command::GetSessionStats => stats::of(&session, &self.sessions).await,
            Command::Memory(Memory { command }) => {
                Ok(json!({"text": memory::obey(session.config(), command).await?}))
            }
            Command::GetCommands => Ok(
                json!({"commands": described(), "custom": custom_commands::names(&session.config())}),
            ),
            Command::Rename(Rename { title }) => {
                let title = Some(title).filter(|title| !title.trim().is_empty());
                let key = session.key().to_string();
                self.blocking(move |sessions| {
                    sessions.title(&key, title.as_deref())?;
                    Ok(json!({"session": key, "title": title.as_deref().map(str::trim)}))
                })
                .await
            }
            Command::Export(Export { path }) => {
                let key = session.key().clone();
                self.blocking(move |sessions| {
                    sessions.find(key.as_str())?;
                    sessions.export_as(&key, &path)?;
                    Ok(json!({"session": key.as_str(), "path": path}))
                })
                .await
            }
            Command::Delete => self.delete(&session).await,
            Command::Fork(fork) => self.fork(&session, fork).await,
            Command::Rewind(wanted) => self.rewind(&session, wanted).await,
            Command::Goal(wanted) => {
                let said = session.goal(wanted.order()?).await?;
                Ok(json!({"goal": session.known_goal().await?, "text": said}))
            }
            Command::NewSession(name) => self.begin_session(name),
            Command::SwitchSession(name) => self.switch_session(name),
            Command::ListSessions(wanted) => {
                self.list_sessions(wanted.limit.unwrap_or(SOME_SESSIONS)).await
            }
            Command::ListModels(wanted) => self.list_models(wanted).await,
            Command::ListJobs => {
                let jobs: Vec<Value> = session.jobs().await.iter().map(job).collect();
                Ok(json!({"jobs": jobs}))
            }
            Command::KillJob(KillJob { job: id }) => {
                let killed = session.kill_job(&id).await.map_err(CliError::usage)?;
                Ok(json!({"job": job(&killed)}))
            }
            Command::ListSkills => list_skills(&session.config()).await,
            // The caller replies later, because these take long.
            Command::AskAside(_) | Command::Compact(_) | Command::Bash(_) => Ok(Value::Null),
        }
    }

    fn approve(&self, session: &Session, answer: Approve) -> Result<Value, CliError> {
        let id = answer.tool_call_id.clone();
        self.approvals.answer(session.key().as_str(), &id, answer.into())?;
        Ok(Value::Null)
    }

    /// Works with the stored sessions on a thread where it may block.
    async fn blocking(
        &self,
        work: impl FnOnce(Sessions) -> Result<Value, CliError> + Send + 'static,
    ) -> Result<Value, CliError> {
        let sessions = self.sessions.clone();
        let working = tokio::task::spawn_blocking(move || work(sessions));
        working.await.map_err(|error| CliError::failure(format!("internal error: {error}")))?
    }

    /// Deletes a session that is neither at work nor the current one.
    async fn delete(&mut self, session: &Session) -> Result<Value, CliError> {
        if session.key() == self.current.key() {
            return Err(CliError::usage(
                "delete: this is the current session; begin or switch to another one first, then name this one in \
                 `session`",
            ));
        }
        if session.work().is_some() {
            let message = "delete: the session is at work; wait for its `run_end`, or `abort`";
            return Err(AgentError::new(FailureClass::Busy, message.to_owned()).into());
        }
        session.config().close_own_jobs(&|_| {}).await;
        let key = session.key().clone();
        self.open.remove(&key);
        self.blocking(move |sessions| {
            sessions.remove(&key)?;
            Ok(json!({"session": key.as_str()}))
        })
        .await
    }

    fn key(&self, name: &str) -> Result<SessionKey, CliError> {
        SessionKey::parse_for_agent(&self.sessions.agent_id, name)
            .map_err(|error| CliError::usage(error.to_string()))
    }

    /// The open session with this key, opened if it is not.
    fn session(&mut self, key: &SessionKey) -> Result<Arc<Session>, CliError> {
        if let Some(session) = self.open.get(key) {
            return Ok(Arc::clone(session));
        }
        if self.open.len() >= MOST_OPEN_SESSIONS {
            let current = self.current.key().clone();
            self.open.retain(|key, open| *key == current || open.work().is_some());
        }
        let mut session_config = self.session_config.for_session(key.clone());
        let is_new = !self.sessions.catalog.exists(key);
        if is_new && session_config.is_main() && self.options.directory.is_none() {
            // Like everywhere, the main session belongs to no project unless `-C` says so.
            session_config.directory = None;
        }
        let session = Session::open(Arc::clone(&self.driver), session_config, &self.options);
        session.notice_reminders();
        self.open.insert(key.clone(), Arc::clone(&session));
        Ok(session)
    }

    fn make_current(&mut self, key: &SessionKey) -> Result<Value, CliError> {
        self.current = self.session(key)?;
        Ok(json!({"session": key.as_str()}))
    }

    /// The name of a session that does not exist yet.
    fn new_key(&self, name: Option<String>) -> Result<SessionKey, CliError> {
        let exists =
            |name: &str| self.key(name).is_ok_and(|key| self.sessions.catalog.exists(&key));
        let name = name.unwrap_or_else(|| new_session_name(exists));
        if exists(&name) {
            return Err(CliError::usage(format!(
                "there is a session `{name}` already; switch_session continues it"
            )));
        }
        let key = self.key(&name)?;
        check_agent(&self.session_config.config, &*self.sessions.catalog, &key)?;
        Ok(key)
    }

    fn begin_session(&mut self, Name { name }: Name) -> Result<Value, CliError> {
        let key = self.new_key(name)?;
        self.make_current(&key)
    }

    fn switch_session(&mut self, Name { name }: Name) -> Result<Value, CliError> {
        let Some(name) = name else {
            return Err(CliError::usage("switch_session: missing field `name`"));
        };
        let key = match self.key(&name)? {
            // A new session is not on disk yet.
            key if self.open.contains_key(&key) => key,
            _ => self.sessions.find(&name)?,
        };
        self.make_current(&key)
    }

    async fn messages(&self, session: &Session, wanted: GetMessages) -> Result<Value, CliError> {
        let limit = wanted.limit.unwrap_or(SOME_MESSAGES).min(MOST_MESSAGES);
        let (sessions, key) = (self.sessions.clone(), session.key().clone());
        let before = wanted.before.map(|id| EntryId::from_text(&id));
        let reading = move || sessions.shown_messages(&key, before, limit);
        let messages = tokio::task::spawn_blocking(reading);
        let messages = messages
            .await
            .map_err(|error| CliError::failure(format!("internal error: {error}")))??;
        match messages {
            Some(messages) => Ok(json!({"messages": messages})),
            None => Err(CliError::usage(
                "get_messages: no message has the id that `before` names".to_owned(),
            )),
        }
    }

    async fn list_sessions(&self, limit: usize) -> Result<Value, CliError> {
        let stored = self.sessions.clone();
        let latest = tokio::task::spawn_blocking(move || stored.latest(limit.min(MOST_SESSIONS)));
        let (latest, total) = latest
            .await
            .map_err(|error| CliError::failure(format!("internal error: {error}")))??;
        let sessions: Vec<Value> = latest
            .iter()
            .map(|session| {
                json!({
                    "session": session.key.as_str(),
                    "name": self.sessions.name_of(&session.key),
                    "updatedAt": session.entry.updated_at,
                    "model": session.entry.model,
                    "isCurrent": session.key == *self.current.key(),
                })
            })
            .collect();
        Ok(json!({"sessions": sessions, "total": total}))
    }

    async fn list_models(&self, wanted: ListModels) -> Result<Value, CliError> {
        let filter =
            ModelFilter { provider: wanted.provider.as_deref(), search: wanted.search.as_deref() };
        let models =
            find_models(&self.session_config.home, &self.session_config.config, filter).await?;
        Ok(json!({"models": to_value(models)?}))
    }
}

async fn list_skills(config: &SessionConfig) -> Result<Value, CliError> {
    let found = config.read_skills().await?;
    let skills: Vec<Value> = found
        .offered()
        .map(|skill| json!({"name": skill.name, "description": skill.description}))
        .collect();
    Ok(json!({"skills": skills}))
}

/// The blocks of a message: the request for a skill if there is one, the text, and the pictures, which are checked.
async fn content(message: Message, config: &SessionConfig) -> Result<Vec<ContentBlock>, CliError> {
    let mut content = Vec::new();
    if let Some(skill) = message.skill {
        let request = config.read_skills().await?.request(&skill, "")?;
        content.push(ContentBlock::text(request));
    }
    match message.message {
        Spoken::Text(text) if !content.is_empty() && text.trim().is_empty() => {}
        Spoken::Text(text) => {
            content.push(ContentBlock::text(requests::expand(&text).unwrap_or(text)));
        }
        Spoken::Blocks(blocks) => {
            for block in blocks {
                content.push(match block {
                    Block::Text { text } => ContentBlock::text(text),
                    Block::Image(image) => picture(image.data).await?,
                });
            }
        }
    }
    for image in message.images {
        content.push(picture(image.data).await?);
    }
    Ok(config.with_server_texts_noted(content).await?)
}

fn accepted(accepted: &Accepted) -> Value {
    let (state, id) = match accepted {
        Accepted::Started(id) => ("started", id),
        Accepted::Queued(id) => ("queued", id),
        Accepted::Interrupting(id) => ("interrupting", id),
    };
    json!({"state": state, "messageId": id})
}

async fn meanwhile(
    session: &Arc<Session>,
    kind: QueuedKind,
    message: Message,
) -> Result<Value, CliError> {
    let content = content(message, &session.config()).await?;
    let id = session.send_to_turn(kind, content).await?;
    Ok(json!({"messageId": id}))
}

async fn undo(session: &Session, wanted: Undo) -> Result<Value, CliError> {
    let direction = if wanted.redo { Direction::Redo } else { Direction::Undo };
    let which = wanted.turn.map_or(WhichTurn::Next, WhichTurn::Number);
    let mode = if wanted.dry_run { UndoMode::DryRun } else { UndoMode::Apply };
    to_value(session.undo(direction, which, mode).await?)
}

/// Whether another process runs the session.
async fn is_busy_elsewhere(session: &Session) -> Result<bool, CliError> {
    if session.work().is_some() {
        return Ok(false);
    }
    let (config, key) = (session.config(), session.key().clone());
    let looking = tokio::task::spawn_blocking(move || config.home.sessions().is_in_use(&key));
    let looked = looking.await;
    let is_in_use = looked.map_err(|error| CliError::failure(error.to_string()))??;
    // Work that began meanwhile holds the session itself.
    Ok(is_in_use && session.work().is_none())
}

async fn state(session: &Session) -> Result<Value, CliError> {
    let model = session.selection().await?;
    let session_config = session.config();
    let directory = session_config.working_directory();
    let waiting: Vec<Value> = session.pending().await?.iter().map(waiting).collect();
    Ok(json!({
        "session": session.key().as_str(),
        "agent": session_config.agent.id.as_str(),
        "model": model.reference.to_string(),
        "contextWindow": model.model().context_window,
        "thinking": thinking(session, &model),
        "mode": session.mode(),
        "workingDirectory": directory,
        "work": session.work(),
        "idle": session.work().is_none(),
        "busyElsewhere": is_busy_elsewhere(session).await?,
        "waiting": waiting,
    }))
}

fn waiting(message: &PendingMessage) -> Value {
    json!({
        "messageId": message.id,
        "kind": message.kind,
        "text": joined_text(&message.content, "\n"),
        "ts": message.ts,
    })
}

fn job(job: &JobRecord) -> Value {
    json!({
        "job": job.id,
        "command": job.command,
        "directory": job.directory,
        "running": job.is_running(),
        "state": job.state(),
        "pid": job.pid(),
        "terminal": job.terminal,
        "startedAt": job.started_at,
        "end": job.end,
        "outputPath": job.output,
    })
}

fn to_value(value: impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(value).map_err(|error| CliError::failure(error.to_string()))
}
