//! Recognises marks. Each function looks at what follows a bracket, or at the beginning of a line, and reads a bounded
//! number of characters, so that a text costs time in proportion to its length.
//!
//! What these functions accept holds no bracket that opens and no hidden character. So a change elsewhere in the text
//! never changes their answer, which is why [`super::restored`] finds every place again.

use super::marks::{
    BEFORE_SPEAKER, CALL_TAGS, CLOSE_ANGLES, CLOSE_SQUARES, DOUBLE_ANGLE, HEADINGS, LOW_BLOCK,
    NOTES, OPEN_ANGLES, OPEN_SQUARES, PIPES, PREFIXES, SPEAKERS, SPEAKERS_AND_KEYS, SQUARES,
    Spelling, TAGS,
};

/// Longest name, in characters. The longest of a known model has 40.
const MOST_NAME: usize = 64;
/// Most blanks at one place of a mark.
const MOST_BLANKS: usize = 32;
/// Most bytes in front of a speaker's name in its line.
const MOST_BEFORE_LINE: usize = 256;
/// Longest name of a speaker.
const MOST_SPEAKER: usize = 12;
/// What stands behind the name of a speaker.
pub(super) const COLONS: [char; 2] = [':', '：'];

/// How a mark was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As a tokenizer knows it. It counts everywhere.
    Genuine,
    /// In another case or with blanks. Behind a word it is code rather than a mark: `Vec<User>`, `list[inst]`.
    Similar,
}

/// A bracket that may open a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Angle,
    Square,
}

/// The kind of bracket that `character` is, if it opens one.
pub(super) fn opener(character: char) -> Option<Opener> {
    if OPEN_ANGLES.contains(&character) {
        return Some(Opener::Angle);
    }
    OPEN_SQUARES.contains(&character).then_some(Opener::Square)
}

/// The mark that `rest` completes after a bracket.
pub(super) fn behind(opener: Opener, rest: &str) -> Option<Form> {
    match opener {
        Opener::Angle => behind_angle(rest),
        Opener::Square => behind_square(rest),
    }
}

fn behind_angle(rest: &str) -> Option<Form> {
    let mut reader = Reader { rest, is_genuine: true };
    reader.blanks();
    if reader.one_of(&PIPES) {
        return between_pipes(reader);
    }
    if reader.one_of(&OPEN_ANGLES) {
        return double_angle(reader);
    }
    if reader.one_of(&CLOSE_SQUARES) {
        // MiniMax's `<]image[>`.
        reader.name()?;
        return (reader.one_of(&OPEN_SQUARES) && reader.closes(&CLOSE_ANGLES))
            .then_some(Form::Genuine);
    }
    reader.slash();
    let (prefix, name) = reader.qualified_name()?;
    if reader.one_of(&PIPES) {
        // Gemma's `<turn|>`.
        return reader.closes(&CLOSE_ANGLES).then_some(Form::Genuine);
    }
    let spelling = match prefix {
        Some(prefix) => {
            (prefix.is_one_of(PREFIXES) || name.is_one_of(CALL_TAGS)).then_some(Spelling::Any)
        }
        None => spelling(TAGS, &name),
    };
    reader.is_genuine &= !name.has_capitals;
    let ends = || reader.closes(&CLOSE_ANGLES);
    (spelling? == Spelling::Any || ends()).then(|| reader.form())
}

/// `<|name`, or with blanks `< | name | >`.
fn between_pipes(mut reader: Reader<'_>) -> Option<Form> {
    // Behind the pipe blanks are usual in code, and nowhere in a token.
    let is_tight = reader.is_genuine && !reader.rest.starts_with(char::is_whitespace);
    reader.blanks();
    reader.slash();
    // Gemma's `<|"|>` has a sign in the place of the name.
    let is_name = reader.name().is_some();
    if !is_name && !reader.one_of(&['"', '\'']) {
        return None;
    }
    if is_tight && is_name {
        return Some(Form::Genuine);
    }
    reader.blanks();
    (reader.one_of(&PIPES) && reader.closes(&CLOSE_ANGLES)).then_some(Form::Genuine)
}

/// `<<SYS>>`.
fn double_angle(mut reader: Reader<'_>) -> Option<Form> {
    reader.blanks();
    reader.slash();
    let name = reader.name()?;
    reader.blanks();
    let is_known = name.is(DOUBLE_ANGLE);
    (is_known && reader.one_of(&CLOSE_ANGLES) && reader.closes(&CLOSE_ANGLES))
        .then_some(Form::Genuine)
}

