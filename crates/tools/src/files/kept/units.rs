//! A line as words, marks and quotations.

use std::borrow::Cow;

use myclaw_files::{Sameness, characters, folded, spellings};

/// Most quotations inside one another.
const MAX_DEPTH: usize = 8;

/// A word, a run of dots, or one other character.
#[derive(Debug)]
pub(super) struct Unit<'t> {
    pub text: &'t str,
    pub is_word: bool,
    /// Whether it is a quote, and what it belongs to.
    pub quote: Option<Quote>,
}

/// A quote that is no apostrophe inside a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    /// The plain form: `'` or `"`.
    plain: char,
    /// Whether it begins a quotation, here or on an earlier line.
    pub opens: bool,
    /// The other quote of the quotation; `None` if the line has only one of them.
    pub partner: Option<usize>,
}

impl Quote {
    pub(super) fn is_single(self) -> bool {
        self.plain == '\''
    }
}

/// A line in its units.
#[derive(Debug)]
pub(super) struct Units<'t>(pub Vec<Unit<'t>>);

impl<'t> Units<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut units: Vec<Unit<'t>> = Vec::new();
        let mut at = 0;
        while let Some(length) = unit_length(&text[at..]) {
            let unit = &text[at..at + length];
            let is_word = unit.starts_with(|char: char| char.is_alphanumeric() || char == '_');
            units.push(Unit { text: unit, is_word, quote: None });
            at += length;
        }
        let mut units = Self(units);
        units.pair_quotes();
        units
    }

    /// The double quotes without a partner, in order: those of a quotation that ends on another line.
    pub(super) fn lone_quotes(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|at| {
            let quote = self.0[*at].quote;
            quote.is_some_and(|quote| quote.partner.is_none() && quote.plain == '"')
        })
    }

    /// The form in which a unit is compared with others.
    pub(super) fn key(&self, at: usize) -> Cow<'t, str> {
        folded(self.0[at].text, Sameness::Composition)
    }

    fn pair_quotes(&mut self) {
        let mut open: Vec<(usize, char)> = Vec::new();
        for at in 0..self.0.len() {
            let Some(plain) = plain_quote(self.0[at].text) else { continue };
            let before = at.checked_sub(1).and_then(|before| self.0[before].text.chars().next());
            let after = self.0.get(at + 1).and_then(|unit| unit.text.chars().next());
            let opened = open.iter().rposition(|(_, other)| *other == plain);
            let is_letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
            let ends_before =
                |char: char| char.is_alphanumeric() || ".,;:!?)]}\u{2026}".contains(char);
            let closes = match opened {
                Some(_) => {
                    let follows = before.is_some_and(|char| {
                        !char.is_whitespace() && !"([{\u{2014}\u{2013}".contains(char)
                    });
                    follows || !is_letter(after)
                }
                None => before.is_some_and(ends_before) && !is_letter(after),
            };
            let mut quote = Quote { plain, opens: !closes, partner: None };
            if let Some(opened) = opened.filter(|_| closes) {
                let first = open[opened].0;
                open.truncate(opened);
                quote.partner = Some(first);
                if let Some(quote) = &mut self.0[first].quote {
                    quote.partner = Some(at);
                }
            } else if !closes {
                if open.len() == MAX_DEPTH {
                    open.remove(0);
                }
                open.push((at, plain));
            }
            self.0[at].quote = Some(quote);
        }
    }
}

/// The number of bytes of the first unit.
fn unit_length(text: &str) -> Option<usize> {
    let mut parts = characters(text, Sameness::Typography).peekable();
    let first = parts.next()?;
    let mut length = first.len();
    if first == "." {
        length += parts.take_while(|part| *part == ".").count();
    } else if starts_with_letter(first) {
        while let Some(part) = parts.next() {
            let is_apostrophe = plain_quote(part) == Some('\'')
                && parts.peek().is_some_and(|next| starts_with_letter(next));
            if !is_apostrophe && !starts_with_letter(part) {
                break;
            }
            length += part.len();
        }
    }
    Some(length)
}

fn plain_quote(text: &str) -> Option<char> {
    let plain = *spellings(text.chars().next()?).first()?;
    matches!(plain, '\'' | '"').then_some(plain)
}

fn starts_with_letter(text: &str) -> bool {
    text.chars().next().is_some_and(is_letter)
}

/// Whether `char` is a part of a word. Scripts without spaces between words have words of one character.
fn is_letter(char: char) -> bool {
    (char.is_alphanumeric() || char == '_')
        && char < '\u{2E80}'
        && !('\u{1100}'..='\u{11FF}').contains(&char)
}
