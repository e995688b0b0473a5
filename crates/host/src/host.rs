//! A host: its parts, its start, its tasks, and its end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use myclaw_speech::{Speaker, Transcriber};
use myclaw_store::{SqliteStore, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::desk::RunnerFiles;
use crate::home::make;
use crate::ledger::HostLedger;
use crate::model::{Account, ModelSocket};
use crate::watch::{Watch, WatchedPlace};
use crate::{
    Backend, BackendError, FileChannel, Folder, Groups, HostError, HostHome, Messenger,
    ModelUpstream, Secrets, outbox, queue, run,
};

/// Most chats without a group that are remembered, for the main group.
const MAX_STRANGERS: usize = 200;
/// How often old records of finished work are removed from the store.
const PRUNED_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Gets one line for each thing that the owner should know.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The limits of a host.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most containers at a time; 5.
    pub containers: usize,
    /// How long a runner waits for a further message; 30 minutes.
    pub idle: Duration,
    /// How long a runner may say nothing; 30 minutes, and at least `idle` and twice `grace`.
    pub hard: Duration,
    /// How long a runner that was told to end may take, and then one that is stopped; 15 seconds each.
    pub grace: Duration,
    /// The wait before the first retry; 5 seconds. It is doubled each time.
    pub retry_base: Duration,
    /// Retries after a failed run; 5.
    pub retries: u32,
    /// Longest block of a runner, in bytes; 10 MiB.
    pub block: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            containers: 5,
            idle: Duration::from_secs(30 * 60),
            hard: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(15),
            retry_base: Duration::from_secs(5),
            retries: 5,
            block: 10 * 1024 * 1024,
        }
    }
}

/// How a host works.
pub struct HostOptions {
    /// Its directories.
    pub home: HostHome,
    /// The name of the assistant; `@` and this name is the usual trigger.
    pub assistant: String,
    /// What runners need to reach a model; nothing if they get it through a socket.
    pub secrets: Secrets,
    /// The model that runners reach through a socket, without a key and without the network.
    pub model: Option<Arc<ModelUpstream>>,
    /// What runs runners.
    pub backend: Arc<dyn Backend>,
    /// Its limits.
    pub limits: Limits,
    /// The list of directories that may be mounted.
    pub allowlist: PathBuf,
    /// Who speaks answers to spoken messages, and what runners ask for without a voice of their own.
    pub speaker: Option<Speaker>,
    /// Who makes texts of recordings.
    pub transcriber: Option<Transcriber>,
    /// Further options of runners.
    pub runner_options: Vec<String>,
    /// Gets what the owner should know.
    pub say: Say,
}

/// A host. Clones are the same one.
#[derive(Clone)]
pub struct Host(pub(crate) Arc<Shared>);

/// What the parts of a host share.
pub(crate) struct Shared {
    pub(crate) options: HostOptions,
    pub(crate) ledger: HostLedger,
    groups: Mutex<Arc<Groups>>,
    /// Wakes the task that works for a group.
    wakes: Mutex<HashMap<Folder, Arc<Notify>>>,
    /// Wakes the task that transcribes recordings for a group.
    listeners: Mutex<HashMap<Folder, Arc<Notify>>>,
    /// Wakes the task that delivers parts.
    pub(crate) outbox: Notify,
    /// Held while a task is read and changed.
    pub(crate) tasks: tokio::sync::Mutex<()>,
    /// Held while a recording is on the disk and its message not yet in the store.
    pub(crate) recordings: tokio::sync::Mutex<()>,
    permits: Arc<Semaphore>,
    /// Groups that wait for a place.
    waiting: watch::Sender<usize>,
    /// Fires when the host is to stop: nothing new is begun.
    pub(crate) stopping: CancellationToken,
    /// The current query of each group. The files of the group belong to it.
    pub(crate) queries: Mutex<HashMap<Folder, String>>,
    /// The groups that work on something, and how to stop that.
    pub(crate) working: Mutex<HashMap<Folder, CancellationToken>>,
    /// Who delivers, as soon as the host serves.
    pub(crate) messenger: OnceLock<Arc<dyn Messenger>>,
    /// Tasks that wait for a reply, with the time of the question in the ledger's order.
    pub(crate) questions: Mutex<HashMap<Folder, u64>>,
    /// Held while the files of a group are processed; the groups with files that could not be used at the last look.
    /// last.
    pub(crate) unusable: tokio::sync::Mutex<HashSet<Folder>>,
    /// What groups have used of the model behind the socket.
    accounts: Mutex<HashMap<Folder, Arc<Account>>>,
    /// Chats that belong to no group, with the name of who wrote last.
    strangers: Mutex<BTreeMap<String, String>>,
}

