//! A connection to a server: the handshake of each revision of the protocol, the list of tools, calls.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::ToolDefinition;
use crate::exchange::{Exchange, Request, question_in};
use crate::failure::{Failure, Kind};
use crate::http::{Http, parameter_headers, parameter_values};
use crate::log::ServerLog;
use crate::process::Process;
use crate::spec::{Address, Place, PrepareProgram};

/// The revision without sessions: the version and what the client can do are in each request.
pub(crate) const STATELESS: &str = "2026-07-28";
/// The revisions with sessions, newest first.
pub(crate) const WITH_SESSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to begin: one that is downloaded and built first takes most of it.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may be silent about a request that older ones do not know.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Most pages of a list, and most tools.
const MAX_PAGES: usize = 1_000;
const MAX_TOOLS: usize = 2_000;
/// Most bytes of the definitions of all tools.
const MAX_LIST_BYTES: usize = 8 << 20;
/// Most times that a server may ask something before it answers.
const MAX_ROUNDS: usize = 8;
/// Names in the `_meta` of a request of the revision without sessions.
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The revision of the protocol that a server speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    /// The revision of this date.
    pub fn new(date: impl Into<String>) -> Self {
        Self(date.into())
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.0 == STATELESS
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What a server lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// Entries that are not offered, and why.
    pub problems: Vec<String>,
}

/// An open connection.
pub(crate) struct Connection {
    transport: Transport,
    pub(crate) revision: Revision,
    /// The name and version that the server gives itself; may be empty.
    pub(crate) server: String,
}

enum Transport {
    Program(Process),
    Http(Http),
}

impl Transport {
    fn exchange(&self) -> &Arc<Exchange> {
        match self {
            Self::Program(process) => &process.exchange,
            Self::Http(http) => http.exchange(),
        }
    }
}

impl Connection {
    /// Starts the server and agrees on a revision, first on the one that it spoke before.
    ///
    /// # Errors
    /// The server does not start, or speaks no revision that is known here.
    pub(crate) async fn open(
        place: &Place,
        log: &Arc<ServerLog>,
        before: Option<&Revision>,
    ) -> Result<Self, Failure> {
        let is_older = before.is_some_and(|before| !before.is_stateless());
        match place {
            Place::Program(prepare) => Self::to_program(prepare, log, is_older).await,
            Place::Address(address) => Self::to_address(address, is_older).await,
        }
    }

