//! One server of a process, for all its sessions.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use myclaw_engine::Tool;
use myclaw_llm::outside::visible;
use myclaw_llm::{ContentBlock, HttpProvider};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::connection::{CallWatch, Called, Connection, Listing, Revision};
use crate::elicitation::Asker;
use crate::exchange::Request;
use crate::failure::{Failure, Kind};
use crate::log::ServerLog;
use crate::offers::{OfferedNames, prompt_content, resource_content};
use crate::spec::ServerPlace;
use crate::tool::RemoteTool;
use crate::watched::Watched;
use crate::{Outline, ServerSpec, ToolDefinition};

/// How often an open server is looked at, at least.
const LOOK: Duration = Duration::from_secs(30);
/// A list of tools that is older is asked for again: not every server says when its list changes.
const LIST_AGE: Duration = Duration::from_secs(300);
/// How long somebody who types waits for the names of resources and prompts.
const NAMES_LIMIT: Duration = Duration::from_secs(2);
/// The pause after a failed start, which doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Most doublings of the pause.
const DOUBLINGS: u32 = 6;

/// The servers that a process has started, one program for each, whatever the number of its sessions.
#[derive(Default)]
pub struct Servers {
    known: Mutex<HashMap<String, Arc<Instance>>>,
    http: OnceLock<Arc<HttpProvider>>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Servers")
    }
}

impl Servers {
    /// What makes the requests to all servers behind addresses: the first one that is made.
    pub fn http(&self, make: impl FnOnce() -> HttpProvider) -> Arc<HttpProvider> {
        Arc::clone(self.http.get_or_init(|| Arc::new(make())))
    }

    /// The server that `spec` describes. Nothing is started. Its errors go to a file in `directory`.
    pub fn get(&self, spec: ServerSpec, directory: Option<&Path>) -> Server {
        let mut servers = self.known.lock();
        // One that another agent or an earlier config calls by the same name ends when it is idle, as all do.
        servers.retain(|fingerprint, server| {
            *fingerprint == spec.fingerprint || Arc::strong_count(server) > 1 || server.is_at_work()
        });
        let instance = servers
            .entry(spec.fingerprint.clone())
            .or_insert_with(|| Arc::new(Instance::new(&spec.name, directory)));
        Server { spec: Arc::new(spec), instance: Arc::clone(instance) }
    }

    /// The resources that a session has read and that have changed since, as their servers say: the names of the servers, and
    /// the addresses. Each is given once, and again only if the session has read it again.
    pub fn take_changed(&self, session: &str) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        for server in self.known.lock().values() {
            let addresses = server.watched.take_changed(session);
            changed.extend(addresses.into_iter().map(|uri| (server.name.clone(), uri)));
        }
        changed.sort_unstable();
        changed
    }
}

/// A server as a run knows it. Its program runs while it is needed.
#[derive(Clone)]
pub struct Server {
    /// How it is started.
    spec: Arc<ServerSpec>,
    instance: Arc<Instance>,
}

/// What all runs of a process share of a server. It does not hold how the server is started, because that belongs to a session.
struct Instance {
    name: String,
    log: Arc<ServerLog>,
    slot: tokio::sync::Mutex<Slot>,
    calls: AtomicUsize,
    last_used: Mutex<Instant>,
    watched: Arc<Watched>,
}

#[derive(Default)]
struct Slot {
    open: Option<Arc<Open>>,
    revision: Option<Revision>,
    /// Starts that failed one after the other.
    failures: u32,
    /// When the next start may be tried, and why the last one failed.
    pause: Option<(Instant, Failure)>,
}

/// A running program, and what it lists.
struct Open {
    connection: Connection,
    /// And when that was asked for.
    listing: Mutex<(Arc<Listing>, Instant)>,
    /// The names of its resources and prompts, and when they were asked for.
    names: Mutex<Option<(OfferedNames, Instant)>>,
}

impl Instance {
    fn new(name: &str, directory: Option<&Path>) -> Self {
        Self {
            name: name.to_owned(),
            log: ServerLog::new(directory, name),
            slot: tokio::sync::Mutex::default(),
            calls: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            watched: Arc::default(),
        }
    }
}

impl Server {
    /// Its name in the config.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// How a question about a call names it.
    pub(crate) fn shown(&self) -> String {
        format!("{}: {}", self.spec.name, self.spec.shown)
    }

    /// What it lists now, with the revision that it speaks and the name that it gives itself. Starts it.
    ///
    /// # Errors
    /// It does not start, or gives no list.
    pub async fn listing(&self) -> Result<(Listing, Revision, String), Failure> {
        let open = self.open(None).await?;
        let connection = &open.connection;
        let mut listing = connection.list().await?;
        let mut offered = HashSet::new();
        let (name, problems) = (self.name(), &mut listing.problems);
        listing.tools.retain(|tool| {
            let is_alone = offered.insert(tool.offered_name(name));
            if !is_alone {
                let tool = visible(&tool.name);
                problems.push(format!("the tool {tool} would have the name of another one"));
            }
            is_alone
        });
        // They are for completion; without them everything works.
        (listing.resources, listing.prompts) = connection.all_names().await.unwrap_or_default();
        Ok((listing, connection.revision.clone(), connection.server.clone()))
    }

