//! Help of `myclaw worktrees`.

pub(in crate::args) const WORKTREES: &str = "\
List, merge and remove the git worktrees in which sessions work.

`myclaw --worktree` and `myclaw run --worktree` work in a worktree of their own: a directory next to the repository, with a \
branch `myclaw/NAME` that begins at what is committed. `merge` takes over what was done there, and `drop` removes it; what \
was not committed becomes a commit on the branch first, and a branch with commits of its own stays. What git ignores is \
removed.";

pub(in crate::args) const WORKTREES_EXAMPLES: &str = "\
Examples:
  myclaw run --worktree=parser \"Rewrite the parser\"
  myclaw worktrees list
  myclaw worktrees merge parser
  myclaw worktrees drop parser";

pub(in crate::args) const WORKTREES_LIST_EXAMPLES: &str = "\
Examples:
  myclaw worktrees list
  myclaw worktrees list -C ~/src/thing --json";

pub(in crate::args) const WORKTREES_MERGE_EXAMPLES: &str = "\
Examples:
  myclaw worktrees merge parser";

pub(in crate::args) const WORKTREES_DROP_EXAMPLES: &str = "\
Examples:
  myclaw worktrees drop parser";
