//! The WebSocket: requests with ids, responses, and the numbered events of the sessions that a client watches.

mod gateways;
mod later;
mod line;
mod params;
mod watched;

use std::collections::HashMap;
use std::error::Error as _;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::SinkExt as _;
use myclaw_delivery::message::NewMessage;
use myclaw_delivery::questions::FullAnswer;
use myclaw_delivery::rows::Origin;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::answer::{error, message as message_object};
use super::attachments::attached;
use super::front::Caller;
use super::guard::Presented;
use super::rest::{DEFAULT_SESSION, HistoryRange};
use super::strangers::Place;
use super::{MAX_BODY, Server, route, scope};
use crate::GatewayError;
use crate::devices::Login;
use crate::hub::{LIST, Watcher, Watching};
use crate::peers::COMMAND;
use later::response;
use line::{Line, Received};
use params::{Params, missing};
use watched::{Reader, Watched};

/// Where it is asked for.
const PATH: &str = "/ws";
/// Version of the protocol. A client of another one is refused.
const PROTOCOL: u64 = 1;
/// Time for the first frame, which holds the token.
const LOGIN_TIME: Duration = Duration::from_secs(5);
/// Longest first frame, in bytes.
const LOGIN_BYTES: usize = 8 * 1024;
/// Most bytes that a client sends before it has logged in: that frame in small pieces, and pings.
const STRANGERS_BYTES: usize = 4 * LOGIN_BYTES;
const TOO_MANY: &str = "too many WebSockets are open; close one";
/// Time for a frame to leave. A client that reads nothing for so long is closed; it continues from its last number.
const SEND_TIME: Duration = Duration::from_secs(30);
/// Shortest time between two writes of events. Deltas that come meanwhile go out as one event, so a fast model costs at most
/// a hundred writes a second; nobody sees the difference.
const BREATH: Duration = Duration::from_millis(10);
/// Pause between two pings.
const PING: Duration = Duration::from_secs(30);
/// Time without any frame, also a pong, after which a client counts as gone.
const SILENCE: Duration = Duration::from_secs(90);
/// Most sessions that a client watches.
const MOST_WATCHED: usize = 64;
/// Most commands about sessions that a client waits for at a time.
const MOST_COMMANDS: usize = 8;
/// Bytes of a client's frames that are read at once. Each client has a buffer of this size; the library's own is 128 KiB.
const READ_BYTES: usize = 4 * 1024;

/// A frame of a client.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Frame {
    Auth {
        token: String,
        protocol: Option<u64>,
    },
    Request {
        id: String,
        method: String,
        #[serde(default)]
        params: Value,
    },
}

pub(super) async fn upgrade(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Extension(place): Extension<Arc<Place>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let login = match server.presented(&headers) {
        Presented::Right(login) => Some(login),
        _ => None,
    };
    if login.is_some() && server.sockets.available_permits() == 0 {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too_many", TOO_MANY);
    }
    if login.as_ref().is_some_and(|login| login.is_gateway) && !server.opens(&headers) {
        let why = "the token of a gateway opens one connection, and this one was used before";
        return error(StatusCode::UNAUTHORIZED, "unauthorized", why);
    }
    if login.is_none() {
        place.limit(STRANGERS_BYTES);
    }
    let upgrade = upgrade.max_message_size(MAX_BODY).max_frame_size(MAX_BODY);
    upgrade.read_buffer_size(READ_BYTES).on_upgrade(async move |socket| {
        let is_gateway = login.as_ref().is_some_and(|login| login.is_gateway);
        let line = Arc::new(Line::new(is_gateway));
        let client = Client {
            server,
            address: caller.address,
            socket,
            login,
            watched: HashMap::new(),
            line: Arc::downgrade(&line),
            wrote: None,
            commands: Arc::new(Semaphore::new(MOST_COMMANDS)),
        };
        Box::new(client).serve(&line, &place).await;
    })
}

/// A connected client.
struct Client {
    server: Arc<Server>,
    /// Whose failed logins are counted together.
    address: IpAddr,
    socket: WebSocket,
    /// Who it is, once it has logged in.
    login: Option<Login>,
    /// By session.
    watched: HashMap<String, Watched>,
    /// Where it is while it waits. It gets the events of watched sessions.
    line: Weak<Line>,
    /// When events were last written.
    wrote: Option<Instant>,
    /// The commands that it still waits for.
    commands: Arc<Semaphore>,
}

