//! Which tools and commands an agent may run, and the digest of what runs.
//!
//! Pure functions over the rules of the config: this crate opens no file, starts no process and reads no environment.
//! The caller decides which session is meant, finds programs, and asks the user.
//!
//! - [`ToolPolicy`] decides about tools. Every level of the config can only take tools away.
//! - [`ExecPolicy`] decides about shell commands. It reads the command with a parser of its own that knows simple
//!   commands and nothing else; everything that it does not know is refused.
//! - [`ApprovalDigest`] binds an approval to what was approved, and [`escape()`] makes text safe to show in the question,
//!   and names of files safe to list.
#![forbid(unsafe_code)]

mod digest;
mod error;
mod escape;
mod exec;
mod harmless;
mod names;
mod pattern;
mod places;
mod sandbox;
mod sed;
mod shell;
mod tool;

pub use digest::ApprovalDigest;
pub use error::{PolicyError, PolicyProblem};
pub use escape::{changes_direction, escape, is_deceptive, unescape};
pub use exec::{
    ExecLevel, ExecPolicy, ExecRequest, ExecVerdict, InputVerdict, Refusal, RefusalKind,
    RepositoryPrograms, ResolvedProgram, WrittenAs, allowlist_advice,
};
pub use harmless::{
    RepositoryUse, changes_no_file, ignores_input, is_launcher, obeyed_files, repository_use,
    runs_lines, starts_nothing,
};
pub use names::{
    alias_names, canonical_tool_name, group_members, group_names, known_tools, mcp_server_of,
    profile_members,
};
pub use pattern::{matches_argument, matches_name, matches_path};
pub use places::{PlaceFacts, names_obeyed_by_agents, names_obeyed_by_programs, starts_programs};
pub use sandbox::{
    DEFAULT_SANDBOX_ALLOWLIST, DEFAULT_SANDBOX_DENYLIST, SandboxScope, SessionFacts,
};
pub use shell::{
    Command, LooseCommand, MAX_COMMAND_BYTES, Script, ShellError, Word, loose_commands, parse,
};
pub use tool::idle::{IdleEntry, idle_entries};
pub use tool::{
    AskRule, Decision, DecisiveRule, Level, LevelRules, ToolPolicy, check_tool_entry, matches_tool,
    sandbox_level,
};
