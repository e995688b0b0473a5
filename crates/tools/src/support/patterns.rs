//! The globs of a call.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};
use myclaw_engine::ToolError;
use myclaw_files::{Sameness, composed, folded};
use regex::Regex;

use super::text::cut_line;

/// Most characters of a glob that an error repeats.
const MAX_SHOWN_CHARS: usize = 200;
/// Longest text of globs.
const MAX_BYTES: usize = 4096;
/// Deepest nesting of braces: the library recurses once for each level.
const MAX_BRACE_DEPTH: usize = 8;
/// Most commas, in braces or between globs.
const MAX_COMMAS: usize = 1000;

/// One glob, or several with commas between them; one that begins with `!` excludes what it matches and all below. A
/// glob without a slash matches names at any depth, one with a slash matches whole paths, and one with a slash at its
/// end matches only directories.
#[derive(Debug)]
pub(crate) struct PathPatterns {
    included: Vec<Pattern>,
    excluded: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    /// For names of ASCII characters, and for those that are no text.
    glob: GlobMatcher,
    full: String,
    /// The same for characters, where the library's own globs are about bytes: for each form of a name. None if it is too
    /// large. Few searches need them.
    characters: OnceLock<Option<[Regex; 2]>>,
    only_directories: bool,
}

/// A path in the forms in which it is compared; without them if it is no text.
struct Forms<'p> {
    path: &'p Path,
    texts: Option<[Cow<'p, str>; 2]>,
}

impl<'p> Forms<'p> {
    fn new(path: &'p Path) -> Self {
        Self { path, texts: path.to_str().map(forms) }
    }
}

impl Pattern {
    fn new(full: String, part: &str) -> Result<Self, ToolError> {
        let glob = glob(&full, part)?.compile_matcher();
        let only_directories = part.ends_with('/');
        Ok(Self { glob, full, characters: OnceLock::new(), only_directories })
    }

    fn is_match(&self, path: &Forms<'_>) -> bool {
        let is_plain = |texts: &[Cow<'_, str>; 2]| self.full.is_ascii() && texts[0].is_ascii();
        let texts = path.texts.as_ref().filter(|texts| !is_plain(texts));
        match texts.and_then(|texts| Some((texts, self.characters()?))) {
            Some((texts, regexes)) => {
                texts.iter().zip(regexes).any(|(text, regex)| regex.is_match(text))
            }
            None => self.glob.is_match(path.path),
        }
    }

    fn characters(&self) -> Option<&[Regex; 2]> {
        let read = |full: &str| Regex::new(&of_characters(glob(full, full).ok()?.regex())).ok();
        let made = self.characters.get_or_init(|| {
            let [written, plain] = forms(&self.full);
            Some([read(&written)?, read(&plain)?])
        });
        made.as_ref()
    }
}

/// A text with composed characters, and the same without typographic variants, as a person sees it.
fn forms(text: &str) -> [Cow<'_, str>; 2] {
    if text.is_ascii() {
        return [Cow::Borrowed(text), Cow::Borrowed(text)];
    }
    let plain = composed(&folded(text, Sameness::Typography)).into_owned();
    [composed(text), Cow::Owned(plain)]
}

/// The regex of a glob, which is about bytes, for characters: one of a name is a letter with the marks that belong to it.
fn of_characters(regex: &str) -> String {
    let mut rest = regex.strip_prefix("(?-u)").unwrap_or(regex);
    let mut found = String::with_capacity(rest.len());
    let (mut in_class, mut is_negated) = (false, false);
    while let Some(next) = rest.chars().next() {
        // The bytes of a character: \xc3\xa9.
        let mut bytes = Vec::new();
        while let Some(byte) = rest
            .strip_prefix("\\x")
            .and_then(|code| code.get(..2))
            .and_then(|code| u8::from_str_radix(code, 16).ok())
        {
            bytes.push(byte);
            rest = &rest[4..];
        }
        if !bytes.is_empty() {
            found.push_str(&String::from_utf8_lossy(&bytes));
            continue;
        }
        let end = match next {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => next.len_utf8(),
        };
        if next == '[' && !in_class {
            (in_class, is_negated) = (true, rest.starts_with("[^"));
        }
        found.push_str(&rest[..end]);
        rest = &rest[end..];
        if next == ']' && in_class {
            in_class = false;
            // What stands for any character takes its marks as well. A run of any takes them already.
            if is_negated && !rest.starts_with('*') {
                found.push_str(r"\p{M}*");
            }
        }
    }
    found
}

impl PathPatterns {
    /// Reads the globs; paths in them are relative to the searched directory `root`, or absolute and in it.
    ///
    /// # Errors
    /// [`ToolError::Failed`] that names the glob and what is wrong with it.
    pub(crate) fn new(text: &str, root: &Path) -> Result<Self, ToolError> {
        check_bounds(text)?;
        let (mut included, mut excluded) = (Vec::new(), Vec::new());
        let mut parts = split_at_commas(text);
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            return Err(ToolError::Failed("the glob is empty; use * for everything".to_owned()));
        }
        for part in parts {
            let full = full_glob(part.trim_start_matches('!'), root);
            if part.starts_with('!') {
                excluded.push(Pattern::new(format!("{full}/**"), part)?);
                excluded.push(Pattern::new(full, part)?);
            } else {
                included.push(Pattern::new(full, part)?);
            }
        }
        Ok(Self { included, excluded })
    }

