//! A matcher with bounded work that stops when the run is cancelled.
//!
//! ripgrep's matcher is fast, but it cannot be stopped while it looks at one buffer, and its time there grows with the
//! product of buffer and pattern. It is used where that product is small. Long lines and large patterns are searched
//! with an automaton that this module runs byte by byte, with checks of the cancellation token.

use std::cell::{Cell, RefCell};
use std::fmt;

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use myclaw_engine::ToolError;
use myclaw_files::Sameness;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::{start, syntax};
use tokio_util::sync::CancellationToken;

use super::spelling::every_spelling;
use super::{Arguments, MAX_PATTERN_CHARS};
use crate::support::cut_line;

/// Longest pattern. Parsing costs up to a few kilobytes for each character of it.
const MAX_PATTERN_BYTES: usize = 8 * 1024;
/// Memory of a compiled pattern: the limit of the regex library itself.
const MAX_COMPILED_BYTES: usize = 10 * 1024 * 1024;
/// Most states of a compiled pattern: each byte of a line costs up to as many steps. `\w` has some 300 of them.
const MAX_STATES: usize = 30_000;
/// Memory for the states that are built during a search. More memory only makes repeated states faster.
const CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Largest product of states and bytes that is searched without a check of the cancellation token: at worst about a
/// second.
const MAX_UNINTERRUPTED_STEPS: usize = 1 << 26;
/// Bytes between two checks of the cancellation token.
const BYTES_BETWEEN_LOOKS: usize = 256;

pub(super) struct LineMatcher {
    fast: RegexMatcher,
    automaton: DFA,
    cache: RefCell<Cache>,
    cancel: CancellationToken,
    skipped: Cell<usize>,
}

/// The run was cancelled.
#[derive(Debug)]
pub(super) struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cancelled")
    }
}

impl LineMatcher {
    /// Compiles the pattern of a call.
    ///
    /// # Errors
    /// [`ToolError::Failed`] for a pattern that is empty, wrong, or too large; the text says what to do.
    /// `sameness` is what may differ between the pattern and a line.
    pub(super) fn new(
        arguments: &Arguments,
        sameness: Sameness,
        cancel: CancellationToken,
    ) -> Result<Self, ToolError> {
        let pattern = checked_pattern(&arguments.pattern)?;
        let written = if arguments.literal { regex::escape(pattern) } else { pattern.to_owned() };
        let written = every_spelling(&written, arguments.ignore_case, sameness).unwrap_or(written);
        let fast = RegexMatcherBuilder::new()
            .case_insensitive(arguments.ignore_case)
            .multi_line(true)
            // `$` also matches before the carriage return of a Windows line.
            .crlf(true)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(CACHE_BYTES)
            .build(&written)
            .map_err(|error| bad_pattern(pattern, &error))?;
        let automaton = DFA::builder()
            .syntax(
                syntax::Config::new()
                    .case_insensitive(arguments.ignore_case)
                    .multi_line(true)
                    .crlf(true)
                    .utf8(false),
            )
            .thompson(
                thompson::Config::new()
                    .utf8(false)
                    .nfa_size_limit(Some(MAX_COMPILED_BYTES))
                    .which_captures(WhichCaptures::None),
            )
            .configure(
                DFA::config()
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true)
                    .unicode_word_boundary(true),
            )
            .build(&written)
            .ok()
            .filter(|automaton| automaton.get_nfa().states().len() <= MAX_STATES)
            .ok_or_else(|| too_large(pattern))?;
        let cache = RefCell::new(automaton.create_cache());
        Ok(Self { fast, automaton, cache, cancel, skipped: Cell::new(0) })
    }

    /// Lines that were not searched because pattern and line together are too large.
    pub(super) fn skipped(&self) -> usize {
        self.skipped.get()
    }

    fn is_cheap(&self, bytes: usize) -> bool {
        self.automaton.get_nfa().states().len().saturating_mul(bytes) <= MAX_UNINTERRUPTED_STEPS
    }

    fn check(&self) -> Result<(), Cancelled> {
        if self.cancel.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Where the first matching line of `haystack` begins.
    fn first_line(&self, haystack: &[u8]) -> Result<Option<usize>, Cancelled> {
        let mut begin = 0;
        while begin < haystack.len() {
            let end = memchr::memchr(b'\n', &haystack[begin..])
                .map_or(haystack.len(), |length| begin + length);
            if self.is_matching_line(&haystack[begin..end])? {
                return Ok(Some(begin));
            }
            begin = end + 1;
        }
        Ok(None)
    }

    fn is_matching_line(&self, line: &[u8]) -> Result<bool, Cancelled> {
        let cache = &mut *self.cache.borrow_mut();
        let Ok(mut state) = self.automaton.start_state(cache, &start::Config::new()) else {
            return self.is_matching_odd_line(line);
        };
        for bytes in line.chunks(BYTES_BETWEEN_LOOKS) {
            self.check()?;
            for byte in bytes {
                match self.automaton.next_state(cache, state, *byte) {
                    Ok(next) if next.is_match() => return Ok(true),
                    Ok(next) if next.is_dead() => return Ok(false),
                    Ok(next) if !next.is_quit() => state = next,
                    _ => return self.is_matching_odd_line(line),
                }
            }
        }
        match self.automaton.next_eoi_state(cache, state) {
            Ok(last) => Ok(last.is_match()),
            Err(_) => self.is_matching_odd_line(line),
        }
    }

    /// A line that the automaton cannot search: it does not support word boundaries next to characters beyond ASCII.
    fn is_matching_odd_line(&self, line: &[u8]) -> Result<bool, Cancelled> {
        if self.is_cheap(line.len()) {
            return Ok(self.fast.is_match(line).unwrap_or(false));
        }
        self.skipped.set(self.skipped.get() + 1);
        Ok(false)
    }
}

