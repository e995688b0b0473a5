//! Messages that come in, through sockets that Slack replaces from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::api::{ApiError, Token};
use super::event::{Callback, Envelope, Said};
use super::{MOST_NAMED, MOST_PEOPLE, Me, SLACK, Slack, press, wrong_token};
use crate::arrival::{NOTHING_SHOWN, Whereabouts, store_dropped, store_unreadable};
use crate::lanes::Lanes;
use crate::pause::{self, Pause, until_stored};
use crate::taking::hand_over;
use crate::ws::Socket;
use crate::{Arrival, Chat, Intake, Sender, State};

/// Largest message of a socket, in bytes. A text has at most 40,000 characters, and an event holds it a few times.
const MOST_MESSAGE: usize = 4 * 1024 * 1024;
/// Most messages that are being stored; no more are read until some are.
const MOST_OPEN: usize = 1_000;
/// Silence after which the server is asked whether it is there. It sends pings more often than this.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a socket that Slack wants to end is still read.
const LAST_WORDS: Duration = Duration::from_secs(30);
/// A socket that lived this long was a good one.
const STEADY: Duration = Duration::from_secs(10);
/// Time to ask for somebody's name. Slack waits three seconds for an acknowledgement.
const NAME_TIME: Duration = Duration::from_secs(1);

/// Where an event names its chat and its sender.
const WHEREABOUTS: Whereabouts = Whereabouts {
    chats: &["/event/channel", "/event/item/channel"],
    senders: &["/event/user", "/event/message/user"],
};

/// State of a socket that the supervisor reads.
#[derive(Default)]
struct Link {
    /// Fires when another one is needed.
    leave: Notify,
    /// Whether Slack has greeted.
    is_greeted: AtomicBool,
}

/// What to do with a received envelope.
enum Next {
    /// It is done, and this is acknowledged.
    Acknowledge(String),
    /// It has to be stored first; then this is acknowledged.
    Take(Box<Said>, String),
    /// It cannot be read, for this reason. That is stored; then it is acknowledged, if it has an id.
    Drop(Value, String, Option<String>),
    /// Slack ends the connection soon.
    Leave,
    Nothing,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Opened {
    url: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    real_name: Option<String>,
    profile: Profile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    display_name: String,
}

impl Slack {
    /// Receives messages forever, or returns if the app cannot be used.
    ///
    /// A new socket is open before an old one ends. Slack delivers what was not acknowledged on one of them through
    /// another one.
    pub(super) async fn receive_events(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        let mut running = FuturesUnordered::new();
        loop {
            match beside(&mut running, self.open()).await {
                Ok((socket, me)) => {
                    let (link, begun) = (Arc::new(Link::default()), Instant::now());
                    running.push(self.serve(socket, me, Arc::clone(&link), intake));
                    beside(&mut running, link.leave.notified()).await;
                    if begun.elapsed() >= STEADY && link.is_greeted.load(Ordering::SeqCst) {
                        pause = Pause::new();
                        continue;
                    }
                }
                Err((token, error)) => {
                    if let ApiError::Refused(refused) = &error {
                        if refused.is_wrong_token() {
                            return self.account.set(State::Stopped(wrong_token(token)));
                        }
                        if let Some(time) = refused.retry_after {
                            let time = time.min(pause::LONGEST);
                            beside(&mut running, tokio::time::sleep(time)).await;
                        }
                    }
                    self.account.set(State::Waiting(error.to_string()));
                }
            }
            beside(&mut running, pause.wait()).await;
        }
    }

    /// Opens a socket.
    async fn open(&self) -> Result<(Socket, Me), (Token, ApiError)> {
        let me = self.me().await.map_err(|error| (Token::Bot, error))?;
        let opening = async {
            let address = self.socket_address().await?;
            self.api.open(&address, MOST_MESSAGE).await
        };
        opening.await.map(|socket| (socket, me)).map_err(|error| (Token::App, error))
    }

