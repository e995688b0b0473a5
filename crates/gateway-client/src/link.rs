//! A connection to a gateway that watches a session, and comes back by itself.
//!
//! A message has an id of its own and is kept until its end is known. After a lost connection it is sent again under the
//! same id, which the gateway answers from its store, so it counts once.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{ConnectError, GatewayAddress, GatewaySocket, request_id};

/// Pauses between two attempts to connect: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Most messages that wait for the gateway.
const MOST_KEPT: usize = 100;
/// Most orders and news that wait for the other side.
const MOST_WAITING: usize = 1_024;
/// Rows of the session that are shown when it is joined.
const HISTORY_ROWS: u32 = 20;
/// Ids of the link's own requests.
const WATCH: &str = "watch";
const UNWATCH: &str = "unwatch";
const HISTORY: &str = "history";

/// What the front-end wants.
enum Order {
    /// Keep this message until it is settled, and send it.
    Send { id: String, text: String, attachments: Vec<Value> },
    /// Send a message that is kept again, for its answer.
    Again(String),
    /// The end of a message is known.
    Settled(String),
    /// Send a request, if there is a connection.
    Ask { id: String, method: &'static str, params: Value },
    /// Watch another session.
    Watch(String),
}

/// What the front-end learns.
#[derive(Debug)]
pub enum LinkNews {
    /// The session is watched: its state, and whether all events since the last one follow.
    Watched {
        /// The answer to `watch`.
        state: Value,
        /// Whether nothing was missed.
        is_resumed: bool,
    },
    /// The newest rows of the session.
    History(Vec<Value>),
    /// An event of the session.
    Event(Value),
    /// The answer to a request or a message.
    Answer {
        /// Of the request, or of the message.
        id: String,
        /// The result, or the message of the error.
        answer: Result<Value, String>,
    },
    /// The connection is lost, and is tried again.
    Lost(String),
    /// It is lost for good.
    Refused(String),
}

/// The front-end's end of the connection.
pub struct GatewayLink {
    orders: mpsc::Sender<Order>,
    /// What the gateway says.
    pub news: mpsc::Receiver<LinkNews>,
    _task: AbortOnDropHandle<()>,
}

impl GatewayLink {
    /// Takes over a connection, and watches a session.
    pub fn begin(address: GatewayAddress, socket: GatewaySocket, session: String) -> Self {
        let (orders, received) = mpsc::channel(MOST_WAITING);
        let (told, news) = mpsc::channel(MOST_WAITING);
        let other_end = OtherEnd {
            address,
            session,
            orders: received,
            news: told,
            kept: Vec::new(),
            stream: None,
            sequence: None,
            key: Value::Null,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(other_end.run(socket)));
        Self { orders, news, _task: task }
    }

    /// Sends a message, now or when the gateway is back. Gives its id, or `None` if too many wait.
    pub fn send(&self, text: &str, attachments: Vec<Value>) -> Option<String> {
        let id = request_id();
        let order = Order::Send { id: id.clone(), text: text.to_owned(), attachments };
        self.orders.try_send(order).is_ok().then_some(id)
    }

    /// Sends a request, whose answer has the id. Without a connection it is dropped.
    pub fn ask(&self, method: &'static str, params: Value) -> String {
        let id = request_id();
        // A request that is dropped has no answer, as one that the connection lost.
        let _ = self.orders.try_send(Order::Ask { id: id.clone(), method, params });
        id
    }

    /// Asks for what has become of a message that is kept: the answer has its id, and the reply if there is one.
    pub fn ask_again(&self, id: &str) {
        // Without a connection it is sent when that is back.
        let _ = self.orders.try_send(Order::Again(id.to_owned()));
    }

    /// Forgets a message whose end is known.
    pub fn settle(&self, id: &str) {
        // One that is not forgotten is sent again, which changes nothing.
        let _ = self.orders.try_send(Order::Settled(id.to_owned()));
    }

