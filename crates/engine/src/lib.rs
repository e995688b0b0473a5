//! The turn: its steps, failover, context recovery, hooks and prompt.
//!
//! The session log decides the next step; see `ARCHITECTURE.md`. This crate reaches files, sockets and processes only
//! through the crates `session` and `llm`, the traits [`Tool`], [`Hook`] and [`Clock`], and its module `workspace`.
#![forbid(unsafe_code)]

mod active_model;
mod answers;
mod approval;
mod arguments;
mod bound;
mod clock;
mod declaration;
mod embedded;
mod engine;
mod error;
mod estimate;
mod event;
mod failover;
mod hook;
mod inbox;
mod known_secrets;
mod lanes;
mod mode;
mod notice;
mod open_log;
mod program;
mod project;
mod prompt;
mod providers;
mod queue;
mod quiet;
mod reduction;
mod remark;
mod rules;
mod run;
mod section;
mod shared_cost;
mod shared_schemas;
mod skills;
mod subject;
mod switch;
mod tool;
mod transcript;
mod turn;
mod wanted;
mod window;
mod workspace;
mod written_call;

pub use active_model::{ActiveModel, WindowSource};
pub use answers::{AnswerSearch, IMAGE_GENERATE, TakenState, incomplete_remark};
pub use approval::{
    AlwaysScope, Approval, ApprovalRequest, ApprovalTerms, Approver, BoundFact, MAX_SHOWN_BYTES,
    ScopeKind,
};
pub use arguments::CallArguments;
pub use bound::{Bound, ConfigKeys, exhausted_budget, micro_dollars};
pub use clock::{Clock, SystemClock};
pub use declaration::{About, Power, Powers, ToolDeclaration, ToolGroup, ToolKind, WorkPlace};
pub use embedded::{
    AgentMeta, BootstrapFileReport, EmbeddedMeta, EmbeddedResult, Payload, SystemPromptReport,
};
pub use engine::Engine;
pub use error::{CandidateFailure, RunError};
pub use event::{
    AgentRunEvent, ContextChange, EventCallback, RunEvent, RunId, RunOutcome, RunWork,
};
pub use hook::{
    AgentStart, CompactionReason, CompactionVerdict, Hook, HookError, PendingCompaction,
    PendingToolCall, ToolCallVerdict,
};
pub use inbox::{InboxError, PendingMessage, SessionInbox, WhenIdle};
pub use known_secrets::KnownSecrets;
pub use lanes::{Enqueue, Lane, LanePermit, LaneRequest, Lanes};
pub use mode::{Mode, SessionMode, UnknownMode};
pub use myclaw_auth::AuthProfile;
pub use notice::{EndedJob, HookPoint, Notice, SummaryProblem};
pub use program::{ProgramRequest, ProgramTool};
pub use project::{ProjectFile, ProjectInstructions};
pub use providers::Providers;
pub use queue::Arrival;
pub use quiet::QuietMessages;
pub use remark::tell_model;
pub use rules::{CutAnswers, RefusalRule, RunRules};
pub use run::{RunParams, RunResult, RunStores};
pub use shared_cost::SharedCost;
pub use shared_schemas::SharedSchemas;
pub use skills::SkillSummary;
pub use subject::{
    CallEffect, CallSubject, CommandLine, FactForm, JobCommand, JobInput, ShownFact, Target,
    TargetAccess,
};
pub use switch::ModelSwitch;
pub use tool::{
    InnerCalls, MeantCall, PreparedCall, Tool, ToolAliases, ToolContext, ToolError, ToolInvocation,
    ToolOutput, ToolUpdate, TurnId, WithheldTool,
};
pub use transcript::message_to_row;
pub use turn::{CompactionOutcome, CompactionReport, utc_day};
pub use wanted::WantedWords;
pub use workspace::{BOOTSTRAP_NAMES, PromptFiles};
pub use written_call::{cleaned_name, written_call};
