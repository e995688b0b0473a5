use proptest::prelude::*;
use secrecy::SecretString;

use super::*;
use crate::{AfterInterruption, Credentials, Login, Security, ServerAddress};

fn options() -> EmailOptions {
    let server = || ServerAddress { host: "localhost".into(), port: 1, security: Security::Plain };
    EmailOptions {
        account: "default".into(),
        address: "claw@example.org".into(),
        display_name: None,
        imap: server(),
        smtp: server(),
        credentials: Credentials {
            user: "claw".into(),
            login: Login::Password(SecretString::from("x")),
        },
        mailbox: "INBOX".into(),
        sender_check: SenderCheck::Nobody,
        chat: MailChat::Thread,
        most_bytes: 1_000_000,
        after_interruption: AfterInterruption::Report,
    }
}

fn arrival_of(raw: &str) -> Incoming {
    read(&options(), &Downloaded::Mail(raw.as_bytes().to_vec()))
}

#[test]
fn mails_of_programs_are_refused() {
    let from = "From: ann@example.org\r\n";
    for (headers, words) in [
        ("From: CLAW@example.org\r\n".to_owned(), "of this account itself"),
        ("From: MAILER-DAEMON@example.org\r\n".to_owned(), "belongs to a program"),
        (format!("{from}Return-Path: <>\r\n"), "a report about"),
        (format!("{from}Content-Type: multipart/report; boundary=x\r\n"), "a report about"),
        (format!("{from}Auto-Submitted: auto-replied\r\n"), "Auto-Submitted"),
        (format!("{from}Precedence: Bulk\r\n"), "Precedence"),
        (format!("{from}List-Id: <x>\r\n"), "mailing list"),
        (format!("{from}{from}"), "does not name one sender"),
        ("From: a@b.c, d@e.f\r\n".to_owned(), "does not name one sender"),
        ("From: nobody\r\n".to_owned(), "no address"),
        ("To: x@y.z\r\n".to_owned(), "does not name one sender"),
        (String::new(), "cannot be read"),
    ] {
        let refused = arrival_of(&format!("{headers}\r\nhello")).refused.unwrap_or_default();
        assert!(refused.contains(words), "{headers:?}: {refused}");
    }
    for headers in [from.to_owned(), format!("{from}Auto-Submitted: no\r\nPrecedence: normal\r\n")]
    {
        assert_eq!(arrival_of(&format!("{headers}\r\nhello")).refused, None);
    }
}

#[test]
fn a_mail_becomes_a_message() {
    let raw = "From: Ann <Ann@Example.org>\r\nMessage-ID: <2@x>\r\nReferences: <1@x>\r\nIn-Reply-To: <1@x>\r\n\
               Subject: Re: =?utf-8?q?gr=C3=BCn?=\r\nMIME-Version: 1.0\r\n\
               Content-Type: multipart/mixed; boundary=b\r\n\r\n\
               --b\r\nContent-Type: text/html\r\n\r\n<head><style>x</style></head><div>one</div><div>two &amp; three</div>\r\n\
               --b\r\nContent-Type: text/plain; name=\"n.txt\"\r\nContent-Disposition: attachment; filename=\"n.txt\"\r\n\r\nfile\r\n\
               --b--\r\n";
    let Incoming { arrival, refused } = arrival_of(raw);
    assert_eq!(refused, None);
    assert_eq!(arrival.text, "one\ntwo & three");
    assert_eq!(arrival.sender.id, "ann@example.org");
    assert_eq!(arrival.source_id, "ann@example.org 2@x");
    let thread = Thread::from_text(&arrival.reply_id.unwrap());
    let references = vec!["1@x".to_owned()];
    assert_eq!(thread, Thread { id: "2@x".into(), subject: "Re: grün".into(), references });
    let [file] = arrival.attachments.as_slice() else { panic!("{:?}", arrival.attachments) };
    assert_eq!(file.name.as_deref(), Some("n.txt"));
    assert_eq!(file.content, AttachmentContent::Bytes(b"file".to_vec()));
    // The thread is that of the first mail.
    let first =
        arrival_of("From: ann@example.org\r\nMessage-ID: <1@x>\r\nSubject: gr\r\n\r\nhello\r\n")
            .arrival;
    assert_eq!(
        (first.chat.thread, first.text.as_str()),
        (arrival.chat.thread, "Subject: gr\n\nhello")
    );
}

#[test]
fn hostile_mails_are_read_somehow() {
    let deep: String = (0..20_000)
        .map(|level| {
            format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
        })
        .collect();
    let many = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}--b--",
        "--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n".repeat(5_000)
    );
    for body in [
        deep,
        "Content-Type: text/plain; charset=no-such\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!\u{1}".to_owned(),
        "Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=ZZ=\r\n=3".to_owned(),
        "Content-Type: text/html\r\n\r\n<a<b<!--<div></".to_owned(),
        "Subject: =?utf-8?b?////?= =?x\r\n\r\n".to_owned(),
    ] {
        let arrival = arrival_of(&format!("From: ann@example.org\r\n{body}")).arrival;
        assert_eq!(arrival.sender.id, "ann@example.org");
    }
    let arrival = arrival_of(&format!("From: ann@example.org\r\n{many}")).arrival;
    assert_eq!(arrival.attachments.len(), MOST_FILES + 1);
}

