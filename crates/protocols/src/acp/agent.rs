//! Handles the requests of a client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AgentResponse, AuthenticateRequest, CancelNotification,
    CancelRequestNotification, CloseSessionRequest, DeleteSessionRequest, DeleteSessionResponse,
    Error, ErrorCode, Implementation, InitializeRequest, InitializeResponse, LoadSessionResponse,
    McpCapabilities, NewSessionResponse, NoticeSeverity, PromptCapabilities, RequestId,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionConfigOption,
    SessionDeleteCapabilities, SessionId, SessionListCapabilities, SessionModeState,
    SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse,
};
use myclaw_agent::{Driver, Session, SessionConfig};
use myclaw_session::SessionKey;

use super::client_sessions::ClientSessions;
use super::failure::{failed, failure, internal, invalid, of, unknown_session};
use super::message::{BadMessage, Call, Message};
use super::opening::{Opening, Reopening};
use super::options::{modes, options, set, set_mode, usable_models};
use super::prompts;
use super::replay::{Known, replay};
use super::requests::Requests;
use super::stored_sessions::StoredSessions;
use super::translator::{Abilities, Translator, usage};
use super::wire::Wire;
use crate::lines::Line;
use myclaw_front::args::SessionArgs;
use myclaw_front::home::session_config;
use myclaw_front::model::{announce, announcement};
use myclaw_front::report::Verbosity;

/// The agent side of the protocol.
pub(super) struct Agent {
    pub(super) driver: Arc<Driver>,
    pub(super) client_sessions: Arc<ClientSessions>,
    pub(super) stored_sessions: StoredSessions,
    args: SessionArgs,
    wire: Wire,
    requests: Arc<Requests>,
    open: HashMap<SessionKey, Open>,
    is_initialized: bool,
}

/// A session that is open.
pub(super) struct Open {
    pub(super) session: Arc<Session>,
    pub(super) directory: PathBuf,
    /// The models to choose from.
    models: Vec<String>,
    /// Notices that are sent once the client knows that the session is open.
    remarks: Vec<String>,
    /// Whether the client has just received the reply to its opening.
    is_new: bool,
    /// Whether its directory is recorded for the list.
    pub(super) is_listed: bool,
}

/// The immediate answer; `None` if the answer comes later.
type Answer = Result<Option<AgentResponse>, Error>;

impl Agent {
    /// An agent without open sessions. New sessions use the options in `args`.
    pub(super) fn new(
        args: SessionArgs,
        session_config: &SessionConfig,
        driver: Arc<Driver>,
        client_sessions: Arc<ClientSessions>,
        wire: Wire,
        requests: Arc<Requests>,
    ) -> Self {
        let stored_sessions = StoredSessions {
            catalog: Arc::clone(session_config.home.catalog()),
            home: session_config.home.clone(),
            agent_id: session_config.agent.id.to_string(),
            workspace: session_config.agent.workspace.clone(),
        };
        Self {
            driver,
            client_sessions,
            stored_sessions,
            args,
            wire,
            requests,
            open: HashMap::new(),
            is_initialized: false,
        }
    }

    /// Handles a line.
    pub(super) async fn take(&mut self, line: Line) {
        let message = match line {
            Line::Text(text) => Message::parse(&text),
            Line::Unusable(why) => Err(BadMessage::unreadable(why)),
        };
        match message {
            Ok(Message::Request(id, call)) => self.request(id, call).await,
            Ok(Message::Notification(call)) => self.notification(call),
            Ok(Message::Response(id, outcome)) => self.requests.answer(&id, outcome),
            Err(bad) => self.wire.answer(bad.id, Err(*bad.error)),
        }
    }

    async fn request(&mut self, id: RequestId, call: Call) {
        match self.answer(&id, call).await {
            Ok(None) => {}
            Ok(Some(response)) => self.wire.answer(id, Ok(response)),
            Err(error) => self.wire.answer(id, Err(error)),
        }
        self.greet();
    }