impl Host {
    /// Opens the store of a host.
    ///
    /// # Errors
    /// Another process has it open, or it cannot be used; or the list of groups cannot be read.
    pub fn open(options: HostOptions) -> Result<Self, HostError> {
        let groups = Groups::load(&options.home)?;
        let store: Arc<dyn Store> = Arc::new(open_store(&options.home)?);
        let shared = Shared {
            ledger: HostLedger::new(store),
            groups: Mutex::new(Arc::new(groups)),
            wakes: Mutex::default(),
            listeners: Mutex::default(),
            outbox: Notify::new(),
            tasks: tokio::sync::Mutex::default(),
            recordings: tokio::sync::Mutex::default(),
            permits: Arc::new(Semaphore::new(options.limits.containers.max(1))),
            waiting: watch::Sender::new(0),
            stopping: CancellationToken::new(),
            queries: Mutex::default(),
            working: Mutex::default(),
            messenger: OnceLock::new(),
            questions: Mutex::default(),
            unusable: tokio::sync::Mutex::default(),
            accounts: Mutex::default(),
            strangers: Mutex::default(),
            options,
        };
        Ok(Self(Arc::new(shared)))
    }

    /// The chat of a group; `None` if there is no such group.
    pub fn chat_of(&self, folder: &Folder) -> Option<String> {
        self.0.groups().of_folder(folder).map(|group| group.jid.clone())
    }

    /// The directories of the host.
    pub fn home(&self) -> &HostHome {
        &self.0.options.home
    }

    /// Works until `stop` fires or something fails that only the owner can repair. Messages of `channel` are taken.
    ///
    /// # Errors
    /// What failed. The next start continues everything that was acknowledged.
    pub async fn serve(
        &self,
        channel: FileChannel,
        messenger: Arc<dyn Messenger>,
        stop: CancellationToken,
    ) -> Result<(), HostError> {
        // A host serves once.
        let _ = self.0.messenger.set(Arc::clone(&messenger));
        self.0.ledger.prune().await?;
        run::end_removed(&self.0).await?;
        let mut service = Service {
            host: self,
            desk: RunnerFiles::new(&self.0),
            channel,
            watch: Watch::new(),
            parts: JoinSet::new(),
            attended: HashMap::new(),
            pruned: Instant::now(),
            complaint: String::new(),
        };
        service.parts.spawn(outbox::deliver(Arc::clone(&self.0), messenger));
        let outcome = tokio::select! {
            biased;
            () = self.stopped(&stop) => Ok(()),
            outcome = service.work() => outcome,
        };
        // A dropped run leaves what a crash would leave, and the next start continues from there.
        service.parts.shutdown().await;
        // Groups that were removed from the list meanwhile may still have a container.
        let mut folders: BTreeSet<Folder> = service.attended.into_keys().collect();
        folders.extend(self.0.groups().iter().map(|group| group.folder.clone()));
        for folder in &folders {
            run::end_leftovers(&self.0, folder).await?;
        }
        outcome
    }

    /// Waits until the host is to stop, and then a little for runs that end their query.
    async fn stopped(&self, stop: &CancellationToken) {
        stop.cancelled().await;
        self.0.stopping.cancel();
        let limits = &self.0.options.limits;
        let all = u32::try_from(limits.containers).unwrap_or(u32::MAX).max(1);
        // All places are free when all runs have ended.
        drop(tokio::time::timeout(limits.grace, self.0.permits.acquire_many(all)).await);
    }

    /// Says why no container can be started, if that is known.
    ///
    /// # Errors
    /// What is missing.
    pub async fn check(&self) -> Result<(), BackendError> {
        self.0.options.backend.check().await
    }

    pub(crate) fn say(&self, line: &str) {
        (self.0.options.say)(line);
    }
}

/// The tasks of a serving host.
struct Service<'a> {
    host: &'a Host,
    desk: RunnerFiles<'a>,
    channel: FileChannel,
    watch: Watch,
    parts: JoinSet<Result<(), HostError>>,
    /// The groups that have a task.
    attended: HashMap<Folder, AbortHandle>,
    /// When the store was pruned last.
    pruned: Instant,
    /// What was said last about the list of groups.
    complaint: String,
}

