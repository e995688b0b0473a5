//! Recognises marks. Each function looks at what follows a bracket, or at the beginning of a line, and reads a bounded
//! number of characters, so that a text costs time in proportion to its length.
//!
//! What these functions accept holds no bracket that opens and no hidden character. So a change elsewhere in the text
//! never changes their answer, which is why [`super::restored`] finds every place again.

use super::hidden::{self, BRACKETS, is_hidden};
use super::letters::{MOST_BLANKS, begins_with, folded, is_blank, without_end};
use super::marks::{
    BEFORE_SPEAKER, BEGINNING_CLOSE_SQUARES, BEHIND_CLOSE_SQUARE, BEHIND_OPEN_SQUARE, CALL_TAGS,
    CLOSE_ANGLES, CLOSE_SQUARES, DOUBLE_ANGLE, EDGES, HEADINGS, LOW_BLOCK, MOST_PIPES, OPEN_ANGLES,
    OPEN_SQUARES, OTHER_SCRIPTS, PARTS, PIPED_SQUARES, PIPES, PREFIXES, SPEAKERS,
    SPEAKERS_AND_KEYS, SPEAKERS_OF_OTHER_SCRIPTS, SQUARES, Spelling, TAGS,
};
use super::own::{PROMPT_TAGS, Scope};

/// Longest name, in characters. The longest of a known model has 40.
const MOST_NAME: usize = 64;
/// Most bytes in front of a speaker's name in its line.
const MOST_BEFORE_LINE: usize = 256;
/// Longest name of a speaker.
const MOST_SPEAKER: usize = 12;
/// What stands behind the name of a speaker.
pub(super) const COLONS: [char; 7] = [':', '：', '︰', '﹕', '∶', 'ː', '꞉'];

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
    /// One that closes: MiniMax's `]~b]`.
    ClosedSquare,
}

/// The kind of bracket that `character` is, if a mark may begin with it.
pub(super) fn opener(character: char) -> Option<Opener> {
    if OPEN_ANGLES.contains(&character) {
        return Some(Opener::Angle);
    }
    if BEGINNING_CLOSE_SQUARES.contains(&character) {
        return Some(Opener::ClosedSquare);
    }
    OPEN_SQUARES.contains(&character).then_some(Opener::Square)
}

/// Whether `character` is a bracket of any kind that marks have.
pub(super) fn is_bracket(character: char) -> bool {
    [&OPEN_ANGLES[..], &CLOSE_ANGLES, &OPEN_SQUARES, &CLOSE_SQUARES]
        .iter()
        .any(|brackets| brackets.contains(&character))
}

/// The mark that `rest` completes after a bracket.
pub(super) fn behind(opener: Opener, rest: &str, scope: Scope) -> Option<Form> {
    match opener {
        Opener::Square if scope == Scope::Output => is_note(rest, scope).then_some(Form::Similar),
        _ if scope == Scope::Output => None,
        Opener::Angle => behind_angle(rest),
        Opener::Square => behind_square(rest, scope),
        Opener::ClosedSquare => is_one_of(rest, &BEHIND_CLOSE_SQUARE).then_some(Form::Genuine),
    }
}

fn behind_angle(rest: &str) -> Option<Form> {
    let mut reader = Reader { rest, is_genuine: true };
    reader.blanks();
    if reader.pipes() {
        return between_pipes(reader);
    }
    if reader.one_of(&OPEN_ANGLES) {
        return double_angle(reader);
    }
    if reader.one_of(&CLOSE_SQUARES) {
        // MiniMax's `<]image[>` and `<]start of image[>`.
        for _ in 0..3 {
            reader.name()?;
            if !reader.one_of(&[' ']) {
                break;
            }
        }
        return (reader.one_of(&OPEN_SQUARES) && reader.closes(&CLOSE_ANGLES))
            .then_some(Form::Genuine);
    }
    let closes = reader.slash();
    if reader.word_of(OTHER_SCRIPTS) {
        return reader.closes(&CLOSE_ANGLES).then_some(Form::Genuine);
    }
    let (prefix, name) = reader.qualified_name()?;
    if reader.pipes() {
        // Gemma's `<turn|>`.
        return reader.closes(&CLOSE_ANGLES).then_some(Form::Genuine);
    }
    let spelling = match prefix {
        Some(prefix) => {
            (prefix.is_one_of(PREFIXES) || name.is_one_of(CALL_TAGS)).then_some(Spelling::Any)
        }
        None => spelling(TAGS, &name)
            .or_else(|| name.is_one_of(&PROMPT_TAGS).then_some(Spelling::Element))
            .or_else(|| is_edge(&name).then_some(Spelling::Closed)),
    };
    reader.is_genuine &= !name.has_capitals;
    let ends = reader.closes(&CLOSE_ANGLES);
    let is_mark = match spelling? {
        Spelling::Any => true,
        Spelling::Closed => ends,
        Spelling::Exact => ends && !name.has_small_letters,
        Spelling::Element => ends || reader.has_attribute(),
        Spelling::Attribute => closes && ends || reader.has_attribute(),
    };
    is_mark.then(|| reader.form())
}

/// Whether a name is for the beginning or the end of a part of a conversation.
fn is_edge(name: &Name) -> bool {
    let words = || name.bytes().split(|byte| matches!(byte, b'_' | b'-' | b'.'));
    let is_in = |list: &[&str], word: &[u8]| list.iter().any(|entry| entry.as_bytes() == word);
    words().count() > 1
        && words().all(|word| is_in(PARTS, word) || is_in(EDGES, word))
        && words().any(|word| is_in(EDGES, word))
}

