//! Sends spans to the receiver that the config names.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_channels::http::{Client, Failure, client, exchange};
use myclaw_config::{Config, ExposeSecret as _, TelemetryConfig};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Most spans that wait; further ones replace the oldest.
const MOST_WAITING: usize = 2_048;
/// Most spans of a request.
const MOST_AT_ONCE: usize = 512;
/// Pause between two requests, in which spans gather.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Most time that a stop of the gateway gives the last spans.
const AT_STOP: Duration = Duration::from_secs(2);
/// Most bytes of an answer.
const MOST_ANSWER: usize = 64 * 1024;

/// What became of a request.
enum Sent {
    Taken,
    /// The receiver cannot take anything now.
    Later(String),
    /// It will never take this.
    Refused(String),
}

/// Where spans go.
struct Receiver {
    config: TelemetryConfig,
    /// Made for the first request. It keeps the connection.
    client: OnceLock<Result<Client, String>>,
}

/// Spans that wait to be sent.
pub(crate) struct Exporter {
    /// `None` if the config names none.
    receiver: RwLock<Option<Arc<Receiver>>>,
    waiting: Mutex<VecDeque<Value>>,
    /// Held while a request is on its way, so that the end of the process waits for what it may bring back.
    sending: tokio::sync::Mutex<()>,
    wake: Notify,
    dropped: AtomicU64,
    /// Whether the newest failure was reported, so that a receiver that is away is reported once.
    is_reported: AtomicBool,
}

impl Exporter {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            receiver: RwLock::new(receiver_of(config)),
            waiting: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            dropped: AtomicU64::new(0),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Sends to the receiver of another config from now on.
    pub(crate) fn use_config(&self, config: &Config) {
        *self.receiver.write() = receiver_of(config);
    }

    fn receiver(&self) -> Option<Arc<Receiver>> {
        self.receiver.read().clone()
    }

    /// Whether the config names a receiver.
    pub(super) fn is_on(&self) -> bool {
        self.receiver.read().is_some()
    }

    /// Spans that were never sent, because the receiver did not take them in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn push(&self, spans: impl Iterator<Item = Value>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.extend(spans);
        let has_new = waiting.len() > before;
        while waiting.len() > MOST_WAITING {
            waiting.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        drop(waiting);
        if has_new {
            self.wake.notify_one();
        }
    }

    /// Sends what waits, as long as the process runs.
    pub(crate) async fn run(&self) {
        loop {
            self.wake.notified().await;
            tokio::time::sleep(PAUSE).await;
            if !self.send_waiting().await {
                // Without a new span, too, it is tried again after the pause.
                self.wake.notify_one();
            }
        }
    }

    /// Sends what is left when the gateway stops.
    pub(crate) async fn close(&self) {
        if self.is_on() {
            let _ = tokio::time::timeout(AT_STOP, self.send_waiting()).await;
        }
    }

    /// Whether nothing is left that could be sent later.
    async fn send_waiting(&self) -> bool {
        let _sending = self.sending.lock().await;
        loop {
            let Some(receiver) = self.receiver() else {
                self.waiting.lock().clear();
                return true;
            };
            let spans: Vec<Value> = {
                let mut waiting = self.waiting.lock();
                let count = waiting.len().min(MOST_AT_ONCE);
                waiting.drain(..count).collect()
            };
            if spans.is_empty() {
                return true;
            }
            match receiver.send(&spans).await {
                Sent::Taken => self.is_reported.store(false, Ordering::Relaxed),
                Sent::Later(reason) => {
                    self.report(&receiver.config, &reason);
                    let mut waiting = self.waiting.lock();
                    let room = MOST_WAITING.saturating_sub(waiting.len());
                    self.dropped
                        .fetch_add(spans.len().saturating_sub(room) as u64, Ordering::Relaxed);
                    for span in spans.into_iter().rev().take(room) {
                        waiting.push_front(span);
                    }
                    return false;
                }
                Sent::Refused(reason) => {
                    self.report(&receiver.config, &reason);
                    self.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
                }
            }
        }
    }

    fn report(&self, config: &TelemetryConfig, reason: &str) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let endpoint = &config.endpoint;
            tracing::warn!(endpoint, reason, "the receiver of gateway.telemetry takes no traces");
        }
    }
}

/// Nanoseconds since the Unix epoch.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn receiver_of(config: &Config) -> Option<Arc<Receiver>> {
    let config = config.gateway.telemetry.clone()?;
    Some(Arc::new(Receiver { config, client: OnceLock::new() }))
}

impl Receiver {
    /// One request. Which statuses are worth another try is decided by the protocol: 429, 502, 503 and 504.
    async fn send(&self, spans: &[Value]) -> Sent {
        let config = &self.config;
        let endpoint = config.endpoint.trim_end_matches('/');
        let name = json!({"key": "service.name", "value": {"stringValue": config.service_name}});
        let version =
            json!({"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}});
        let scope = json!({"name": "myclaw", "version": env!("CARGO_PKG_VERSION")});
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": [name, version]},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]});
        let client = match self.client.get_or_init(|| client(endpoint)) {
            Ok(client) => client,
            Err(reason) => return Sent::Refused(reason.clone()),
        };
        let mut request = client.post(format!("{endpoint}/v1/traces"));
        for (name, value) in &config.headers {
            request = request.header(name, value.expose_secret());
        }
        request = request.header("content-type", "application/json").body(body.to_string());
        match exchange(request, MOST_ANSWER, LIMIT).await {
            Ok(answer) if (200..300).contains(&answer.status) => Sent::Taken,
            Ok(answer) => {
                let reason = format!("status {}", answer.status);
                match answer.status {
                    429 | 502 | 503 | 504 => Sent::Later(reason),
                    _ => Sent::Refused(reason),
                }
            }
            Err(Failure::NotSent(reason) | Failure::Unknown(reason)) => Sent::Later(reason),
            Err(Failure::TooLong(_)) => Sent::Taken,
        }
    }
}
