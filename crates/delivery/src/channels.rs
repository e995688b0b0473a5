//! The channels that are connected, which a reload of the config adds, replaces and removes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use myclaw_channels::{Channel, Intake, State as ChannelState};
use myclaw_store::Claims;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::route::Route;
use crate::sharing::account_of;

/// How long a channel may take to end. Its task is dropped then, which closes its connections.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks at the states of the channels.
const LOOK: Duration = Duration::from_secs(1);

/// An account of a channel in the config.
pub struct ChannelSetup {
    /// The channel, such as `telegram`.
    pub channel: &'static str,
    /// The account.
    pub account: String,
    /// The channel, or why it cannot be used.
    pub made: Result<Arc<dyn Channel>, String>,
    /// The same for the same options within this process; nobody can find the secrets among them by it.
    pub fingerprint: u64,
}

/// All channels.
pub struct Channels {
    /// That of the server itself.
    own: Arc<dyn Channel>,
    state: Mutex<State>,
    /// Counts the changes, of which those are that this process gets an account.
    changed: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    /// Set when the channels begin to receive.
    receiver: Option<Receiver>,
}

/// What a channel that receives needs.
#[derive(Clone)]
struct Receiver {
    /// Where messages go.
    intake: Arc<dyn Intake>,
    /// Stops the channels.
    stop: CancellationToken,
    claims: Arc<Claims>,
    changed: Arc<watch::Sender<u64>>,
}

struct Connection {
    setup: ChannelSetup,
    /// Whether no config names it, so that none removes it.
    is_kept: bool,
    receiving: Option<Receiving>,
}

struct Receiving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What a reload did, as names of channels and accounts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChannelChanges {
    /// Those that are connected from now on.
    pub connected: Vec<String>,
    /// Those that are closed.
    pub closed: Vec<String>,
}

impl Channels {
    /// `own` is the channel of the server itself. The others do not receive yet.
    pub fn new(own: Arc<dyn Channel>, setups: Vec<ChannelSetup>) -> Arc<Self> {
        let connections = setups.into_iter().map(Connection::new).collect();
        let state = Mutex::new(State { connections, receiver: None });
        Arc::new(Self { own, state, changed: Arc::new(watch::Sender::new(0)) })
    }

    /// Adds a channel of the program that embeds the gateway, which no config names. Its messages are taken as the owner's:
    /// it decides itself who may write.
    pub fn keep(&self, channel: Arc<dyn Channel>) {
        let account = channel.account().name().to_owned();
        let setup =
            ChannelSetup { channel: channel.name(), account, made: Ok(channel), fingerprint: 0 };
        let mut state = self.state.lock();
        state.connections.push(Connection { is_kept: true, ..Connection::new(setup) });
        state.receive();
        self.changed.send_modify(|count| *count += 1);
    }

    /// Makes all channels receive, until `stop` fires: each as long as this process holds its account.
    pub fn receive(&self, intake: Arc<dyn Intake>, stop: CancellationToken, claims: Arc<Claims>) {
        let mut state = self.state.lock();
        let changed = Arc::clone(&self.changed);
        state.receiver = Some(Receiver { intake, stop, claims, changed });
        state.receive();
    }

    /// Waits until channels have changed, or this process has got an account.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Changes the channels to those of a new config. Channels that did not change keep running. To be called by
    /// one task at a time.
    pub async fn replace(&self, setups: Vec<ChannelSetup>) -> ChannelChanges {
        let mut changes = ChannelChanges::default();
        let over = {
            let mut state = self.state.lock();
            let all = std::mem::take(&mut state.connections).into_iter();
            let (kept, mut before): (Vec<_>, Vec<_>) =
                all.partition(|connection| connection.is_kept);
            state.connections = kept;
            for setup in setups {
                match before.iter().position(|connection| connection.is_for(&setup)) {
                    Some(same) => state.connections.push(before.swap_remove(same)),
                    None => {
                        changes.connected.push(setup.name());
                        state.connections.push(Connection::new(setup));
                    }
                }
            }
            before
        };
        changes.closed.extend(over.iter().map(|connection| connection.setup.name()));
        if changes == ChannelChanges::default() {
            return changes;
        }
        // What is sent from here on goes through the new ones.
        self.changed.send_modify(|count| *count += 1);
        for connection in over {
            connection.end().await;
        }
        // Only now: two receivers of one bot take each other's messages, and one path has one socket.
        self.state.lock().receive();
        changes
    }

    /// An account of a channel, without that of the server.
    pub fn find(&self, name: &str, account: &str) -> Option<Arc<dyn Channel>> {
        let state = self.state.lock();
        let mut made = state.connections.iter().filter_map(|connection| connection.channel());
        made.find(|channel| channel.name() == name && channel.account().name() == account).cloned()
    }

    /// Whether one of them is such a channel.
    pub fn any(&self, is_such: impl Fn(&Arc<dyn Channel>) -> bool) -> bool {
        self.all().iter().any(is_such)
    }

    /// All of them, that of the server first.
    pub fn all(&self) -> Vec<Arc<dyn Channel>> {
        let state = self.state.lock();
        let connected = state.connections.iter().filter_map(Connection::channel);
        std::iter::once(&self.own).chain(connected).cloned().collect()
    }

    /// Whether the server itself serves a route. Its clients find a part in the store. Devices are accounts of it.
    pub(crate) fn is_own(&self, route: &Route) -> bool {
        self.own.name() == route.channel
    }

    /// The channel of a route.
    pub fn of(&self, route: &Route) -> Option<Arc<dyn Channel>> {
        if self.is_own(route) {
            return Some(Arc::clone(&self.own));
        }
        self.find(&route.channel, &route.account)
    }

