//! The tags and notes with which this program itself tells one part of what a model reads from another. Data only: what
//! stands here is made harmless in text from outside, so each new section and note belongs here. Tests compare both lists
//! with what the program writes.

/// The tag around text from the web.
pub(super) const EXTERNAL: &str = "external-content";

/// The tags of the system prompt's sections, and of the parts in them.
pub const PROMPT_TAGS: [&str; 8] = [
    "identity",
    "bootstrap-files",
    "file",
    "project-instructions",
    "tools",
    "notes",
    "safety",
    "runtime",
];

/// How the notes begin that this program puts between square brackets into messages, after the bracket and in lower case.
pub(super) const NOTES: &[&str] = &[
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