    async fn answer(&mut self, id: &RequestId, call: Call) -> Answer {
        if !self.is_initialized && call.method != "initialize" {
            let why = format!("{}: `initialize` comes first", call.method);
            return Err(failure(ErrorCode::InvalidRequest, why));
        }
        match call.method.as_str() {
            "initialize" => {
                let response = self.initialize(&call.params()?);
                Ok(Some(AgentResponse::InitializeResponse(response)))
            }
            "authenticate" => Err(no_authentication(&call.params()?)),
            "session/new" => self.new_session(&call.params()?).await,
            "session/load" => self.load(call.params()?).await,
            "session/resume" => self.resume(call.params()?).await,
            "session/list" => {
                let response = self.stored_sessions.list(call.params()?).await?;
                Ok(Some(AgentResponse::ListSessionsResponse(response)))
            }
            "session/close" => self.close(id, &call.params()?),
            "session/delete" => self.delete(call.params()?).await,
            "session/set_config_option" => self.set_option(call.params()?).await,
            "session/set_mode" => self.set_mode(&call.params()?).await,
            "session/prompt" => prompts::prompt(self, id, call.params()?).await.map(|()| None),
            method => {
                Err(failure(ErrorCode::MethodNotFound, format!("there is no method `{method}`")))
            }
        }
    }

