//! The tools that come with MyClaw: reading, changing and searching files, running commands, and managing background
//! jobs.
//!
//! Each tool is one module with one type that implements [`Tool`]. What they share (paths, arguments, cutting of
//! text) is in `support`. This crate knows nothing of models and sessions: a tool gets its arguments and a
//! [`ToolContext`](myclaw_engine::ToolContext), and returns what the model will read.
#![forbid(unsafe_code)]

mod aliases;
mod apply_patch;
mod bash;
mod changes;
mod declarations;
mod diagnostics;
mod edit;
mod files;
mod find;
mod grep;
mod jobs;
mod ls;
mod memory;
mod picture;
mod preview;
mod process;
mod read;
mod support;
mod write;

use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::Tool;

pub use apply_patch::ApplyPatchTool;
pub use bash::{BashTool, CommandPlace, why_variable_is_refused};
pub use changes::{
    ChangedTurn, CommandChange, Direction, FileDifference, FileOutcome, OldContent, Undo,
    UndoError, Undone, UndoneFile, WhichTurn, changed_turns, differences, forget_command,
    inherit_changes, note_command, noted_command, record_command,
};
pub use declarations::DECLARATIONS;
pub use diagnostics::{
    DiagnosticsLimits, DiagnosticsPlace, EditedFile, LanguageServers, ProjectPrograms, server_for,
};
pub use edit::EditTool;
pub use files::shown_size;
pub use find::FindTool;
pub use grep::GrepTool;
pub use jobs::{
    FROM_PROGRAM, FileJobs, JobEnd, JobEnded, JobEnding, JobListener, JobRecord, JobStore, Jobs,
    JobsOptions, Killer, MemoryJobs, RecordsOf, message_of_leftover, outputs_of_running_jobs,
};
pub use ls::LsTool;
pub use memory::{
    Compared, Meaning, Memory, MemoryGetTool, MemoryHits, MemoryOptions, MemorySearchTool, Recall,
    Recalled,
};
pub use picture::{Pixels, picture_from_base64, picture_from_bytes, picture_pixels};
pub use preview::{preview, text_diff};
pub use process::ProcessTool;
pub use read::ReadTool;
pub use support::run_blocking;
pub use write::WriteTool;

/// What the built-in tools need. Every process that runs tools makes them from this.
#[derive(Clone)]
pub struct ToolOptions {
    /// Time limit of commands whose call sets none (`tools.bash.timeoutSeconds` of the config).
    pub command_timeout: Duration,
    /// The background jobs of the session; without them every call waits for its command, and there is no `process`.
    pub jobs: Option<Arc<Jobs>>,
    /// Where commands run.
    pub commands: CommandPlace,
    /// The agent's notes; without them there are no tools for them. `memory_get` is there if some are more than facts.
    pub memory: Option<Memory>,
}

/// All built-in tools, in the order in which models see them: read, bash, edit, write, grep, find, ls, apply_patch,
/// process, memory_search, memory_get.
pub fn builtin_tools(options: ToolOptions) -> Vec<Arc<dyn Tool>> {
    let ToolOptions { command_timeout, jobs, commands, memory } = options;
    let bash = match &jobs {
        Some(jobs) => BashTool::with_jobs(command_timeout, Arc::clone(jobs)),
        None => BashTool::new(command_timeout),
    };
    let bash = bash.in_place(commands);
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ReadTool::new()),
        Arc::new(bash),
        Arc::new(EditTool::new()),
        Arc::new(WriteTool::new()),
        Arc::new(GrepTool::new()),
        Arc::new(FindTool::new()),
        Arc::new(LsTool::new()),
        Arc::new(ApplyPatchTool::new()),
    ];
    if let Some(jobs) = jobs {
        tools.push(Arc::new(ProcessTool::new(jobs)));
    }
    tools.extend(memory.into_iter().flat_map(memory::memory_tools));
    tools
}
