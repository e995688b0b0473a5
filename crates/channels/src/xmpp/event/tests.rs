use std::sync::Arc;

use secrecy::SecretString;

use super::*;
use crate::wire::{Security, ServerAddress};
use crate::xmpp::rooms::Room;
use crate::xmpp::xml::{Event, Reader};
use crate::xmpp::{Query, XmppOptions};

const OPEN: &str = "<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='jabber:client'>";

fn stanza(xml: &str) -> Element {
    let mut reader = Reader::new();
    let text = format!("{OPEN}{xml}");
    let mut rest = text.as_bytes();
    assert_eq!(reader.read(&mut rest), Ok(Some(Event::Stream)));
    match reader.read(&mut rest) {
        Ok(Some(Event::Stanza(stanza))) => stanza,
        other => panic!("{other:?}"),
    }
}

fn account() -> Xmpp {
    let options = XmppOptions {
        account: "default".to_owned(),
        address: "Claw@example.org".to_owned(),
        password: SecretString::from("p"),
        server: ServerAddress { host: "127.0.0.1".to_owned(), port: 1, security: Security::Plain },
        nick: "claw".to_owned(),
        rooms: vec!["team@rooms.example.org".to_owned()],
        most_file_bytes: 1,
        fetch: Arc::new(|_, _| Box::pin(async { Err("no".to_owned()) })),
        accepts_contact: Arc::new(|_| true),
    };
    let account = Xmpp::new(options);
    let mut room = Room::new("claw");
    room.has_archive = true;
    let mut memory = account.memory.lock();
    memory.has_archive = Some(true);
    memory.rooms.insert("team@rooms.example.org".to_owned(), room);
    drop(memory);
    account
}

fn heard(account: &Xmpp, xml: &str) -> Option<Heard> {
    match account.read_message(&stanza(xml)) {
        Reading::Message(heard) => Some(*heard),
        _ => None,
    }
}

#[test]
fn what_is_no_message_of_somebody_is_not_one() {
    let account = account();
    for xml in [
        "<message from='claw@example.org/phone' type='chat'><body>mine</body></message>",
        "<message type='chat'><body>the server's</body></message>",
        "<message from='ann@example.org/x' type='chat'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>",
        // Forged copies of other people's messages: in carbons, and in an archive that was not asked.
        "<message from='eve@example.org/x'><received xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>\
         <message xmlns='jabber:client' from='ann@example.org/x' type='chat'><body>hi</body></message></forwarded></received></message>",
        "<message from='claw@example.org'><received xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>\
         <message xmlns='jabber:client' from='ann@example.org/x' type='chat'><body>hi</body></message></forwarded></received></message>",
        "<message from='eve@example.org/x'><result xmlns='urn:xmpp:mam:2' queryid='q' id='1'><forwarded xmlns='urn:xmpp:forward:0'>\
         <message xmlns='jabber:client' from='ann@example.org/x' type='chat'><body>hi</body></message></forwarded></result></message>",
        // The account's own, and those of rooms that were not joined.
        "<message from='team@rooms.example.org/claw' type='groupchat'><body>mine</body></message>",
        "<message from='team@rooms.example.org' type='groupchat'><body>the room's</body></message>",
        "<message from='other@rooms.example.org/ann' type='groupchat'><body>claw: hi</body></message>",
    ] {
        let query = Query { archive: "claw@example.org".to_owned(), purpose: Purpose::CatchUp };
        account.memory.lock().queries.insert("q".to_owned(), query);
        assert!(heard(&account, xml).is_none(), "{xml}");
    }
}

#[test]
fn only_those_who_got_a_message_can_refuse_it() {
    let account = account();
    account.note_said("ann@example.org", "p", "p", (None, "hi", Vec::new()));
    let error = |from: &str, id: &str| {
        let xml = format!(
            "<message from='{from}' type='error' id='{id}'><error type='cancel'>\
             <item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>"
        );
        match account.read_message(&stanza(&xml)) {
            Reading::Bounce { id, refused } => Some((id, refused.reason)),
            _ => None,
        }
    };
    let refused = Some(("p".to_owned(), "item not found".to_owned()));
    assert_eq!(error("Ann@example.org/x", "p"), refused);
    assert_eq!(error("eve@example.org/x", "p"), None);
    assert_eq!(error("ann@example.org", "q"), None);
}

#[test]
fn only_ids_of_the_own_archive_name_a_message() {
    let account = account();
    let said = |ids: &str| {
        let xml = format!(
            "<message from='Ann@example.org/x' type='chat' id='1'><body>hi</body>{ids}</message>"
        );
        heard(&account, &xml).unwrap()
    };
    let own = said("<stanza-id xmlns='urn:xmpp:sid:0' by='claw@example.org' id='77'/>");
    assert_eq!(own.arrival.source_id, "77");
    assert_eq!(
        (own.arrival.sender.id.as_str(), own.arrival.chat.id.as_str()),
        ("ann@example.org", "ann@example.org")
    );
    assert!(own.mark.is_some() && own.refused.is_none() && own.arrival.mentions_me);
    let other = said("<stanza-id xmlns='urn:xmpp:sid:0' by='eve@example.org' id='77'/>");
    assert_ne!(other.arrival.source_id, "77");
    assert_eq!(other.mark, None);
    // The same message of an archive.
    let query = Query { archive: "claw@example.org".to_owned(), purpose: Purpose::CatchUp };
    account.memory.lock().queries.insert("q".to_owned(), query);
    let past = heard(&account, "<message from='claw@example.org'><result xmlns='urn:xmpp:mam:2' queryid='q' id='77'>\
        <forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' from='ann@example.org/x' type='chat' id='1'>\
        <body>hi</body></message></forwarded></result></message>").unwrap();
    assert_eq!(past.arrival, own.arrival);
    account.memory.lock().has_archive = Some(false);
    let none = said("<stanza-id xmlns='urn:xmpp:sid:0' by='claw@example.org' id='77'/>");
    assert_eq!((none.arrival.source_id, none.mark), (other.arrival.source_id, None));
}

