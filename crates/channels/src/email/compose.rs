//! Mails that go out.

use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;
use serde::{Deserialize, Serialize};

use super::EmailOptions;
use crate::matrix::render;
use crate::{Part, PartFile};

/// Longest subject, in characters.
pub(super) const MOST_SUBJECT: usize = 200;
/// Longest subject that is made of a text, in characters.
const MOST_OWN_SUBJECT: usize = 60;
/// Most mails that a reply refers to, besides the first one of the thread.
pub(super) const MOST_REFERENCES: usize = 10;
/// Longest id of a mail that is kept, in bytes. Lines of a header have at most 998.
pub(super) const MOST_ID: usize = 500;

/// What an answer refers to. It is kept as the id to which an answer refers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    /// The id of the mail, without angle brackets.
    pub(super) id: String,
    /// Its subject.
    pub(super) subject: String,
    /// The ids of the mails before it, the oldest first.
    pub(super) references: Vec<String>,
}

impl Thread {
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// A mail in its final form.
pub(super) struct Mail {
    /// Its id, with angle brackets.
    pub(super) id: String,
    pub(super) bytes: Vec<u8>,
}

/// The thread that a part of the agent's own begins.
pub(super) fn new_thread(options: &EmailOptions, part: &Part) -> Thread {
    Thread { id: id_of(options, part), subject: own_subject(&part.text), references: Vec::new() }
}

/// The same for the same part, so that a repetition can be recognised.
fn id_of(options: &EmailOptions, part: &Part) -> String {
    let domain = options.address.rsplit('@').next().unwrap_or("localhost");
    format!("{}@{domain}", part.id)
}

/// Writes the mail of a part.
///
/// # Errors
/// It cannot be sent; the text says why.
pub(super) fn compose(
    options: &EmailOptions,
    part: &Part,
    thread: &Thread,
    file: Option<Vec<u8>>,
) -> Result<Mail, String> {
    let to = part.target.chat.as_str();
    if !is_plain_address(to) {
        return Err(
            "this is no address that every server takes (ASCII, one @, no quotes)".to_owned()
        );
    }
    let id = id_of(options, part);
    let subject = match thread.id.is_empty() {
        true => own_subject(&part.text),
        false => reply_subject(&thread.subject),
    };
    let sender = options.display_name.as_deref();
    let mut builder = MessageBuilder::new()
        .from(Address::new_address(sender, options.address.as_str()))
        .to(Address::new_address(None::<&str>, to))
        .subject(subject)
        .message_id(id.as_str())
        // Programs that follow RFC 3834 do not answer such mails.
        .header(
            "Auto-Submitted",
            Raw::new(match thread.id.is_empty() {
                true => "auto-generated",
                false => "auto-replied",
            }),
        );
    if !thread.id.is_empty() {
        let mut references = thread.references.clone();
        references.push(thread.id.clone());
        builder = builder
            .in_reply_to(thread.id.as_str())
            .references(MessageId::new_list(references.into_iter()));
    }
    builder = match (&part.file, file) {
        (Some(PartFile { name, .. }), Some(bytes)) => {
            let media_type = crate::form::media_type(name);
            builder.text_body(name.as_str()).attachment(media_type, name.as_str(), bytes)
        }
        _ => {
            let repeat = if part.is_repeat { "(This may be a repetition.)\n\n" } else { "" };
            let text = format!("{repeat}{}", part.text);
            let html = render(&text);
            builder.text_body(text).html_body(format!("<html><body>\n{html}\n</body></html>\n"))
        }
    };
    let bytes = builder.write_to_vec().map_err(|error| error.to_string())?;
    Ok(Mail { id: format!("<{id}>"), bytes })
}

/// The subject of a reply.
fn reply_subject(subject: &str) -> String {
    let subject = subject.trim();
    let is_reply = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    if is_reply { subject.to_owned() } else { format!("Re: {subject}").trim_end().to_owned() }
}

/// The subject of a mail that answers none: the first line of its text, without the marks of Markdown.
fn own_subject(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String =
        line.chars().filter(|c| !c.is_control() && !matches!(c, '#' | '*' | '`' | '_')).collect();
    let line = line.trim();
    if line.chars().count() <= MOST_OWN_SUBJECT {
        return if line.is_empty() { "Message".to_owned() } else { line.to_owned() };
    }
    let cut: String = line.chars().take(MOST_OWN_SUBJECT).collect();
    let end = cut.rfind(' ').filter(|at| *at > 0).unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

/// Whether an address can stand in a command of SMTP: nothing in it ends the command or begins another.
pub(super) fn is_plain_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_plain = |part: &str| {
        let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"<>()[]\\,;:\"@".contains(&byte);
        !part.is_empty() && !part.bytes().any(is_odd)
    };
    address.len() <= 254 && is_plain(local) && is_plain(domain)
}

#[cfg(test)]
mod tests;