    /// Its tools as they were approved, as far as `is_wanted` keeps them, by the names that the server gives them. `asker` asks
    /// the user what the server wants to know in the middle of a call.
    pub fn tools(
        &self,
        approved: Outline,
        is_wanted: &dyn Fn(&str) -> bool,
        asker: Option<&Arc<dyn Asker>>,
    ) -> Vec<Arc<dyn Tool>> {
        RemoteTool::all_of(self, approved, is_wanted, asker)
    }

    /// The names of its resources and prompts, if it runs and says them soon. It is asked again once it has said that a list
    /// has changed, or after a while.
    pub async fn names(&self) -> Option<OfferedNames> {
        let open = self.instance.slot.try_lock().ok()?.open.clone()?;
        let has_changed = open.connection.exchange().changes.take_of_names();
        if !has_changed
            && let Some((names, asked_at)) = &*open.names.lock()
            && asked_at.elapsed() < LIST_AGE
        {
            return Some(names.clone());
        }
        let _using = Using::new(&self.instance);
        let names = timeout(NAMES_LIMIT, open.connection.all_names()).await.ok()?.ok();
        open.names.lock().clone_from(&names.clone().map(|names| (names, Instant::now())));
        names
    }

    /// What a model is shown of a resource, marked as text of the server. Starts the server, which then says when the resource
    /// changes, if it can.
    ///
    /// # Errors
    /// It does not start, or refuses.
    pub async fn resource(&self, session: &str, uri: &str) -> Result<Vec<ContentBlock>, Failure> {
        let _using = Using::new(&self.instance);
        let watched = &self.instance.watched;
        watched.begin(session, uri);
        let reading = async {
            self.open(None).await?.connection.follow(watched).await;
            let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
            self.fetch("resources/read", params).await
        };
        let result = reading.await.inspect_err(|_| watched.end(session, uri))?;
        Ok(resource_content(self.name(), uri, &result))
    }