/// When a request is answered.
enum Answered {
    Now(Value),
    /// By a task of its own, so that the client's other requests do not wait for it.
    Later,
}

/// What a client's task waits for.
enum Happened {
    Frame(Received),
    Events,
    Ping,
    Stop,
    Gone,
}

impl Client {
    async fn serve(mut self: Box<Self>, line: &Line, place: &Place) {
        if self.login.is_none() {
            let ended = place.ended.clone();
            self.login = ended.run_until_cancelled(self.log_in(place)).await.flatten();
        }
        let Some(login) = self.login.clone() else { return };
        place.is_known();
        let Ok(_socket) = Arc::clone(&self.server.sockets).try_acquire_owned() else {
            self.close(close_code::AGAIN, TOO_MANY).await;
            return;
        };
        let hello = json!({
            "type": "hello",
            "protocol": PROTOCOL,
            "version": env!("CARGO_PKG_VERSION"),
            "stream": self.server.hub.stream(),
            "scope": login.scope,
        });
        if !self.send(Message::text(hello.to_string())).await {
            return;
        }
        let mut last_heard = Instant::now();
        let mut ping = tokio::time::interval(PING);
        // Other gateways see the end of the turns that a gateway that stops still waits for.
        let stop = match login.is_gateway {
            true => CancellationToken::new(),
            false => self.server.stop.clone(),
        };
        // Made once: to wait anew for each event would cost more than to send it.
        let (mut stopping, mut gone) = (pin!(stop.cancelled()), pin!(login.gone.cancelled()));
        let mut breath = pin!(tokio::time::sleep(BREATH));
        let mut takes_breath = false;
        loop {
            line.park(self);
            let happened = tokio::select! {
                frame = line.frame() => Happened::Frame(frame),
                () = line.wake.notified(), if !takes_breath => Happened::Events,
                () = &mut breath, if takes_breath => Happened::Events,
                _ = ping.tick() => Happened::Ping,
                () = &mut stopping => Happened::Stop,
                () = &mut gone => Happened::Gone,
            };
            // Nobody else takes it.
            let Some(client) = line.unpark() else { return };
            self = client;
            let goes_on = match happened {
                Happened::Frame(frame) => {
                    last_heard = Instant::now();
                    self.heed(frame).await
                }
                Happened::Events => {
                    let next = self.wrote.map(|wrote| wrote + BREATH);
                    takes_breath = next.is_some_and(|next| next > Instant::now());
                    match next.filter(|_| takes_breath) {
                        Some(next) => {
                            breath.as_mut().reset(next.into());
                            true
                        }
                        None => self.send_events().await,
                    }
                }
                Happened::Ping => {
                    last_heard.elapsed() < SILENCE
                        && self.send(Message::Ping(Vec::new().into())).await
                }
                Happened::Stop => self.close(close_code::AWAY, "the gateway stops").await,
                Happened::Gone => {
                    let why = "the token was replaced or revoked; log in again";
                    self.close(close_code::POLICY, why).await
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Does what a frame asks for. False if the connection is over.
    async fn heed(&mut self, frame: Received) -> bool {
        match frame {
            Some(Ok(Message::Text(text))) => self.answer(&text).await,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
            Some(Ok(Message::Binary(_))) => {
                self.close(close_code::UNSUPPORTED, "frames are JSON texts").await
            }
            Some(Ok(Message::Close(_))) => {
                // The library has prepared the answer.
                let _ = tokio::time::timeout(SEND_TIME, self.socket.flush()).await;
                false
            }
            None => false,
            Some(Err(error)) => self.fail(&error).await,
        }
    }

    /// Reads the first frame. `None` if the client is not let in.
    async fn log_in(&mut self, place: &Place) -> Option<Login> {
        let first = tokio::time::timeout(LOGIN_TIME, self.socket.recv()).await;
        let frame = match &first {
            Ok(Some(Ok(Message::Text(text)))) if text.len() <= LOGIN_BYTES => {
                serde_json::from_str::<Frame>(text).ok()
            }
            Ok(Some(Err(error))) if !place.is_used_up() => {
                self.fail(error).await;
                return None;
            }
            _ => None,
        };
        let Some(Frame::Auth { token, protocol }) = frame else {
            let why = "the first frame must be {\"type\":\"auth\",\"token\":…}";
            self.close(close_code::POLICY, why).await;
            return None;
        };
        let why = match self.server.who(&token) {
            Presented::Right(login) if protocol.is_none_or(|protocol| protocol == PROTOCOL) => {
                match scope::check(login.scope, &Method::GET, Some(PATH)) {
                    Ok(()) => return Some(login),
                    Err(_) => "the scope of this device does not allow that",
                }
            }
            Presented::Right(_) => {
                let why = "this gateway speaks protocol 1; update the older of the two";
                self.close(close_code::PROTOCOL, why).await;
                return None;
            }
            Presented::Pending => "the device waits for the owner's approval",
            Presented::Wrong | Presented::Nothing => {
                self.server.failures.note(self.address);
                "the token is wrong"
            }
        };
        self.close(close_code::POLICY, why).await;
        None
    }

    /// Ends a connection that cannot be read, with the code for the reason if the client may still read it; always false.
    async fn fail(&mut self, error: &axum::Error) -> bool {
        use tungstenite::Error;
        match error.source().and_then(|source| source.downcast_ref()) {
            Some(Error::Capacity(_)) => {
                self.close(close_code::SIZE, "the frame is too large").await
            }
            Some(Error::Utf8(_)) => self.close(close_code::INVALID, "the text is no UTF-8").await,
            Some(Error::Protocol(_)) => {
                self.close(close_code::PROTOCOL, "the frame breaks the WebSocket protocol").await
            }
            _ => false,
        }
    }

    /// Ends the connection; always false.
    async fn close(&mut self, code: u16, reason: &'static str) -> bool {
        let frame = CloseFrame { code, reason: reason.into() };
        self.send(Message::Close(Some(frame))).await;
        false
    }

    /// False if the client is gone.
    async fn send(&mut self, message: Message) -> bool {
        matches!(tokio::time::timeout(SEND_TIME, self.socket.send(message)).await, Ok(Ok(())))
    }

    /// Sends late answers, and what is new in the watched sessions, with one write if there is little. Events that come while the client
    /// takes nothing wait in the hub. False if the client is gone.
    async fn send_events(&mut self) -> bool {
        let late = self.line.upgrade().map(|line| line.take_late()).unwrap_or_default();
        for response in late {
            if !self.send(Message::text(response)).await {
                return false;
            }
        }
        let hub = &self.server.hub;
        for (session, watched) in &mut self.watched {
            if watched.newest.load(Ordering::Acquire) == watched.sent {
                continue;
            }
            for frame in watched.frames(session, hub) {
                let fed = self.socket.feed(Message::text(frame));
                if !matches!(tokio::time::timeout(SEND_TIME, fed).await, Ok(Ok(()))) {
                    return false;
                }
            }
        }
        let sent = tokio::time::timeout(SEND_TIME, self.socket.flush()).await;
        self.wrote = Some(Instant::now());
        matches!(sent, Ok(Ok(())))
    }

    async fn answer(&mut self, text: &str) -> bool {
        let response = match serde_json::from_str::<Frame>(text) {
            Ok(Frame::Request { id, method, params }) => {
                match self.carry_out(&id, &method, params).await {
                    Ok(Answered::Later) => return true,
                    Ok(Answered::Now(result)) => response(&id, Ok(result)),
                    Err(error) => response(&id, Err(error)),
                }
            }
            Ok(Frame::Auth { .. }) => return true,
            Err(error) => {
                let message =
                    format!("not a request: {error}; docs/operate/gateway.md has the protocol");
                let error = json!({"class": "parse", "message": message});
                json!({"type": "response", "id": null, "ok": false, "error": error})
            }
        };
        self.send(Message::text(response.to_string())).await
    }

    async fn carry_out(
        &mut self,
        id: &str,
        method: &str,
        params: Value,
    ) -> Result<Answered, GatewayError> {
        let Some(login) = self.login.clone() else { return Err(GatewayError::Stopping) };
        if login.is_gateway {
            if method == COMMAND {
                return self.obey_for_gateway(id, params).map(|()| Answered::Later);
            }
            return self.serve_gateway(method, params).await.map(Answered::Now);
        }
        scope::check_method(login.scope, method)?;
        let params = if params.is_null() { json!({}) } else { params };
        let params: Params = serde_json::from_value(params)
            .map_err(|error| GatewayError::Unusable(format!("{method}: {error}")))?;
        let session = params.session.clone().unwrap_or_else(|| DEFAULT_SESSION.to_owned());
        let server = Arc::clone(&self.server);
        let delivery = &server.delivery;
        if method == COMMAND {
            return self.obey_later(id, params).map(|()| Answered::Later);
        }
        let answer = match method {
            "send" => {
                let (route, text) = (route(&login), params.text.unwrap_or_default());
                let (images, files) = attached(params.attachments).await?;
                // The id of the request is that of the message: a repeated request is not a second message.
                let source_id = id.to_owned();
                let new = NewMessage { route, source_id, session, text, images, asked: None };
                let accepted = delivery.accept_from(new, Origin::default(), files).await?;
                message_object(delivery, &accepted.id, &accepted.row).await
            }
            "abort" => Ok(json!({"aborted": delivery.abort(&session).await?})),
            "history" => {
                let range = HistoryRange { limit: params.limit, before: params.before };
                server.history(&session, range).await
            }
            "watch" => self.watch(&session, &params).await,
            "watch_list" => {
                self.watch_list();
                Ok(json!({"watched": true}))
            }
            "unwatch" => {
                let (key, _) = delivery.session(&session)?;
                let watched = self.watched.remove(key.as_str()).is_some();
                if watched {
                    self.server.hub.unwatch(key.as_str(), &self.watcher());
                }
                Ok(json!({"watched": watched}))
            }
            "approve" => {
                let id = params.id.ok_or_else(|| missing(method, "id"))?;
                let answer = params.answer.ok_or_else(|| missing(method, "answer"))?;
                let (scope, reason, words) = (params.scope, params.reason, params.words);
                let given = FullAnswer { answer, scope, reason, words };
                server.approve(&id, given, &login).await
            }
            _ => server.answer_about(method, params).await,
        };
        answer.map(Answered::Now)
    }

    /// Begins to send the events of a session: those after `after`, if they are of this process and still kept.
    async fn watch(&mut self, session: &str, params: &Params) -> Result<Value, GatewayError> {
        let (key, _) = self.server.delivery.session(session)?;
        if self.watched.len() >= MOST_WATCHED && !self.watched.contains_key(key.as_str()) {
            let why = format!("a connection watches at most {MOST_WATCHED} sessions; unwatch one");
            return Err(GatewayError::Unusable(why));
        }
        self.server.relay.join(key.as_str()).await;
        let hub = &self.server.hub;
        let Watching { newest, live, news } = hub.watch_with(key.as_str(), self.watcher());
        let is_same_stream = params.stream.as_deref().is_none_or(|stream| stream == hub.stream());
        let after = params.after.filter(|_| is_same_stream);
        // A client that comes back may lack what was there before.
        if let Some(line) = self.line.upgrade() {
            line.wake.notify_one();
        }
        let watched = Watched::new(key.as_str(), after.unwrap_or(newest), news, Reader::Client);
        self.watched.insert(key.as_str().to_owned(), watched);
        Ok(json!({
            "session": key.as_str(),
            "busy": self.server.hub.is_running(key.as_str()),
            "mode": self.server.delivery.mode(session)?,
            "stream": self.server.hub.stream(),
            "sequence": after.unwrap_or(newest),
            "resumed": after.is_some(),
            "live": live,
            "approvals": self.server.delivery.open_questions(Some(key.as_str())).await,
        }))
    }

    /// Begins to say which sessions look different in a list, from now on.
    fn watch_list(&mut self) {
        let Watching { newest, news, .. } = self.server.hub.watch_with(LIST, self.watcher());
        let watched = Watched::new(LIST, newest, news, Reader::Client);
        self.watched.insert(LIST.to_owned(), watched);
    }

    fn watcher(&self) -> Weak<dyn Watcher> {
        self.line.clone()
    }
}