fn behind_square(rest: &str) -> Option<Form> {
    let words = rest.trim_start();
    let first = words.chars().next().and_then(folded)?.to_ascii_lowercase();
    if NOTES.iter().any(|note| note.starts_with(first) && begins_with(words, note)) {
        return Some(Form::Similar);
    }
    let mut reader = Reader { rest, is_genuine: true };
    reader.blanks();
    reader.slash();
    let name = reader.name()?;
    let spelling = spelling(SQUARES, &name)?;
    if spelling == Spelling::Exact && name.has_small_letters {
        return None;
    }
    // `gMASK` and `sMASK` are the only ones that are not in capitals.
    reader.is_genuine &= !name.has_small_letters || name.bytes().ends_with(b"mask");
    reader.closes(&CLOSE_SQUARES).then(|| reader.form())
}

/// Whether `before`, up to a colon, is a line that begins with the name of a speaker, or with a number and one: tools and
/// programs put the path and the number of a line in front of it, as in `a.txt:12: ` and `a.txt-12- `.
pub(super) fn is_speaker_of_line(before: &str) -> bool {
    let Some((head, name)) = name_before_colon(before) else { return false };
    let from = head.len().saturating_sub(MOST_BEFORE_LINE);
    let near = &head[head.ceil_char_boundary(from)..];
    let line = near.rfind(is_line_end).map(|at| &near[at..]);
    let Some(line) = line.map(|line| line.trim_start_matches(is_line_end)).or_else(|| {
        // The text begins here, or the line is too long.
        (near.len() == head.len()).then_some(near)
    }) else {
        return false;
    };
    let cut = line.len().checked_sub(BEFORE_SPEAKER.len()).filter(|at| line.is_char_boundary(*at));
    let line = match cut.map(|at| line.split_at(at)) {
        Some((line, end)) if end.eq_ignore_ascii_case(BEFORE_SPEAKER) => line,
        _ => line,
    };
    let is_decoration = |character| matches!(character, ' ' | '\t' | '#' | '*' | '_' | '>');
    let number = line.trim_end_matches(is_decoration);
    let mut decoration = &line[number.len()..];
    if !number.is_empty() {
        let signs: &[char] = &[':', '-', '|'];
        let is_number = |text: &str| text.ends_with(|last: char| last.is_ascii_digit());
        match number.strip_suffix(signs) {
            Some(number) if is_number(number) => {
                decoration = decoration.strip_prefix([' ', '\t']).unwrap_or(decoration);
            }
            None if is_number(number) && decoration.starts_with('\t') => {
                decoration = &decoration[1..]
            }
            _ => return false,
        }
    }
    let is_key = !name.has_capitals && !decoration.is_empty() && decoration.trim().is_empty();
    name.is_one_of(&SPEAKERS)
        || name.is_one_of(&SPEAKERS_AND_KEYS) && !is_key
        || name.is_one_of(&HEADINGS) && decoration.contains('#')
}

/// Whether `before` ends with the name of a speaker, and what follows is a colon. The name may have any case and place:
/// this is for text in which the place was changed already.
pub(super) fn is_speaker(before: &str, behind: &str) -> bool {
    behind.starts_with(COLONS) && name_before_colon(before).is_some()
}

/// What is before the name of a speaker with which `before` ends, and the name.
fn name_before_colon(before: &str) -> Option<(&str, Name)> {
    let near = before.trim_end_matches([' ', '\t']);
    if before.len() - near.len() > MOST_BLANKS {
        return None;
    }
    // The word of a bold line ends before or behind the colon.
    let near = near.trim_end_matches(['*', '_']);
    let mut from = near.len();
    for (count, (at, character)) in near.char_indices().rev().enumerate() {
        if !folded(character).is_some_and(|character| character.is_ascii_alphabetic()) {
            break;
        }
        if count == MOST_SPEAKER {
            return None;
        }
        from = at;
    }
    let name = Reader { rest: &near[from..], is_genuine: true }.name()?;
    is_name_of_speaker(&name).then_some((&near[..from], name))
}

fn is_name_of_speaker(name: &Name) -> bool {
    [&SPEAKERS[..], &SPEAKERS_AND_KEYS, &HEADINGS].iter().any(|names| name.is_one_of(names))
}

/// Whether `character` is part of a word, so that a bracket behind it belongs to code.
pub(super) fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | ':' | ']')
}

