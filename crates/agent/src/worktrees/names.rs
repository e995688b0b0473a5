//! The names of worktrees and of their branches.

use super::BRANCHES;
use crate::AgentError;

/// Longest name, in characters.
const MOST_NAME: usize = 64;
/// Most digits of a name that is made up.
const NAME_DIGITS: usize = 6;

/// The branch with which a worktree begins.
pub(super) fn own_branch(name: &str) -> String {
    format!("{BRANCHES}{name}")
}

/// A name that is a part of a path, of a branch and of a command.
pub(super) fn checked(name: &str) -> Result<&str, AgentError> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let is_usable = !name.is_empty()
        && name.len() <= MOST_NAME
        && name.chars().all(is_plain)
        && !name.starts_with(['-', '.'])
        && !name.ends_with('.')
        && !name.ends_with(".lock")
        && !name.contains("..");
    is_usable.then_some(name).ok_or_else(|| {
        AgentError::usage(format!(
            "a worktree cannot be called `{}`; use up to {MOST_NAME} letters, digits, `-`, `_` and `.`, such as `fix-parser`",
            myclaw_llm::outside::plain_name(name, MOST_NAME)
        ))
    })
}

pub(super) fn made_up() -> String {
    let id = myclaw_session::EntryId::generate().to_string();
    format!("wt-{}", &id[id.len().saturating_sub(NAME_DIGITS)..])
}
