//! Notifications for browsers that are closed (web push): a call needs an approval, or a turn of the page has ended.
//!
//! A browser gives an address at its vendor's push service and two keys. The gateway encrypts each notification for that
//! browser, so the service sees when something is sent and how long it is, and nothing else. Keys never leave the gateway.
//!
//! **What may fail:** all of it. A notification is sent once, and nothing waits for it: the page has everything.

mod seal;
mod services;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_channels::http;
use myclaw_delivery::current::Current;
use myclaw_delivery::front::Front;
use myclaw_delivery::ledger::{Ledger, now_ms};
use myclaw_delivery::route::WEB;
use myclaw_delivery::rows::{Incoming, MessageId, MessageState};
use myclaw_engine::RunEvent;
use myclaw_files::variables::PUSH_SERVICE;
use myclaw_files::{hex, shortened};
use myclaw_store::{Change, Place, Records, Stored};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::seal::{BrowserKeys, MOST_TEXT, SenderKey};
use self::services::Endpoint;
use crate::GatewayError;
use crate::devices::{Devices, Login};
use crate::hub::Hub;

const SUBSCRIPTIONS: Records<Subscription> = Records::new("push");
/// Queue of the records, by the time at which they came.
const QUEUE: &str = "push";
const SENDER: Records<Sender> = Records::new("push-sender");
/// There is one.
const ONLY: &str = "only";
/// Most browsers.
const MOST_SUBSCRIPTIONS: usize = 50;
/// Most notifications that wait for the push services. What comes while there are as many is not sent.
const MOST_WAITING: usize = 100;
/// How long a service keeps a notification for a browser that is away, in seconds.
const KEPT_SECONDS: u32 = 24 * 60 * 60;
/// Time for a service to take one.
const SEND_TIME: Duration = Duration::from_secs(20);
/// Most bytes of its answer that are read.
const MOST_ANSWER: usize = 16 * 1024;
/// Longest line of a notification, in characters.
const MOST_LINE: usize = 200;
/// Longest name, in characters.
const MAX_NAME: usize = 64;

/// A browser that wants notifications, as the store keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    /// The address at the push service. Whoever knows it can write there, so it leaves for that service only.
    endpoint: String,
    p256dh: String,
    auth: String,
    asks: bool,
    ends: bool,
    /// The device that asked for it; `None` for the gateway's own token.
    device: Option<String>,
    name: String,
    created_at: u64,
}

/// Who this gateway is for push services.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sender {
    /// The key as PKCS #8, in base64.
    key: String,
}

/// What a browser asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Wanted {
    endpoint: String,
    p256dh: String,
    auth: String,
    asks: bool,
    ends: bool,
    #[serde(default)]
    name: String,
}

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Asks,
    Ends,
    Test,
}

/// A notification before it is encrypted.
#[derive(Debug)]
struct Notification {
    occasion: Occasion,
    session: String,
    title: &'static str,
    body: String,
    /// A later one with the same tag replaces it.
    tag: String,
}

/// The browsers, and what is to be sent to them.
pub(crate) struct Push {
    ledger: Ledger,
    devices: Arc<Devices>,
    current: Arc<Current>,
    sender: mpsc::Sender<Notification>,
    waiting: Mutex<Option<mpsc::Receiver<Notification>>>,
    /// What was wrong with the newest notification of a browser, by id.
    problems: Mutex<HashMap<String, String>>,
}

impl Push {
    pub(crate) fn new(ledger: Ledger, devices: Arc<Devices>, current: Arc<Current>) -> Arc<Self> {
        let (sender, waiting) = mpsc::channel(MOST_WAITING);
        let (waiting, problems) = (Mutex::new(Some(waiting)), Mutex::default());
        Arc::new(Self { ledger, devices, current, sender, waiting, problems })
    }

    /// Sends notifications until the gateway stops.
    pub(crate) async fn follow(self: Arc<Self>) {
        let Some(mut waiting) = self.waiting.lock().take() else { return };
        while let Some(notification) = waiting.recv().await {
            self.send_all(&notification).await;
        }
    }

    fn notify(&self, notification: Notification) {
        // One that finds no place is not sent.
        let _ = self.sender.try_send(notification);
    }

    async fn send_all(&self, notification: &Notification) {
        let Ok(rows) = SUBSCRIPTIONS.all(self.ledger.store(), QUEUE).await else { return };
        let wants = |row: &Subscription| match notification.occasion {
            Occasion::Asks => row.asks,
            Occasion::Ends => row.ends,
            Occasion::Test => false,
        };
        for Stored { id, row, .. } in rows {
            if wants(&row) {
                // What went wrong is shown with the browser.
                let _ = self.send(&id, &row, notification).await;
            }
        }
    }