    /// The message that a prompt makes with the arguments in `line`. Starts the server.
    ///
    /// # Errors
    /// It does not start, has no such prompt, or refuses; or an argument is missing.
    pub async fn prompt(&self, name: &str, line: &str) -> Result<Vec<ContentBlock>, Failure> {
        let listed = {
            let _using = Using::new(&self.instance);
            self.open(None).await?.connection.prompt(name).await?
        };
        let listed = listed.ok_or_else(|| Failure::other("the server has no such prompt"))?;
        let arguments = listed.arguments(line).map_err(Failure::other)?;
        let params = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("arguments".to_owned(), Value::Object(arguments)),
        ]);
        Ok(prompt_content(self.name(), name, &self.fetch("prompts/get", params).await?))
    }

    /// The answer to a request that people make.
    async fn fetch(&self, method: &str, params: Map<String, Value>) -> Result<Value, Failure> {
        let _using = Using::new(&self.instance);
        let mut has_begun_anew = false;
        loop {
            let open = self.open(None).await?;
            let request = Request::new(method, params.clone(), self.spec.call_limit);
            return match open.connection.ask(request).await {
                Err(failure) if failure.kind == Kind::SessionLost && !has_begun_anew => {
                    has_begun_anew = true;
                    continue;
                }
                Ok(result) if result["resultType"] == "input_required" => Err(Failure::other(
                    "the server wants to ask something before it answers, which is possible for tools only",
                )),
                answer => answer,
            };
        }
    }

    /// Calls a tool, which must still be what `definition` says. `before` is the revision that the server spoke when it was
    /// approved.
    pub(crate) async fn call(
        &self,
        what: (&ToolDefinition, &Revision),
        arguments: &Map<String, Value>,
        watch: &CallWatch<'_>,
    ) -> Result<Called, Failure> {
        let _using = Using::new(&self.instance);
        let called = self.call_once(what, arguments, watch).await;
        match called {
            // The next one begins a session.
            Err(failure) if failure.kind == Kind::SessionLost => {
                self.call_once(what, arguments, watch).await
            }
            called => called,
        }
    }

    async fn call_once(
        &self,
        (definition, before): (&ToolDefinition, &Revision),
        arguments: &Map<String, Value>,
        watch: &CallWatch<'_>,
    ) -> Result<Called, Failure> {
        let open = tokio::select! {
            biased;
            () = watch.cancel.cancelled() => {
                return Err(Failure::new(Kind::Aborted, "aborted before the server had started"));
            }
            open = self.open(Some(before)) => open?,
        };
        let is_old = open.listing.lock().1.elapsed() > LIST_AGE;
        if open.connection.exchange().changes.take_of_tools() || is_old {
            let listing = open.connection.list().await?;
            *open.listing.lock() = (Arc::new(listing), Instant::now());
        }
        let listing = Arc::clone(&open.listing.lock().0);
        self.check(definition, &listing)?;
        open.connection.call((definition, arguments), self.spec.call_limit, watch).await
    }

    /// Checks that the server still describes a tool as it was approved.
    fn check(&self, definition: &ToolDefinition, listing: &Listing) -> Result<(), Failure> {
        let name = &self.spec.name;
        let listed = listing.tools.iter().find(|tool| tool.name == definition.name);
        let what = match listed {
            Some(listed) if listed.digest() == definition.digest() => return Ok(()),
            Some(_) => {
                format!(
                    "the server {name} describes this tool in another way than when it was approved"
                )
            }
            None => format!("the server {name} does not have this tool any more"),
        };
        Err(Failure::other(format!(
            "{what}. Nothing was called. The user can look at the difference with `myclaw mcp approve {name}`"
        )))
    }

    /// The running program, started if there is none.
    async fn open(&self, before: Option<&Revision>) -> Result<Arc<Open>, Failure> {
        let mut slot = self.instance.slot.lock().await;
        if let Some(open) = slot.open.as_ref().filter(|open| open.connection.ended().is_none()) {
            return Ok(Arc::clone(open));
        }
        slot.open = None;
        if let Some((until, failure)) = &slot.pause
            && let Some(rest) = until.checked_duration_since(Instant::now())
        {
            let mut failure = failure.clone();
            failure.what = format!(
                "{}; it is tried again in {} s at the earliest",
                failure.what,
                rest.as_secs() + 1
            );
            return Err(failure);
        }
        let before = slot.revision.clone().or_else(|| before.cloned());
        let started = self.start(before.as_ref()).await;
        match started {
            Ok(open) => {
                let open = Arc::new(open);
                slot.revision = Some(open.connection.revision.clone());
                (slot.failures, slot.pause) = (0, None);
                slot.open = Some(Arc::clone(&open));
                self.instance.attend(self.spec.idle_limit);
                self.instance.follow_again(&open);
                Ok(open)
            }
            Err(mut failure) => {
                let what = match self.spec.place {
                    ServerPlace::Program(_) => "did not start",
                    ServerPlace::Address(_) => "cannot be used",
                };
                failure.what = format!("the server {} {what}: {}", self.spec.name, failure.what);
                let pause = PAUSE * 2_u32.pow(slot.failures.min(DOUBLINGS));
                slot.failures = slot.failures.saturating_add(1);
                slot.pause = Some((Instant::now() + pause.min(LONGEST_PAUSE), failure.clone()));
                Err(failure)
            }
        }
    }

    async fn start(&self, before: Option<&Revision>) -> Result<Open, Failure> {
        let connection = Connection::open(&self.spec.place, &self.instance.log, before).await?;
        let listing = connection.list().await?;
        let listing = Mutex::new((Arc::new(listing), Instant::now()));
        Ok(Open { connection, listing, names: Mutex::default() })
    }
}

impl Instance {
    /// Whether it knows something that a new one would not: it runs, rests after a failure, or is to say what changes.
    fn is_at_work(&self) -> bool {
        let slot = self.slot.try_lock();
        let is_at_rest = slot.is_ok_and(|slot| slot.open.is_none() && slot.pause.is_none());
        !is_at_rest || !self.watched.is_empty()
    }

    /// Has a server that was started again say what changes of the resources that were read from it before.
    fn follow_again(&self, open: &Arc<Open>) {
        if !self.watched.addresses().is_empty() {
            let (open, watched) = (Arc::clone(open), Arc::clone(&self.watched));
            tokio::spawn(async move { open.connection.follow(&watched).await });
        }
    }

    /// Ends the program once it has been idle.
    fn attend(self: &Arc<Self>, idle_limit: Duration) {
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(LOOK.min(idle_limit)).await;
                let Some(server) = this.upgrade() else { return };
                let mut slot = server.slot.lock().await;
                let has_ended =
                    slot.open.as_ref().is_none_or(|open| open.connection.ended().is_some());
                let is_idle = server.calls.load(Ordering::Relaxed) == 0
                    && server.last_used.lock().elapsed() >= idle_limit;
                if has_ended || is_idle {
                    slot.open = None;
                    return;
                }
            }
        });
    }
}

/// A call at work.
struct Using<'a>(&'a Instance);

impl<'a> Using<'a> {
    fn new(server: &'a Instance) -> Self {
        server.calls.fetch_add(1, Ordering::Relaxed);
        Self(server)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        *self.0.last_used.lock() = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
