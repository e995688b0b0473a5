//! Messages that come in, through the Gateway: one session, resumed after each break.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::api::ApiError;
use super::event::{File, Heard, Message, Payload, Ready};
use super::press::{Interaction, Press};
use super::session::{Progress, ResumableSession};
use super::{DISCORD, Discord, Me, WRONG_INTENTS, WRONG_TOKEN};
use crate::arrival::{NOTHING_SHOWN, Whereabouts, store_dropped, store_unreadable};
use crate::lanes::Lanes;
use crate::pause::{self, Pause, until_stored};
use crate::taking::{hand_over, load};
use crate::ws::Socket;
use crate::{Arrival, Attachment, AttachmentContent, Intake, State};

/// The events that the bot asks for (docs.discord.com, "Gateway", "List of Intents"): servers, messages in them and
/// direct ones, and the text of messages.
const INTENTS: u64 = 1 | (1 << 9) | (1 << 12) | (1 << 15);
/// Largest message of a socket, in bytes. A server with all its channels is one.
const MOST_MESSAGE: usize = 32 * 1024 * 1024;
/// Most messages that are being stored; no more are read until some are.
const MOST_OPEN: usize = 1_000;
/// Time for the first word of the server.
const HELLO_TIME: Duration = Duration::from_secs(20);
/// A connection that lived this long was a good one. Discord allows an identification each five seconds.
const STEADY: Duration = Duration::from_secs(10);

/// Where a message names its chat and its sender.
const WHEREABOUTS: Whereabouts = Whereabouts {
    chats: &["/channel_id", "/d/channel_id"],
    senders: &["/author/id", "/d/author/id", "/member/user/id", "/user/id"],
};

/// How a connection ended.
enum End {
    /// Another one may continue the session.
    Again(String),
    /// Another one has to begin a new session.
    Anew(String),
    /// Only the owner can help.
    Never(&'static str),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GatewayBot {
    url: String,
    session_start_limit: StartLimit,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StartLimit {
    remaining: Option<u64>,
    /// In milliseconds.
    reset_after: u64,
}

/// A connection and what is known of its session.
struct Connection<'a> {
    socket: Socket,
    session: &'a mut Option<ResumableSession>,
    progress: Progress,
    /// Whether the server has answered the last heartbeat.
    is_alive: bool,
    /// Whether the session is new, or continues an earlier one.
    is_open: bool,
}

impl Discord {
    /// Receives messages forever, or returns if the bot cannot be used.
    pub(super) async fn receive_events(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        let mut known: Option<(String, Option<ResumableSession>)> = None;
        loop {
            let begun = Instant::now();
            match self.connect(&mut known, intake).await {
                Ok(End::Never(reason)) => {
                    return self.account.set(State::Stopped(reason.to_owned()));
                }
                Ok(End::Again(reason)) => tracing::debug!(%reason, "Discord's socket has ended"),
                Ok(End::Anew(reason)) => {
                    tracing::warn!(%reason, "Discord has ended the session; what was said meanwhile is lost");
                    if let Some((_, session)) = &mut known {
                        *session = None;
                    }
                }
                Err(ApiError::Refused(refused)) if refused.status == 401 => {
                    return self.account.set(State::Stopped(WRONG_TOKEN.to_owned()));
                }
                Err(error) => {
                    if let ApiError::Refused(refused) = &error
                        && let Some(time) = refused.retry_after
                    {
                        tokio::time::sleep(time.min(pause::LONGEST)).await;
                    }
                    self.account.set(State::Waiting(error.to_string()));
                }
            }
            if begun.elapsed() >= STEADY {
                pause = Pause::new();
            }
            pause.wait().await;
        }
    }

