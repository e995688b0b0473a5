//! Errors that an edit has added to a file, as the language server of its language reports them.
//!
//! A server is started by the first edit of a file of its language, runs where the commands of the session run, and ends when it
//! was idle. An edit waits for it no longer than its limit. What came too late is said after the next edit of the file.

mod frames;
mod kind;
mod problem;
mod server;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_exec::{ChildSpec, EnvironmentPolicy};
use myclaw_files::{canonical, canonical_or_same};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use self::kind::Kind;
pub use self::kind::ProjectPrograms;
use self::problem::{Problem, added, address};
use self::server::{Server, Start};
use crate::{CommandPlace, Jobs};

/// Most servers of this process at once: each takes hundreds of megabytes.
const MAX_SERVERS: usize = 4;
static SERVERS: Semaphore = Semaphore::const_new(MAX_SERVERS);
/// Most files that a server has open.
const MAX_DOCUMENTS: usize = 50;
/// Most errors that are shown of a file.
const MAX_SHOWN: usize = 10;
/// A server that ended is not started again before this time has passed.
const PAUSE: Duration = Duration::from_secs(60);

/// The language servers of a session. They end with this value.
#[derive(Default)]
pub struct LanguageServers(Mutex<HashMap<Key, Arc<Entry>>>);

/// What makes two files those of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    root: PathBuf,
    is_sandboxed: bool,
    programs: ProjectPrograms,
}

/// How long servers live, and what they may use.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosticsLimits {
    /// How long an edit waits.
    pub wait: Duration,
    /// After this time without an edit a server is ended.
    pub idle: Duration,
    /// Bytes of memory that a server and its children may take.
    pub memory: u64,
    /// Hears of the end of a server, and why.
    pub on_end: fn(server: &'static str, why: &str),
}

/// Where a server runs.
#[derive(Clone)]
pub struct DiagnosticsPlace {
    /// Where the commands of the session run.
    pub commands: CommandPlace,
    /// The outermost directory that a server may work in, with all links followed.
    pub directory: PathBuf,
    /// What it may do with programs that the project names.
    pub programs: ProjectPrograms,
    /// Where it is written down that a server runs, so that the next MyClaw ends it if this one is killed.
    pub jobs: Option<Arc<Jobs>>,
}

/// A file that an edit has changed.
#[derive(Debug, Clone)]
pub struct EditedFile {
    /// With all links followed.
    pub path: PathBuf,
    /// Its text before; empty if there was no such file.
    pub before: String,
    /// Its text now.
    pub after: String,
}

/// A server with the files that it was sent.
struct Entry {
    server: Server,
    documents: Mutex<HashMap<PathBuf, Document>>,
    /// One edit at a time.
    turn: tokio::sync::Mutex<()>,
    began: Instant,
}

/// A file as a server knows it.
struct Document {
    /// 0 before the server was sent it.
    version: i64,
    text: String,
    sent: Instant,
    /// The errors that the model was told of, or that were there before; `None` if they are not known yet. Then the text is the
    /// one before the first edit.
    known: Option<Vec<Problem>>,
    /// Whether those are the errors of the text.
    is_current: bool,
}

/// The program of the server for a file, if one is known.
pub fn server_for(path: &Path) -> Option<&'static str> {
    Kind::of(path).map(|(kind, _)| kind.program())
}

impl LanguageServers {
    /// What the model is to know of an edit: the errors that it added. `None` if there are none, or if that is not known within
    /// the limit.
    pub async fn check(
        &self,
        change: EditedFile,
        place: &DiagnosticsPlace,
        limits: DiagnosticsLimits,
    ) -> Option<String> {
        let deadline = Instant::now() + limits.wait;
        let (kind, language) = Kind::of(&change.path)?;
        let root = kind.root(&change.path, &place.directory);
        let is_sandboxed = matches!(place.commands, CommandPlace::Sandbox { .. });
        let key = Key { kind, root, is_sandboxed, programs: place.programs };
        let entry = self.entry(&key, &change.path, place, limits)?;
        entry.remember(&change);
        let found = tokio::select! {
            biased;
            found = timeout_at(deadline, entry.added_by(&change, language)) => found.ok()?,
            () = entry.server.ended() => return None,
        };
        let shown: Vec<String> = found.iter().take(MAX_SHOWN).map(Problem::shown).collect();
        let (count, name) =
            (found.len(), change.path.strip_prefix(&place.directory).unwrap_or(&change.path));
        let word = if count == 1 { "error" } else { "errors" };
        let more = match count - shown.len() {
            0 => String::new(),
            more => format!("\nand {more} more"),
        };
        let (program, name) = (kind.program(), name.display());
        (count > 0).then(|| {
            format!("{program} reports {count} new {word} in {name}:\n{}{more}", shown.join("\n"))
        })
    }

    /// The server for a file, which is started if none runs.
    fn entry(
        &self,
        key: &Key,
        file: &Path,
        place: &DiagnosticsPlace,
        limits: DiagnosticsLimits,
    ) -> Option<Arc<Entry>> {
        let mut entries = self.0.lock();
        if let Some(entry) = entries.get(key) {
            if !entry.server.has_ended() {
                return Some(Arc::clone(entry));
            }
            if entry.began.elapsed() < PAUSE {
                return None;
            }
        }
        // Another mode of the session has another place.
        entries.retain(|other, entry| {
            other.is_sandboxed == key.is_sandboxed && (other == key || !entry.server.has_ended())
        });
        let start = start(key, file, place, limits)?;
        let entry = Arc::new(Entry {
            server: Server::start(start),
            documents: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            began: Instant::now(),
        });
        entries.insert(key.clone(), Arc::clone(&entry));
        Some(entry)
    }
}

