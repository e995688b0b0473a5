//! The globs of a call.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use myclaw_engine::ToolError;
use myclaw_files::{Sameness, composed, folded};

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
    excluded: GlobSet,
    /// The excluded ones in the form in which names are the same for a person.
    excluded_forms: GlobSet,
    /// Whether they are plain ASCII; then only names that are not have another form.
    is_ascii: bool,
}

#[derive(Debug)]
struct Pattern {
    glob: GlobMatcher,
    /// The same for names in the form in which they are the same for a person.
    form: GlobMatcher,
    only_directories: bool,
}

/// A text in which characters are composed and have no typographic variants.
fn form(text: &str) -> String {
    composed(&folded(text, Sameness::Typography)).into_owned()
}

impl PathPatterns {
    /// Reads the globs; paths in them are relative to the searched directory `root`, or absolute and in it.
    ///
    /// # Errors
    /// [`ToolError::Failed`] that names the glob and what is wrong with it.
    pub(crate) fn new(text: &str, root: &Path) -> Result<Self, ToolError> {
        check_bounds(text)?;
        let mut included = Vec::new();
        let (mut excluded, mut excluded_forms) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut parts = split_at_commas(text);
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            return Err(ToolError::Failed("the glob is empty; use * for everything".to_owned()));
        }
        for part in parts {
            let full = full_glob(part.trim_start_matches('!'), root);
            if part.starts_with('!') {
                for (set, full) in
                    [(&mut excluded, full.clone()), (&mut excluded_forms, form(&full))]
                {
                    set.add(glob(&full, part)?).add(glob(&format!("{full}/**"), part)?);
                }
            } else {
                let matcher = |full: &str| Ok(glob(full, part)?.compile_matcher());
                let (glob, form) = (matcher(&full)?, matcher(&form(&full))?);
                included.push(Pattern { glob, form, only_directories: part.ends_with('/') });
            }
        }
        let excluded = excluded.build().map_err(|error| bad_glob(text, &error))?;
        let excluded_forms = excluded_forms.build().map_err(|error| bad_glob(text, &error))?;
        Ok(Self { included, excluded, excluded_forms, is_ascii: text.is_ascii() })
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
        let forms = [from_root, from_directory]
            .map(|path| path.to_str().filter(|path| !self.is_ascii || !path.is_ascii()).map(form));
        let in_a_form = |is_match: &dyn Fn(&str) -> bool| {
            forms.iter().flatten().any(|form| is_match(form.as_str()))
        };
        let is_included = |pattern: &Pattern| {
            fits(pattern)
                && (pattern.glob.is_match(from_root)
                    || pattern.glob.is_match(from_directory)
                    || in_a_form(&|name| pattern.form.is_match(name)))
        };
        (self.included.is_empty() || self.included.iter().any(is_included))
            && !self.excluded.is_match(from_root)
            && !self.excluded.is_match(from_directory)
            && !in_a_form(&|name| self.excluded_forms.is_match(name))
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