/// Every character that starts a new line somewhere.
fn is_line_end(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether `text` begins with `phrase`, in any case and with any blanks.
fn begins_with(text: &str, phrase: &str) -> bool {
    let mut characters = text.chars().peekable();
    for wanted in phrase.chars() {
        if wanted == ' ' {
            let mut blanks = 0;
            while blanks < MOST_BLANKS && characters.next_if(|found| is_blank(*found)).is_some() {
                blanks += 1;
            }
            if blanks == 0 {
                return false;
            }
        } else if !characters
            .next()
            .and_then(folded)
            .is_some_and(|found| found.eq_ignore_ascii_case(&wanted))
        {
            return false;
        }
    }
    true
}

fn spelling(table: &[(&str, Spelling)], name: &Name) -> Option<Spelling> {
    let is_named = |entry: &str| match entry.strip_suffix('*') {
        Some(beginning) => name.bytes().starts_with(beginning.as_bytes()),
        None => name.is(entry),
    };
    table.iter().find(|(entry, _)| is_named(entry)).map(|(_, spelling)| *spelling)
}

fn is_blank(character: char) -> bool {
    character.is_whitespace()
}

/// The ASCII character that `character` is, or that it is the full-width form of.
fn folded(character: char) -> Option<char> {
    match character {
        '！'..='～' => char::from_u32(u32::from(character) - 0xfee0),
        character => character.is_ascii().then_some(character),
    }
}

/// A name as it was written.
struct Name {
    /// In lower case.
    folded: [u8; MOST_NAME],
    length: usize,
    has_capitals: bool,
    has_small_letters: bool,
}

impl Name {
    fn bytes(&self) -> &[u8] {
        &self.folded[..self.length]
    }

    fn is(&self, word: &str) -> bool {
        self.bytes() == word.as_bytes()
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }
}

/// Reads a mark from its beginning.
struct Reader<'t> {
    rest: &'t str,
    /// Whether it was written as a tokenizer knows it, so far.
    is_genuine: bool,
}

impl Reader<'_> {
    fn form(&self) -> Form {
        if self.is_genuine { Form::Genuine } else { Form::Similar }
    }

    fn blanks(&mut self) {
        let blanks: usize = self
            .rest
            .chars()
            .take(MOST_BLANKS)
            .take_while(|character| is_blank(*character))
            .map(char::len_utf8)
            .sum();
        self.is_genuine &= blanks == 0;
        self.rest = &self.rest[blanks..];
    }

    fn one_of(&mut self, characters: &[char]) -> bool {
        let Some(first) = self.rest.chars().next().filter(|first| characters.contains(first))
        else {
            return false;
        };
        self.rest = &self.rest[first.len_utf8()..];
        true
    }

    fn slash(&mut self) {
        if self.one_of(&['/', '／']) {
            self.blanks();
        }
    }

    /// Whether the tag ends here. What is after the bracket does not matter.
    fn closes(&self, brackets: &[char]) -> bool {
        let mut reader = Reader { rest: self.rest, is_genuine: true };
        reader.blanks();
        reader.one_of(&['/', '／']);
        reader.one_of(brackets)
    }

    fn name(&mut self) -> Option<Name> {
        let mut name = Name {
            folded: [0; MOST_NAME],
            length: 0,
            has_capitals: false,
            has_small_letters: false,
        };
        let mut end = self.rest.len();
        for (at, character) in self.rest.char_indices() {
            let part = match character {
                LOW_BLOCK => Some('_'),
                character => folded(character).filter(|character| {
                    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
                }),
            };
            let Some(part) = part.filter(|_| name.length < MOST_NAME) else {
                end = at;
                break;
            };
            name.has_capitals |= part.is_ascii_uppercase();
            name.has_small_letters |= part.is_ascii_lowercase();
            name.folded[name.length] = part.to_ascii_lowercase() as u8;
            name.length += 1;
        }
        self.rest = &self.rest[end..];
        (name.length > 0).then_some(name)
    }

    /// A name, or two with a colon between them.
    fn qualified_name(&mut self) -> Option<(Option<Name>, Name)> {
        let first = self.name()?;
        // Behind a line end such a word could be a speaker's, whose colon is changed.
        let is_apart = !self.is_genuine && is_name_of_speaker(&first);
        let Some(rest) = self.rest.strip_prefix(':').filter(|_| !is_apart) else {
            return Some((None, first));
        };
        let mut second = Reader { rest, is_genuine: true };
        Some(match second.name() {
            Some(name) => {
                self.rest = second.rest;
                (Some(first), name)
            }
            None => (None, first),
        })
    }
}
