//! What a message holds besides its text: files, stickers, places, and what is passed on.

use super::jid;
use super::xml::{Element, ns};
use crate::passage::note;
use crate::{Passage, PassageKind};

/// Most files of a message.
const MOST_FILES: usize = 10;

/// Files (XEP-0447), stickers (XEP-0449), places (XEP-0080), calls (XEP-0353), reactions (XEP-0444), withdrawals (XEP-0424 and
/// its predecessor) and invitations to rooms (XEP-0249).
const SHARING: &str = "urn:xmpp:sfs:0";
const URL_DATA: &str = "http://jabber.org/protocol/url-data";
const STICKERS: &str = "urn:xmpp:stickers:0";
const PLACE: &str = "http://jabber.org/protocol/geoloc";
const CALLS: &str = "urn:xmpp:jingle-message:0";
const REACTIONS: &str = "urn:xmpp:reactions:0";
const WITHDRAWALS: [&str; 3] =
    ["urn:xmpp:message-retract:1", "urn:xmpp:message-retract:0", "urn:xmpp:fasten:0"];
const INVITATIONS: &str = "jabber:x:conference";

/// What belongs to messages and is none: typing, receipts, marks of reading, hints, ids, times, and events of nodes.
const SIGNALS: [&str; 12] = [
    ns::CHAT_STATES,
    ns::IDS,
    ns::DELAY,
    ns::MUC_USER,
    ns::REPLY,
    ns::FALLBACK,
    ns::CLIENT,
    "urn:xmpp:receipts",
    "urn:xmpp:chat-markers:0",
    "urn:xmpp:hints",
    "http://jabber.org/protocol/pubsub#event",
    "http://jabber.org/protocol/nick",
];

/// The addresses of the files of a message (XEP-0066 and XEP-0447).
pub(super) fn files_of(message: &Element) -> Vec<String> {
    let plain = message.children.iter().filter(|child| child.is("x", ns::OOB));
    let plain = plain.filter_map(|file| file.get("url", ns::OOB));
    let plain = plain.map(|url| url.text.trim().to_owned());
    let shared = message.children.iter().filter(|child| child.is("file-sharing", SHARING));
    let sources = shared.filter_map(|file| file.get("sources", SHARING));
    let shared = sources.filter_map(|sources| {
        sources.get("url-data", URL_DATA)?.attribute("target").map(str::to_owned)
    });
    let mut files: Vec<String> = Vec::new();
    for file in plain.chain(shared).filter(|file| !file.is_empty()) {
        if !files.contains(&file) && files.len() < MOST_FILES {
            files.push(file);
        }
    }
    files
}

/// What the sender says with a message whose body is `text`.
pub(super) fn said(message: &Element, text: String, files: &[String]) -> String {
    if message.children.iter().any(|child| child.is("sticker", STICKERS)) {
        return note("sticker", [text.as_str()]);
    }
    // Clients repeat the address of a file as the text.
    if files.iter().any(|file| *file == text.trim()) {
        return String::new();
    }
    let place = message.get("geoloc", PLACE).filter(|_| text.trim().is_empty());
    // XEP-0245: it is no command.
    let action = text.strip_prefix("/me ").map(|action| format!("* {action}"));
    match place {
        _ if action.is_some() => action.unwrap_or_default(),
        Some(place) => {
            let part = |name| place.get(name, PLACE).map_or("", |part| part.text.trim());
            note("location", [format!("{}, {}", part("lat"), part("lon")).as_str()])
        }
        None => text,
    }
}

/// What others wrote (XEP-0297).
pub(super) fn passages(message: &Element) -> Vec<Passage> {
    let forwards = message.children.iter().filter(|child| child.is("forwarded", ns::FORWARD));
    let messages = forwards.filter_map(|forward| forward.get("message", ns::CLIENT));
    let passages = messages.map(|passed| {
        let author = passed.attribute("from").map(jid::bare);
        let body = passed.get("body", ns::CLIENT).map(|body| body.text.clone());
        Passage::new(PassageKind::Forward, author, body.unwrap_or_default())
    });
    passages.collect()
}

/// Why a message without text and files gets no answer; `None` if it is no message.
pub(super) fn unanswered(message: &Element) -> Option<String> {
    let is_invitation = |child: &Element| {
        child.namespace == INVITATIONS || child.get("invite", ns::MUC_USER).is_some()
    };
    if message.children.iter().any(is_invitation) {
        return Some("it is an invitation to a room; rooms are named in the config".to_owned());
    }
    let other =
        message.children.iter().find(|child| !SIGNALS.contains(&child.namespace.as_str()))?;
    Some(match other.namespace.as_str() {
        REACTIONS => "it is a reaction to a message, which asks for no answer".to_owned(),
        CALLS => "it is a call, which this channel cannot take".to_owned(),
        namespace if WITHDRAWALS.contains(&namespace) => "it removes an earlier message".to_owned(),
        namespace => format!("it holds only what this channel cannot read ({namespace})"),
    })
}
