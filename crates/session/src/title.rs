//! What a session is called while its owner has given it no title: made from its first exchange, without a model.

use serde_json::{Map, Value};

use crate::{About, Entry, FIRST_WORDS, Role};

/// Rows of a log in which its first exchange is looked for.
const MOST_EXCHANGE_ROWS: usize = 50;
/// A longer message may end with what it asks for.
const LONG_MESSAGE_CHARS: usize = 600;
/// Longest line that counts as a question below other text.
const MOST_QUESTION_CHARS: usize = 200;
/// Sentences of an answer in which a title is looked for.
const MOST_SENTENCES: usize = 4;
/// Words that do not say what a session is about.
const EMPTY_WORDS: &str = " a about again an and are assist at bitte bonjour can check ciao code continue could do does done \
                           error explain file fix for go got great hallo hello help here hey hi hola how i i'd i'll i'm in is \
                           it it's let let's look make me my no now of off ok okay on out please problem read review run \
                           salut see so sure test thanks that that's the there these thing this those to today try up us \
                           want what what's wrong why will with work would yes you your ";
/// Most characters of a title.
const MOST_TITLE_CHARS: usize = 60;
/// Most characters of the first words that the index holds.
const MOST_FIRST_CHARS: usize = 160;
/// A first sentence shorter than this says too little.
const LEAST_SENTENCE_CHARS: usize = 12;
/// What people say before they say what they want, in lower case.
const COURTESIES: [&str; 16] = [
    "please ",
    "hi, ",
    "hi! ",
    "hello, ",
    "hello! ",
    "hey, ",
    "hey! ",
    "can you ",
    "could you ",
    "would you ",
    "will you ",
    "i want you to ",
    "i would like you to ",
    "i'd like you to ",
    "i need you to ",
    "kindly ",
];

/// The beginning of a message on one line, for lists.
pub fn first_words(message: &str) -> String {
    let message = without_addresses(message);
    let words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().filter(|char| !char.is_control()).collect();
    shortened(&words, MOST_FIRST_CHARS)
}

/// `text` with the names of the links that editors write, and without their addresses.
fn without_addresses(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[@") {
        let Some((name, address)) = link.split_once(']') else { break };
        let Some((_, after)) = address.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            break;
        };
        short.push_str(before);
        short.push('@');
        short.push_str(name);
        rest = after;
    }
    short.push_str(rest);
    short
}

/// The title of a session that begins with `message`: its first sentence without courtesies and marks, 60 characters
/// at most. `None` if there are no words in it.
pub fn automatic_title(message: &str) -> Option<String> {
    let is_said = |line: &&str| !line.starts_with("```") && line.contains(char::is_alphanumeric);
    let line = message.lines().map(str::trim).find(is_said)?;
    let line = line.trim_start_matches(['#', '>', '*', '-', ' ', '\t']);
    let words = first_words(without_courtesies(line));
    let end = words
        .char_indices()
        .zip(words.chars().skip(1))
        .find(|((at, char), next)| {
            *next == ' ' && matches!(char, '.' | '?' | '!') && *at >= LEAST_SENTENCE_CHARS
        })
        .map(|((at, char), _)| if char == '.' { at } else { at + char.len_utf8() });
    let sentence = end.map_or(words.as_str(), |end| &words[..end]);
    Some(shortened(sentence, MOST_TITLE_CHARS)).filter(|title| !title.is_empty())
}

/// The title of a session that begins with `message` and `answer`: that of the message, or, where it says too little, such as
/// "explain this", the heading or the first telling sentence of the answer.
pub fn exchange_title(message: &str, answer: &str) -> Option<String> {
    let asked = automatic_title(question_below(message).unwrap_or(message));
    if asked.as_deref().is_some_and(tells) {
        return asked;
    }
    let line = answer.lines().map(str::trim).find(|line| line.contains(char::is_alphanumeric));
    let heading = line.filter(|line| line.starts_with('#')).and_then(automatic_title);
    let unmarked = answer.replace(['*', '`', '#', '>'], "");
    let sentences = unmarked.split_inclusive(['.', '!', '?', '\n', ':']).take(MOST_SENTENCES);
    let sentence = || sentences.filter_map(automatic_title).find(|sentence| tells(sentence));
    let of_answer = heading.filter(|heading| tells(heading)).or_else(sentence);
    of_answer.map(|title| title.trim_end_matches(['.', ':']).to_owned()).or(asked)
}

/// The title that is shown for an entry of the index: the owner's, the one that was made after the first exchange, or one
/// of the first words.
pub fn indexed_title(extra: Option<&Map<String, Value>>) -> Option<String> {
    let about = About::from_extra(extra);
    let first = || automatic_title(extra?.get(FIRST_WORDS)?.as_str()?);
    about.title.or(about.automatic_title).or_else(first)
}

/// The title of the session that begins with `entries`, made of its first exchange.
pub fn title_of_beginning(entries: impl Iterator<Item = Entry>) -> Option<String> {
    let (mut asked, mut answer): (Option<String>, Option<String>) = (None, None);
    for entry in entries.take(MOST_EXCHANGE_ROWS) {
        let Entry::Message(message) = entry else { continue };
        match message.role {
            Role::User if answer.is_some() => break,
            Role::User => asked = Some(message.content),
            Role::Assistant if !message.content.trim().is_empty() => answer = Some(message.content),
            _ => {}
        }
    }
    exchange_title(&asked?, &answer.unwrap_or_default())
}

/// A short question at the end of a long message, such as one that begins with a pasted text.
fn question_below(message: &str) -> Option<&str> {
    message.char_indices().nth(LONG_MESSAGE_CHARS)?;
    let last = message.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let is_question = last.ends_with(['?', '？']) && last.chars().count() <= MOST_QUESTION_CHARS;
    is_question.then_some(last)
}

/// Whether a title says what the session is about.
fn tells(title: &str) -> bool {
    let is_part = |char: char| !char.is_alphanumeric() && char != '\'';
    let says = |word: &str| !EMPTY_WORDS.contains(&format!(" {} ", word.to_lowercase()));
    title.split(is_part).any(|word| word.contains(char::is_alphabetic) && says(word))
}

fn without_courtesies(line: &str) -> &str {
    let mut rest = line;
    while let Some(shorter) = COURTESIES.iter().find_map(|courtesy| {
        let begins = rest.get(..courtesy.len())?.eq_ignore_ascii_case(courtesy);
        begins.then(|| rest[courtesy.len()..].trim_start())
    }) {
        rest = shorter;
    }
    if rest.contains(char::is_alphanumeric) { rest } else { line }
}

/// The text if it is short enough, else its beginning up to the end of a word.
fn shortened(text: &str, most_chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most_chars) else { return text.to_owned() };
    let last = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    let head = &text[..last];
    // A word that takes a third of the place is cut.
    let head = match head.rfind(' ') {
        Some(space) if space * 3 >= head.len() * 2 => &head[..space],
        _ => head,
    };
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests;
