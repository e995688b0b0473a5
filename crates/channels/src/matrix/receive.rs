//! Messages that come in: `/sync` from the point that is on disk.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::{ApiError, encode};
use super::event::{Event, File, Joined, REACTION, Sync};
use super::{CALL_TIME, Failure, MATRIX, Matrix, Me, WRONG_TOKEN, encryption, is_wrong_token};
use crate::arrival::{NOTHING_SHOWN, Whereabouts, store_dropped, store_unreadable};
use crate::mention::without_name;
use crate::pause::{self, Pause, until_stored};
use crate::taking::{hand_over, load};
use crate::{
    Arrival, AttachmentContent, Chat, ChatKind, FileOf, Intake, Quoted, Refusal, Sender, State,
};

/// How long the server waits for an event before it answers with nothing.
const SYNC_TIME: Duration = Duration::from_secs(25);
/// Time for the answer beyond that.
const SYNC_GRACE: Duration = Duration::from_secs(30);
/// Shortest time between two calls that find nothing, for servers that do not wait.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// Most events of a room that come at once. Earlier ones are asked for.
const MOST_EVENTS: usize = 50;
/// Most such questions for a room: ten thousand events that came while no gateway ran.
const MOST_PAGES: usize = 100;
/// Most rooms that are remembered.
const MOST_ROOMS: usize = 1_000;
/// Attempts to join a room before this is given up.
const ATTEMPTS: u32 = 3;
/// Where an event names its sender. It does not name its room.
const WHEREABOUTS: Whereabouts = Whereabouts { chats: &[], senders: &["/sender"] };
/// The kinds of events that are read.
const KINDS: [&str; 10] = [
    "m.room.message",
    "m.room.member",
    "m.room.name",
    "m.room.encrypted",
    "m.room.encryption",
    "m.sticker",
    REACTION,
    "m.poll.start",
    "org.matrix.msc3381.poll.start",
    "m.call.invite",
];

