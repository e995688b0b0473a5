//! Rooms (XEP-0045), and people who want to see when the account is online.

use std::collections::HashMap;

use super::xml::{Element, ns};
use super::{AskError, Refused, Xmpp, jid, question};
use crate::Intake;

/// Most names that are tried in a room while others have them.
const MOST_NAMES: u8 = 4;
/// Most people of a room that are remembered.
const MOST_PEOPLE: usize = 10_000;

/// A room that is joined, or is to be.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The account's name there.
    pub(super) nick: String,
    /// The name that it is to have.
    wanted: String,
    pub(super) is_joined: bool,
    pub(super) has_archive: bool,
    /// Whether its archive says who people are.
    shows_people: bool,
    /// The real addresses of people, by their names in the room.
    people: HashMap<String, Option<String>>,
    names_tried: u8,
    was_kicked: bool,
    /// It cannot be joined until the config changes or the gateway starts again.
    is_closed: bool,
    /// The last failure that was logged.
    told: String,
}

/// What follows from a presence.
pub(super) enum Step {
    Send(Element),
    /// Join a room, or join it again.
    Enter(String),
}

impl Room {
    pub(super) fn new(nick: &str) -> Self {
        Self { nick: nick.to_owned(), wanted: nick.to_owned(), ..Self::default() }
    }

    /// What is not as the config says.
    fn trouble(&self, place: &str) -> Option<String> {
        let Self { nick, wanted, .. } = self;
        match (self.is_joined, self.told.is_empty()) {
            (true, _) if nick != wanted => Some(format!(
                "the name in {place} is {nick}, because somebody else has {wanted}; it is tried again each minute"
            )),
            (false, false) => Some(format!("not in {place}: {}", self.told)),
            _ => None,
        }
    }

    /// The real address of somebody, by name.
    pub(super) fn person(&self, nick: &str) -> Option<&str> {
        self.people.get(nick)?.as_deref()
    }

    /// The real address of the sender of a message in the archive.
    pub(super) fn person_in(&self, message: &Element) -> Option<String> {
        let item = message.get("x", ns::MUC_USER)?.get("item", ns::MUC_USER)?;
        item.attribute("jid").filter(|_| self.shows_people).map(jid::bare)
    }
}

impl Xmpp {
    /// Joins a room, and reads what was said there meanwhile.
    pub(super) async fn enter(&self, place: String, intake: &dyn Intake) {
        let about = Element::new("query", ns::INFO);
        let info = match self.ask(question("get", Some(&place), about)).await {
            Ok(info) => Some(info),
            // A room that is not there is made by joining it.
            Err(AskError::Refused(_)) => None,
            Err(_) => return,
        };
        let has = |feature| info.as_ref().is_some_and(|info| super::has_feature(info, feature));
        let has_archive = has(ns::MAM);
        let join = {
            let mut memory = self.memory.lock();
            let nick = &self.options.nick;
            let room = memory.rooms.entry(place.clone()).or_insert_with(|| Room::new(nick));
            room.has_archive = has_archive;
            room.shows_people = has("muc_nonanonymous");
            join(&place, &room.nick)
        };
        let read = async {
            if has_archive {
                self.find_end(&place, intake).await?;
            }
            match self.put(join, super::Done::Nobody).await {
                true => self.catch_up(&place, intake).await,
                false => Err(AskError::NotConnected),
            }
        };
        if let Err(error) = read.await {
            tracing::warn!(place, %error, "the archive of a room cannot be read");
        }
    }

    /// Joins the rooms where the account is not, and asks the others whether it still is (XEP-0410).
    pub(super) async fn look_after_rooms(&self, intake: &dyn Intake) {
        for place in self.options.rooms.clone() {
            let (is_joined, is_closed, nick, wanted) =
                match self.memory.lock().rooms.get_mut(&place) {
                    Some(room) => {
                        if !room.is_joined {
                            // Names that others had may be free again.
                            (room.names_tried, room.nick) = (0, room.wanted.clone());
                        }
                        (room.is_joined, room.is_closed, room.nick.clone(), room.wanted.clone())
                    }
                    None => (false, false, String::new(), String::new()),
                };
            if is_closed {
                continue;
            }
            if is_joined && nick != wanted {
                self.put(rename(&place, &wanted), super::Done::Nobody).await;
            }
            if is_joined {
                let me = format!("{place}/{nick}");
                let ping = question("get", Some(&me), Element::new("ping", ns::PING));
                let Err(AskError::Refused(refused)) = self.ask(ping).await else { continue };
                // A person in the room answers with one of the other errors, or not at all.
                if !matches!(refused.condition.as_str(), "not-acceptable" | "item-not-found") {
                    continue;
                }
                if let Some(room) = self.memory.lock().rooms.get_mut(&place) {
                    room.is_joined = false;
                }
            }
            self.enter(place, intake).await;
        }
        self.note_rooms();
    }

    /// Says in the state of the account which rooms are not as the config says.
    fn note_rooms(&self) {
        let troubles: Vec<String> = {
            let memory = self.memory.lock();
            let rooms = self.options.rooms.iter();
            rooms.filter_map(|place| memory.rooms.get(place)?.trouble(place)).collect()
        };
        self.account.set_note((!troubles.is_empty()).then(|| troubles.join("; ")));
    }