    /// Where Slack offers a socket. Each address works once.
    pub(super) async fn socket_address(&self) -> Result<String, ApiError> {
        let opened: Opened = self.api.call(Token::App, "apps.connections.open", &json!({})).await?;
        Ok(opened.url)
    }

    /// Reads a socket until it ends, and until everything from it is stored.
    async fn serve(&self, mut socket: Socket, me: Me, link: Arc<Link>, intake: &dyn Intake) {
        let mut lanes = Lanes::new();
        let mut deadline: Option<Instant> = None;
        let mut is_asked = false;
        loop {
            let silence = Instant::now() + SILENCE;
            let until = deadline.map_or(silence, |deadline| deadline.min(silence));
            tokio::select! {
                Some(envelope) = lanes.next() => {
                    if let Some(envelope) = envelope {
                        acknowledge(&mut socket, envelope).await;
                    }
                }
                () = tokio::time::sleep_until(until) => {
                    if is_asked || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        break;
                    }
                    is_asked = true;
                    let _ = socket.send(Message::Ping(Bytes::new())).await;
                }
                message = socket.next(), if lanes.len() < MOST_OPEN => {
                    is_asked = false;
                    let text = match message {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                        Some(Ok(_)) => continue,
                    };
                    match self.heed(&text, &link) {
                        Next::Acknowledge(envelope) => acknowledge(&mut socket, envelope).await,
                        Next::Take(said, envelope) => {
                            let (chat, me) = (said.event.channel.clone(), me.clone());
                            lanes.push(chat, Box::pin(async move {
                                until_stored(|| self.take(&said, &me, intake)).await;
                                Some(envelope)
                            }));
                        }
                        Next::Drop(raw, reason, envelope) => {
                            lanes.push(String::new(), Box::pin(async move {
                                let drop = || store_unreadable(intake, &self.account, &raw, &WHEREABOUTS, &reason);
                                until_stored(drop).await;
                                envelope
                            }));
                        }
                        Next::Leave => {
                            deadline = Some(Instant::now() + LAST_WORDS);
                            link.leave.notify_one();
                        }
                        Next::Nothing => {}
                    }
                }
            }
        }
        link.leave.notify_one();
        // Slack sends these again, and they are recognised.
        while lanes.next().await.is_some() {}
    }

