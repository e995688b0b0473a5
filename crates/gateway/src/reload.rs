//! Notices changes of the config file, and puts a valid one into force without a restart.
//!
//! The files are looked at once a second: that takes a few microseconds, works on every file system and for every way of
//! saving (in place, by renaming, through links), and needs nothing from the system that could run out. A file is read
//! when it has not changed for a moment. One that cannot be used changes nothing; it is reported once.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use myclaw_agent::{AgentError, Home, load_checked};
use serde::Serialize;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::channels::{ChannelChanges, Channels};
use crate::connect::channels_of;
use crate::current::{Current, InForce};
use crate::delivery::Delivery;
use crate::gateway::{address, directory};
use crate::ledger::now_ms;
use crate::schedule::Runner;
use crate::server::Server;
use crate::token::Token;
use crate::{GatewayError, OnConfig, Say};

/// Pause between two looks at the files.
const POLL: Duration = Duration::from_secs(1);
/// How long a file must not change before it is read: an editor may still be writing.
const AT_REST: Duration = Duration::from_millis(100);
/// Most waits for that. A file that changes all the time is read in between.
const MOST_WAITS: u32 = 20;

/// What tells two versions of a file apart: its number on the disk, its size, and its times in nanoseconds.
type FileStamp = Option<(u64, u64, i128, i128)>;

/// The versions of the files that a config comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<FileStamp>);

impl Stamp {
    /// Looks at the config file and the `.env` beside the state. Blocks.
    pub(crate) fn of(home: &Home) -> Self {
        let stamp = |path: &Path| -> FileStamp {
            let found = std::fs::metadata(path).ok()?;
            let time =
                |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            let changed = time(found.ctime(), found.ctime_nsec());
            Some((found.ino(), found.len(), time(found.mtime(), found.mtime_nsec()), changed))
        };
        let variables = home.paths.state_dir().join(".env");
        Self(vec![stamp(home.paths.config_file()), stamp(&variables)])
    }
}

/// How the newest reload ended, for clients.
pub(crate) struct Reloads(Mutex<ReloadState>);

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReloadState {
    file: PathBuf,
    /// When the config in force was read, in milliseconds since the Unix epoch.
    loaded_at: u64,
    /// Why the file as it is now is not in force.
    problem: Option<String>,
    /// Keys whose new values count after a restart.
    needs_restart: Vec<&'static str>,
}

impl Reloads {
    pub(crate) fn new(home: &Home) -> Arc<Self> {
        let state = ReloadState {
            file: home.paths.config_file().to_owned(),
            loaded_at: now_ms(),
            problem: None,
            needs_restart: Vec::new(),
        };
        Arc::new(Self(Mutex::new(state)))
    }

    pub(crate) fn state(&self) -> ReloadState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: ReloadState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl ReloadState {
    pub(crate) fn is_current(&self) -> bool {
        self.problem.is_none()
    }
}

/// Everything that a new config concerns.
pub(crate) struct Reloader {
    pub(crate) current: Arc<Current>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) server: Arc<Server>,
    pub(crate) reloads: Arc<Reloads>,
    /// The config of the start. What only a restart changes is as this says.
    pub(crate) first: Arc<InForce>,
    /// The files that the config in force was read from.
    pub(crate) stamp: Stamp,
}

impl Reloader {
    /// Puts changed files into force until `stop` fires. `asked` makes it read them in any case.
    pub(crate) async fn watch(
        self,
        asked: Arc<Notify>,
        (say, on_config): (Say, OnConfig),
        stop: CancellationToken,
    ) {
        let mut seen = self.stamp.clone();
        let mut is_unfinished = false;
        loop {
            let is_asked = tokio::select! {
                () = tokio::time::sleep(POLL) => false,
                () = asked.notified() => true,
                () = stop.cancelled() => return,
            };
            let Some(mut now) = self.look().await else { continue };
            if now == seen && !is_asked && !is_unfinished {
                continue;
            }
            for _ in 0..MOST_WAITS {
                tokio::time::sleep(AT_REST).await;
                let Some(again) = self.look().await else { break };
                if std::mem::replace(&mut now, again) == now {
                    break;
                }
            }
            // What changes from here on is another version.
            seen = now;
            is_unfinished = !self.reload(&say, &on_config).await;
        }
    }