    /// Whether an entry matches. It is compared both relative to the searched directory and relative to the working
    /// directory, because models write globs for either.
    pub(crate) fn match_file(&self, from_root: &Path, from_directory: &Path) -> bool {
        self.match_entry(from_root, from_directory, |pattern| !pattern.only_directories)
    }

    /// [`PathPatterns::match_file`] for a directory.
    pub(crate) fn match_directory(&self, from_root: &Path, from_directory: &Path) -> bool {
        self.match_entry(from_root, from_directory, |_| true)
    }

    fn match_entry(
        &self,
        from_root: &Path,
        from_directory: &Path,
        fits: impl Fn(&Pattern) -> bool,
    ) -> bool {
        let paths = [from_root, from_directory].map(Forms::new);
        let is_match = |pattern: &Pattern| paths.iter().any(|path| pattern.is_match(path));
        let is_included = |pattern: &Pattern| fits(pattern) && is_match(pattern);
        (self.included.is_empty() || self.included.iter().any(is_included))
            && !self.excluded.iter().any(is_match)
    }
}

/// Refuses excessive globs before the library parses them.
fn check_bounds(text: &str) -> Result<(), ToolError> {
    let (mut depth, mut deepest) = (0_usize, 0);
    for char in text.chars() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    let problem = if text.len() > MAX_BYTES {
        format!("is too long ({} bytes, at most {MAX_BYTES})", text.len())
    } else if deepest > MAX_BRACE_DEPTH {
        format!("has braces within braces more than {MAX_BRACE_DEPTH} deep")
    } else if text.matches(',').count() > MAX_COMMAS {
        format!("has more than {MAX_COMMAS} commas")
    } else {
        return Ok(());
    };
    let start = cut_line(text, MAX_SHOWN_CHARS);
    Err(ToolError::Failed(format!(
        "the glob {start:?} {problem}; use a simpler one, or several calls"
    )))
}

/// The glob of one part, relative to the searched directory.
fn full_glob(part: &str, root: &Path) -> String {
    let glob = match part.strip_prefix(&*root.to_string_lossy()) {
        Some(below) if below.starts_with('/') => below,
        _ => part,
    };
    let glob = glob.strip_suffix('/').unwrap_or(glob);
    match glob.strip_prefix("./").or_else(|| glob.strip_prefix('/')) {
        Some(below) => below.to_owned(),
        None if glob.contains('/') => glob.to_owned(),
        None => format!("**/{glob}"),
    }
}

fn glob(full: &str, part: &str) -> Result<Glob, ToolError> {
    let glob = GlobBuilder::new(full).literal_separator(true).empty_alternates(true).build();
    glob.map_err(|error| bad_glob(part, &error))
}

fn bad_glob(text: &str, error: &globset::Error) -> ToolError {
    ToolError::Failed(format!(
        "{text:?} is not a valid glob: {}. Write it like *.rs or src/**/*.{{ts,tsx}}, with \\ before a special \
         character that is meant literally",
        error.kind()
    ))
}

/// The parts between commas that are not in braces or brackets, without the quotes that only a shell needs.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(|char| {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ',' && depth == 0
    })
    .map(unquoted)
    .collect()
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests;
