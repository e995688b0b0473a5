//! Notices: what a run reports without ending. Each has a code and fields for programs, and a default sentence for
//! people.

mod words;

use std::path::PathBuf;
use std::time::Duration;

use myclaw_llm::{ErrorClass, ThinkingLevel};
use serde::{Serialize, Serializer};

use words::{
    holder, hook_summary_unused, jobs_ended, messages_waiting, thinking_level_changed,
    unreadable_lines,
};

/// Something that the user should know and that did not stop the run.
///
/// Serialised as an object with a `code`, the fields, and the default sentence as `message`. `Display` writes that
/// sentence; a front-end may use its own words. A notice is not an error: the derive only provides `Display`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Notice {
    /// The run waits for a place in its lanes.
    #[error("waiting for another run to end")]
    WaitingForLane {},
    /// The run waits for a session that another process has open.
    #[error("another process works in this session{}, and this run is next: {}", holder(*.process_id), .path.display())]
    WaitingForSession {
        /// Id of that process, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        process_id: Option<u32>,
        /// File of the session.
        path: PathBuf,
    },
    /// The run waits until a key may be used again.
    #[error("{}; waiting {:.1} s", every_key_in_cooldown(.provider, *.reason), Duration::from_millis(*.wait_ms).as_secs_f64())]
    WaitingForKey {
        /// The provider of the keys.
        provider: String,
        /// Why the keys may not be used now.
        reason: ErrorClass,
        /// How long the run waits, in milliseconds.
        wait_ms: u64,
    },
    /// Messages of earlier runs are answered too.
    #[error("{}", messages_waiting(*.count))]
    MessagesWaiting {
        /// Number of messages.
        count: usize,
    },
    /// A message for the session was not accepted.
    #[error("a message was refused, because {waiting} messages already wait (messages.queue.cap)")]
    MessageRefused {
        /// Number of messages that already wait.
        waiting: usize,
    },
    /// A waiting message was dropped for a newer one.
    #[error("a waiting message was dropped, because more than {cap} wait: {text}")]
    MessageDropped {
        /// Most messages that may wait.
        cap: usize,
        /// The beginning of the message.
        text: String,
    },
    /// A message stopped the run; the next run answers it.
    #[error("a message interrupted this run; the next one answers it")]
    Interrupted {},
    /// A rule denied a tool call.
    #[error("{reason}")]
    ToolDenied {
        /// Tool name, as the model wrote it.
        tool: String,
        /// The tool and the rule.
        reason: String,
    },
    /// The model does not offer the requested thinking level.
    #[error("{}", thinking_level_changed(.model, *.asked, *.used, .offered))]
    ThinkingLevelChanged {
        /// `provider/model`.
        model: String,
        /// The requested level.
        asked: ThinkingLevel,
        /// The level in use.
        used: ThinkingLevel,
        /// The levels that the model offers; empty if it cannot think.
        offered: Vec<ThinkingLevel>,
    },
    /// A model is not asked, because its window is too small to work in.
    #[error("{}", window_too_small(.model, *.tokens, *.minimum))]
    WindowTooSmall {
        /// `provider/model`.
        model: String,
        /// Its window, in tokens.
        tokens: u64,
        /// The smallest window that is used unless its size was stated, in tokens.
        minimum: u64,
    },
    /// A model is asked, but its window is small for long tasks.
    #[error(
        "{model} has a context window of {tokens} tokens; below {comfortable} long tasks suffer"
    )]
    WindowSmall {
        /// `provider/model`.
        model: String,
        /// Its window, in tokens.
        tokens: u64,
        /// Windows of at least this many tokens cause no notice.
        comfortable: u64,
    },
    /// The key store cannot be read; the run continues with other keys.
    #[error("{error}")]
    KeyStoreUnreadable {
        /// Why.
        error: String,
    },
    /// The outcome of a key's use could not be stored.
    #[error("the outcome of a call could not be recorded for its key: {error}")]
    KeyStoreUnwritable {
        /// Why.
        error: String,
    },
    /// A key cannot be obtained; another one is used.
    #[error("{error}")]
    KeyUnavailable {
        /// The failure, in one line.
        error: String,
    },
    /// A login was refused and is renewed.
    #[error("{error}; the login is renewed")]
    LoginRenewed {
        /// The failure, in one line.
        error: String,
    },
    /// A provider rejected the thinking in earlier messages.
    #[error("{error}; the earlier messages are sent to {model} again, without their thinking")]
    ThinkingRejected {
        /// `provider/model`.
        model: String,
        /// The failure, in one line.
        error: String,
    },
    /// A host does not take an option of the request.
    #[error("{error}; {model} is asked again without `{option}`")]
    OptionLeftOut {
        /// `provider/model`.
        model: String,
        /// Names of the fields of the request.
        option: String,
        /// The failure, in one line.
        error: String,
    },
    /// A bootstrap file was shortened in the system prompt.
    #[error("{file} was cut to {limit} characters in the prompt")]
    BootstrapFileCut {
        /// Name of the file.
        file: &'static str,
        /// Characters that are sent.
        limit: usize,
    },
    /// A bootstrap file could not be read.
    #[error("{file} in the workspace could not be read: {error}")]
    BootstrapFileUnreadable {
        /// Name of the file.
        file: &'static str,
        /// Why.
        error: String,
    },
    /// The prompt lists only some of the skills.
    #[error(
        "the prompt lists {listed} skills and leaves out {left_out}; set `enabled: false` in skills.entries for those that \
         are not needed"
    )]
    SkillsLeftOut {
        /// Number of listed skills.
        listed: usize,
        /// Number of skills that are left out.
        left_out: usize,
    },
    /// The starter file could not be written to the workspace.
    #[error("the starter AGENTS.md could not be written to {}: {error}", .directory.display())]
    StarterFileMissing {
        /// The workspace.
        directory: PathBuf,
        /// Why.
        error: String,
    },
    /// The last line of the session's file was incomplete and was moved to a separate file.
    #[error(
        "the last line of {} was incomplete; its {bytes} bytes were moved to {}",
        .path.display(), .moved_to.display()
    )]
    TornEndMoved {
        /// File of the session.
        path: PathBuf,
        /// Number of bytes.
        bytes: u64,
        /// Path of the separate file.
        moved_to: PathBuf,
    },
    /// The list of sessions was damaged; it was restored from the logs.
    #[error(
        "{} was damaged and was restored from the logs; a copy is at {}",
        .path.display(), .backup.display()
    )]
    SessionListRestored {
        /// The damaged file.
        path: PathBuf,
        /// A copy of it.
        backup: PathBuf,
    },
    /// The file with the totals of the day was damaged; the totals restart at zero.
    #[error(
        "{} was damaged, so the totals of the day begin at zero; a copy is at {}",
        .path.display(), .backup.display()
    )]
    DayTotalsLost {
        /// The damaged file.
        path: PathBuf,
        /// A copy of it.
        backup: PathBuf,
    },
    /// The price of the model is unknown, so limits on money cannot apply.
    #[error(
        "the price of {provider}/{model} is unknown, so {limits} cannot apply: set `price` for the model in models.providers.{provider}.models"
    )]
    PriceUnknown {
        /// Name of the provider.
        provider: String,
        /// Id of the model.
        model: String,
        /// The config keys of the limits.
        limits: String,
    },
    /// Lines of the session's file cannot be read and are skipped.
    #[error("{}", unreadable_lines(*.count, .path))]
    UnreadableLines {
        /// Number of lines.
        count: usize,
        /// File of the session.
        path: PathBuf,
    },
    /// The session is longer than the model's window; its beginning becomes a summary.
    #[error(
        "the session is longer than the model's context window; its oldest messages become a summary"
    )]
    SessionTooLong {},
    /// Only parts of the newest messages are sent, because they are longer than the model's window.
    #[error(
        "the newest messages are longer than the model's window, so only parts are sent; put long texts into files, or choose \
             a model with a larger window"
    )]
    MessagesCut {},
    /// A model could not write the summary; another one is asked.
    #[error("{model} could not summarise the older messages ({error}); {next} is asked instead")]
    SummaryFailed {
        /// `provider/model` that failed.
        model: String,
        /// `provider/model` that is asked next.
        next: String,
        /// The failure, in one line.
        error: String,
    },
    /// No model could write the summary now; the next message tries again.
    #[error(
        "the older messages could not be summarised now ({error}); the next message tries again"
    )]
    SummaryPostponed {
        /// The failure, in one line.
        error: String,
    },
    /// No model could write the summary; the older messages are left out.
    #[error("the older messages could not be summarised ({error}) and are not sent; they are kept")]
    SummaryReplaced {
        /// The failure, in one line.
        error: String,
    },
    /// A hook forbade a compaction.
    #[error("the hook {hook} forbids the compaction: {reason}")]
    CompactionForbidden {
        /// Its name.
        hook: String,
        /// The reason that the hook gave.
        reason: String,
    },
    /// A hook's summary is not used; the model is asked.
    #[error("{}", hook_summary_unused(.hook, *.problem))]
    HookSummaryUnused {
        /// Its name.
        hook: String,
        /// Why.
        problem: SummaryProblem,
    },
    /// A hook's messages are not used, because no user message is left among them.
    #[error("the hook {hook} left no message of the user to send; its change is not used")]
    HookMessagesUnused {
        /// Its name.
        hook: String,
    },
    /// A hook failed; the run continues without it.
    #[error("the hook {hook} failed {}: {error}", .point.words())]
    HookFailed {
        /// Its name.
        hook: String,
        /// The call that failed.
        point: HookPoint,
        /// Why.
        error: String,
    },
    /// The model gave an empty answer and is asked once more.
    #[error("the model gave an empty answer; it is asked once more")]
    EmptyAnswer {},
    /// The model wrote a call as text, so it did not run. The model is asked once more.
    #[error(
        "{model} wrote its call of {tool} as text, so it did not run; it is asked once more. Its server needs a tool parser; see docs/use/models.md"
    )]
    CallWrittenAsText {
        /// `provider/model`.
        model: String,
        /// The tool.
        tool: String,
    },
    /// The answer was cut at the model's output limit.
    #[error(
        "the answer is not whole: it was cut at the output limit of {max_output} tokens; ask for the rest"
    )]
    AnswerCut {
        /// The limit, in tokens.
        max_output: u64,
    },
    /// The provider's filter stopped the answer.
    #[error("the answer is not whole: the provider's filter stopped it")]
    AnswerFiltered {},
    /// The run ends at a limit without a closing summary.
    #[error("there is no closing summary: {reason}")]
    NoClosingSummary {
        /// Why.
        reason: String,
    },
    /// The totals of the day cannot be stored, so limits per day are not enforced.
    #[error("the daily limits cannot be enforced: {error}")]
    DayTotalsUnavailable {
        /// Why.
        error: String,
    },
    /// The list of sessions was not updated.
    #[error("the list of sessions was not updated: {error}")]
    IndexNotUpdated {
        /// Why.
        error: String,
    },
    /// The workspace of the session is full, or another one than before. The people of the session should know.
    #[error("{text}")]
    Workspace {
        /// What happened, and what to do about it.
        text: String,
    },
    /// Old files of the session were removed.
    #[error("{text}")]
    Files {
        /// What happened, and what to do about it.
        text: String,
    },
    /// What became of a turn that was made for the session's goal.
    #[error("{text}")]
    Goal {
        /// Whether the goal is reached, worked on further, or paused, and why.
        text: String,
    },
    /// Background jobs were ended, because their session was closed.
    #[error("{}", jobs_ended(.jobs))]
    JobsEnded {
        /// The jobs that still ran.
        jobs: Vec<EndedJob>,
    },
    /// The messages of a failed run may not be on disk.
    #[error("the last messages may not be on disk: {error}")]
    NotDurable {
        /// Why.
        error: String,
    },
}