    async fn look(&self) -> Option<Stamp> {
        let in_force = self.current.get();
        tokio::task::spawn_blocking(move || Stamp::of(&in_force.home)).await.ok()
    }

    /// Reads the files, and puts them into force if they are valid. False if something has to be tried again.
    async fn reload(&self, say: &Say, on_config: &OnConfig) -> bool {
        let before = self.current.get();
        let reading = tokio::task::spawn_blocking(move || read(&before));
        let read = match reading.await {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok((new, token)) => {
                on_config(&new.home, &new.config);
                self.put_into_force(Arc::new(new), token, say).await
            }
            Err(problem) => {
                let state = self.reloads.state();
                self.reloads.set(ReloadState { problem: Some(problem.clone()), ..state.clone() });
                if state.problem.as_ref() != Some(&problem) {
                    tracing::error!(%problem, "the config is not reloaded; the one before stays in force");
                    say(&format!(
                        "the config is not reloaded; the one before stays in force: {problem}"
                    ));
                }
                true
            }
        }
    }

    async fn put_into_force(&self, new: Arc<InForce>, token: Token, say: &Say) -> bool {
        self.server.use_token(token);
        self.current.replace(Arc::clone(&new));
        // The sessions look for the agents, which may read the list of sessions.
        let (delivery, of_sessions) = (Arc::clone(&self.delivery), Arc::clone(&new));
        let changing = tokio::task::spawn_blocking(move || delivery.use_config(&of_sessions));
        let changed = changing.await;
        let channels = self.channels.replace(channels_of(&new.home, &new.config)).await;
        let arranged = self.runner.rearrange().await;
        let problem = match (changed, arranged) {
            (Err(error), _) => Some(error.to_string()),
            (_, Err(error)) => Some(format!("the heartbeats are not arranged: {error}")),
            (Ok(()), Ok(())) => None,
        };
        let needs_restart = needs_restart(&self.first, &new);
        let before = self.reloads.state();
        let state = ReloadState {
            file: new.home.paths.config_file().to_owned(),
            loaded_at: now_ms(),
            problem: problem.clone(),
            needs_restart: needs_restart.clone(),
        };
        self.reloads.set(state);
        report(&channels, &needs_restart, &before, say);
        if let Some(problem) = problem.as_ref().filter(|new| before.problem.as_ref() != Some(*new))
        {
            tracing::error!(%problem, "the config is not in force as a whole; trying again");
            say(&format!("the config is not in force as a whole; trying again: {problem}"));
        }
        problem.is_none()
    }
}

fn report(
    channels: &ChannelChanges,
    needs_restart: &[&'static str],
    before: &ReloadState,
    say: &Say,
) {
    tracing::info!(connected = ?channels.connected, closed = ?channels.closed, "the config was reloaded");
    say("the config was reloaded");
    if !needs_restart.is_empty() && needs_restart != before.needs_restart {
        let keys = needs_restart.join(", ");
        tracing::warn!(%keys, "keys of the config need a restart");
        say(&format!("restart the gateway to use the new {keys}"));
    }
}

/// Reads the config that the files hold now. Blocks.
fn read(before: &InForce) -> Result<(InForce, Token), GatewayError> {
    let home = Home::find()?;
    let loaded = load_checked(&home.environment).map_err(AgentError::from)?;
    if !loaded.found && before.found {
        let file = loaded.path.display();
        return Err(GatewayError::Unusable(format!(
            "{file} is gone; put it back, or restart the gateway to use the defaults"
        )));
    }
    let token = Token::find_or_create(&loaded.config, &directory(&home))?;
    Ok((InForce { home, config: loaded.config, found: loaded.found }, token))
}

/// The keys whose values have changed since the start, and which only a restart changes.
fn needs_restart(first: &InForce, now: &InForce) -> Vec<&'static str> {
    let mut keys = Vec::new();
    if address(&first.home, &first.config) != address(&now.home, &now.config) {
        keys.push("gateway.port");
    }
    if first.config.logging != now.config.logging {
        keys.push("logging");
    }
    keys
}