    /// What to do about a message of a socket.
    fn heed(&self, text: &str, link: &Link) -> Next {
        let envelope = match serde_json::from_str::<Envelope>(text) {
            Ok(envelope) => envelope,
            Err(error) => return Next::Drop(text.into(), error.to_string(), None),
        };
        match envelope.kind.as_str() {
            "hello" => {
                link.is_greeted.store(true, Ordering::SeqCst);
                self.account.set(State::Working);
                return Next::Nothing;
            }
            "disconnect" => {
                if envelope.reason.as_deref() == Some("link_disabled") {
                    let reason = "Socket Mode is switched off for the app; switch it on at api.slack.com/apps";
                    self.account.set(State::Waiting(reason.to_owned()));
                }
                return Next::Leave;
            }
            _ => {}
        }
        let Some(id) = envelope.envelope_id else { return Next::Nothing };
        match envelope.kind.as_str() {
            "events_api" => {}
            "interactive" => {
                return match press::said(&envelope.payload) {
                    Some(said) => Next::Take(Box::new(said), id),
                    None => Next::Acknowledge(id),
                };
            }
            _ => return Next::Acknowledge(id),
        }
        match Callback::deserialize(&envelope.payload) {
            Ok(callback) => match callback.event.said() {
                Some(said) => Next::Take(Box::new(said), id),
                None => Next::Acknowledge(id),
            },
            // Once it is stored, Slack need not send it again.
            Err(error) => Next::Drop(envelope.payload, error.to_string(), Some(id)),
        }
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take(&self, said: &Said, me: &Me, intake: &dyn Intake) -> Result<(), String> {
        let Said { event, edit, press, dropped } = said;
        let user = event.user.clone().unwrap_or_default();
        if user == me.user_id {
            return Ok(());
        }
        let name = if user.is_empty() { None } else { self.name_of(&user).await };
        for person in event.people().into_iter().take(MOST_NAMED) {
            self.name_of(&person).await;
        }
        let known = |id: &str| self.memory.lock().names.get(id).cloned().flatten();
        // A message and a mention of the same words are two events of one message.
        let source_id = format!("{}:{}:{}", me.team_id, event.channel, event.ts);
        let files = event.all_files();
        let mut arrival = Arrival {
            channel: SLACK.to_owned(),
            account: self.options.account.clone(),
            chat: Chat {
                id: event.channel.clone(),
                kind: event.chat_kind(),
                thread: event.thread().map(str::to_owned),
                ..Chat::default()
            },
            edits: edit.as_ref().map(|_| source_id.clone()),
            source_id: match (edit, press) {
                (Some(edit), _) => format!("{source_id}:edit:{edit}"),
                (None, Some(press)) => format!("{source_id}:press:{user}:{press}"),
                (None, None) => source_id,
            },
            reply_id: Some(event.ts.clone()),
            sender: Sender { id: user.clone(), name, handle: None, other_id: None },
            text: event.text(&me.user_id, &known),
            passages: event.passages(&known),
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            mentions_me: press.is_some() || event.mentions(&me.user_id),
            // Slack knows no answers but those in the thread of a message.
            answers: event.thread().filter(|_| press.is_none()).map(str::to_owned),
            is_press: press.is_some(),
            ..Arrival::default()
        };
        let is_empty = || arrival.text.is_empty() && arrival.is_plain();
        let empty = || is_empty().then(|| NOTHING_SHOWN.to_owned());
        if let Some(reason) = dropped.clone().or_else(empty) {
            return store_dropped(intake, arrival, reason).await;
        }
        if press.is_none() {
            self.add_thread(&mut arrival, event, me, intake).await?;
        }
        let target = arrival.chat.target();
        let files = self.load_files(&files);
        let receipt = hand_over(intake, arrival, &self.with_files, files).await?;
        if press.is_some() && receipt.is_none_or(|receipt| receipt.dropped.is_some()) {
            self.refuse_press(&target, &user).await;
        }
        Ok(())
    }

    /// The name of a person. Slack tells it to apps with the scope `users:read`; without it, the id has to do.
    pub(super) async fn name_of(&self, id: &str) -> Option<String> {
        if let Some(known) = self.memory.lock().names.get(id) {
            return known.clone();
        }
        let params = json!({"user": id});
        let asking = self.api.call::<UserInfo>(Token::Bot, "users.info", &params);
        let name = match tokio::time::timeout(NAME_TIME, asking).await {
            Ok(Ok(UserInfo { user })) => {
                Some(user.profile.display_name).filter(|name| !name.is_empty()).or(user.real_name)
            }
            Ok(Err(ApiError::Refused(refused))) if !refused.is_too_many() => None,
            // It is asked for again with the next message.
            _ => return None,
        };
        let mut memory = self.memory.lock();
        if memory.names.len() >= MOST_PEOPLE {
            memory.names.clear();
        }
        memory.names.insert(id.to_owned(), name.clone());
        name
    }
}

/// Does `work` while the sockets are served.
async fn beside<T>(
    running: &mut FuturesUnordered<impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            Some(()) = running.next() => {}
        }
    }
}

/// Tells Slack that a message is stored. If that fails, Slack sends it again, and it is recognised.
async fn acknowledge(socket: &mut Socket, envelope: String) {
    let text = json!({"envelope_id": envelope}).to_string();
    if let Err(error) = socket.send(Message::text(text)).await {
        tracing::debug!(%error, "a message of Slack is not acknowledged");
    }
}
