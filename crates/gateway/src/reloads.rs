//! How reloads of the config ended, and a way to ask for one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::Home;
use myclaw_delivery::ledger::now_ms;
use myclaw_files::portable::MetadataExt as _;
use serde::Serialize;
use tokio::sync::{Notify, watch};

/// Longest wait for a file that this process has just written to be in force or refused. Channels may connect anew.
const PATIENCE: Duration = Duration::from_secs(10);

/// What tells two versions of a file apart: its number on the disk, its size, and its times in nanoseconds.
type FileStamp = Option<(u64, u64, i128, i128)>;

/// The versions of the files that a config comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<FileStamp>);

impl Stamp {
    /// Looks at the config file and the `.env` of the state directory. Blocks.
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
pub(crate) struct Reloads {
    pub(crate) state: watch::Sender<ReloadState>,
    /// Triggers an immediate check of the files.
    pub(crate) asked: Notify,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReloadState {
    pub(crate) file: PathBuf,
    /// When the config in force was read, in milliseconds since the Unix epoch.
    pub(crate) loaded_at: u64,
    /// Why the file as it is now is not in force.
    pub(crate) problem: Option<String>,
    /// Keys whose new values count after a restart.
    pub(crate) needs_restart: Vec<&'static str>,
    /// The versions of the files that were read.
    #[serde(skip)]
    pub(crate) stamp: Option<Stamp>,
}

impl Reloads {
    pub(crate) fn new(home: &Home) -> Arc<Self> {
        let state = ReloadState {
            file: home.paths.config_file().to_owned(),
            loaded_at: now_ms(),
            problem: None,
            needs_restart: Vec::new(),
            stamp: None,
        };
        Arc::new(Self { state: watch::Sender::new(state), asked: Notify::new() })
    }

    pub(crate) fn state(&self) -> ReloadState {
        self.state.borrow().clone()
    }

    /// Replaces it.
    pub(crate) fn set(&self, state: ReloadState) {
        self.state.send_replace(state);
    }

    /// Reloads the files and waits for the result. `None` if there is none in time, because they
    /// changed again or the gateway stops.
    pub(crate) async fn now(&self, home: &Home) -> Option<ReloadState> {
        let home = home.clone();
        let stamp = tokio::task::spawn_blocking(move || Stamp::of(&home)).await.ok()?;
        let mut states = self.state.subscribe();
        self.asked.notify_one();
        let of_these = states.wait_for(|state| state.stamp.as_ref() == Some(&stamp));
        tokio::time::timeout(PATIENCE, of_these).await.ok()?.ok().map(|state| state.clone())
    }
}

impl ReloadState {
    pub(crate) fn is_current(&self) -> bool {
        self.problem.is_none()
    }
}
