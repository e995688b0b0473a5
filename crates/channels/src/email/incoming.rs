//! Mails that come in, as messages.

use mail_parser::decoders::html::html_to_text;
use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders as _, PartType};

use super::compose::{MOST_ID, MOST_REFERENCES, MOST_SUBJECT, Thread, is_plain_address};
use super::{EMAIL, EmailOptions, MailChat, SenderCheck};
use super::{authenticity, automatic, calendar, flat, quote};
use crate::arrival::hash;
use crate::{Arrival, Attachment, AttachmentContent, Chat, FileOf, Passage, PassageKind, Sender};

/// Most files of a mail that are taken.
const MOST_FILES: usize = 20;
/// Longest text that the model is shown, in bytes.
const MOST_TEXT: usize = 200_000;
/// Most bytes of HTML that are read: its layout is many times its text.
const MOST_HTML: usize = 2_000_000;

/// A mail.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) arrival: Arrival,
    /// Why it gets no answer, independent of who may write.
    pub(super) refused: Option<String>,
}

/// What was downloaded of a mail.
pub(super) enum Downloaded {
    /// All of it.
    Mail(Vec<u8>),
    /// Its header; the rest is too much, and has this many bytes.
    Header(Vec<u8>, u64),
}

/// Reads a mail. Whatever its form, there is a message, so that nothing disappears.
pub(super) fn read(options: &EmailOptions, downloaded: &Downloaded) -> Incoming {
    let (Downloaded::Mail(bytes) | Downloaded::Header(bytes, _)) = downloaded;
    let Some(flat) = flat::flat(bytes) else {
        return unreadable(options, bytes, "it has too many parts");
    };
    let parsed = MessageParser::default().parse(&flat);
    let Some(mail) = parsed.filter(|mail| !mail.headers().is_empty()) else {
        return unreadable(options, bytes, "it has no header");
    };
    let (sender, name) = match sender_of(&mail) {
        Ok(sender) => sender,
        Err(reason) => return unreadable(options, bytes, reason),
    };
    let id = mail.message_id().filter(|id| is_plain_id(id)).map(str::to_owned);
    let references = ids(mail.references().as_text_list());
    let answers = ids(mail.in_reply_to().as_text_list());
    let refused = refusal(options, &mail, &sender);
    let source_id = match (&refused, &id) {
        // The id of another's mail must not be used up by a forged one.
        (None, Some(id)) => short(&format!("{sender} {id}")),
        _ => hash(bytes),
    };
    let root = references.first().or(answers.first()).or(id.as_ref());
    let thread = match options.chat {
        MailChat::Person => None,
        MailChat::Thread => Some(hash(root.unwrap_or(&source_id).as_bytes())[..16].to_owned()),
    };
    let subject = subject_of(&mail);
    let is_answer = !references.is_empty() || !answers.is_empty();
    let (text, passages, attachments) = match downloaded {
        Downloaded::Mail(_) => {
            let (text, forward) = text_of(&mail, &subject, is_answer);
            let passages = forward.into_iter().chain(calendar::events(&mail)).collect();
            (text, passages, files_of(&mail))
        }
        Downloaded::Header(_, size) => {
            (with_subject(&subject, ""), Vec::new(), vec![too_large(options, *size)])
        }
    };
    let reply_id = id.map(|id| {
        let mut references = if references.is_empty() { answers } else { references };
        let over = references.len().saturating_sub(MOST_REFERENCES);
        // The first one names the thread.
        references.drain(over.min(1)..over);
        Thread { id, subject: subject.clone(), references }.to_text()
    });
    let arrival = Arrival {
        channel: EMAIL.to_owned(),
        account: options.account.clone(),
        chat: Chat { id: sender.clone(), thread, title: Some(subject), ..Chat::default() },
        source_id,
        reply_id,
        sender: Sender { id: sender, name, handle: None, other_id: None },
        text,
        passages,
        attachments,
        mentions_me: true,
        edits: None,
        reply_to: None,
        ..Arrival::default()
    };
    Incoming { arrival, refused }
}

