//! Detects changes of the config file, and applies a valid one without a restart.
//!
//! The files are looked at once a second: that takes a few microseconds, works on every file system and for every way of
//! saving (in place, by renaming, through links), and needs nothing from the system that could run out. A file is read
//! when it has not changed for a moment. One that cannot be used changes nothing; it is reported once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{AgentError, Home, config_check::load_checked};
use myclaw_config::{Config, ExposeSecret as _};
use myclaw_delivery::channels::{ChannelChanges, Channels};
use myclaw_delivery::current::{Current, InForce};
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::schedule::Runner;
use myclaw_gateway_client::{GatewayToken, RunningFile, Say, gateway_address, gateway_directory};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::GatewayError;
use crate::connect::channels_of;
use crate::counting::Counting;
use crate::reloads::{ReloadState, Reloads, Stamp};
use crate::server::Server;
use crate::server::front::Front;

/// Pause between two looks at the files.
const POLL: Duration = Duration::from_secs(1);
/// How long a file must not change before it is read: an editor may still be writing.
const AT_REST: Duration = Duration::from_millis(100);
/// Most waits for that. A file that changes all the time is read in between.
const MOST_WAITS: u32 = 20;
/// Heeds a config that will be in force.
pub type OnConfig = Arc<dyn Fn(&Home, &Config) + Send + Sync>;

/// Everything that a new config concerns.
pub(crate) struct Reloader {
    pub(crate) current: Arc<Current>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) counting: Arc<Counting>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) server: Arc<Server>,
    pub(crate) reloads: Arc<Reloads>,
    /// The config at start-up. Keys that need a restart keep these values.
    pub(crate) first: Arc<InForce>,
    /// The files that the config in force was read from.
    pub(crate) stamp: Stamp,
    /// How programs of this user find this process.
    pub(crate) running: RunningFile,
    /// The hashes of the certificates in it.
    pub(crate) certificates: watch::Sender<Vec<String>>,
}

impl Reloader {
    /// Applies changed files until `stop` fires. `asked` makes it read them in any case.
    pub(crate) async fn watch(
        mut self,
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
                () = self.reloads.asked.notified() => true,
                () = stop.cancelled() => return,
            };
            let Some((mut now, has_new_certificate)) = self.look().await else { continue };
            if now == seen && !is_asked && !is_unfinished && !has_new_certificate {
                continue;
            }
            for _ in 0..MOST_WAITS {
                tokio::time::sleep(AT_REST).await;
                let Some((again, _)) = self.look().await else { break };
                if std::mem::replace(&mut now, again) == now {
                    break;
                }
            }
            // What changes from here on is another version.
            seen = now;
            is_unfinished = !self.reload(&say, &on_config).await;
            let state = self.reloads.state();
            self.reloads.set(ReloadState { stamp: Some(seen.clone()), ..state });
        }
    }

    /// The files of the config, and whether those of the certificate have changed.
    async fn look(&self) -> Option<(Stamp, bool)> {
        let (in_force, front) = (self.current.get(), self.server.front());
        let looking = move || (Stamp::of(&in_force.home), front.has_changed());
        tokio::task::spawn_blocking(looking).await.ok()
    }

    /// Reads the files, and applies them if they are valid. False if something has to be tried again.
    async fn reload(&mut self, say: &Say, on_config: &OnConfig) -> bool {
        let before = self.current.get();
        let reading = tokio::task::spawn_blocking(move || read(&before));
        let read = match reading.await {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok((new, token, front)) => {
                on_config(&new.home, &new.config);
                self.server.use_token(token);
                self.use_front(front, &gateway_directory(&new.home), say).await;
                self.put_into_force(Arc::new(new), say).await
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

    /// Shows new connections another certificate. Programs of this user learn of it before they may get it.
    async fn use_front(&mut self, front: Front, directory: &Path, say: &Say) {
        let fingerprint = front.fingerprint();
        if fingerprint != self.server.front().fingerprint() {
            self.running = self.running.clone().with_certificate(fingerprint);
            self.certificates.send_replace(self.running.certificates.clone());
            let (running, directory) = (self.running.clone(), directory.to_owned());
            let writing = tokio::task::spawn_blocking(move || running.write(&directory));
            if let Ok(Err(error)) = writing.await {
                tracing::error!(%error, "programs of this user will not know the new certificate");
            }
            say(&match &front.certificate {
                Some(new) => format!(
                    "new connections get the certificate that is valid until {}",
                    new.validity.until
                ),
                None => "new connections are plain HTTP".to_owned(),
            });
        }
        self.server.use_front(front);
    }

    async fn put_into_force(&self, new: Arc<InForce>, say: &Say) -> bool {
        self.current.replace(Arc::clone(&new));
        self.counting.telemetry.exporter.use_config(&new.config);
        // Sessions resolve their agents again, which may read the session index.
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
            stamp: None,
        };
        self.reloads.set(state);
        // A retry that changed nothing is none of the owner's business.
        if problem.is_none() || before.problem != problem {
            report(&channels, &needs_restart, &before, say);
        }
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
fn read(before: &InForce) -> Result<(InForce, GatewayToken, Front), GatewayError> {
    let home =
        Home::find()?.with_stores(before.home.stores().clone()).with_servers_of(&before.home);
    let loaded = load_checked(&home.environment).map_err(AgentError::from)?;
    if !loaded.found && before.found {
        let file = loaded.path.display();
        return Err(GatewayError::Unusable(format!(
            "{file} is gone; put it back, or restart the gateway to use the defaults"
        )));
    }
    let token = GatewayToken::find_or_create(&loaded.config, &gateway_directory(&home))?;
    let front = Front::read(&home, &loaded.config)?;
    Ok((InForce { home, config: loaded.config, found: loaded.found }, token, front))
}

/// The keys whose values have changed since the start, and which only a restart changes.
fn needs_restart(first: &InForce, now: &InForce) -> Vec<&'static str> {
    let mut keys = Vec::new();
    let (before, after) =
        (gateway_address(&first.home, &first.config), gateway_address(&now.home, &now.config));
    if before.port() != after.port() {
        keys.push("gateway.port");
    }
    if before.ip() != after.ip() {
        keys.push("gateway.bind");
    }
    let store = |of: &InForce| {
        of.config.store_address(&of.home.environment).map(|it| it.expose_secret().to_owned())
    };
    if store(first) != store(now) {
        keys.push("gateway.store");
    }
    let blobs =
        |of: &InForce| of.config.gateway.blobs.as_ref().map(|it| it.expose_secret().to_owned());
    if blobs(first) != blobs(now) {
        keys.push("gateway.blobs");
    }
    if first.config.gateway.tenant != now.config.gateway.tenant {
        keys.push("gateway.tenant");
    }
    if first.config.gateway.node != now.config.gateway.node {
        keys.push("gateway.node");
    }
    if first.config.logging != now.config.logging {
        keys.push("logging");
    }
    let options = |config: &Config| config.host.as_ref().map(|host| host.options.clone());
    if options(&first.config) != options(&now.config) {
        keys.push("host.options");
    }
    keys
}