    /// Connects, and serves the connection until it ends. `known` holds the key of the session on disk, and the session.
    async fn connect(
        &self,
        known: &mut Option<(String, Option<ResumableSession>)>,
        intake: &dyn Intake,
    ) -> Result<End, ApiError> {
        let me = self.me().await?;
        let (key, session) = match known {
            Some(known) => known,
            None => {
                let key = format!(
                    "{DISCORD} {} {} {}",
                    self.options.account, self.options.base_url, me.id
                );
                let kept = intake.recall(&key).await;
                let kept =
                    kept.map_err(|refusal| ApiError::NotSent(format!("the store: {refusal}")))?;
                let session = kept.and_then(|text| serde_json::from_str(&text).ok());
                known.insert((key, session))
            }
        };
        let address = match session {
            Some(session) => session.address.clone(),
            None => self.gateway().await?,
        };
        let socket = match self.api.open(&address, MOST_MESSAGE).await {
            Ok(socket) => socket,
            // The place where it was to be resumed may be gone.
            Err(_) if session.is_some() => {
                self.api.open(&self.gateway().await?, MOST_MESSAGE).await?
            }
            Err(error) => return Err(error),
        };
        let progress = Progress::from(session.as_ref().map_or(0, |session| session.seq));
        let connection = Connection { socket, session, progress, is_alive: true, is_open: false };
        Ok(self.serve(connection, key, &me, intake).await)
    }

    /// Where sessions begin.
    async fn gateway(&self) -> Result<String, ApiError> {
        let found: GatewayBot = self.api.get("/gateway/bot").await?;
        let limit = found.session_start_limit;
        if limit.remaining == Some(0) {
            let reason = "the bot has begun too many sessions today";
            let time = Duration::from_millis(limit.reset_after);
            tracing::warn!(?time, "{reason}");
            tokio::time::sleep(time.min(pause::LONGEST)).await;
            return Err(ApiError::NotSent(reason.to_owned()));
        }
        Ok(found.url)
    }

    /// Serves a connection until it ends, and until everything from it is stored.
    async fn serve(
        &self,
        mut connection: Connection<'_>,
        key: &str,
        me: &Me,
        intake: &dyn Intake,
    ) -> End {
        let interval = match connection.greet(self.api.token()).await {
            Ok(interval) => interval,
            Err(reason) => return End::Again(reason),
        };
        // The first heartbeat comes at a random moment, so that not all bots beat at once.
        let part = uuid::Uuid::new_v4().as_u128() % 1_000;
        let mut beat = Instant::now() + interval.mul_f64(part as f64 / 1_000.0);
        let mut lanes = Lanes::new();
        let end = loop {
            tokio::select! {
                Some(seq) = lanes.next() => {
                    connection.progress.end(seq);
                    keep(&mut connection, key, intake).await;
                }
                () = tokio::time::sleep_until(beat) => {
                    if !connection.is_alive {
                        break End::Again("the server does not answer heartbeats".to_owned());
                    }
                    connection.is_alive = false;
                    connection.beat().await;
                    beat = Instant::now() + interval;
                }
                frame = connection.socket.next(), if lanes.len() < MOST_OPEN => {
                    let text = match frame {
                        Some(Ok(Frame::Text(text))) => text,
                        Some(Ok(Frame::Close(frame))) => {
                            break end_of(frame.map_or(1006, |frame| frame.code.into()));
                        }
                        Some(Ok(_)) => continue,
                        Some(Err(error)) => break End::Again(error.to_string()),
                        None => break End::Again("the connection was closed".to_owned()),
                    };
                    let heard = match serde_json::from_str::<Payload>(&text) {
                        Ok(payload) => self.heed(&mut connection, payload).await,
                        Err(error) => {
                            let raw = serde_json::from_str(&text).unwrap_or_else(|_| text.as_str().into());
                            // It has no number of its own.
                            let done = connection.progress.done();
                            Ok(Some((done, Heard::Unreadable(raw, error.to_string()))))
                        }
                    };
                    match heard {
                        Ok(Some((seq, heard))) => {
                            let me = me.clone();
                            lanes.push(heard.chat(), Box::pin(async move {
                                until_stored(|| self.take_heard(&heard, &me, intake)).await;
                                seq
                            }));
                        }
                        Ok(None) => {}
                        Err(end) => break end,
                    }
                    if std::mem::take(&mut connection.is_open) {
                        // From here on, nothing that Discord still has is missed.
                        keep(&mut connection, key, intake).await;
                        self.account.set(State::Working);
                    }
                }
            }
        };
        while let Some(seq) = lanes.next().await {
            connection.progress.end(seq);
        }
        keep(&mut connection, key, intake).await;
        end
    }