    fn notification(&mut self, call: Call) {
        // A notification has no reply, so one that cannot be used is ignored.
        match call.method.as_str() {
            "session/cancel" => {
                if let Ok(CancelNotification { session_id, .. }) = call.params()
                    && let Some(key) = self.key(&session_id)
                {
                    self.cancel(&key);
                }
            }
            "$/cancel_request" => {
                if let Ok(CancelRequestNotification { request_id, .. }) = call.params()
                    && let Some(key) = self.client_sessions.session_of(&request_id)
                {
                    self.cancel(&key);
                }
            }
            _ => {}
        }
    }

    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.is_initialized = true;
        self.client_sessions.set_abilities(Abilities::from(&request.client_capabilities));
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(sessions);
        let info =
            Implementation::new("myclaw", env!("CARGO_PKG_VERSION")).title("MyClaw".to_owned());
        // A client that does not support this version disconnects.
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info)
    }

    async fn new_session(&mut self, opening: &Opening) -> Answer {
        let key = self.stored_sessions.new_key(|key| self.open.contains_key(key))?;
        let id = SessionId::new(key.as_str());
        self.open(&key, id.clone(), opening, Some(&Known::default())).await?;
        let response = NewSessionResponse::new(id)
            .modes(self.modes(&key)?)
            .config_options(self.options(&key).await?);
        Ok(Some(AgentResponse::NewSessionResponse(response)))
    }

    async fn load(&mut self, request: Reopening) -> Answer {
        let Reopening { session_id: id, opening } = request;
        let key = self.key_to_open(&id)?;
        opening.check_directory()?;
        let known = self.replay(&key, &id, &opening.cwd).await?;
        self.open(&key, id, &opening, Some(&known)).await?;
        if let Some(used) = known.used {
            let model = self.session(&key)?.session.selection().await.map_err(failed)?;
            let window = model.model().context_window;
            self.client_sessions.send(&key, usage(used, window, Some(known.spent)));
        }
        let response = LoadSessionResponse::new()
            .modes(self.modes(&key)?)
            .config_options(self.options(&key).await?);
        Ok(Some(AgentResponse::LoadSessionResponse(response)))
    }

    async fn resume(&mut self, request: Reopening) -> Answer {
        let key = self.key_to_open(&request.session_id)?;
        self.open(&key, request.session_id, &request.opening, None).await?;
        let response = ResumeSessionResponse::new()
            .modes(self.modes(&key)?)
            .config_options(self.options(&key).await?);
        Ok(Some(AgentResponse::ResumeSessionResponse(response)))
    }

    /// Replays the session as updates. It is read on a blocking thread and written as it is read.
    async fn replay(
        &self,
        key: &SessionKey,
        id: &SessionId,
        directory: &Path,
    ) -> Result<Known, Error> {
        let (catalog, key) = (Arc::clone(&self.stored_sessions.catalog), key.clone());
        let (wire, id, directory) = (self.wire.clone(), id.clone(), directory.to_path_buf());
        let home = self.stored_sessions.home.clone();
        let read = tokio::task::spawn_blocking(move || match catalog.read(&key)? {
            Some(reader) => {
                replay(&*reader, &directory, home.redactor(), |update| wire.update(&id, update))
            }
            None => Ok(Known::default()),
        });
        read.await.map_err(internal)?.map_err(|error| of(&error.into()))
    }

    /// The key of a session to open, which may be open already.
    fn key_to_open(&self, id: &SessionId) -> Result<SessionKey, Error> {
        let key = match self.key(id) {
            Some(key) => key,
            None => self.stored_sessions.find(id)?,
        };
        let works = self.open.get(&key).is_some_and(|open| open.session.work().is_some());
        if works || self.client_sessions.is_closing(&key) {
            return Err(failure(
                ErrorCode::InvalidRequest,
                format!("session `{id}` is at work; cancel that or wait for its end"),
            ));
        }
        Ok(key)
    }

    /// Opens a session. `known` holds its cost, if known.
    async fn open(
        &mut self,
        key: &SessionKey,
        id: SessionId,
        opening: &Opening,
        known: Option<&Known>,
    ) -> Result<(), Error> {
        opening.check_directory()?;
        let directory = opening.cwd.clone();
        // The config file and the keys may have changed since the session before.
        let mut session_config = session_config(&self.args).map_err(|error| of(&error))?;
        // The sessions of a program share its MCP servers.
        session_config.home = session_config.home.with_servers_of(&self.stored_sessions.home);
        session_config.session_key = key.clone();
        let mut session_config = session_config.in_mode(self.args.mode).map_err(failed)?;
        session_config.directory = Some(directory.clone());
        let (servers, problems) = opening.servers();
        session_config.editor_servers = servers;
        let unapproved = unapproved_servers(&session_config);
        let models = usable_models(&session_config).await;
        let session = Session::open(Arc::clone(&self.driver), session_config, &self.args.options());
        let model = session.selection().await.map_err(failed)?;
        announce(&model, Verbosity::Normal);
        let mut remarks: Vec<String> = Vec::new();
        remarks.extend(announcement(&model).filter(|_| model.is_builtin()));
        remarks.extend(model.unusable.iter().cloned().chain(model.window_note()));
        remarks.extend(opening.passed_over().into_iter().chain(problems).chain(unapproved));
        let window = model.model().context_window;
        let spent = known.map(|known| known.spent);
        let translator =
            Translator::new(self.client_sessions.abilities(), directory.clone(), window, spent);
        self.client_sessions.open(&session, id, translator);
        let open = Open { session, directory, models, remarks, is_new: true, is_listed: false };
        self.open.insert(key.clone(), open);
        Ok(())
    }

    /// Sends the notices of a session that was just opened, now that the client knows its id.
    fn greet(&mut self) {
        for (key, open) in self.open.iter_mut().filter(|(_, open)| open.is_new) {
            open.is_new = false;
            self.client_sessions.send(key, prompts::commands());
            for remark in open.remarks.drain(..) {
                self.client_sessions.notice(key, NoticeSeverity::Warning, remark);
            }
        }
    }

    async fn options(&self, key: &SessionKey) -> Result<Vec<SessionConfigOption>, Error> {
        let open = self.session(key)?;
        let model = open.session.selection().await.map_err(failed)?;
        Ok(options(&open.session, &model, &open.models))
    }

    fn modes(&self, key: &SessionKey) -> Result<SessionModeState, Error> {
        Ok(modes(&self.session(key)?.session))
    }

    async fn set_mode(&mut self, request: &SetSessionModeRequest) -> Answer {
        let key = self.open_key(&request.session_id)?;
        let session = &self.session(&key)?.session;
        set_mode(session, "session/set_mode", &request.mode_id.0).await?;
        Ok(Some(AgentResponse::SetSessionModeResponse(SetSessionModeResponse::new())))
    }

    async fn set_option(&mut self, request: SetSessionConfigOptionRequest) -> Answer {
        let key = self.open_key(&request.session_id)?;
        let Some(value) = request.value.as_value_id() else {
            return Err(invalid("session/set_config_option: the value is one of the option's"));
        };
        let session = &self.session(&key)?.session;
        set(session, &request.config_id.0, &value.0).await?;
        let model = session.selection().await.map_err(failed)?;
        self.client_sessions.set_window(&key, model.model().context_window);
        let response = SetSessionConfigOptionResponse::new(self.options(&key).await?);
        Ok(Some(AgentResponse::SetSessionConfigOptionResponse(response)))
    }

    fn cancel(&self, key: &SessionKey) {
        match self.open.get(key) {
            Some(open) if open.session.abort() => self.client_sessions.cancel(key),
            Some(_) => {
                self.client_sessions.stop_background(key);
                self.client_sessions.release(key);
            }
            None => {}
        }
    }

    fn close(&mut self, id: &RequestId, request: &CloseSessionRequest) -> Answer {
        let key = self.open_key(&request.session_id)?;
        self.cancel(&key);
        self.client_sessions.stop_background(&key);
        let session = Arc::clone(&self.session(&key)?.session);
        let clients = Arc::clone(&self.client_sessions);
        self.open.remove(&key);
        let (closing, closed) = (Arc::clone(&session), key.clone());
        self.client_sessions.close_when_idle(&key, id.clone(), move || {
            closing.end_jobs(move || clients.closed(&closed));
        });
        // Work that is running ends the jobs at its end.
        if session.work().is_none() {
            self.client_sessions.is_idle(&key);
        }
        Ok(None)
    }

    async fn delete(&mut self, request: DeleteSessionRequest) -> Answer {
        let key = self.key_to_open(&request.session_id)?;
        if let Some(open) = self.open.get(&key) {
            open.session.config().close_own_jobs(&|_| {}).await;
        }
        self.stored_sessions.delete(key.clone()).await?;
        self.open.remove(&key);
        self.client_sessions.remove(&key);
        Ok(Some(AgentResponse::DeleteSessionResponse(DeleteSessionResponse::new())))
    }

    /// The key of an open session.
    fn key(&self, id: &SessionId) -> Option<SessionKey> {
        let key = SessionKey::parse_for_agent(&self.stored_sessions.agent_id, &id.0).ok()?;
        self.open.contains_key(&key).then_some(key)
    }

    /// The key of an open session, or an error.
    pub(super) fn open_key(&self, id: &SessionId) -> Result<SessionKey, Error> {
        self.key(id).ok_or_else(|| {
            unknown_session(format!(
                "session `{id}` is not open; open it with session/new, session/load or session/resume"
            ))
        })
    }

    /// The output.
    pub(super) fn wire(&self) -> Wire {
        self.wire.clone()
    }

    /// Records the directory of the session for the list, once the session is on disk.
    pub(super) async fn list(&mut self, key: &SessionKey) {
        if let Some(open) = self.open.get_mut(key).filter(|open| !open.is_listed) {
            open.is_listed = true;
            let directory = open.directory.clone();
            self.stored_sessions.remember_directory(key, &directory).await;
        }
    }

    /// An open session.
    pub(super) fn session(&self, key: &SessionKey) -> Result<&Open, Error> {
        self.open.get(key).ok_or_else(|| unknown_session(format!("session `{key}` is not open")))
    }
}

fn no_authentication(request: &AuthenticateRequest) -> Error {
    invalid(format!(
        "authenticate: there is no method `{}`; keys of providers are added in a terminal, with `myclaw auth add`",
        request.method_id.0
    ))
}

/// Messages about the servers of the editor whose tools were not approved.
fn unapproved_servers(config: &SessionConfig) -> Vec<String> {
    let servers = config.mcp_servers().into_iter();
    let of_editor = servers.filter(|server| config.editor_servers.contains_key(&server.name));
    let unapproved = of_editor.filter(|server| matches!(server.approved(), Ok(None)));
    let remark = |name: &str| {
        format!(
            "the tools of the MCP server {name} are not approved: `/mcp approve {name}` shows them"
        )
    };
    unapproved.map(|server| remark(&server.name)).collect()
}
