//! A message as words and quoted texts.

use std::borrow::Cow;

/// Marks behind a word that belong to the sentence, not to the word.
const SENTENCE_MARKS: &[char] = &[',', ';', ':', '!', '?', ')'];

/// A word or a quoted text of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// The word without the sentence's marks around it, or what stands between the quotes.
    pub(super) text: Cow<'t, str>,
    pub(super) kind: TokenKind,
    /// Where it begins and ends in the message, marks and quotes included.
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Quoted,
}

impl Token<'_> {
    pub(super) fn is_quoted(&self) -> bool {
        self.kind == TokenKind::Quoted
    }

    /// Whether it is this word of a sentence; a quoted text is none.
    pub(super) fn is_word(&self, word: &str) -> bool {
        let says = |text: &str| text.eq_ignore_ascii_case(word);
        !self.is_quoted()
            && (says(&self.text) || (self.text.contains('’') && says(&self.text.replace('’', "'"))))
    }
}

/// Splits at white space, keeping together what is quoted with `"`, `'`, a backtick or typographic quotes. A quote that
/// is never closed is a mark like any other.
pub(super) fn tokenize(message: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    // Quotes that are not closed between some place and the end are not closed behind that place either; without this
    // a long message full of them would be read again from each.
    let mut unclosed = Vec::new();
    let mut position = 0;
    while let Some(offset) = message[position..].find(|character: char| !character.is_whitespace())
    {
        let start = position + offset;
        let opening = message[start..].chars().next().filter(|open| closing_quote(*open).is_some());
        let opening = opening.filter(|open| !unclosed.contains(open));
        let token = opening.and_then(|_| quoted(message, start)).unwrap_or_else(|| {
            unclosed.extend(opening);
            word(message, start)
        });
        position = token.end;
        if token.is_quoted() || !token.text.is_empty() {
            tokens.push(token);
        }
    }
    tokens
}

fn word(message: &str, start: usize) -> Token<'_> {
    let length = message[start..].find(char::is_whitespace).unwrap_or(message.len() - start);
    let end = start + length;
    let text = message[start..end].trim_start_matches('(').trim_end_matches(SENTENCE_MARKS);
    Token { text: Cow::Borrowed(without_full_stop(text)), kind: TokenKind::Word, start, end }
}

/// Takes the full stop off a sentence's last word, but leaves `.`, `..`, `docs/.` and the like alone.
fn without_full_stop(word: &str) -> &str {
    match word.strip_suffix('.') {
        Some(stem) if !stem.is_empty() && !stem.ends_with(['.', '/', '\\']) => stem,
        _ => word,
    }
}

fn quoted(message: &str, start: usize) -> Option<Token<'_>> {
    let open = message[start..].chars().next()?;
    let close = closing_quote(open)?;
    let inside = start + open.len_utf8();
    let length = message[inside..].char_indices().find_map(|(index, character)| {
        let before = &message[..inside + index];
        let behind = message[inside + index + character.len_utf8()..].chars().next();
        // Inside a word it is an apostrophe or an inch mark.
        let ends_here = behind.is_none_or(|next| !next.is_alphanumeric());
        (character == close && !before.ends_with('\\') && ends_here).then_some(index)
    })?;
    let raw = &message[inside..inside + length];
    let escaped = format!("\\{close}");
    let text = if raw.contains(&escaped) {
        Cow::Owned(raw.replace(&escaped, &close.to_string()))
    } else {
        Cow::Borrowed(raw)
    };
    let mut end = inside + length + close.len_utf8();
    // The sentence goes on right behind the quote: its marks belong to no word.
    let marks = message[end..].len()
        - message[end..].trim_start_matches(SENTENCE_MARKS).trim_start_matches('.').len();
    end += marks;
    Some(Token { text, kind: TokenKind::Quoted, start, end })
}

fn closing_quote(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        '«' => Some('»'),
        _ => None,
    }
}
