//! Extracts texts of which every match of an expression contains at least one.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

/// Most texts that are worth looking for at once.
const MOST_LITERALS: usize = 64;

/// Shortest text that is rare enough to be worth looking for.
const SHORTEST_LITERAL: usize = 2;

/// Replaces a half surrogate pair when it is read, so the log may contain it in a form that no text has.
const REPLACEMENT: char = '\u{fffd}';

/// The texts, or `None` if the expression has no useful ones. If case is ignored, the texts are the same, in any case.
pub(super) fn required_literals(expression: &str) -> Option<Vec<String>> {
    let parsed = ParserBuilder::new().multi_line(true).build().parse(expression).ok()?;
    required(&parsed)
}

fn required(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let is_useful = text.len() >= SHORTEST_LITERAL && !text.contains(REPLACEMENT);
            is_useful.then(|| vec![text.to_owned()])
        }
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        // One part's texts are enough. Longer ones are rarer.
        HirKind::Concat(parts) => {
            parts.iter().filter_map(required).max_by_key(|texts| shortest(texts))
        }
        // Any branch may match.
        HirKind::Alternation(branches) => {
            let texts: Option<Vec<Vec<String>>> = branches.iter().map(required).collect();
            Some(texts?.concat()).filter(|texts| texts.len() <= MOST_LITERALS)
        }
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

fn shortest(texts: &[String]) -> usize {
    texts.iter().map(String::len).min().unwrap_or(0)
}

#[cfg(test)]
mod tests;
