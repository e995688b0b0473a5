//! A connection to a server: the handshake of each revision of the protocol, the list of tools, calls.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::outside::plain_name;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::ToolDefinition;
use crate::elicitation::{Answers, Begun, Declined, Questions};
use crate::exchange::{Exchange, Request};
use crate::failure::{Failure, Kind};
use crate::http::{Http, parameter_headers, parameter_values};
use crate::log::ServerLog;
use crate::process::Process;
use crate::spec::{Address, PrepareProgram, ServerPlace};
use crate::subscriptions::Subscriptions;
use crate::watched::Watched;

/// The revision without sessions: the version and what the client can do are in each request.
pub(crate) const STATELESS: &str = "2026-07-28";
/// The revisions with sessions, newest first.
pub(crate) const WITH_SESSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to begin: one that is downloaded and built first takes most of it.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may be silent about a request that older ones do not know.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// The same behind HTTP, where a server answers something if it is not busy.
const HTTP_PROBE_LIMIT: Duration = Duration::from_secs(15);
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

/// What a server may have besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Resources,
    Prompts,
}

/// What a server lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// Entries that are not offered, and why.
    pub problems: Vec<String>,
    /// The addresses of its resources, as far as they were asked for.
    pub resources: Vec<String>,
    /// The names of its prompts, as far as they were asked for.
    pub prompts: Vec<String>,
}

/// An open connection.
pub(crate) struct Connection {
    transport: Transport,
    pub(crate) revision: Revision,
    /// The name and version that the server gives itself; may be empty.
    pub(crate) server: String,
    /// What it offers besides tools.
    offers: Vec<Offer>,
    /// What it was asked to say of changes.
    subscriptions: Subscriptions,
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
        place: &ServerPlace,
        log: &Arc<ServerLog>,
        before: Option<&Revision>,
    ) -> Result<Self, Failure> {
        let is_older = before.is_some_and(|before| !before.is_stateless());
        match place {
            ServerPlace::Program(prepare) => Self::to_program(prepare, log, is_older).await,
            ServerPlace::Address(address) => Self::to_address(address, is_older).await,
        }
    }

    async fn to_program(
        prepare: &Arc<PrepareProgram>,
        log: &Arc<ServerLog>,
        is_older: bool,
    ) -> Result<Self, Failure> {
        let with = |process: Process, agreed| Self::new(Transport::Program(process), agreed);
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
            Err(refused) if matches!(refused.kind, Kind::Refused | Kind::Other) => {
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
        let mut is_overdue = false;
        if !is_older {
            http.speak(Some(&Revision::new(STATELESS)));
            match discover(http.exchange(), HTTP_PROBE_LIMIT).await {
                Ok(Some(agreed)) => return Ok(Self::new(Transport::Http(http), agreed)),
                Err(failure) if matches!(failure.kind, Kind::Unreached | Kind::Login) => {
                    return Err(failure);
                }
                Err(failure) => is_overdue = failure.kind == Kind::Overdue,
                Ok(None) => {}
            }
        }
        http.speak(None);
        let failure =
            match initialize(http.exchange(), &|revision| http.speak(Some(revision))).await {
                Ok(agreed) => {
                    http.listen().await;
                    return Ok(Self::new(Transport::Http(http), agreed));
                }
                Err(failure) => failure,
            };
        // The server was too busy to answer the first question in time, and speaks no revision with sessions.
        if is_overdue && !matches!(failure.kind, Kind::Unreached | Kind::Login) {
            http.speak(Some(&Revision::new(STATELESS)));
            match discover(http.exchange(), START_LIMIT).await {
                Ok(Some(agreed)) => return Ok(Self::new(Transport::Http(http), agreed)),
                Err(failure) if failure.kind == Kind::Login => return Err(failure),
                Ok(None) | Err(_) => {}
            }
        }
        match failure.kind {
            Kind::Status(400 | 404 | 405) => {
                let http = Http::old(address.clone()).await.map_err(|why| match why.kind {
                    Kind::Refused => why,
                    _ => failure,
                })?;
                let agreed =
                    initialize(http.exchange(), &|revision| http.speak(Some(revision))).await?;
                Ok(Self::new(Transport::Http(http), agreed))
            }
            Kind::Refused if is_older => Box::pin(Self::to_address(address, false)).await,
            _ => Err(failure),
        }
    }

    fn new(transport: Transport, agreed: Agreed) -> Self {
        let Agreed { revision, server, abilities, offers } = agreed;
        let meta = revision.is_stateless().then(|| meta(false));
        let subscriptions = Subscriptions::new(&abilities, meta, transport.exchange());
        Self { transport, revision, server, offers, subscriptions }
    }

    /// Whether it has a list of these.
    pub(crate) fn offers(&self, offer: Offer) -> bool {
        self.offers.contains(&offer)
    }

    /// Why the connection has ended, once it has.
    pub(crate) fn ended(&self) -> Option<Failure> {
        self.transport.exchange().ended()
    }

    /// Has the server say when one of the resources in `watched` changes, and no other.
    pub(crate) async fn follow(&self, watched: &Arc<Watched>) {
        self.subscriptions.follow(self.exchange(), watched).await;
    }

    /// Its requests.
    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        self.transport.exchange()
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
                _ => {
                    return Err(Failure::other(
                        "the server answers `tools/list` with something that is no list",
                    ));
                }
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
                None => {
                    let (resources, prompts) = (Vec::new(), Vec::new());
                    return Ok(Listing { tools, problems, resources, prompts });
                }
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

    /// Calls a tool.
    ///
    /// # Errors
    /// There is no result; why.
    pub(crate) async fn call(
        &self,
        (tool, arguments): (&ToolDefinition, &Map<String, Value>),
        limit: Duration,
        watch: &CallWatch<'_>,
    ) -> Result<Called, Failure> {
        let params = Map::from_iter([
            ("name".to_owned(), json!(tool.name)),
            ("arguments".to_owned(), Value::Object(arguments.clone())),
        ]);
        let mut answers = match &watch.round {
            Some(round) => answered(round, watch).await?,
            None => Map::new(),
        };
        for _ in 0..MAX_ROUNDS {
            let with_answers = params.clone().into_iter().chain(std::mem::take(&mut answers));
            let mut request = Request::new("tools/call", with_answers.collect(), limit);
            request.cancel = Some(watch.cancel);
            request.on_progress = Some(watch.on_progress);
            request.questions = Some(&watch.questions);
            request.headers = parameter_values(&tool.input_schema, arguments);
            let result = self.ask(request).await?;
            if result["resultType"] != "input_required" && result.get("inputRequests").is_none() {
                let declined = std::mem::take(&mut *watch.questions.declined.lock());
                return Ok(Called { result, declined });
            }
            answers = answered(&result, watch).await?;
        }
        Err(Failure::other("the server asks again and again before it answers"))
    }

    pub(crate) async fn ask(&self, mut request: Request<'_>) -> Result<Value, Failure> {
        if self.revision.is_stateless() {
            let asks = request.questions.is_some_and(|questions| questions.has_user());
            request.params.insert("_meta".to_owned(), meta(asks));
        }
        self.transport.exchange().ask(request).await
    }
}

