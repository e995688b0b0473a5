//! What the model is shown of a message: its text with its origin, and its files.
//!
//! In a group many people write. Each line that somebody else wrote is quoted, so that no text can look like a line of
//! this program or of another person.

use std::io;
use std::ops::Range;
use std::path::Path;

use myclaw_channels::{Arrival, Attachment, AttachmentContent, ChatKind, FileOf, Passage, Quoted};
use myclaw_files::{Access, Durability, SharedDirectory, create_private_directory};
use myclaw_llm::ContentBlock;
use myclaw_llm::outside::{plain_name, quote};
use myclaw_tools::picture_from_bytes;

use crate::message::MessageFile;

/// Longest name of a person, a group or a file that is shown, in characters.
const MOST_NAME_CHARS: usize = 64;
/// Longest text of a message that is quoted because another one answers it, in characters.
const MOST_QUOTED_CHARS: usize = 1_000;
/// Longest text of a forward, a share and the like that is shown, in characters.
const MOST_PASSAGE_CHARS: usize = 20_000;
/// Text files up to this size are shown whole, in bytes.
const MOST_SHOWN_BYTES: usize = 64 * 1024;
/// Directory of the workspace for other files.
const DIRECTORY: &str = "attachments";

/// The text of a message for the model, with the parts of it that the program did not write.
pub(super) struct Worded {
    pub(super) text: String,
    /// The bytes that the sender wrote, unless each of their lines is quoted.
    pub(super) outside: Vec<Range<usize>>,
}

impl Worded {
    /// The text of a later version of a message.
    pub(super) fn edited(self) -> Self {
        let text = edited(&self.text);
        let more = text.len() - self.text.len();
        let moved = |part: Range<usize>| part.start + more..part.end + more;
        Self { text, outside: self.outside.into_iter().map(moved).collect() }
    }
}

/// The text of a message.
pub(super) fn text(arrival: &Arrival) -> Worded {
    let mut outside = Vec::new();
    let mut lines = Vec::new();
    let is_group = arrival.chat.kind == ChatKind::Group;
    if is_group {
        let group =
            arrival.chat.title.as_deref().map(|title| format!(" in the group {}", plain(title)));
        lines.push(format!(
            "[Message from {} ({}:{}){}; the quoted lines are theirs]",
            plain(arrival.sender.name.as_deref().unwrap_or("somebody")),
            arrival.channel,
            plain(&arrival.sender.id),
            group.unwrap_or_default(),
        ));
    }
    let (earlier, later): (Vec<_>, Vec<_>) =
        arrival.passages.iter().partition(|passage| passage.is_earlier());
    lines.extend(earlier.into_iter().map(shown));
    lines.extend(arrival.reply_to.as_ref().map(|quoted| answered(quoted, &arrival.attachments)));
    if is_group && (later.is_empty() || !arrival.text.is_empty()) {
        lines.push(quote(&arrival.text, "> "));
    } else if !arrival.text.is_empty() {
        let from = lines.iter().map(|line| line.len() + 1).sum();
        outside.push(from..from + arrival.text.len());
        lines.push(arrival.text.clone());
    }
    lines.extend(later.into_iter().map(shown));
    lines.extend(arrival.attachments.iter().map(attached));
    Worded { text: lines.join("\n"), outside }
}

/// What somebody else wrote, with a line that says what it is.
fn shown(passage: &Passage) -> String {
    let author = passage.author.as_deref().map(|name| format!(", written by {}", plain(name)));
    let what = format!("{}{}", passage.kind.words(), author.unwrap_or_default());
    if passage.text.trim().is_empty() {
        return format!("[{what}, without text]");
    }
    let text = cut(&passage.text, MOST_PASSAGE_CHARS);
    format!("[{what}: the lines quoted twice]\n{}", quote(&text, "> > "))
}