    /// Reads who comes and goes, and who wants to be a contact.
    pub(super) fn read_presence(&self, from: &str, stanza: &Element) -> Vec<Step> {
        let place = jid::bare(from);
        let kind = stanza.attribute("type");
        let answer = |kind: &str| {
            Step::Send(Element::new("presence", ns::CLIENT).with("to", &place).with("type", kind))
        };
        if kind == Some("subscribe") {
            return match (self.options.accepts_contact)(&place) {
                // Some servers let only contacts write.
                true => vec![answer("subscribed"), answer("subscribe")],
                false => vec![answer("unsubscribed")],
            };
        }
        let steps = {
            let mut memory = self.memory.lock();
            let (Some(room), Some(nick)) = (memory.rooms.get_mut(&place), jid::resource(from))
            else {
                return Vec::new();
            };
            match kind {
                Some("error") => refused(&place, room, &Refused::of(stanza)),
                Some("unavailable") => left(&place, room, nick, stanza),
                None => came(&place, room, nick, stanza),
                Some(_) => Vec::new(),
            }
        };
        self.note_rooms();
        steps
    }
}

/// Without what was said before: that is in the archive.
fn join(place: &str, nick: &str) -> Element {
    let history = Element::new("history", ns::MUC).with("maxstanzas", "0");
    Element::new("presence", ns::CLIENT)
        .with("to", &format!("{place}/{nick}"))
        .child(Element::new("x", ns::MUC).child(history))
}

/// Asks for another name in a room.
fn rename(place: &str, nick: &str) -> Element {
    Element::new("presence", ns::CLIENT).with("to", &format!("{place}/{nick}"))
}

fn item(stanza: &Element) -> Option<&Element> {
    stanza.get("x", ns::MUC_USER)?.get("item", ns::MUC_USER)
}

fn has_status(stanza: &Element, code: &str) -> bool {
    stanza.get("x", ns::MUC_USER).is_some_and(|x| {
        x.children
            .iter()
            .any(|child| child.name == "status" && child.attribute("code") == Some(code))
    })
}

fn came(place: &str, room: &mut Room, nick: &str, stanza: &Element) -> Vec<Step> {
    let person = item(stanza).and_then(|item| item.attribute("jid")).map(jid::bare);
    if room.people.len() < MOST_PEOPLE || room.people.contains_key(nick) {
        room.people.insert(nick.to_owned(), person);
    }
    if !has_status(stanza, "110") {
        return Vec::new();
    }
    room.nick = nick.to_owned();
    room.is_joined = true;
    room.told.clear();
    tracing::debug!(room = place, nick, "in the room");
    if !has_status(stanza, "201") {
        return Vec::new();
    }
    // It is new, and locked until it is set up: with the server's own values.
    let form = Element::new("x", ns::DATA).with("type", "submit");
    let about = Element::new("query", ns::MUC_OWNER).child(form);
    vec![Step::Send(question("set", Some(place), about)), Step::Enter(place.to_owned())]
}

fn left(place: &str, room: &mut Room, nick: &str, stanza: &Element) -> Vec<Step> {
    let person = room.people.remove(nick).flatten();
    let is_me = nick == room.nick || has_status(stanza, "110");
    if has_status(stanza, "303") {
        let new = item(stanza).and_then(|item| item.attribute("nick")).map(str::to_owned);
        if let Some(new) = new {
            room.people.insert(new.clone(), person);
            if is_me {
                room.nick = new;
            }
        }
        let is_free = room.is_joined && nick == room.wanted && room.nick != room.wanted && !is_me;
        return if is_free { vec![Step::Send(rename(place, nick))] } else { Vec::new() };
    }
    if !is_me {
        // The name that the config gives may be free now.
        let is_free = room.is_joined && nick == room.wanted && room.nick != room.wanted;
        return if is_free { vec![Step::Send(rename(place, nick))] } else { Vec::new() };
    }
    room.is_joined = false;
    room.people.clear();
    let was_kicked = has_status(stanza, "307");
    if has_status(stanza, "301") || (was_kicked && room.was_kicked) {
        // A program would throw it out again and again.
        room.is_closed = true;
        "thrown out, until the config changes or the gateway starts again"
            .clone_into(&mut room.told);
        tracing::warn!(room = place, "thrown out of a room");
        return Vec::new();
    }
    room.was_kicked |= was_kicked;
    if was_kicked { vec![Step::Enter(place.to_owned())] } else { Vec::new() }
}

fn refused(place: &str, room: &mut Room, refused: &Refused) -> Vec<Step> {
    if room.is_joined {
        return Vec::new();
    }
    match refused.condition.as_str() {
        "conflict" if room.names_tried < MOST_NAMES => {
            room.names_tried += 1;
            room.nick.push('_');
            return vec![Step::Send(join(place, &room.nick))];
        }
        "forbidden" | "not-authorized" | "registration-required" | "not-allowed" => {
            room.is_closed = true;
        }
        _ => {}
    }
    if room.told != refused.reason {
        tracing::warn!(room = place, reason = refused.reason, "a room cannot be joined");
        room.told.clone_from(&refused.reason);
    }
    Vec::new()
}