/// How the server of a file is started. `None` if it is not installed, if it would run programs of the project that it may not
/// run, or if there are too many servers.
fn start(
    key: &Key,
    file: &Path,
    place: &DiagnosticsPlace,
    limits: DiagnosticsLimits,
) -> Option<Start> {
    let Key { kind, root, programs, .. } = key;
    if *programs == ProjectPrograms::Refused && kind.obstacle(file, &place.directory).is_some() {
        return None;
    }
    let mut environment = match place.commands {
        CommandPlace::Sandbox { .. } => EnvironmentPolicy::empty(),
        _ => EnvironmentPolicy::inherited(),
    };
    for (name, value) in kind.variables(*programs) {
        environment = environment.with(*name, *value);
    }
    let mut spec = ChildSpec::new(kind.program(), root);
    let mut program = None;
    if *programs == ProjectPrograms::Refused {
        // Neither the server nor what it starts by name is one of the project.
        let inherited = EnvironmentPolicy::inherited();
        let path = paths_outside(inherited.get("PATH").unwrap_or_default(), &place.directory)?;
        spec.environment = environment.clone().with("PATH", &path);
        let found = spec.resolve_program().ok()?;
        let is_projects = canonical(&found).map_or(true, |real| real.starts_with(&place.directory));
        if is_projects {
            return None;
        }
        environment = environment.with("PATH", path);
        spec.program = found.clone().into();
        program = Some(found);
    }
    spec.environment = environment;
    spec.args = kind.arguments();
    let options = kind.options(*programs, program.as_deref())?;
    let permit = SERVERS.try_acquire().ok()?;
    let (runner, root, jobs) = (place.commands.runner(), root.clone(), place.jobs.clone());
    Some(Start { kind: *kind, spec, root, options, runner, limits, permit, jobs })
}

/// The directories of `PATH` that are not of the project.
fn paths_outside(path: &OsStr, project: &Path) -> Option<OsString> {
    let outside = std::env::split_paths(path)
        .filter(|at| at.is_absolute() && !canonical_or_same(at).starts_with(project));
    std::env::join_paths(outside).ok()
}

impl Entry {
    /// Keeps the text before the first edit, with which the errors are compared.
    fn remember(&self, change: &EditedFile) {
        let mut documents = self.documents.lock();
        if documents.len() >= MAX_DOCUMENTS && !documents.contains_key(&change.path) {
            for (path, document) in documents.drain() {
                if document.version > 0 {
                    let file = json!({"textDocument": {"uri": address(&path)}});
                    self.server.notify("textDocument/didClose", &file);
                }
            }
        }
        drop(documents);
        self.with(change, |_| ());
    }

    /// The errors that the model does not know of yet. Can be dropped at any moment.
    async fn added_by(&self, change: &EditedFile, language: &str) -> Vec<Problem> {
        let _turn = self.turn.lock().await;
        self.server.ready().await;
        let (is_first, is_stale) = self.with(change, |document| {
            // Something else has changed the file since.
            (document.known.is_none(), document.is_current && document.text != change.before)
        });
        if is_first || is_stale {
            if is_stale {
                self.send(change, &change.before, language);
            } else {
                self.open(change, language);
            }
            let found = self.problems(change).await;
            self.with(change, |document| {
                document.known = Some(found);
                document.is_current = true;
            });
        }
        self.send(change, &change.after, language);
        let now = self.problems(change).await;
        self.with(change, |document| {
            let before = document.known.replace(now.clone()).unwrap_or_default();
            document.is_current = true;
            added(&before, &now)
        })
    }

    fn with<T>(&self, change: &EditedFile, work: impl FnOnce(&mut Document) -> T) -> T {
        let mut documents = self.documents.lock();
        let fresh = || Document {
            version: 0,
            text: change.before.clone(),
            sent: Instant::now(),
            known: None,
            is_current: false,
        };
        work(documents.entry(change.path.clone()).or_insert_with(fresh))
    }

    /// Sends the file for the first time.
    fn open(&self, change: &EditedFile, language: &str) {
        self.with(change, |document| {
            if document.version > 0 {
                return;
            }
            (document.version, document.sent) = (1, Instant::now());
            let file = json!({
                "uri": address(&change.path), "languageId": language, "version": 1, "text": document.text
            });
            self.server.notify("textDocument/didOpen", &json!({"textDocument": file}));
        });
    }

    /// Sends another text of the file.
    fn send(&self, change: &EditedFile, text: &str, language: &str) {
        self.open(change, language);
        self.with(change, |document| {
            document.version += 1;
            document.sent = Instant::now();
            document.is_current = false;
            document.text = text.to_owned();
            let file = json!({"uri": address(&change.path), "version": document.version});
            let content = json!({"textDocument": file, "contentChanges": [{"text": text}]});
            self.server.notify("textDocument/didChange", &content);
            self.server.notify(
                "textDocument/didSave",
                &json!({"textDocument": {"uri": address(&change.path)}}),
            );
        });
    }

    async fn problems(&self, change: &EditedFile) -> Vec<Problem> {
        let (version, sent) = self.with(change, |document| (document.version, document.sent));
        self.server.problems(&change.path, version, sent).await
    }
}

impl fmt::Debug for LanguageServers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.lock().keys()).finish()
    }
}