    /// What to do about a message of the socket. Gives what has to be stored, with its number.
    async fn heed(
        &self,
        connection: &mut Connection<'_>,
        payload: Payload,
    ) -> Result<Option<(u64, Heard)>, End> {
        match payload.op {
            0 => {}
            1 => connection.beat().await,
            7 => return Err(End::Again("Discord asks for another connection".to_owned())),
            9 if payload.d == json!(true) => {
                return Err(End::Again("Discord asks for another connection".to_owned()));
            }
            9 => return Err(End::Anew("the session is not valid any more".to_owned())),
            11 => connection.is_alive = true,
            _ => {}
        }
        let (Some(seq), 0) = (payload.s, payload.op) else { return Ok(None) };
        let kind = payload.t.as_deref().unwrap_or_default();
        let is_edit = kind == "MESSAGE_UPDATE";
        match kind {
            "READY" => {
                let Ok(ready) = serde_json::from_value::<Ready>(payload.d) else {
                    return Err(End::Anew("the session has no name".to_owned()));
                };
                let Ready { session_id: id, resume_gateway_url: address } = ready;
                connection.progress = Progress::from(seq);
                *connection.session = Some(ResumableSession { id, address, seq });
                connection.is_open = true;
            }
            "RESUMED" => {
                connection.progress.pass(seq);
                connection.is_open = true;
            }
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
                let heard = match Message::deserialize(&payload.d) {
                    Ok(message) if !is_edit => Heard::New(Box::new(message)),
                    // A preview of a link changes a message as well, and has no time of an edit.
                    Ok(message) if message.edited_timestamp.is_none() => {
                        connection.progress.pass(seq);
                        return Ok(None);
                    }
                    Ok(message) => Heard::Edited(Box::new(message)),
                    Err(error) => Heard::Unreadable(payload.d, error.to_string()),
                };
                connection.progress.begin(seq);
                return Ok(Some((seq, heard)));
            }
            "INTERACTION_CREATE" => {
                let heard = match Interaction::deserialize(&payload.d) {
                    Ok(interaction) => interaction.pressed().map(Heard::pressed),
                    Err(error) => Some(Heard::Unreadable(payload.d, error.to_string())),
                };
                if let Some(heard) = heard {
                    connection.progress.begin(seq);
                    return Ok(Some((seq, heard)));
                }
                connection.progress.pass(seq);
            }
            _ => connection.progress.pass(seq),
        }
        Ok(None)
    }

    /// Takes what was heard.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take_heard(&self, heard: &Heard, me: &Me, intake: &dyn Intake) -> Result<(), String> {
        match heard {
            Heard::New(message) => self.take(message, (None, None), me, intake).await,
            Heard::Edited(message) => {
                let edit = message.edited_timestamp.as_ref();
                self.take(message, (edit, None), me, intake).await
            }
            Heard::Pressed(pressed) => {
                let (message, press) = pressed.as_ref();
                self.take(message, (None, Some(press)), me, intake).await
            }
            Heard::Unreadable(raw, reason) => {
                store_unreadable(intake, &self.account, raw, &WHEREABOUTS, reason).await
            }
        }
    }

    /// Takes a message, the version of it of the time `edit`, or the command of a button that somebody pressed.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take(
        &self,
        message: &Message,
        (edit, press): (Option<&String>, Option<&Press>),
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        if message.author.id == me.id {
            return Ok(());
        }
        let chat = self.chat(message).await.map_err(|error| error.to_string())?;
        let role = self.own_role(message, me).await.map_err(|error| error.to_string())?;
        let source_id = message.source_id();
        let files = message.files();
        let mut arrival = Arrival {
            channel: DISCORD.to_owned(),
            account: self.options.account.clone(),
            chat,
            edits: edit.map(|_| source_id.clone()),
            source_id: match (edit, press) {
                (Some(edit), _) => format!("{source_id}:edit:{edit}"),
                (None, Some(press)) => format!("{source_id}:press:{}", press.id),
                (None, None) => source_id,
            },
            reply_id: Some(message.id.clone()),
            sender: message.sender(),
            text: message.said(&me.id, role.as_deref()),
            passages: message.passages(&me.id),
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            mentions_me: press.is_some() || message.mentions(&me.id, role.as_deref()),
            reply_to: message.quoted(&me.id),
            answers: message.answered().map(|answered| answered.id.clone()),
            is_press: press.is_some(),
        };
        let is_empty = || arrival.text.is_empty() && arrival.is_plain();
        let empty = || is_empty().then(|| NOTHING_SHOWN.to_owned());
        if let Some(reason) = message.is_not_said().or_else(empty) {
            return store_dropped(intake, arrival, reason).await;
        }
        if press.is_none() {
            self.add_thread(&mut arrival, message, me, intake).await?;
        }
        let files = self.load_files(&files);
        let receipt = hand_over(intake, arrival, &self.with_files, files).await?;
        if let Some(press) = press {
            let is_taken = receipt.is_some_and(|receipt| receipt.dropped.is_none());
            self.end_press(press, is_taken).await;
        }
        Ok(())
    }

    async fn load_files(&self, files: &[(&File, Attachment)]) -> Vec<AttachmentContent> {
        let most = self.options.most_file_bytes;
        let mut contents = Vec::with_capacity(files.len());
        for (file, _) in files {
            let loaded = load(Some(file.size), most, || self.api.download(&file.url, most));
            contents.push(loaded.await);
        }
        contents
    }
}

