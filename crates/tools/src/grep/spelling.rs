//! A pattern that finds a text however its characters are composed, and in typographic forms.

use myclaw_files::{Sameness, composed, folded, spellings};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

/// Most characters of a class whose other spellings are added: larger ones are such as `\w`.
const MAX_CLASS_CHARS: usize = 64;

/// Whether a text may be found in a typographic form if it is not found as it is.
pub(super) fn has_other_spellings(pattern: &str) -> bool {
    pattern.contains("...")
        || pattern.contains(r"\.\.\.")
        || !pattern.is_ascii()
        || pattern.chars().any(|char| !spellings(char).is_empty())
}

/// The pattern for every spelling; `None` if it has only one, or if it is wrong, which the caller finds out by itself.
pub(super) fn every_spelling(
    pattern: &str,
    ignore_case: bool,
    sameness: Sameness,
) -> Option<String> {
    // An escape such as `\u{e9}` names a character too.
    if sameness == Sameness::Composition
        && pattern.is_ascii()
        && !pattern.contains("\\u")
        && !pattern.contains("\\x")
    {
        return None;
    }
    let parsed = ParserBuilder::new()
        .case_insensitive(ignore_case)
        .multi_line(true)
        .crlf(true)
        .utf8(false)
        .build()
        .parse(&composed(pattern))
        .ok()?;
    let spelled = spell(parsed.clone(), sameness);
    (spelled != parsed || !pattern.is_ascii()).then(|| spelled.to_string())
}

fn spell(hir: Hir, sameness: Sameness) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => spell_text(text, sameness),
            Err(_) => Hir::literal(literal.0),
        },
        HirKind::Class(class) => spell_class(class, sameness),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(spell(*repetition.sub, sameness));
            Hir::repetition(Repetition { sub, ..repetition })
        }
        // Nothing is captured: a group has no other effect.
        HirKind::Capture(capture) => spell(*capture.sub, sameness),
        HirKind::Concat(parts) => {
            Hir::concat(parts.into_iter().map(|part| spell(part, sameness)).collect())
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.into_iter().map(|part| spell(part, sameness)).collect())
        }
    }
}

fn spell_text(text: &str, sameness: Sameness) -> Hir {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let is_typography = sameness == Sameness::Typography;
        let dots = ["...", "\u{2026}"].into_iter().find(|dots| rest.starts_with(dots));
        let (part, length) = match dots.filter(|_| is_typography) {
            Some(dots) => (either(&["...", "\u{2026}"].map(str::to_owned)), dots.len()),
            None => (spell_char(char, sameness), char.len_utf8()),
        };
        parts.push(part);
        rest = &rest[length..];
    }
    Hir::concat(parts)
}

fn spell_char(char: char, sameness: Sameness) -> Hir {
    let others = if sameness == Sameness::Typography { spellings(char) } else { &[] };
    if !others.is_empty() {
        let ranges = others.iter().map(|char| ClassUnicodeRange::new(*char, *char));
        return Hir::class(Class::Unicode(ClassUnicode::new(ranges)));
    }
    let own = char.to_string();
    match folded(&own, Sameness::Composition) {
        other if other == own => literal(&own),
        other => {
            let other = other.into_owned();
            either(&[own, other])
        }
    }
}

fn spell_class(class: Class, sameness: Sameness) -> Hir {
    let Class::Unicode(unicode) = &class else { return Hir::class(class) };
    let count: usize = unicode.ranges().iter().map(ClassUnicodeRange::len).sum();
    if count > MAX_CLASS_CHARS {
        return Hir::class(class);
    }
    let chars = unicode.ranges().iter().flat_map(|range| range.start()..=range.end());
    let mut every: Vec<Hir> = chars
        .filter(|char| {
            let own = char.to_string();
            folded(&own, Sameness::Composition) != own
                || sameness == Sameness::Typography && !spellings(*char).is_empty()
        })
        .map(|char| spell_char(char, sameness))
        .collect();
    if every.is_empty() {
        return Hir::class(class);
    }
    every.push(Hir::class(class));
    Hir::alternation(every)
}

fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes().to_vec())
}

fn either(texts: &[String; 2]) -> Hir {
    Hir::alternation(texts.iter().map(|text| literal(text)).collect())
}