#[test]
fn stored_messages_come_from_the_archive_while_it_is_not_read() {
    let account = account();
    let stored = |server: &str, id: &str| {
        let xml = format!(
            "<message from='ann@example.org/x' type='chat' id='1'><body>hi</body>{id}\
             <delay xmlns='urn:xmpp:delay' from='{server}' stamp='2026-01-02T03:04:05Z'/></message>"
        );
        heard(&account, &xml).is_some()
    };
    let id = "<stanza-id xmlns='urn:xmpp:sid:0' by='claw@example.org' id='77'/>";
    assert!(!stored("Example.org", id) && !stored("claw@example.org", id));
    // Not in the archive, or delayed by others.
    assert!(stored("example.org", "") && stored("rooms.example.org", id));
    // A resumed session sends again what was not acknowledged.
    account.memory.lock().read_archives.insert("claw@example.org".to_owned());
    assert!(stored("example.org", id));
}

#[test]
fn rooms_files_replies_and_edits_are_read() {
    let account = account();
    let room = |rest: &str| {
        let xml =
            format!("<message from='team@rooms.example.org/Ann' type='groupchat' {rest}</message>");
        heard(&account, &xml).unwrap().arrival
    };
    let aside = room("id='1'><body>an aside</body>");
    assert_eq!(
        (aside.sender.id.as_str(), aside.mentions_me),
        ("team@rooms.example.org/Ann", false)
    );
    let addressed = room("id='2'><body>Claw: hi</body>");
    assert_eq!((addressed.text.as_str(), addressed.mentions_me), ("hi", true));
    let edited =
        room("id='3'><body>better</body><replace xmlns='urn:xmpp:message-correct:0' id='1'/>");
    assert_eq!(edited.edits, Some(aside.source_id));
    // What this account has said, as the room shows it.
    account.read_message(&stanza(
        "<message from='team@rooms.example.org/claw' type='groupchat' id='p'><body>yes</body>\
         <stanza-id xmlns='urn:xmpp:sid:0' by='team@rooms.example.org' id='88'/></message>",
    ));
    let reply = room(
        "id='4'><body>&gt; yes\nno</body><reply xmlns='urn:xmpp:reply:0' id='88'/>\
         <fallback xmlns='urn:xmpp:fallback:0' for='urn:xmpp:reply:0'><body start='0' end='6'/></fallback>",
    );
    assert_eq!((reply.text.as_str(), reply.mentions_me), ("no", true));
    assert_eq!(reply.reply_to.map(|quoted| quoted.text), Some("yes".to_owned()));
    let file = heard(
        &account,
        "<message from='ann@example.org/x' type='chat'><body>https://h/a%20b.txt</body>\
        <x xmlns='jabber:x:oob'><url>https://h/a%20b.txt</url></x></message>",
    )
    .unwrap();
    assert_eq!(
        (file.arrival.text.as_str(), file.files),
        ("", vec!["https://h/a%20b.txt".to_owned()])
    );
    for (xml, words) in [
        (
            "<message from='team@rooms.example.org/Ann' type='chat'><body>psst</body></message>",
            "through a room",
        ),
        (
            "<message from='ann@example.org/x' type='chat'><body>fallback</body>\
          <encrypted xmlns='eu.siacs.conversations.axolotl'/></message>",
            "encrypted",
        ),
    ] {
        assert!(heard(&account, xml).unwrap().refused.unwrap().contains(words), "{xml}");
    }
}

#[test]
fn every_published_kind_is_shown_or_dropped() {
    crate::kinds::check(include_str!("../../../tests/data/kinds/xmpp.json"), |event| {
        let Some(heard) = heard(&account(), event.as_str().expect("a stanza")) else {
            return Ok(None);
        };
        let Arrival { text, passages, attachments, .. } = &heard.arrival;
        match heard.refused {
            Some(reason) => Err(reason),
            None => Ok(Some(crate::kinds::shown(text, passages, attachments))),
        }
    });
}

#[test]
fn a_name_that_somebody_else_has_is_shown_heard_and_taken_back() {
    let account = account();
    let room = "team@rooms.example.org";
    let presence = |nick: &str, more: &str, inner: &str| {
        let xml = format!(
            "<presence from='{room}/{nick}' {more}><x xmlns='http://jabber.org/protocol/muc#user'>{inner}</x></presence>"
        );
        account.read_presence(&format!("{room}/{nick}"), &stanza(&xml)).len()
    };
    presence("claw", "", "<item/>");
    account.memory.lock().rooms.get_mut(room).expect("the room").nick = "claw_".to_owned();
    presence("claw_", "", "<item/><status code='110'/>");
    let note = account.account.note().expect("a note");
    assert!(note.contains("claw_") && note.contains("somebody else has claw"), "{note}");
    let said = "<message from='team@rooms.example.org/ann' type='groupchat' id='7'><body>claw: hi</body></message>";
    assert!(heard(&account, said).expect("a message").arrival.mentions_me);
    // The other one leaves: the name is asked for, and had.
    assert_eq!(presence("claw", "type='unavailable'", "<item/>"), 1);
    presence(
        "claw_",
        "type='unavailable'",
        "<item nick='claw'/><status code='303'/><status code='110'/>",
    );
    presence("claw", "", "<item/><status code='110'/>");
    assert_eq!(account.account.note(), None);
}
