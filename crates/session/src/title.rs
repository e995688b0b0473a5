//! What a session is called while its owner has given it no title: made from its first message, without a model.

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
    let words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().filter(|char| !char.is_control()).collect();
    shortened(&words, MOST_FIRST_CHARS)
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