/// What is known of a room.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    /// The people in it with their names; `None` if there are too many to ask for.
    pub(super) people: Option<HashMap<String, Option<String>>>,
    name: Option<String>,
    /// Whether it is known to be encrypted. This cannot be undone.
    is_encrypted: bool,
    /// Whether it got a notice about encryption.
    is_told: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    joined: HashMap<String, Member>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Member {
    display_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoomName {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    chunk: Vec<Event>,
    end: Option<String>,
}

impl Matrix {
    /// Receives messages forever, or returns if the account cannot be used.
    pub(super) async fn receive_events(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        loop {
            if let Err(error) = self.synchronise(intake, &mut pause).await {
                match &error {
                    Failure::Stop(reason) => {
                        return self.account.set(State::Stopped(reason.clone()));
                    }
                    Failure::Call(error) if is_wrong_token(error) => {
                        return self.account.set(State::Stopped(WRONG_TOKEN.to_owned()));
                    }
                    Failure::Call(_) | Failure::NotNow(_) => {}
                }
                if let Failure::Call(ApiError::Refused(refused)) = &error
                    && let Some(time) = refused.retry_after
                {
                    tokio::time::sleep(time.min(pause::LONGEST)).await;
                }
                self.account.set(State::Waiting(error.to_string()));
            }
            pause.wait().await;
        }
    }

    /// Takes events until something fails.
    async fn synchronise(&self, intake: &dyn Intake, pause: &mut Pause) -> Result<(), Failure> {
        let me = self.me().await?;
        self.begin_encryption(&me).await?;
        let key = format!("{MATRIX} {} {} {}", self.options.account, self.options.base_url, me.id);
        let stored = |refusal: Refusal| ApiError::NotSent(format!("the store: {refusal}"));
        let mut since = intake.recall(&key).await.map_err(stored)?;
        // The first answer shows that the account works, so it must not wait for news.
        let mut wait = Duration::ZERO;
        loop {
            let asked = Instant::now();
            let mut sync = self.sync(since.as_deref(), wait).await?;
            wait = SYNC_TIME;
            self.account.set(State::Working);
            *pause = Pause::new();
            let next = sync.next_batch.clone();
            self.take_keys(&mut sync, &me, intake).await?;
            self.take_all(sync, &me, since.as_deref(), intake).await?;
            if since.as_ref() == Some(&next) {
                tokio::time::sleep_until(asked + IDLE_PAUSE).await;
                continue;
            }
            // From here on the server is not asked for these again, so all of them must be on disk before.
            intake.remember(&key, &next).await.map_err(stored)?;
            since = Some(next);
        }
    }

    /// Asks for what happened since `since`. Without news the server answers after `wait`.
    async fn sync(&self, since: Option<&str>, wait: Duration) -> Result<Sync, ApiError> {
        let nothing = json!({"types": []});
        let filter = json!({
            "presence": nothing, "account_data": nothing,
            "room": {
                "ephemeral": nothing, "account_data": nothing,
                "state": {
                    "types": ["m.room.member", "m.room.name", "m.room.encryption"],
                    "lazy_load_members": true,
                },
                "timeline": {"limit": MOST_EVENTS, "types": KINDS},
            },
        })
        .to_string();
        let wait = wait.as_millis().to_string();
        let mut query =
            vec![("filter", filter.as_str()), ("set_presence", "online"), ("timeout", &wait)];
        query.extend(since.map(|since| ("since", since)));
        self.api.get("/_matrix/client/v3/sync", &query, SYNC_TIME + SYNC_GRACE).await
    }

    /// Takes what happened since `since`. The messages of a room keep their order; rooms do not wait for each other.
    async fn take_all(
        &self,
        sync: Sync,
        me: &Me,
        since: Option<&str>,
        intake: &dyn Intake,
    ) -> Result<(), ApiError> {
        for (room, invited) in &sync.rooms.invite {
            let is_mine = |event: &&Event| event.membership_of(&me.id) == Some("invite");
            let invitation = invited.invite_state.events.iter().find(is_mine);
            self.invited(room, invitation.map(|event| event.sender.as_str())).await;
        }
        // What was said before this account was set up here is not answered.
        let Some(since) = since else { return Ok(()) };
        let rooms = sync.rooms.join.into_iter().map(async |(room, joined)| {
            let encryption = joined.state.events.iter().find(|event| event.begins_encryption());
            let encryption = encryption.map(|event| event.content.clone());
            for event in self.new_events(&room, joined, me, since).await? {
                until_stored(|| self.take(&room, &event, me, intake)).await;
            }
            if let Some(content) = encryption {
                self.note_encryption(&room, &content).await;
            }
            Ok(())
        });
        join_all(rooms).await.into_iter().collect()
    }

    /// Accepts or ignores an invitation.
    async fn invited(&self, room: &str, inviter: Option<&str>) {
        let inviter = inviter.unwrap_or_default();
        if !(self.options.accepts_invite)(room, inviter) {
            tracing::info!(room, inviter, "an invitation is ignored (channels.matrix)");
            return;
        }
        let path = format!("/_matrix/client/v3/join/{}", encode(room));
        let mut pause = Pause::new();
        for _ in 0..ATTEMPTS {
            match self.api.post::<Value>(&path, &json!({})).await {
                Ok(_) => return tracing::info!(room, inviter, "an invitation is accepted"),
                Err(error) => tracing::warn!(room, inviter, %error, "a room cannot be joined"),
            }
            pause.wait().await;
        }
    }

    /// The events of a room since `since`, the oldest first. If this account came into the room meanwhile, those since
    /// it was invited.
    async fn new_events(
        &self,
        room: &str,
        joined: Joined,
        me: &Me,
        since: &str,
    ) -> Result<Vec<Event>, ApiError> {
        let Joined { timeline, state } = joined;
        let mut events = timeline.events;
        let is_about =
            |event: &Event| matches!(event.kind.as_str(), "m.room.member" | "m.room.name");
        if timeline.limited || events.iter().chain(&state.events).any(is_about) {
            // Asked for again when it is needed: the people also get the keys of encryption.
            if let Some(known) = self.memory.lock().rooms.get_mut(room) {
                known.people = None;
                known.name = None;
            }
        }
        let entry =
            |name: &str| events.iter().position(|event| event.entry_of(&me.id) == Some(name));
        if let Some(at) = entry("invite").or_else(|| entry("join")) {
            events.drain(..at);
        } else if timeline.limited {
            let earlier = self.earlier(room, timeline.prev_batch, since, me).await?;
            events.splice(..0, earlier);
        }
        Ok(events)
    }

    /// The events between `since` and `from`, the oldest first.
    async fn earlier(
        &self,
        room: &str,
        mut from: Option<String>,
        since: &str,
        me: &Me,
    ) -> Result<Vec<Event>, ApiError> {
        let path = format!("/_matrix/client/v3/rooms/{}/messages", encode(room));
        let filter = json!({"types": KINDS}).to_string();
        let mut found = Vec::new();
        for _ in 0..MOST_PAGES {
            let Some(start) = from.take() else { break };
            let query = [
                ("dir", "b"),
                ("from", start.as_str()),
                ("to", since),
                ("limit", "100"),
                ("filter", filter.as_str()),
            ];
            let page: Page = self.api.get(&path, &query, CALL_TIME).await?;
            let own = page.chunk.iter().position(|event| event.entry_of(&me.id).is_some());
            let is_last = page.chunk.is_empty() || own.is_some();
            found.extend(page.chunk.into_iter().take(own.unwrap_or(usize::MAX)));
            from = page.end.filter(|_| !is_last);
        }
        if from.is_some() {
            tracing::error!(room, "too much was said while no gateway ran; the oldest is not read");
        }
        found.reverse();
        Ok(found)
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take(
        &self,
        room: &str,
        event: &Event,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        if event.begins_encryption() {
            self.note_encryption(room, &event.content).await;
            return Ok(());
        }
        if event.sender == me.id {
            return Ok(());
        }
        if event.event_id.is_empty() {
            let raw = serde_json::to_value(event).unwrap_or_default();
            return match event.is_message() {
                true => {
                    store_unreadable(intake, &self.account, &raw, &WHEREABOUTS, "it has no id")
                        .await
                }
                false => Ok(()),
            };
        }
        if event.kind == REACTION {
            return self.take_press(room, event, me, intake).await;
        }
        if event.kind == "m.room.encrypted" {
            self.note_encryption(room, &Value::Null).await;
            return match self.open_event(room, event, me).await? {
                Some(event) => self.take_said(room, &event, me, intake).await,
                // It is kept with the keys until it can be read.
                None if encryption::is_built() => Ok(()),
                None => {
                    let reason =
                        "the room is encrypted, and this MyClaw is built without encryption";
                    self.drop(room, event, me, (intake, reason)).await
                }
            };
        }
        if event.is_message() && self.knows_encryption(room).await {
            self.refuse_plain(room).await;
            let reason =
                "it is not encrypted, though the room is; the server could have written it";
            return self.drop(room, event, me, (intake, reason)).await;
        }
        self.take_said(room, event, me, intake).await
    }

    /// Stores a message that nobody answers.
    async fn drop(
        &self,
        room: &str,
        event: &Event,
        me: &Me,
        (intake, reason): (&dyn Intake, &str),
    ) -> Result<(), String> {
        let (arrival, _) = self.arrival(room, event, None, me).await?;
        store_dropped(intake, arrival, reason).await
    }

    /// Takes a message that could be read.
    ///
    /// # Errors
    /// It has to be tried again.
    pub(super) async fn take_said(
        &self,
        room: &str,
        event: &Event,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        if !event.is_message() {
            return Ok(());
        }
        if let Some(reason) = event.is_not_said() {
            return self.drop(room, event, me, (intake, reason)).await;
        }
        let answered = match event.answers() {
            Some(id) => self.event(room, id).await,
            None => None,
        };
        let (mut arrival, files) = self.arrival(room, event, answered.as_ref(), me).await?;
        if arrival.text.is_empty() && arrival.is_plain() {
            return store_dropped(intake, arrival, NOTHING_SHOWN).await;
        }
        self.add_thread(&mut arrival, event, me, intake).await?;
        hand_over(intake, arrival, &self.with_files, self.load_files(&files)).await.map(drop)
    }

    /// A message, and its files and those of the one that it answers.
    pub(super) async fn arrival<'a>(
        &self,
        room: &str,
        event: &'a Event,
        answered: Option<&'a Event>,
        me: &Me,
    ) -> Result<(Arrival, Vec<File<'a>>), String> {
        let known = self.room(room).await.map_err(|error| error.to_string())?;
        let people = known.people.as_ref();
        let is_direct = people.is_some_and(|people| matches!(people.len(), 1..=2));
        let is_answer_to_me = answered.is_some_and(|answered| answered.sender == me.id)
            || self.is_own_thread(room, event, me).await;
        let name_of = |id: &str| people.and_then(|people| people.get(id).cloned().flatten());
        let names = [me.id.strip_prefix('@'), me.name.as_deref()].into_iter().flatten();
        let text = names.fold(event.text(), |text, name| without_name(&text, name).to_owned());
        let answered_files = answered.map(Event::files).unwrap_or_default();
        let files = event.files();
        let own = files.iter().map(|file| file.attachment(FileOf::Message));
        let others = answered_files.iter().map(|file| file.attachment(FileOf::Answered));
        let arrival = Arrival {
            channel: MATRIX.to_owned(),
            account: self.options.account.clone(),
            chat: Chat {
                id: room.to_owned(),
                other_id: None,
                kind: if is_direct { ChatKind::Direct } else { ChatKind::Group },
                thread: event.thread().map(str::to_owned),
                title: known.name.clone(),
            },
            source_id: event.event_id.clone(),
            reply_id: Some(event.replaces().unwrap_or(&event.event_id).to_owned()),
            sender: Sender {
                id: event.sender.clone(),
                name: name_of(&event.sender),
                ..Sender::default()
            },
            text,
            passages: event.passages(),
            attachments: own.chain(others).collect(),
            mentions_me: is_answer_to_me || event.mentions(&me.id, me.name.as_deref()),
            edits: event.replaces().map(str::to_owned),
            reply_to: event.answers().map(|_| Quoted {
                sender: answered
                    .map(|one| name_of(&one.sender).unwrap_or_else(|| one.sender.clone())),
                text: answered.map(Event::described).unwrap_or_default(),
            }),
            answers: event.answers().map(str::to_owned),
            ..Arrival::default()
        };
        Ok((arrival, files.into_iter().chain(answered_files).collect()))
    }

    /// What is known of a room, which the server is asked for if needed.
    pub(super) async fn room(&self, id: &str) -> Result<Room, ApiError> {
        let known = self.memory.lock().rooms.get(id).cloned();
        if let Some(room) = known.filter(|room| room.people.is_some()) {
            return Ok(room);
        }
        let path = format!("/_matrix/client/v3/rooms/{}", encode(id));
        let asked =
            self.api.get::<Members>(&format!("{path}/joined_members"), &[], CALL_TIME).await;
        let people = match asked {
            Ok(members) => {
                let named = |(id, member): (String, Member)| (id, member.display_name);
                Some(members.joined.into_iter().map(named).collect())
            }
            // Somebody removed this account: a group in which nothing is known.
            Err(ApiError::Refused(refused)) if refused.status != 429 => Some(HashMap::new()),
            Err(error) => return Err(error),
        };
        let path = format!("{path}/state/m.room.name");
        let name = match self.api.get::<RoomName>(&path, &[], CALL_TIME).await {
            Ok(name) => name.name,
            Err(ApiError::Refused(refused)) if refused.status != 429 => None,
            Err(error) => return Err(error),
        };
        let mut memory = self.memory.lock();
        if memory.rooms.len() >= MOST_ROOMS {
            memory.rooms.clear();
        }
        let room = memory.rooms.entry(id.to_owned()).or_default();
        room.people = people;
        room.name = name;
        Ok(room.clone())
    }

    /// An earlier event of a room, if it can be seen.
    pub(super) async fn event(&self, room: &str, id: &str) -> Option<Event> {
        let path = format!("/_matrix/client/v3/rooms/{}/event/{}", encode(room), encode(id));
        let event = self.api.get::<Event>(&path, &[], CALL_TIME).await.ok()?;
        Some(self.look_into(room, event).await)
    }

    /// Notes that a room is encrypted, with what its event says about it, if that is known.
    pub(super) async fn note_encryption(&self, room: &str, content: &Value) {
        self.memory.lock().rooms.entry(room.to_owned()).or_default().is_encrypted = true;
        if !content.is_null() {
            self.note_settings(room, content).await;
        }
    }

    pub(super) async fn knows_encryption(&self, room: &str) -> bool {
        let is_known = self.memory.lock().rooms.get(room).is_some_and(|known| known.is_encrypted);
        is_known || self.has_settings(room).await
    }

    /// Whether the room has had no notice about encryption. The next call says no.
    pub(super) fn is_first_notice(&self, room: &str) -> bool {
        let mut memory = self.memory.lock();
        let known = memory.rooms.entry(room.to_owned()).or_default();
        !std::mem::replace(&mut known.is_told, true)
    }

    async fn load_files(&self, files: &[File<'_>]) -> Vec<AttachmentContent> {
        let most = self.options.most_file_bytes;
        let mut contents = Vec::with_capacity(files.len());
        for file in files {
            let loaded = load(file.bytes, most, || self.api.download(file.address, most)).await;
            contents.push(match (loaded, file.key) {
                (AttachmentContent::Bytes(bytes), Some(key)) => {
                    encryption::decrypt_file(&bytes, key)
                        .map_or_else(AttachmentContent::Missing, AttachmentContent::Bytes)
                }
                (content, _) => content,
            });
        }
        contents
    }
}