    /// Waits for `time`, or until another channel, or none, serves the route of `channel`.
    pub async fn pause(&self, route: &Route, channel: &Arc<dyn Channel>, time: Duration) {
        let mut changes = self.changed.subscribe();
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        while self.of(route).is_some_and(|now| Arc::ptr_eq(&now, channel)) {
            tokio::select! {
                () = &mut over => return,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// The channels with their states, for clients.
    pub fn describe(&self) -> Vec<Value> {
        let state = self.state.lock();
        let describe = |Connection { setup, .. }: &Connection| {
            let state = setup.state();
            json!({
                "channel": setup.channel, "account": setup.account, "state": state.as_str(),
                "reason": setup.reason(&state),
            })
        };
        state.connections.iter().map(describe).collect()
    }

    /// The channel, the account and the name of the state of each.
    pub(crate) fn states(&self) -> Vec<(String, String, &'static str)> {
        let state = self.state.lock();
        let of = |Connection { setup, .. }: &Connection| {
            (setup.channel.to_owned(), setup.account.clone(), setup.state().as_str())
        };
        state.connections.iter().map(of).collect()
    }

    /// Says which channel does not work, and when it works again, each once, until `stop` fires.
    pub async fn report(
        self: Arc<Self>,
        say: Arc<dyn Fn(&str) + Send + Sync>,
        stop: CancellationToken,
    ) {
        let mut told: HashSet<String> = HashSet::new();
        while stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
            let states: Vec<(String, ChannelState)> = {
                let state = self.state.lock();
                let named = |Connection { setup, .. }: &Connection| (setup.name(), setup.state());
                state.connections.iter().map(named).collect()
            };
            told.retain(|name| states.iter().any(|(known, _)| known == name));
            for (name, state) in states {
                match state {
                    ChannelState::Starting => {}
                    ChannelState::Working => {
                        if told.remove(&name) {
                            say(&format!("{name} works again"));
                        }
                    }
                    ChannelState::Waiting(reason) => {
                        if told.insert(name.clone()) {
                            say(&format!("{name} does not work; trying again: {reason}"));
                        }
                    }
                    ChannelState::Stopped(reason) => {
                        if told.insert(name.clone()) {
                            say(&format!("{name} does not work: {reason}"));
                        }
                    }
                }
            }
        }
    }
}

impl State {
    /// Makes the channels receive that do not yet.
    fn receive(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        for connection in &mut self.connections {
            let Ok(channel) = &connection.setup.made else { continue };
            connection.receiving.get_or_insert_with(|| {
                let stop = receiver.stop.child_token();
                let receiver = Receiver { stop: stop.clone(), ..receiver.clone() };
                Receiving { task: tokio::spawn(receiver.run(Arc::clone(channel))), stop }
            });
        }
    }
}

impl Receiver {
    /// Makes a channel receive whenever this process holds its account.
    async fn run(self, channel: Arc<dyn Channel>) {
        let account = account_of(channel.name(), channel.account().name());
        while !self.stop.is_cancelled() {
            let owning = self.claims.own(&account);
            let held = match self.stop.run_until_cancelled(owning).await {
                Some(Ok(held)) => held,
                Some(Err(error)) => {
                    tracing::error!(%account, %error, "not claimed; trying again");
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                None => return,
            };
            // What is to be sent there is this process's from here on.
            self.changed.send_modify(|count| *count += 1);
            let running = Arc::clone(&channel).run(Arc::clone(&self.intake));
            let running = async {
                running.await;
                // It cannot be used. Another process would fail in the same way.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = running => {}
                () = held.lost() => {}
                () = self.stop.cancelled() => {
                    if let Err(error) = held.release().await {
                        tracing::warn!(%account, %error, "the account is held until its lease ends");
                    }
                    return;
                }
            }
            tracing::warn!(%account, "another gateway has the account");
        }
    }
}

impl Connection {
    fn new(setup: ChannelSetup) -> Self {
        if let Err(reason) = &setup.made {
            let (channel, account) = (setup.channel, &setup.account);
            tracing::error!(channel, account, %reason, "the channel cannot be used");
        }
        Self { setup, is_kept: false, receiving: None }
    }

    fn channel(&self) -> Option<&Arc<dyn Channel>> {
        self.setup.made.as_ref().ok()
    }

    fn is_for(&self, other: &ChannelSetup) -> bool {
        let ChannelSetup { channel, account, fingerprint, .. } = &self.setup;
        (*channel, account, fingerprint) == (other.channel, &other.account, &other.fingerprint)
    }

    /// Stops receiving. A message that is being taken is still stored, because that is a task of its own; its source
    /// sends it again, and it is recognised.
    async fn end(self) {
        if let Some(channel) = self.channel() {
            channel.retire();
        }
        let Some(Receiving { stop, mut task }) = self.receiving else { return };
        stop.cancel();
        if tokio::time::timeout(PATIENCE, &mut task).await.is_err() {
            task.abort();
        }
    }
}

impl ChannelSetup {
    /// For people.
    fn name(&self) -> String {
        format!("{} {}", self.channel, self.account)
    }

    /// Why it does not work, or not as it is set up.
    fn reason(&self, state: &ChannelState) -> Option<String> {
        let note = || self.made.as_ref().ok().and_then(|channel| channel.account().note());
        state
            .reason()
            .map(str::to_owned)
            .or_else(|| note().filter(|_| *state == ChannelState::Working))
    }

    fn state(&self) -> ChannelState {
        match &self.made {
            Ok(channel) => channel.account().state(),
            Err(reason) => ChannelState::Stopped(reason.clone()),
        }
    }
}