/// `<|name`, or with blanks `< | name | >`.
fn between_pipes(mut reader: Reader<'_>) -> Option<Form> {
    // Behind the pipe blanks are usual in code, and nowhere in a token.
    let is_tight = reader.is_genuine && !reader.rest.starts_with(char::is_whitespace);
    reader.blanks();
    reader.slash();
    // Gemma's `<|"|>` has a sign in the place of the name.
    let is_name = reader.word();
    if !is_name && !reader.one_of(&['"', '\'']) {
        return None;
    }
    if is_tight && is_name {
        return Some(Form::Genuine);
    }
    reader.blanks();
    (reader.pipes() && reader.closes(&CLOSE_ANGLES)).then_some(Form::Genuine)
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

/// Whether a note of this program begins here, behind the bracket.
fn is_note(rest: &str, scope: Scope) -> bool {
    // A note may begin with a number: `[3 earlier messages …`.
    let is_before = |character: char| character.is_whitespace() || character.is_ascii_digit();
    let words = rest.trim_start_matches(is_before);
    let first = words.chars().next().and_then(folded).map(|first| first.to_ascii_lowercase());
    scope.notes().any(|note| note.chars().next() == first && begins_with(words, note))
}

fn behind_square(rest: &str, scope: Scope) -> Option<Form> {
    if is_note(rest, scope) {
        return Some(Form::Similar);
    }
    if is_one_of(rest.trim_start(), &BEHIND_OPEN_SQUARE) {
        return Some(Form::Genuine);
    }
    let mut reader = Reader { rest, is_genuine: true };
    reader.blanks();
    if reader.pipes() {
        reader.blanks();
        let name = reader.name()?;
        reader.blanks();
        let is_known = PIPED_SQUARES.iter().any(|entry| name.matches(entry));
        return (is_known && reader.pipes() && reader.closes(&CLOSE_SQUARES))
            .then_some(Form::Genuine);
    }
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
    let number = without_decoration(line);
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

/// `line` without signs at its end that a speaker's name may follow: blanks, marks of Markdown, hidden characters, and their
/// numbers as they are shown.
fn without_decoration(line: &str) -> &str {
    let is_decoration = |character: char| {
        matches!(character, ' ' | '\t' | '#' | '*' | '_' | '>' | '\\') || is_hidden(character)
    };
    let mut line = line;
    loop {
        line = line.trim_end_matches(is_decoration);
        let number = line.ends_with(BRACKETS.1).then(|| line.rfind(BRACKETS.0)).flatten();
        match number {
            Some(at) if hidden::number(&line[at + BRACKETS.0.len_utf8()..]).is_some() => {
                line = &line[..at];
            }
            _ => return line,
        }
    }
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
    if let Some(head) = SPEAKERS_OF_OTHER_SCRIPTS.iter().find_map(|word| without_end(near, word)) {
        let name = Reader { rest: SPEAKERS[0], is_genuine: true }.name()?;
        return Some((head, name));
    }
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

fn spelling(table: &[(&str, Spelling)], name: &Name) -> Option<Spelling> {
    table.iter().find(|(entry, _)| name.matches(entry)).map(|(_, spelling)| *spelling)
}

/// Whether `text` begins with one of these, in any case and with any of the characters for a bracket.
fn is_one_of(text: &str, marks: &[&str]) -> bool {
    let is_same = |found: char, wanted: char| match wanted {
        '[' => OPEN_SQUARES.contains(&found),
        ']' => CLOSE_SQUARES.contains(&found),
        wanted => folded(found).is_some_and(|found| found.eq_ignore_ascii_case(&wanted)),
    };
    marks.iter().any(|mark| {
        let mut found = text.chars();
        mark.chars().all(|wanted| found.next().is_some_and(|found| is_same(found, wanted)))
    })
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

    /// Whether it is an entry of a table.
    fn matches(&self, entry: &str) -> bool {
        if let Some(beginning) = entry.strip_suffix('*') {
            return self.bytes().starts_with(beginning.as_bytes());
        }
        match entry.strip_suffix('#') {
            Some(beginning) => self
                .bytes()
                .strip_prefix(beginning.as_bytes())
                .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)),
            None => self.is(entry),
        }
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

    /// Reads a few pipes. Whether there is one.
    fn pipes(&mut self) -> bool {
        (0..MOST_PIPES).take_while(|_| self.one_of(&PIPES)).count() > 0
    }

    /// Reads a slash. Whether there is one.
    fn slash(&mut self) -> bool {
        let is_slash = self.one_of(&['/', '／']);
        if is_slash {
            self.blanks();
        }
        is_slash
    }

    /// Reads one of these words, in any case.
    fn word_of(&mut self, words: &[&str]) -> bool {
        let same = |word: &&&str| {
            let mut found = self.rest.chars().flat_map(char::to_lowercase);
            word.chars().all(|wanted| found.next() == Some(wanted))
        };
        let Some(word) = words.iter().find(same) else { return false };
        let length: usize = self.rest.chars().take(word.chars().count()).map(char::len_utf8).sum();
        self.rest = &self.rest[length..];
        true
    }

    /// Reads a word of any script. Whether there is one.
    fn word(&mut self) -> bool {
        let is_part = |character: &char| {
            (character.is_alphanumeric() || matches!(*character, '_' | '-' | '.' | LOW_BLOCK))
                && !is_hidden(*character)
                && !PIPES.contains(character)
        };
        let letters = self.rest.chars().take(MOST_NAME).take_while(is_part);
        let length: usize = letters.map(char::len_utf8).sum();
        self.rest = &self.rest[length..];
        length > 0
    }

    /// Whether an attribute comes next.
    fn has_attribute(&self) -> bool {
        let mut reader = Reader { rest: self.rest, is_genuine: true };
        reader.blanks();
        if reader.is_genuine || reader.name().is_none() {
            return false;
        }
        reader.blanks();
        reader.one_of(&['=', '＝'])
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