impl Matcher for LineMatcher {
    type Captures = NoCaptures;
    type Error = Cancelled;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Cancelled> {
        Ok(self.shortest_match_at(haystack, at)?.map(|offset| Match::new(offset, offset)))
    }

    fn new_captures(&self) -> Result<NoCaptures, Cancelled> {
        Ok(NoCaptures::new())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, Cancelled> {
        self.check()?;
        if self.is_cheap(haystack.len() - at) {
            return Ok(self.fast.shortest_match_at(haystack, at).unwrap_or(None));
        }
        Ok(self.first_line(&haystack[at..])?.map(|offset| at + offset))
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.fast.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Cancelled> {
        self.check()?;
        if self.is_cheap(haystack.len()) {
            return Ok(self.fast.find_candidate_line(haystack).unwrap_or(None));
        }
        Ok(self.first_line(haystack)?.map(LineMatchKind::Confirmed))
    }
}

/// The pattern without line ends after it.
fn checked_pattern(pattern: &str) -> Result<&str, ToolError> {
    let text = match pattern.trim_end_matches(['\r', '\n']) {
        _ if pattern.is_empty() => "the pattern is empty; say what to search for".to_owned(),
        pattern if pattern.contains('\n') => {
            "the pattern spans lines, but lines are searched one by one; search for one of its lines, with context \
             for those around it"
                .to_owned()
        }
        pattern if pattern.len() > MAX_PATTERN_BYTES => format!(
            "the pattern has {} bytes, and at most {MAX_PATTERN_BYTES} are allowed; search for a shorter part of it",
            pattern.len()
        ),
        pattern => return Ok(pattern),
    };
    Err(ToolError::Failed(text))
}

fn bad_pattern(pattern: &str, error: &grep_regex::Error) -> ToolError {
    // The library puts the pattern into a group before it parses it, which shifts the position of a mistake.
    match regex::Regex::new(pattern) {
        Err(regex::Error::Syntax(description)) => bad_regex(pattern, &description),
        _ if matches!(error.kind(), grep_regex::ErrorKind::Regex(_)) => too_large(pattern),
        _ => bad_regex(pattern, &error.to_string()),
    }
}

fn too_large(pattern: &str) -> ToolError {
    ToolError::Failed(format!(
        "{:?} is too large once it is compiled; use smaller repetition counts such as {{1,100}}, or search for a part \
         of it",
        cut_line(pattern, MAX_PATTERN_CHARS)
    ))
}

/// Names the place of the mistake; the library marks it with a caret below the pattern.
fn bad_regex(pattern: &str, description: &str) -> ToolError {
    let reason = description
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "))
        .unwrap_or(description);
    let caret = description
        .lines()
        .find(|line| line.trim_start().starts_with('^'))
        .and_then(|line| line.find('^'));
    // The library indents the pattern by four columns.
    let place = caret.map_or_else(String::new, |column| {
        format!(" at character {}", (column + 1).saturating_sub(4))
    });
    let pattern = cut_line(pattern, MAX_PATTERN_CHARS);
    ToolError::Failed(format!(
        "{pattern:?} is not a valid regex{place}: {reason}. Escape special characters with \\, or set literal to true \
         to search for the text itself"
    ))
}