/// A background job that was ended with its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndedJob {
    /// Its name within the session.
    pub id: String,
    /// Its command.
    pub command: String,
}

/// Why a hook's summary is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SummaryProblem {
    /// It has no text.
    Empty,
    /// It is longer than the messages it would replace.
    TooLong,
}

/// The calls of a hook whose failure does not stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookPoint {
    /// Before a model call.
    Context,
    /// When a tool call begins.
    CallBegins,
    /// After a tool call.
    ToolResult,
    /// Before a compaction.
    BeforeSessionCompact,
    /// After a compaction.
    SessionCompact,
    /// At the end of the run.
    AgentEnd,
}

impl HookPoint {
    /// Words to follow "failed".
    fn words(self) -> &'static str {
        match self {
            Self::Context => "before a model call",
            Self::CallBegins => "when a tool call begins",
            Self::ToolResult => "after a tool call",
            Self::BeforeSessionCompact => "before a compaction",
            Self::SessionCompact => "after a compaction",
            Self::AgentEnd => "at the end of the run",
        }
    }
}

/// The reason why no key of a provider can be used now.
pub(crate) fn every_key_in_cooldown(provider: &str, reason: ErrorClass) -> String {
    format!(
        "{provider}: every key is in cooldown after earlier failures ({}; `myclaw auth clear-cooldown` ends that)",
        reason.words()
    )
}

/// The reason why a model is not asked.
pub(crate) fn window_too_small(model: &str, tokens: u64, minimum: u64) -> String {
    format!(
        "{model} has a context window of {tokens} tokens, and the least to work in is {minimum}; use a model with a \
         larger one, or state contextWindow for it under models.providers in the config file to use it all the same"
    )
}

/// Adds the default sentence to a notice's fields.
pub(crate) fn with_message<S: Serializer>(
    notice: &Notice,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithMessage<'a> {
        #[serde(flatten)]
        notice: &'a Notice,
        message: String,
    }
    WithMessage { notice, message: notice.to_string() }.serialize(serializer)
}

#[cfg(test)]
mod tests;
