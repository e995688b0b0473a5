//! The little language in which `forms` writes down what a request may look like, and its matcher.
//!
//! `word` must be there, `one|other` is any of them, `[…]` may be left out, `{slot}` takes a value (see `slots`).

use super::slots::{Captures, Slot};
use super::tokens::Token;

/// One thing that a pattern asks for.
#[derive(Debug)]
enum Element {
    AnyOf(Vec<&'static str>),
    Optional(Vec<Element>),
    Slot(Slot),
}

/// A pattern, read.
#[derive(Debug)]
pub(super) struct Pattern(Vec<Element>);

/// What is left of a pattern: the elements of the innermost group, then what follows that group.
#[derive(Clone, Copy)]
struct Remaining<'p> {
    elements: &'p [Element],
    behind: Option<&'p Remaining<'p>>,
}

impl Pattern {
    /// Reads a pattern; `None` if it has an unknown slot or a bracket too many or too few (a test reads them all).
    pub(super) fn read(source: &'static str) -> Option<Self> {
        let mut groups: Vec<Vec<Element>> = vec![Vec::new()];
        for word in source.split_whitespace() {
            let inner = word.trim_start_matches('[');
            let opened = word.len() - inner.len();
            let element = inner.trim_end_matches(']');
            let closed = inner.len() - element.len();
            groups.extend(std::iter::repeat_with(Vec::new).take(opened));
            let element = match element.strip_prefix('{') {
                Some(slot) => Element::Slot(Slot::named(slot.strip_suffix('}')?)?),
                None => Element::AnyOf(element.split('|').collect()),
            };
            groups.last_mut()?.push(element);
            for _ in 0..closed {
                let group = groups.pop()?;
                groups.last_mut()?.push(Element::Optional(group));
            }
        }
        let elements = groups.pop()?;
        groups.is_empty().then_some(Self(elements))
    }

    /// What the slots took, if the pattern fits all of `tokens`. `message` is the text they came from.
    pub(super) fn matches(&self, message: &str, tokens: &[Token<'_>]) -> Option<Captures> {
        let remaining = Remaining { elements: &self.0, behind: None };
        fit(remaining, message, tokens, &Captures::default())
    }
}

/// Backtracks over optional groups and over slots that may take more or less. Patterns are short and each word is tried
/// a few times at most, so there is nothing to remember between tries.
fn fit(
    remaining: Remaining<'_>,
    message: &str,
    tokens: &[Token<'_>],
    captures: &Captures,
) -> Option<Captures> {
    let Some((element, rest)) = remaining.elements.split_first() else {
        return match remaining.behind {
            Some(behind) => fit(*behind, message, tokens, captures),
            None => tokens.is_empty().then(|| captures.clone()),
        };
    };
    let after = Remaining { elements: rest, behind: remaining.behind };
    match element {
        Element::AnyOf(words) => {
            let (token, others) = tokens.split_first()?;
            words
                .iter()
                .any(|word| token.is_word(word))
                .then(|| fit(after, message, others, captures))?
        }
        Element::Optional(group) => {
            let inside = Remaining { elements: group, behind: Some(&after) };
            fit(inside, message, tokens, captures).or_else(|| fit(after, message, tokens, captures))
        }
        Element::Slot(slot) => slot.readings(message, tokens).into_iter().find_map(|reading| {
            let mut captures = captures.clone();
            reading.value.store(&mut captures);
            fit(after, message, &tokens[reading.length..], &captures)
        }),
    }
}