impl Connection<'_> {
    /// Waits for the first word of the server, and names the bot or its session. Gives the time between heartbeats.
    async fn greet(&mut self, token: &str) -> Result<Duration, String> {
        let hello = async {
            while let Some(frame) = self.socket.next().await {
                let Ok(Frame::Text(text)) = frame else { continue };
                match serde_json::from_str::<Payload>(&text) {
                    Ok(payload) if payload.op == 10 => {
                        return payload.d["heartbeat_interval"].as_u64();
                    }
                    _ => {}
                }
            }
            None
        };
        let interval = tokio::time::timeout(HELLO_TIME, hello).await.ok().flatten();
        let interval =
            interval.filter(|interval| *interval > 0).ok_or("the server says no hello")?;
        let word = match &self.session {
            Some(ResumableSession { id, seq, .. }) => {
                json!({"op": 6, "d": {"token": token, "session_id": id, "seq": seq}})
            }
            None => json!({"op": 2, "d": {
                "token": token, "intents": INTENTS,
                "properties": {"os": std::env::consts::OS, "browser": "myclaw", "device": "myclaw"},
            }}),
        };
        self.say(&word).await;
        Ok(Duration::from_millis(interval))
    }

    async fn beat(&mut self) {
        let seq = self.progress.done();
        let seq = if seq == 0 { Value::Null } else { json!(seq) };
        self.say(&json!({"op": 1, "d": seq})).await;
    }

    /// Says something. If that fails, the connection ends soon.
    async fn say(&mut self, word: &Value) {
        if let Err(error) = self.socket.send(Frame::text(word.to_string())).await {
            tracing::debug!(%error, "Discord's socket takes nothing");
        }
    }
}

/// Keeps how far the session is.
async fn keep(connection: &mut Connection<'_>, key: &str, intake: &dyn Intake) {
    let Some(session) = connection.session else { return };
    session.seq = connection.progress.done();
    let text = serde_json::to_string(session).unwrap_or_default();
    if let Err(refusal) = intake.remember(key, &text).await {
        // A later process gets some messages again, and recognises them.
        tracing::debug!(%refusal, "the session is not kept");
    }
}

/// What a code with which Discord closes the socket means (docs.discord.com, "Gateway Close Event Codes").
fn end_of(code: u16) -> End {
    let reason = format!("Discord has closed the connection ({code})");
    match code {
        4004 => End::Never(WRONG_TOKEN),
        4013 | 4014 => End::Never(WRONG_INTENTS),
        4010..=4012 => End::Never("Discord does not serve this bot on one connection (sharding)"),
        4003 | 4007 | 4009 => End::Anew(reason),
        _ => End::Again(reason),
    }
}