/// The message that is answered.
fn answered(quoted: &Quoted, files: &[Attachment]) -> String {
    let sender = quoted.sender.as_deref().map(plain);
    let text = cut(&quoted.text, MOST_QUOTED_CHARS);
    if !text.trim().is_empty() {
        let sender = sender.unwrap_or_else(|| "an earlier message".to_owned());
        let head = format!("[In reply to {sender}, who wrote the lines quoted twice]");
        return format!("{head}\n{}", quote(&text, "> > "));
    }
    let of = sender.map(|sender| format!(" of {sender}")).unwrap_or_default();
    match files.iter().any(|file| file.of == FileOf::Answered) {
        true => format!("[In reply to a message{of} without text]"),
        false => format!("[In reply to an earlier message{of}, whose text is not known here]"),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// A file of the message.
fn attached(attachment: &Attachment) -> String {
    let name = plain(attachment.name.as_deref().unwrap_or("file"));
    let place = match attachment.of {
        FileOf::Message => "attached",
        FileOf::Answered => "attached to the message that is answered",
        FileOf::Passage => "attached to what others wrote",
    };
    match &attachment.content {
        AttachmentContent::Bytes(bytes) => format!("[{place}: {name}, {} bytes]", bytes.len()),
        AttachmentContent::Missing(reason) => {
            format!("[{place}: {name}, which is not here: {}]", plain(reason))
        }
    }
}

/// A message as one text of its sender, for readers of plain text: what others wrote is quoted.
pub fn as_one_text(arrival: &Arrival) -> String {
    let own = Some(arrival.text.clone()).filter(|text| !text.is_empty());
    let others = arrival.passages.iter().map(shown);
    own.into_iter().chain(others).collect::<Vec<_>>().join("\n")
}

/// The text of a message of a group that is not addressed to the agent. Its files are not kept.
pub(super) fn overheard(arrival: &Arrival, most: usize) -> String {
    let mut arrival = arrival.clone();
    arrival.text = arrival.text.chars().take(most).collect();
    for passage in &mut arrival.passages {
        passage.text = cut(&passage.text, most);
    }
    for attachment in &mut arrival.attachments {
        attachment.content =
            AttachmentContent::Missing("files of such messages are not kept".to_owned());
    }
    let shown = text(&arrival).text;
    if arrival.edits.is_some() { format!("[A later version of a message]\n{shown}") } else { shown }
}

/// The text of a later version of a message.
pub fn edited(text: &str) -> String {
    format!("[The person edited an earlier message. It says now:]\n{text}")
}

/// A name that cannot pose as anything else: one short line without brackets.
fn plain(name: &str) -> String {
    let name = plain_name(name, MOST_NAME_CHARS);
    if name.is_empty() { "somebody".to_owned() } else { format!("\"{name}\"") }
}

/// The files of a message.
pub fn files(arrival: &Arrival) -> Vec<MessageFile> {
    arrival
        .attachments
        .iter()
        .filter_map(|attachment| match &attachment.content {
            AttachmentContent::Bytes(bytes) => {
                let name = file_name(attachment.name.as_deref().unwrap_or("file"));
                Some(MessageFile { name, bytes: bytes.clone() })
            }
            AttachmentContent::Missing(_) => None,
        })
        .collect()
}

/// A name without anything that could be a path.
pub fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let from = name.chars().count().saturating_sub(MOST_NAME_CHARS);
    let name: String = name.trim().trim_start_matches('.').chars().skip(from).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}

/// A file that came with a message.
pub(crate) struct ShownFile {
    /// Its name, without anything that could be a path.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The transcript of a voice note, or why there is no transcript. `None` for other files, and without speech recognition.
    pub(crate) heard: Option<Result<String, String>>,
}

/// What the model is shown of a message with files: what was `said`, pictures, short texts, and where the others are.
/// `refuses` gives the reason if the directory takes no file of that size. Blocks.
///
/// # Errors
/// A file cannot be written; the text says why.
pub(crate) fn content(
    said: Option<ContentBlock>,
    files: Vec<ShownFile>,
    message: &str,
    (workspace, refuses): (&Path, &dyn Fn(u64) -> Option<String>),
) -> Result<Vec<ContentBlock>, String> {
    let mut blocks: Vec<_> = said.into_iter().collect();
    for (number, ShownFile { name, bytes, heard }) in files.into_iter().enumerate() {
        if let Ok(picture) = picture_from_bytes(bytes.clone()) {
            blocks.push(ContentBlock::Image(picture));
            continue;
        }
        let short = text_of(&bytes).filter(|text| text.len() <= MOST_SHOWN_BYTES);
        let shown = match short {
            Some(text) => format!("[the file \"{name}\", quoted]\n{}", quote(text, "> ")),
            None => {
                let place = match refuses(bytes.len() as u64) {
                    Some(why) => format!("was not kept: {why}"),
                    None => keep(workspace, (&format!("{message}-{number}-{name}"), &bytes))
                        .map_err(|error| format!("cannot save the file \"{name}\": {error}"))?,
                };
                match heard {
                    None => format!("[the file \"{name}\" {place}]"),
                    Some(Ok(text)) => format!(
                        "[transcript of the voice note \"{name}\", which {place}; a machine made it, so words may be \
                         wrong]\n{}",
                        quote(&text, "> ")
                    ),
                    Some(Err(why)) => format!(
                        "[the voice note \"{name}\" {place}; there is no transcript: {}]",
                        why.replace(['[', ']', '\n'], " ")
                    ),
                }
            }
        };
        blocks.push(ContentBlock::text(shown));
    }
    Ok(blocks)
}

/// The text of a text file. PDFs are never treated as text, even if all their bytes are ASCII.
pub fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_text = !text.contains('\0') && !text.starts_with("%PDF-");
    is_text.then_some(text)
}

/// Saves a file in the workspace; gives where it is. A second call finds it. The session may have put anything there, so no
/// link is followed; then the file is not kept, since the session itself can remove what is in the way.
fn keep(workspace: &Path, (name, bytes): (&str, &[u8])) -> io::Result<String> {
    create_private_directory(workspace)?;
    let kept = SharedDirectory::open(workspace)?
        .make_directory(DIRECTORY, Access::Owner)
        .and_then(|at| at.write(name, bytes, (Access::Everyone, Durability::Synced)));
    match kept {
        Ok(()) => Ok(format!("is {DIRECTORY}/{name}")),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(format!("was not kept, because of {DIRECTORY} in the workspace: {error}"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