/// What a call has brought.
pub(crate) struct Called {
    pub(crate) result: Value,
    /// The questions of the server that were answered with no.
    pub(crate) declined: Vec<Declined>,
}

/// How a call is followed.
pub(crate) struct CallWatch<'a> {
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) on_progress: &'a (dyn Fn(String) + Send + Sync),
    pub(crate) questions: Questions<'a>,
    /// What the server answered to an earlier process, which was killed before the user had answered.
    pub(crate) round: Option<Value>,
}

/// The answers to what a server asks before it answers, unless the call is cancelled.
async fn answered(result: &Value, watch: &CallWatch<'_>) -> Result<Map<String, Value>, Failure> {
    tokio::select! {
        () = watch.cancel.cancelled() => {
            Err(Failure::new(Kind::Aborted, "aborted before the user had answered"))
        }
        answers = answers_to(result, &watch.questions) => answers,
    }
}

/// The answers to what a server asks before it answers, with the state that it wants to see again.
async fn answers_to(
    result: &Value,
    questions: &dyn Answers,
) -> Result<Map<String, Value>, Failure> {
    let mut responses = Map::new();
    for (name, wanted) in result["inputRequests"].as_object().into_iter().flatten() {
        let response = match wanted["method"].as_str() {
            Some("elicitation/create") => {
                let begun = Begun::Round(result.clone());
                questions.answer(wanted["params"].clone(), begun).await
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
fn meta(asks: bool) -> Value {
    let abilities = if asks { abilities() } else { json!({}) };
    json!({META_VERSION: STATELESS, META_CLIENT: client(), META_CAPABILITIES: abilities})
}

/// What the client can do. Questions that it cannot answer are declined.
fn abilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// What was agreed with a server.
struct Agreed {
    revision: Revision,
    /// What it calls itself.
    server: String,
    /// What it says that it can do.
    abilities: Value,
    /// What it has besides tools.
    offers: Vec<Offer>,
}

impl Agreed {
    fn new(revision: Revision, info: &Value, abilities: &Value) -> Self {
        let has = |name: &str| abilities.get(name).is_some_and(Value::is_object);
        let known = [(Offer::Resources, "resources"), (Offer::Prompts, "prompts")].into_iter();
        let offers = known.filter(|(_, name)| has(name)).map(|(offer, _)| offer).collect();
        Self { revision, server: name_of(info), abilities: abilities.clone(), offers }
    }
}

/// What is agreed with a server that speaks the revision without sessions.
async fn discover(exchange: &Exchange, limit: Duration) -> Result<Option<Agreed>, Failure> {
    let ask = || {
        let params = Map::from_iter([("_meta".to_owned(), meta(false))]);
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
    let agreed = || Agreed::new(Revision::new(STATELESS), info, &found["capabilities"]);
    Ok(is_spoken.then(agreed))
}

/// Begins a session. `agreed_on` learns the revision before anything is sent
/// in it.
async fn initialize(
    exchange: &Exchange,
    agreed_on: &(dyn Fn(&Revision) + Send + Sync),
) -> Result<Agreed, Failure> {
    let params = json!({
        "protocolVersion": WITH_SESSIONS[0], "capabilities": abilities(), "clientInfo": client(),
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
    Ok(Agreed::new(revision, &agreed["serverInfo"], &agreed["capabilities"]))
}

fn name_of(info: &Value) -> String {
    let text = |name: &str| info[name].as_str().unwrap_or_default();
    plain_name(&format!("{} {}", text("name"), text("version")), 100)
}