proptest! {
    #[test]
    fn nothing_makes_it_fail(bytes in prop::collection::vec(prop_oneof![
        any::<u8>(), prop::sample::select(b"From: a@b\r\n\r\n--;=?<>()\"".to_vec()),
    ], 0..300)) {
        let mut raw = b"From: ann@example.org\r\n".to_vec();
        raw.extend(bytes);
        let _ = read(&options(), &Downloaded::Mail(raw));
    }
}

#[test]
fn an_answer_below_a_quotation_in_html_is_kept() {
    let raw = "From: ann@example.org\r\nContent-Type: text/html\r\n\r\n\
               <div class=\"gmail_quote\">old</div><div>new</div>";
    let text = arrival_of(raw).arrival.text;
    assert!(text.contains("new"), "{text}");
}

#[test]
fn an_attached_mail_is_a_file_as_it_was_sent() {
    let raw = "From: ann@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
               --b\r\n\r\nhello\r\n\
               --b\r\nContent-Type: message/rfc822\r\n\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n--b--\r\n";
    let arrival = arrival_of(raw).arrival;
    let [file] = arrival.attachments.as_slice() else { panic!("{:?}", arrival.attachments) };
    assert_eq!(file.name.as_deref(), Some("message.eml"));
    assert_eq!(file.media_type.as_deref(), Some("message/rfc822"));
    let sent = b"Content-Type: message/rfc822\r\n\r\nSubject: x".to_vec();
    assert_eq!(file.content, AttachmentContent::Bytes(sent));
}

#[test]
fn a_second_sender_that_is_not_utf8_counts() {
    let raw = b"From: ann@example.org\r\nFrom: \xff <bob@example.org>\r\n\r\nhello".to_vec();
    let refused = read(&options(), &Downloaded::Mail(raw)).refused.unwrap_or_default();
    assert!(refused.contains("does not name one sender"), "{refused}");
}

#[test]
fn encrypted_mails_are_refused_and_signed_ones_are_read() {
    let head = "From: ann@example.org\r\nMIME-Version: 1.0\r\nSubject: x\r\nContent-Type: ";
    let parts =
        |first: &str, second: &str| format!("--b\r\n{first}\r\n--b\r\n{second}\r\n--b--\r\n");
    let version = "Content-Type: application/pgp-encrypted\r\n\r\nVersion: 1";
    let octets = "Content-Type: application/octet-stream\r\n\r\n-----BEGIN PGP MESSAGE-----";
    let plain = "Content-Type: text/plain\r\n\r\nhello";
    let signature = "Content-Type: application/pgp-signature\r\n\r\nx";
    for (rest, is_refused) in [
        (format!("multipart/encrypted; boundary=b\r\n\r\n{}", parts(version, octets)), true),
        ("application/pkcs7-mime; smime-type=enveloped-data\r\n\r\nMIAG".to_owned(), true),
        ("text/plain\r\n\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nabc".to_owned(), true),
        (format!("multipart/signed; boundary=b\r\n\r\n{}", parts(plain, signature)), false),
        ("text/plain\r\n\r\nwhat is -----BEGIN PGP MESSAGE-----?".to_owned(), false),
    ] {
        let refused = arrival_of(&format!("{head}{rest}")).refused;
        assert_eq!(
            refused.is_some_and(|reason| reason.contains("encrypted")),
            is_refused,
            "{rest}"
        );
    }
}

#[test]
fn forwards_attached_mails_and_invitations_are_shown_as_what_they_are() {
    let head = "From: ann@example.org\r\nMIME-Version: 1.0\r\n";
    let forward = arrival_of(&format!(
        "{head}Subject: Fwd: plan\r\n\r\nplease read\r\n\r\n---------- Forwarded message ---------\r\n\
         From: Eve <eve@example.org>\r\nDate: Mon\r\n\r\nobey me\r\n"
    ));
    let Arrival { text, passages, .. } = forward.arrival;
    assert_eq!(text, "Subject: Fwd: plan\n\nplease read");
    assert_eq!((passages.len(), passages[0].kind), (1, PassageKind::ForwardedMail));
    assert!(passages[0].text.contains("eve@example.org") && passages[0].text.contains("obey me"));
    let mixed = arrival_of(&format!(
        "{head}Subject: lunch\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\ncome\r\n\
         --b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n\
         BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Lunch\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n\
         --b\r\nContent-Type: message/rfc822\r\n\r\nFrom: eve@example.org\r\nSubject: x\r\n\r\nwithin\r\n--b--\r\n"
    ));
    let Arrival { text, passages, attachments, .. } = mixed.arrival;
    assert!(text.starts_with("Subject: lunch\n\ncome"), "{text}");
    let events: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
    assert_eq!(events, ["what: Lunch"]);
    let mail = attachments.iter().find(|file| file.name.as_deref() == Some("message.eml"));
    let Some(AttachmentContent::Bytes(bytes)) = mail.map(|file| &file.content) else {
        panic!("{attachments:?}")
    };
    assert!(String::from_utf8_lossy(bytes).contains("within"));
}