    async fn to_program(
        prepare: &Arc<PrepareProgram>,
        log: &Arc<ServerLog>,
        is_older: bool,
    ) -> Result<Self, Failure> {
        let with = |process: Process, (revision, server)| Self {
            transport: Transport::Program(process),
            revision,
            server,
        };
        let process = Process::start(prepare, log).await?;
        if is_older {
            match initialize(&process.exchange, &|_| {}).await {
                Ok(agreed) => return Ok(with(process, agreed)),
                Err(failure) if failure.kind != Kind::Refused => return Err(failure),
                Err(_) => {}
            }
        }
        match discover(&process.exchange, PROBE_LIMIT).await {
            Ok(Some(agreed)) => return Ok(with(process, agreed)),
            Err(failure) if failure.kind == Kind::Ended => {
                // Some older servers end at a request that they do not know.
                drop(process);
                let process = Process::start(prepare, log).await?;
                let agreed = initialize(&process.exchange, &|_| {}).await?;
                return Ok(with(process, agreed));
            }
            Ok(None) | Err(_) => {}
        }
        match initialize(&process.exchange, &|_| {}).await {
            Ok(agreed) => Ok(with(process, agreed)),
            // It was not ready to answer the first question in time.
            Err(refused) if refused.kind == Kind::Refused => {
                match discover(&process.exchange, START_LIMIT).await {
                    Ok(Some(agreed)) => Ok(with(process, agreed)),
                    _ => Err(refused),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// The order is that of the protocol: a request without a session, then a session, then the transport of 2024-11-05.
    async fn to_address(address: &Address, is_older: bool) -> Result<Self, Failure> {
        let http = Http::new(address.clone());
        if !is_older {
            http.speak(Some(&Revision::new(STATELESS)));
            match discover(http.exchange(), PROBE_LIMIT).await {
                Ok(Some((revision, server))) => {
                    return Ok(Self { transport: Transport::Http(http), revision, server });
                }
                Err(failure) if matches!(failure.kind, Kind::Unreached | Kind::Login) => {
                    return Err(failure);
                }
                Ok(None) | Err(_) => {}
            }
        }
        http.speak(None);
        let failure =
            match initialize(http.exchange(), &|revision| http.speak(Some(revision))).await {
                Ok((revision, server)) => {
                    http.listen();
                    return Ok(Self { transport: Transport::Http(http), revision, server });
                }
                Err(failure) => failure,
            };
        match failure.kind {
            Kind::Status(400 | 404 | 405) => {
                let Ok(http) = Http::old(address.clone()).await else { return Err(failure) };
                let (revision, server) =
                    initialize(http.exchange(), &|revision| http.speak(Some(revision))).await?;
                Ok(Self { transport: Transport::Http(http), revision, server })
            }
            Kind::Refused if is_older => Box::pin(Self::to_address(address, false)).await,
            _ => Err(failure),
        }
    }

    /// Why the connection has ended, once it has.
    pub(crate) fn ended(&self) -> Option<Failure> {
        self.transport.exchange().ended()
    }

    /// Whether the server has said that its list of tools is another one.
    pub(crate) fn take_list_change(&self) -> bool {
        self.transport.exchange().take_list_change()
    }

    /// All tools that the server lists, page by page.
    ///
    /// # Errors
    /// The server refuses, or its list has no end.
    pub(crate) async fn list(&self) -> Result<Listing, Failure> {
        let (mut tools, mut problems) = (Vec::new(), Vec::new());
        let (mut names, mut cursors) = (HashSet::new(), HashSet::new());
        let (mut cursor, mut bytes) = (None::<String>, 0);
        for _ in 0..MAX_PAGES {
            let mut params = Map::new();
            if let Some(cursor) = &cursor {
                params.insert("cursor".to_owned(), json!(cursor));
            }
            let mut page = self.ask(Request::new("tools/list", params, START_LIMIT)).await?;
            let entries = match page.get_mut("tools").map(Value::take) {
                Some(Value::Array(entries)) => entries,
                _ => return Err(Failure::other("the server's list of tools is none")),
            };
            for entry in entries {
                bytes += entry.to_string().len();
                if tools.len() == MAX_TOOLS || bytes > MAX_LIST_BYTES {
                    let what = format!(
                        "the server lists more than {MAX_TOOLS} tools or {} MB of them",
                        MAX_LIST_BYTES >> 20
                    );
                    return Err(Failure::other(what));
                }
                match ToolDefinition::parse(entry).and_then(|tool| self.callable(tool)) {
                    Ok(tool) if names.insert(tool.name.clone()) => tools.push(tool),
                    Ok(tool) => problems.push(format!("the tool {} is listed twice", tool.name)),
                    Err(problem) => problems.push(problem),
                }
            }
            cursor = page["nextCursor"].as_str().filter(|next| !next.is_empty()).map(str::to_owned);
            match &cursor {
                None => return Ok(Listing { tools, problems }),
                Some(next) if !cursors.insert(next.clone()) => break,
                Some(_) => {}
            }
        }
        Err(Failure::other("the server's list of tools has no end"))
    }

    /// The tool, if it can be called over this connection.
    fn callable(&self, tool: ToolDefinition) -> Result<ToolDefinition, String> {
        match self.transport {
            Transport::Http(_) if self.revision.is_stateless() => {
                parameter_headers(&tool.input_schema)
                    .map_err(|problem| format!("the tool {}: {problem}", tool.name))?;
                Ok(tool)
            }
            _ => Ok(tool),
        }
    }

    /// Calls a tool. What the server wants to ask the user is declined, because nobody can be asked from here.
    ///
    /// # Errors
    /// There is no result; why.
    pub(crate) async fn call(
        &self,
        (tool, arguments): (&ToolDefinition, &Map<String, Value>),
        limit: Duration,
        cancel: &CancellationToken,
        on_progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Called, Failure> {
        let params = Map::from_iter([
            ("name".to_owned(), json!(tool.name)),
            ("arguments".to_owned(), Value::Object(arguments.clone())),
        ]);
        let mut declined = Vec::new();
        let mut answers = Map::new();
        for _ in 0..MAX_ROUNDS {
            let with_answers = params.clone().into_iter().chain(std::mem::take(&mut answers));
            let mut request = Request::new("tools/call", with_answers.collect(), limit);
            request.cancel = Some(cancel);
            request.on_progress = Some(on_progress);
            request.headers = parameter_values(&tool.input_schema, arguments);
            let result = self.ask(request).await?;
            if result["resultType"] != "input_required" && result.get("inputRequests").is_none() {
                declined.extend(self.transport.exchange().take_questions());
                return Ok(Called { result, declined });
            }
            answers = answers_to(&result, &mut declined)?;
        }
        Err(Failure::other("the server asks again and again before it answers"))
    }

    async fn ask(&self, mut request: Request<'_>) -> Result<Value, Failure> {
        if self.revision.is_stateless() {
            request.params.insert("_meta".to_owned(), meta());
        }
        self.transport.exchange().ask(request).await
    }
}

/// What a call has brought.
pub(crate) struct Called {
    pub(crate) result: Value,
    /// What the server wanted to ask the user.
    pub(crate) declined: Vec<String>,
}

/// The answers to what a server asks before it answers, with the state that it wants to see again.
fn answers_to(result: &Value, declined: &mut Vec<String>) -> Result<Map<String, Value>, Failure> {
    let mut responses = Map::new();
    for (name, wanted) in result["inputRequests"].as_object().into_iter().flatten() {
        let response = match wanted["method"].as_str() {
            Some("elicitation/create") => {
                declined.push(question_in(&wanted["params"]));
                json!({"action": "decline"})
            }
            Some("roots/list") => json!({"roots": []}),
            _ => {
                return Err(Failure::other(
                    "the server wants the answer of a model before it answers, which this client does not give",
                ));
            }
        };
        responses.insert(name.clone(), response);
    }
    let mut answers = Map::from_iter([("inputResponses".to_owned(), Value::Object(responses))]);
    if let Some(state) = result.get("requestState") {
        answers.insert("requestState".to_owned(), state.clone());
    }
    Ok(answers)
}

fn client() -> Value {
    json!({"name": "myclaw", "version": env!("CARGO_PKG_VERSION")})
}

/// What each request of the revision without sessions says of the client.
fn meta() -> Value {
    json!({META_VERSION: STATELESS, META_CLIENT: client(), META_CAPABILITIES: {}})
}

type Agreed = (Revision, String);

/// The revision without sessions and what the server calls itself, if it speaks that.
async fn discover(exchange: &Exchange, limit: Duration) -> Result<Option<Agreed>, Failure> {
    let ask = || {
        let params = Map::from_iter([("_meta".to_owned(), meta())]);
        exchange.ask(Request::new("server/discover", params, limit))
    };
    let found = match ask().await {
        // The servers behind one address may be of several versions while they are replaced.
        Err(refusal) if refusal.supported.iter().any(|spoken| spoken == STATELESS) => ask().await?,
        found => found?,
    };
    let versions = found["supportedVersions"].as_array().cloned().unwrap_or_default();
    let info = match &found["_meta"][META_SERVER] {
        Value::Null => &found["serverInfo"],
        info => info,
    };
    let is_spoken = versions.iter().any(|version| version == STATELESS);
    Ok(is_spoken.then(|| (Revision::new(STATELESS), name_of(info))))
}

/// Begins a session; the revision, and what the server calls itself. `agreed_on` learns the revision before anything is sent
/// in it.
async fn initialize(
    exchange: &Exchange,
    agreed_on: &(dyn Fn(&Revision) + Send + Sync),
) -> Result<Agreed, Failure> {
    let params = json!({
        "protocolVersion": WITH_SESSIONS[0], "capabilities": {}, "clientInfo": client(),
    });
    let params = params.as_object().cloned().unwrap_or_default();
    let agreed = exchange.ask(Request::new("initialize", params, START_LIMIT)).await?;
    let revision = agreed["protocolVersion"].as_str().unwrap_or_default();
    if !WITH_SESSIONS.contains(&revision) {
        let what = format!(
            "the server speaks a revision of the protocol that is not known here; known are {STATELESS}, {}",
            WITH_SESSIONS.join(", ")
        );
        return Err(Failure::other(what).saying(revision));
    }
    let revision = Revision::new(revision);
    agreed_on(&revision);
    exchange.tell("notifications/initialized", &json!({})).await;
    Ok((revision, name_of(&agreed["serverInfo"])))
}

fn name_of(info: &Value) -> String {
    let text = |name: &str| info[name].as_str().unwrap_or_default();
    format!("{} {}", text("name"), text("version")).trim().chars().take(100).collect()
}