    /// Sends a notification to one browser.
    async fn send(
        &self,
        id: &str,
        row: &Subscription,
        notification: &Notification,
    ) -> Result<(), GatewayError> {
        if !self.is_of_somebody(row) {
            return self.remove(id).await;
        }
        match self.deliver(row, notification).await {
            Ok(200..=299) => {
                self.problems.lock().remove(id);
                Ok(())
            }
            // The browser has ended it.
            Ok(404 | 410) => {
                self.remove(id).await?;
                Err(GatewayError::NotFound(
                    "the browser takes no notifications any more; switch them on again there"
                        .to_owned(),
                ))
            }
            Ok(status) => self.failed(id, format!("the push service answered {status}")),
            Err(why) => self.failed(id, why),
        }
    }

    fn failed(&self, id: &str, why: String) -> Result<(), GatewayError> {
        let message = format!("not sent: {why}");
        self.problems.lock().insert(id.to_owned(), why);
        Err(GatewayError::Unusable(message))
    }

    /// Whether the device that asked for it still has access.
    fn is_of_somebody(&self, row: &Subscription) -> bool {
        row.device.as_ref().is_none_or(|device| {
            self.devices.list().iter().any(|known| known.id == *device && !known.is_pending())
        })
    }

    /// The status that the push service answers with.
    async fn deliver(&self, row: &Subscription, what: &Notification) -> Result<u16, String> {
        let endpoint = self.endpoint(&row.endpoint)?;
        let keys = BrowserKeys::parse(&row.p256dh, &row.auth).ok_or("its keys cannot be used")?;
        let text = json!({
            "title": what.title, "body": what.body, "tag": what.tag, "session": what.session,
        });
        let text = text.to_string();
        if text.len() > MOST_TEXT {
            return Err("it is too long".to_owned());
        }
        let failed = |_| "it cannot be encrypted".to_owned();
        let body = keys.seal(text.as_bytes()).map_err(failed)?;
        let sender = self.sender_key().await.map_err(|error| error.to_string())?;
        let authorization =
            sender.authorization(&endpoint.origin, now_ms() / 1_000).map_err(failed)?;
        let urgency = if what.occasion == Occasion::Ends { "normal" } else { "high" };
        let request = http::client(&row.endpoint)?
            .post(&row.endpoint)
            .header("authorization", authorization)
            .header("content-encoding", "aes128gcm")
            .header("content-type", "application/octet-stream")
            .header("ttl", KEPT_SECONDS)
            .header("urgency", urgency)
            .body(body);
        match http::exchange(request, MOST_ANSWER, SEND_TIME).await {
            Ok(answer) => Ok(answer.status),
            Err(http::Failure::NotSent(why) | http::Failure::Unknown(why)) => {
                Err(format!("the push service gave no answer: {why}"))
            }
            Err(http::Failure::TooLong(_)) => Err("the push service answered too much".to_owned()),
        }
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, String> {
        let current = self.current.get();
        Endpoint::parse(address, current.home.environment.get(PUSH_SERVICE))
    }

    /// The key of this gateway, and of all others on the store. It is made when it is first asked for.
    async fn sender_key(&self) -> Result<SenderKey, GatewayError> {
        let unusable =
            || GatewayError::Internal("the key for push services cannot be used".to_owned());
        let store = self.ledger.store();
        let kept = match SENDER.get(store, ONLY).await? {
            Some(known) => known.row.key,
            None => {
                let mut kept = STANDARD.encode(SenderKey::make().map_err(|_| unusable())?);
                SENDER
                    .update(store, ONLY, |known| match known {
                        // Another gateway was first.
                        Some(known) => {
                            kept = known.key;
                            Change::Keep
                        }
                        None => Change::put(Sender { key: kept.clone() }, None::<Place>),
                    })
                    .await?;
                kept
            }
        };
        let pkcs8 = STANDARD.decode(kept).map_err(|_| unusable())?;
        SenderKey::read(&pkcs8).ok_or_else(unusable)
    }

    /// The public key for browsers, and the browsers that get notifications, without their addresses.
    pub(crate) async fn describe(&self) -> Result<Value, GatewayError> {
        let rows = SUBSCRIPTIONS.all(self.ledger.store(), QUEUE).await?;
        let problems = self.problems.lock().clone();
        let shown = rows.iter().filter(|stored| self.is_of_somebody(&stored.row)).map(|stored| {
            let Subscription { asks, ends, name, created_at, .. } = &stored.row;
            json!({
                "id": stored.id, "name": name, "asks": asks, "ends": ends, "createdAt": created_at,
                "problem": problems.get(&stored.id),
            })
        });
        let shown: Vec<Value> = shown.collect();
        Ok(json!({"key": self.sender_key().await?.public(), "browsers": shown}))
    }

    /// Adds a browser, or changes what it wants. Gives its id.
    pub(crate) async fn add(&self, login: &Login, wanted: Wanted) -> Result<Value, GatewayError> {
        let Wanted { endpoint, p256dh, auth, asks, ends, name } = wanted;
        self.endpoint(&endpoint).map_err(GatewayError::Unusable)?;
        if BrowserKeys::parse(&p256dh, &auth).is_none() {
            let why = "p256dh and auth are the keys of the browser's subscription, in base64url";
            return Err(GatewayError::Unusable(why.to_owned()));
        }
        if !asks && !ends {
            let why = "choose what it is notified of: asks, ends, or both";
            return Err(GatewayError::Unusable(why.to_owned()));
        }
        let rows = SUBSCRIPTIONS.all(self.ledger.store(), QUEUE).await?;
        let id = id_of(&endpoint);
        if rows.len() >= MOST_SUBSCRIPTIONS && !rows.iter().any(|stored| stored.id == id) {
            return Err(GatewayError::Unusable(format!(
                "{MOST_SUBSCRIPTIONS} browsers get notifications; switch them off in some"
            )));
        }
        let name: String =
            name.trim().chars().filter(|char| !char.is_control()).take(MAX_NAME).collect();
        let name = if name.is_empty() { "browser".to_owned() } else { name };
        let device = login.device.as_ref().map(|(id, _)| id.clone());
        let created_at = now_ms();
        let row = Subscription { endpoint, p256dh, auth, asks, ends, device, name, created_at };
        let place = Place::new(QUEUE, created_at);
        let put = |_| Change::put(row.clone(), Some(place.clone()));
        SUBSCRIPTIONS.update(self.ledger.store(), &id, put).await?;
        self.problems.lock().remove(&id);
        Ok(json!({"id": id}))
    }

    /// Sends a notification to one browser, to see whether it arrives.
    pub(crate) async fn test(&self, id: &str) -> Result<Value, GatewayError> {
        let row = self.named(id).await?;
        let notification = Notification {
            occasion: Occasion::Test,
            session: "main".to_owned(),
            title: "MyClaw",
            body: "Notifications arrive in this browser.".to_owned(),
            tag: "test".to_owned(),
        };
        self.send(id, &row, &notification).await?;
        Ok(json!({"sent": true}))
    }

    pub(crate) async fn end(&self, id: &str) -> Result<Value, GatewayError> {
        self.named(id).await?;
        self.remove(id).await?;
        Ok(json!({"removed": true}))
    }

    async fn named(&self, id: &str) -> Result<Subscription, GatewayError> {
        let found = SUBSCRIPTIONS.get(self.ledger.store(), id).await?;
        found.map(|stored| stored.row).ok_or_else(|| {
            GatewayError::NotFound(
                "no such browser gets notifications; read the page again".to_owned(),
            )
        })
    }

    async fn remove(&self, id: &str) -> Result<(), GatewayError> {
        SUBSCRIPTIONS.delete(self.ledger.store(), id).await?;
        self.problems.lock().remove(id);
        Ok(())
    }
}

fn id_of(endpoint: &str) -> String {
    hex(&digest(&SHA256, endpoint.as_bytes()).as_ref()[..16])
}

/// One line for people.
fn line(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&text, MOST_LINE).into_owned()
}

