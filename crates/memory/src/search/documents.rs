//! What of a session is in the index: each message of a person with the answers to it.

use std::collections::HashSet;

use myclaw_session::{Entry, EntryId, ReadSession, Role, SessionKey, TranscriptMessage};

use super::segment::{Builder, Document};
use super::words::each_word;

/// Most characters of a message that are searched.
const MOST_CHARS: usize = 4_000;
/// Most characters of a document.
const MOST_DOCUMENT_CHARS: usize = 12_000;
/// Most characters of a passage in a result.
const MOST_SHOWN_CHARS: usize = 600;
/// How a message of the program under the user's name begins.
const REMARKS: [&str; 3] = ["[The user ", "[Message from MyClaw", "[background job"];

/// Adds the documents of a session, without the `hidden` rows and the answers to them.
pub(super) fn add_session(
    builder: &mut Builder,
    key: &SessionKey,
    log: &dyn ReadSession,
    hidden: &HashSet<String>,
) {
    builder.begin(key);
    let mut current: Option<(Document, String)> = None;
    let mut is_hidden = false;
    for message in messages(log) {
        if is_persons(&message) {
            if let Some((document, text)) = current.take() {
                builder.add(document, &text);
            }
            is_hidden = hidden.contains(&message.id.to_string());
            let second = u32::try_from(message.ts / 1_000).unwrap_or(u32::MAX);
            let document = Document { session: key.clone(), row: message.id, second };
            current = (!is_hidden).then(|| (document, beginning(&message.content).to_owned()));
        } else if let Some((_, text)) = &mut current
            && !is_hidden
            && !hidden.contains(&message.id.to_string())
            && message.role == Role::Assistant
            && text.len() < MOST_DOCUMENT_CHARS
        {
            text.push('\n');
            text.push_str(beginning(&message.content));
        }
    }
    if let Some((document, text)) = current {
        builder.add(document, &text);
    }
}

/// When the message with the id `row` was written, and the passage that begins with it, around the `words`. `None` if there is
/// no such message.
pub(super) fn passage_of(
    log: &dyn ReadSession,
    row: EntryId,
    words: &[String],
) -> Option<(u64, String)> {
    let mut found = messages(log).skip_while(|message| message.id != row);
    let first = found.next()?;
    let mut texts = vec![("user", first.content)];
    for message in found.take_while(|message| !is_persons(message)) {
        if message.role == Role::Assistant && !message.content.trim().is_empty() {
            texts.push(("assistant", message.content));
        }
        if texts.len() > 4 {
            break;
        }
    }
    let share = MOST_SHOWN_CHARS / texts.len();
    let lines = texts.iter().map(|(role, text)| format!("{role}: {}", around(text, words, share)));
    Some((first.ts, lines.collect::<Vec<_>>().join("\n")))
}

fn messages(log: &dyn ReadSession) -> impl Iterator<Item = TranscriptMessage> {
    log.entries().filter_map(|entry| match entry {
        Ok(Entry::Message(message)) => Some(message),
        _ => None,
    })
}

fn is_persons(message: &TranscriptMessage) -> bool {
    let is_remark = || REMARKS.iter().any(|beginning| message.content.starts_with(beginning));
    message.role == Role::User && !message.content.trim().is_empty() && !is_remark()
}

fn beginning(text: &str) -> &str {
    &text[..text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(at, _)| at)]
}

/// The part of the text with the most of the words, on one line.
fn around(text: &str, words: &[String], most: usize) -> String {
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let fits = |from: usize| {
        let mut length = 0;
        let is_room = |piece: &&&str| {
            length += piece.chars().count() + 1;
            length <= most
        };
        from + pieces[from..].iter().take_while(is_room).count().max(1)
    };
    if pieces.is_empty() {
        return String::new();
    }
    let is_wanted: Vec<bool> = pieces
        .iter()
        .map(|piece| {
            let mut is_wanted = false;
            each_word(piece, |word| is_wanted |= words.iter().any(|wanted| wanted == word));
            is_wanted
        })
        .collect();
    let count = |from: usize| {
        is_wanted[from..fits(from).min(pieces.len())].iter().filter(|it| **it).count()
    };
    // Steps of some words are close enough, and a long text takes less time.
    let best =
        (0..pieces.len()).step_by(8).max_by_key(|from| (count(*from), std::cmp::Reverse(*from)));
    let from = best.unwrap_or(0);
    let to = fits(from).min(pieces.len());
    let shown: String = pieces[from..to].join(" ").chars().take(most).collect();
    let (before, after) =
        (if from > 0 { "… " } else { "" }, if to < pieces.len() { " …" } else { "" });
    format!("{before}{shown}{after}")
}