/// The address and the name of the only sender, in lower case.
fn sender_of(mail: &Message<'_>) -> Result<(String, Option<String>), &'static str> {
    // Raw fields leave out those that are not UTF-8, which count as well.
    let headers = mail.headers().iter();
    let fields = headers.filter(|header| header.name().eq_ignore_ascii_case("From")).count();
    let senders: Vec<_> = mail.from().into_iter().flat_map(|from| from.iter()).collect();
    let ([sender], 1) = (senders.as_slice(), fields) else {
        return Err("it does not name one sender");
    };
    let address = sender.address().unwrap_or_default().trim().to_lowercase();
    match is_plain_address(&address) {
        true => Ok((address, sender.name().map(str::to_owned))),
        false => Err("its sender has no address that can be answered"),
    }
}

fn refusal(options: &EmailOptions, mail: &Message<'_>, sender: &str) -> Option<String> {
    if let Some(reason) = automatic::reason(mail, sender, &options.address) {
        return Some(format!("{reason}, so it is not answered"));
    }
    let domain = sender.rsplit('@').next().unwrap_or_default();
    let forged = match &options.sender_check {
        SenderCheck::Nobody => None,
        SenderCheck::By(server) => authenticity::check(mail, server, domain).err(),
    };
    forged.or_else(|| is_encrypted(mail).then(|| ENCRYPTED.to_owned()))
}

const ENCRYPTED: &str = "it is encrypted (PGP or S/MIME), which this channel cannot read";

/// Whether what it says is within an encryption: PGP/MIME (RFC 3156), PGP in the text, or S/MIME (RFC 8551).
fn is_encrypted(mail: &Message<'_>) -> bool {
    let is_of = |main: &str, subs: &[&str]| {
        mail.content_type().is_some_and(|found| {
            let sub = found.subtype().unwrap_or_default();
            found.ctype().eq_ignore_ascii_case(main)
                && subs.iter().any(|known| sub.eq_ignore_ascii_case(known))
        })
    };
    let text = mail.body_text(0).unwrap_or_default();
    is_of("multipart", &["encrypted"])
        || is_of("application", &["pkcs7-mime", "x-pkcs7-mime"])
        || text.trim_start().starts_with("-----BEGIN PGP MESSAGE-----")
}

/// A message that stands for a mail that cannot be read. `bytes` are the mail, or name it.
pub(super) fn unreadable(options: &EmailOptions, bytes: &[u8], reason: &str) -> Incoming {
    let unknown = || "unknown".to_owned();
    let arrival = Arrival {
        channel: EMAIL.to_owned(),
        account: options.account.clone(),
        chat: Chat { id: unknown(), ..Chat::default() },
        source_id: hash(bytes),
        reply_id: None,
        sender: Sender { id: unknown(), name: None, handle: None, other_id: None },
        text: String::new(),
        attachments: Vec::new(),
        mentions_me: false,
        edits: None,
        reply_to: None,
        passages: Vec::new(),
        ..Arrival::default()
    };
    Incoming { arrival, refused: Some(format!("the mail cannot be read: {reason}")) }
}

/// A message that stands for a mail that the parser cannot take.
pub(super) fn unparsable(options: &EmailOptions, downloaded: &Downloaded) -> Incoming {
    let (Downloaded::Mail(bytes) | Downloaded::Header(bytes, _)) = downloaded;
    unreadable(options, bytes, "its form is broken")
}

fn subject_of(mail: &Message<'_>) -> String {
    let subject = mail.subject().unwrap_or_default();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let subject: String = subject.chars().map(plain).take(MOST_SUBJECT).collect();
    subject.trim().to_owned()
}

/// What the sender wrote, and the mail that they pass on.
fn text_of(mail: &Message<'_>, subject: &str, is_answer: bool) -> (String, Option<Passage>) {
    let lower = subject.to_lowercase();
    let is_forward = ["fwd:", "fw:", "wg:", "tr:"].iter().any(|start| lower.starts_with(start));
    let texts = mail.text_bodies().filter_map(|part| match &part.body {
        PartType::Text(text) => Some(text.to_string()),
        PartType::Html(html) => {
            let html = &html[..html.floor_char_boundary(MOST_HTML)];
            let new = if is_forward { html } else { quote::new_html(html) };
            let text = html_to_text(&quote::with_breaks(new));
            // A person who answers below the quotation has written nothing above it.
            let is_all = !text.trim().is_empty() || new.len() == html.len();
            Some(if is_all { text } else { html_to_text(&quote::with_breaks(html)) })
        }
        _ => None,
    });
    let text = texts.map(|text| text.trim_end().to_owned()).collect::<Vec<_>>().join("\n\n");
    let (mut text, forwarded) = match is_forward {
        true => quote::split_forward(&text),
        false => (quote::new_text(&text), None),
    };
    if text.len() > MOST_TEXT {
        text.truncate(text.floor_char_boundary(MOST_TEXT));
        text.push_str("\n[The rest of the mail is cut off.]");
    }
    let forward = forwarded.map(|text| Passage::new(PassageKind::ForwardedMail, None, text));
    // A command stays one.
    let is_whole = is_answer || text.starts_with('/');
    (if is_whole { text } else { with_subject(subject, &text) }, forward)
}

fn with_subject(subject: &str, text: &str) -> String {
    if subject.is_empty() {
        return text.to_owned();
    }
    format!("Subject: {subject}\n\n{text}").trim_end().to_owned()
}

fn too_large(options: &EmailOptions, size: u64) -> Attachment {
    let most = options.most_bytes;
    // Longer reasons are cut off before the model sees them.
    let reason = format!("{size} bytes, and mediaMaxMb allows {most}");
    let content = AttachmentContent::Missing(reason);
    Attachment {
        name: Some("the rest of the mail".to_owned()),
        media_type: None,
        content,
        of: FileOf::Message,
    }
}

fn files_of(mail: &Message<'_>) -> Vec<Attachment> {
    let mut files: Vec<Attachment> =
        mail.attachments().filter(|part| !is_signature(part)).take(MOST_FILES).map(file).collect();
    let over = mail.attachment_count().saturating_sub(MOST_FILES);
    if over > 0 {
        let reason = format!("{over} files above the limit of {MOST_FILES}");
        let content = AttachmentContent::Missing(reason);
        files.push(Attachment {
            name: Some("more files".to_owned()),
            media_type: None,
            content,
            of: FileOf::Message,
        });
    }
    files
}

/// Signatures of OpenPGP and S/MIME are for programs.
fn is_signature(part: &MessagePart<'_>) -> bool {
    let subtype = part.content_type().and_then(|kind| kind.subtype());
    subtype.is_some_and(|subtype| subtype.to_ascii_lowercase().ends_with("-signature"))
}

fn file(part: &MessagePart<'_>) -> Attachment {
    let kind = part.content_type();
    let media_type = kind.map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", flat::original_type(kind.ctype())),
        None => flat::original_type(kind.ctype()).to_owned(),
    });
    let is_mail = matches!(media_type.as_deref(), Some("message/rfc822" | "message/global"));
    let usual = if is_mail { "message.eml" } else { "file" };
    let name = part.attachment_name().unwrap_or(usual).to_owned();
    let bytes = part.contents();
    let bytes = if is_mail { flat::original(bytes) } else { bytes.to_vec() };
    let content = AttachmentContent::Bytes(bytes);
    Attachment { name: Some(name), media_type, content, of: FileOf::Message }
}

fn ids(list: Option<&[std::borrow::Cow<'_, str>]>) -> Vec<String> {
    let ids = list.unwrap_or_default().iter().filter(|id| is_plain_id(id));
    ids.map(|id| id.to_string()).collect()
}

/// Whether an id can be written into a header.
fn is_plain_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>".contains(&byte);
    !id.is_empty() && id.len() <= MOST_ID && id.bytes().all(is_plain)
}

/// A text as it is if it is short, else its hash.
fn short(text: &str) -> String {
    if text.len() <= MOST_ID { text.to_owned() } else { hash(text.as_bytes()) }
}

#[cfg(test)]
mod tests;