impl Service<'_> {
    async fn work(&mut self) -> Result<(), HostError> {
        self.watch.add(self.host.0.options.home.root(), WatchedPlace::Groups);
        let inbox = self.channel.inbox();
        self.watch.add(&inbox, WatchedPlace::Channel);
        self.look_at_groups()?;
        loop {
            let change = tokio::select! {
                Some(ended) = self.parts.join_next() => {
                    ended_with(ended)?;
                    continue;
                }
                change = self.watch.next() => change,
            };
            match change {
                Some(WatchedPlace::Groups) => self.look_at_groups()?,
                Some(WatchedPlace::Channel) => self.channel.take_in(self.host).await?,
                Some(WatchedPlace::Ipc(folder)) => self.desk.attend(&folder).await?,
                None => {
                    self.look_at_groups()?;
                    self.prune().await?;
                    self.channel.take_in(self.host).await?;
                    for group in self.host.0.groups().iter() {
                        self.desk.attend(&group.folder).await?;
                    }
                }
            }
        }
    }

    async fn prune(&mut self) -> Result<(), HostError> {
        if self.pruned.elapsed() >= PRUNED_EVERY {
            self.host.0.ledger.prune().await?;
            self.pruned = Instant::now();
        }
        Ok(())
    }

    /// Reads the list of groups again, and attends to those that are new.
    fn look_at_groups(&mut self) -> Result<(), HostError> {
        let shared = &self.host.0;
        match Groups::load(&shared.options.home) {
            Ok(groups) => {
                self.complaint.clear();
                *shared.groups.lock() = Arc::new(groups);
            }
            Err(error) => {
                let complaint = format!("the groups stay as they are: {error}");
                if complaint != self.complaint {
                    self.host.say(&complaint);
                    self.complaint = complaint;
                }
            }
        }
        // The runs of groups that are gone end.
        self.attended.keys().for_each(|folder| shared.wake_if_gone(folder));
        for group in shared.groups().iter() {
            let is_attended =
                self.attended.get(&group.folder).is_some_and(|task| !task.is_finished());
            if !is_attended {
                shared.options.home.make_group(&group.folder)?;
                let task = queue::attend(Arc::clone(shared), group.folder.clone());
                self.attended.insert(group.folder.clone(), self.parts.spawn(task));
            }
            for directory in self.desk.directories(&group.folder) {
                self.watch.add(&directory, WatchedPlace::Ipc(group.folder.clone()));
            }
        }
        Ok(())
    }
}

/// A task that panicked is a defect; the other tasks continue from the store at the next start.
pub(crate) fn ended_with<T>(
    ended: Result<Result<T, HostError>, JoinError>,
) -> Result<T, HostError> {
    match ended {
        Ok(outcome) => outcome,
        Err(error) => Err(HostError::Conflict(error.to_string())),
    }
}

impl Shared {
    pub(crate) fn groups(&self) -> Arc<Groups> {
        Arc::clone(&self.groups.lock())
    }

    pub(crate) fn say(&self, line: &str) {
        (self.options.say)(line);
    }

    /// Wakes the task that works for a group.
    pub(crate) fn wake(&self, folder: &Folder) {
        self.wake_of(folder).notify_one();
    }

    fn wake_if_gone(&self, folder: &Folder) {
        if self.groups().of_folder(folder).is_none() {
            self.wake(folder);
        }
    }

    pub(crate) fn wake_of(&self, folder: &Folder) -> Arc<Notify> {
        Arc::clone(self.wakes.lock().entry(folder.clone()).or_default())
    }

    /// Wakes the task that transcribes recordings for a group.
    pub(crate) fn listener_of(&self, folder: &Folder) -> Arc<Notify> {
        Arc::clone(self.listeners.lock().entry(folder.clone()).or_default())
    }

    /// Wakes the task that delivers parts.
    pub(crate) fn has_parts(&self) {
        self.outbox.notify_one();
    }

    /// Waits for a place for a container. Idle containers end while somebody waits.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, HostError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = Waiting::begin(&self.waiting);
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| HostError::Conflict("places".to_owned()))
    }

    /// The socket of a group's next run, if runners reach the model so.
    pub(crate) fn model_socket(&self, folder: &Folder) -> Result<Option<ModelSocket>, HostError> {
        let Some(upstream) = &self.options.model else { return Ok(None) };
        let directory = self.options.home.model(folder);
        make(&directory)?;
        let usage = self.options.home.usage(folder);
        make(&myclaw_files::parent_of(&usage))?;
        let account = Arc::clone(
            self.accounts
                .lock()
                .entry(folder.clone())
                .or_insert_with(|| Arc::new(Account::open(&upstream.limits, usage))),
        );
        let opened = ModelSocket::open(Arc::clone(upstream), account, &directory);
        opened.map(Some).map_err(|error| HostError::io("listen in", &directory, error))
    }

    /// How many groups wait for a place.
    pub(crate) fn waiting(&self) -> watch::Receiver<usize> {
        self.waiting.subscribe()
    }

    /// The chats that belong to no group, for the main group.
    pub(crate) fn strangers(&self) -> BTreeMap<String, String> {
        self.strangers.lock().clone()
    }

    pub(crate) fn meet(&self, chat: String, name: String) {
        let mut strangers = self.strangers.lock();
        if strangers.len() < MAX_STRANGERS || strangers.contains_key(&chat) {
            strangers.insert(chat, name);
        }
    }

    pub(crate) fn allowlist(&self) -> &Path {
        &self.options.allowlist
    }
}

/// Counts one group that waits, until it is dropped.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Opens the store of a host. What is in its way is said in terms of the directory, which is an option of the host.
fn open_store(home: &HostHome) -> Result<SqliteStore, HostError> {
    SqliteStore::open(&home.store()).map_err(|error| match error {
        StoreError::InUse { process_id, .. } => {
            HostError::AlreadyRuns { directory: home.root().to_owned(), process_id }
        }
        other => other.into(),
    })
}