    /// Watches another session.
    pub async fn watch(&self, session: &str) {
        // The other end lives as long as this one.
        let _ = self.orders.send(Order::Watch(session.to_owned())).await;
    }
}

struct OtherEnd {
    address: GatewayAddress,
    session: String,
    orders: mpsc::Receiver<Order>,
    news: mpsc::Sender<LinkNews>,
    /// Messages whose end is not known, with their sessions, the oldest first.
    kept: Vec<(String, Value)>,
    /// The process that the numbers of events belong to.
    stream: Option<Value>,
    /// The number of the newest event.
    sequence: Option<u64>,
    /// The key of the session, once the gateway has named it: events of others are not for this front-end.
    key: Value,
}

impl OtherEnd {
    async fn run(mut self, socket: GatewaySocket) {
        let mut connected = Some(socket);
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match connected.take() {
                Some(socket) => {
                    pause = FIRST_PAUSE;
                    let Some(why) = self.serve(socket).await else { return };
                    why
                }
                None => match self.address.connect().await {
                    Ok(socket) => {
                        connected = Some(socket);
                        continue;
                    }
                    Err(ConnectError::Refused(why)) => {
                        self.tell(LinkNews::Refused(why)).await;
                        return;
                    }
                    Err(ConnectError::Unreachable(why)) => why,
                },
            };
            self.tell(LinkNews::Lost(why)).await;
            let next = tokio::time::sleep(pause);
            tokio::pin!(next);
            loop {
                tokio::select! {
                    () = &mut next => break,
                    order = self.orders.recv() => match order {
                        // What is kept is sent later; the rest is dropped.
                        Some(order) => drop(self.heed(order)),
                        None => return,
                    },
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn tell(&self, news: LinkNews) {
        // Without the front-end, the next order is the last.
        let _ = self.news.send(news).await;
    }

    /// Notes an order; gives the frames to send.
    fn heed(&mut self, order: Order) -> Vec<Value> {
        match order {
            Order::Send { id, text, attachments } => {
                let params =
                    json!({"session": self.session, "text": text, "attachments": attachments});
                let frame = request(&id, "send", &params);
                if self.kept.len() >= MOST_KEPT {
                    let answer =
                        Err(format!("{MOST_KEPT} messages wait already; send it again later"));
                    // The channel is full only while the front-end does not read, which is then behind anyway.
                    let _ = self.news.try_send(LinkNews::Answer { id, answer });
                    return Vec::new();
                }
                self.kept.push((id, frame.clone()));
                vec![frame]
            }
            Order::Again(id) => {
                let again = self.kept.iter().filter(|(kept, _)| *kept == id);
                again.map(|(_, frame)| frame.clone()).collect()
            }
            Order::Settled(id) => {
                self.kept.retain(|(kept, _)| *kept != id);
                Vec::new()
            }
            Order::Ask { id, method, params } => vec![request(&id, method, &params)],
            Order::Watch(session) => {
                let before = request(UNWATCH, "unwatch", &json!({"session": self.session}));
                (self.session, self.sequence, self.key) = (session, None, Value::Null);
                vec![before, self.watch()]
            }
        }
    }

    fn watch(&self) -> Value {
        let mut params = json!({"session": self.session});
        if let (Some(stream), Some(sequence)) = (&self.stream, self.sequence) {
            params["stream"] = stream.clone();
            params["after"] = json!(sequence);
        }
        request(WATCH, "watch", &params)
    }

    /// Passes frames on until the connection is lost; says why. `None` if the front-end has ended.
    async fn serve(&mut self, mut socket: GatewaySocket) -> Option<String> {
        let lost = || Some("the connection to the gateway is lost".to_owned());
        let kept: Vec<Value> = self.kept.iter().map(|(_, frame)| frame.clone()).collect();
        for frame in std::iter::once(self.watch()).chain(kept) {
            if !socket.send(&frame).await {
                return lost();
            }
        }
        loop {
            let frames = tokio::select! {
                frame = socket.receive() => {
                    let Some(frame) = frame else { return lost() };
                    self.read(frame).await.into_iter().collect()
                }
                order = self.orders.recv() => self.heed(order?),
            };
            for frame in frames {
                if !socket.send(&frame).await {
                    return lost();
                }
            }
        }
    }

    /// Reads a frame; gives what is to be sent because of it.
    async fn read(&mut self, mut frame: Value) -> Option<Value> {
        let history = || {
            let params = json!({"session": self.session, "limit": HISTORY_ROWS});
            Some(request(HISTORY, "history", &params))
        };
        let kind = frame["type"].as_str().unwrap_or_default().to_owned();
        match (kind.as_str(), frame["id"].as_str().unwrap_or_default()) {
            ("event" | "gap", _) if frame["session"] != self.key => None,
            ("event", _) => {
                self.sequence = frame["sequence"].as_u64();
                self.tell(LinkNews::Event(frame["event"].take())).await;
                None
            }
            ("gap", _) => {
                // What goes on is in the answer, and the rest in the history.
                self.sequence = None;
                Some(self.watch())
            }
            ("response", WATCH) if frame["ok"] == true => {
                let state = frame["result"].take();
                self.key = state["session"].clone();
                self.stream = Some(state["stream"].clone());
                self.sequence = state["sequence"].as_u64();
                let is_resumed = state["resumed"] == true;
                let next = if is_resumed { None } else { history() };
                self.tell(LinkNews::Watched { state, is_resumed }).await;
                next
            }
            ("response", HISTORY) if frame["ok"] == true => {
                let rows = frame["result"]["messages"].as_array().cloned().unwrap_or_default();
                self.tell(LinkNews::History(rows)).await;
                None
            }
            ("response", UNWATCH) => None,
            ("response", id) => {
                let id = id.to_owned();
                let answer = match frame["ok"] == true {
                    true => Ok(frame["result"].take()),
                    false => {
                        Err(frame["error"]["message"].as_str().unwrap_or("it failed").to_owned())
                    }
                };
                self.tell(LinkNews::Answer { id, answer }).await;
                None
            }
            _ => None,
        }
    }
}

fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({"type": "request", "id": id, "method": method, "params": params})
}