/// The hub, which also has browsers notified.
pub(crate) struct Notifying {
    pub(crate) hub: Arc<Hub>,
    pub(crate) push: Arc<Push>,
}

impl Front for Notifying {
    fn publish(&self, session: &str, event: &Value) {
        Front::publish(&*self.hub, session, event);
        // A sub-agent's question is also shown in the session above it. The owner is told once.
        if event["type"] == "approval" && event["session"].as_str().is_none_or(|own| own == session)
        {
            let tool = event["toolName"].as_str().unwrap_or("a call");
            self.push.notify(Notification {
                occasion: Occasion::Asks,
                session: session.to_owned(),
                title: "MyClaw asks",
                body: line(&format!("{session}: may {tool} run?")),
                tag: event["id"].as_str().unwrap_or(session).to_owned(),
            });
        }
    }

    fn publish_run(&self, session: &str, event: &RunEvent) {
        self.hub.publish_run(session, event);
    }

    fn accepted(&self, id: &MessageId, row: &Incoming) {
        self.hub.accepted(id, row);
    }

    fn ended(&self, id: &MessageId, row: &Incoming, state: &MessageState) {
        self.hub.ended(id, row, state);
        // What came through a channel is answered there.
        let title = match state {
            MessageState::Answered { .. } => "MyClaw has answered",
            MessageState::Reported { class, .. } if class != "aborted" => "MyClaw could not answer",
            _ => return,
        };
        if row.route.channel == WEB && row.occasion.is_none() {
            self.push.notify(Notification {
                occasion: Occasion::Ends,
                session: row.session.clone(),
                title,
                body: line(&format!("{}: {}", row.session, row.text)),
                tag: format!("ended {}", row.session),
            });
        }
    }

    fn has_waiting(&self, session: &str) -> bool {
        self.hub.has_waiting(session)
    }

    fn is_running(&self, session: &str) -> bool {
        self.hub.is_running(session)
    }
}
