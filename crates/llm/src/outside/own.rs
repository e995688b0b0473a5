//! The tags and notes with which this program itself tells one part of what a model reads from another. Data only: what
//! stands here is made harmless in text from outside, so each new section and note belongs here. Tests compare both lists
//! with what the program writes.

/// The tag around text from the web.
pub(super) const EXTERNAL: &str = "external-content";

/// The tags of the system prompt's sections, and of the parts in them.
pub const PROMPT_TAGS: [&str; 9] = [
    "identity",
    "bootstrap-files",
    "file",
    "project-instructions",
    "tools",
    "notes",
    "memory",
    "safety",
    "runtime",
];

/// How the notes begin that this program puts into the results of tools: about a background job, and about the result itself.
/// In the result of a tool that runs commands they are the tool's own.
const RESULT_NOTES: &[&str] =
    &["background job", "job j", "bytes before this are", "truncated ", "this call has now given"];

/// How the other notes begin that a tool puts behind the output of a command. In other texts nobody is deceived by them.
const COMMAND_NOTES: &[&str] = &[
    "exit code",
    "ended by signal",
    "killed by signal",
    "timed out after",
    "it was ended",
    "it was aborted",
    "aborted; ended",
    "output cut",
    "only the last",
    "still running in the background",
    "the beginning of the output",
    "the editor ",
    "nobody knows how",
];

/// How the notes begin that this program puts between square brackets into messages, after the bracket and in lower case.
const NOTES: &[&str] = &[
    // Messages of channels, and what is in them.
    "message from",
    "in reply to",
    "attached:",
    "attached to",
    "a later version of a message",
    "the person edited",
    "the file \"",
    "the voice note",
    "transcript of",
    "earlier message",
    "end of the earlier messages",
    "forwarded m",
    "message forwarded",
    "shared message",
    "attachment:",
    "attachment,",
    "poll:",
    "poll,",
    "checklist:",
    "checklist,",
    "media for money",
    "embed:",
    "embed,",
    "components:",
    "components,",
    "preview of a link",
    "calendar event",
    "product:",
    "product,",
    "advertisement:",
    "advertisement,",
    "the rest of the mail",
    // Programs and machines that ask.
    "the message to answer",
    "result of",
    "file \"",
    "end of file",
    // Sessions, sub-agents and scheduled jobs.
    "conversation summary",
    "the sub-agent",
    "task \"",
    "scheduled message",
    "the user has",
    "the user ran",
    "these messages arrived",
    "an earlier message was dropped",
    "empty message",
    "this answer is not whole",
];

/// Which marks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of any text from outside.
    Text,
    /// Those of the result of a tool that runs commands, in which notes about the command are the tool's own.
    CommandResult,
    /// Notes about a command and its job, in its output.
    Output,
    /// Those of all others together.
    Any,
}

impl Scope {
    pub(super) fn notes(self) -> impl Iterator<Item = &'static &'static str> {
        let lists: [&[&str]; 3] = match self {
            Self::Text => [NOTES, RESULT_NOTES, &[]],
            Self::CommandResult => [NOTES, &[], &[]],
            Self::Output => [RESULT_NOTES, COMMAND_NOTES, &[]],
            Self::Any => [NOTES, RESULT_NOTES, COMMAND_NOTES],
        };
        lists.into_iter().flatten()
    }
}
