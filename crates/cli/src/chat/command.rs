//! Parses a line of the chat: a message, or a command to the chat itself.

use myclaw_agent::did_you_mean;
use myclaw_agent::tools::Direction;

use super::jobs::killed_id;
use super::talk::queue_number;

/// The commands and their arguments, for completion and suggestions.
pub(super) const NAMES: [&str; 14] = [
    "/help",
    "/new",
    "/model",
    "/thinking",
    "/sessions",
    "/compact",
    "/undo",
    "/redo",
    "/skill",
    "/queue",
    "/jobs",
    "/continue",
    "/usage",
    "/quit",
];

/// The text of `/help`.
pub(super) const HELP: &str = "\
/help                    this help
/new [NAME]              begin a new session
/model [PROVIDER/MODEL]  show or change the model
/thinking [LEVEL]        show or change how much the model thinks: off, minimal, low, medium, high, xhigh
/sessions [NAME]         list the sessions, or continue one
/compact [FOCUS]         replace the older messages with a summary, which concentrates on FOCUS
/undo                    undo the file changes of the last turn; again: of the one before
/redo                    make the changes again that were undone last
/skill [NAME [MESSAGE]]  list the skills, or ask the agent to use one
/queue [drop NUMBER]     list the waiting messages, or take one back
/jobs [kill ID]          list the background jobs, or end one
/continue                answer the waiting messages, or continue an interrupted turn
/usage                   tokens and cost so far
/quit                    leave (also: exit, quit, Ctrl-D)

Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line. Tab completes.
While the agent works, Enter sends a message that it reads before its next step. Alt-Enter, or /later TEXT, sends one
that it reads when it is done. /stop stops it.
Ctrl-C aborts the current turn; twice at an empty prompt, it leaves the chat.
To send a message that begins with a slash, put a space before the slash.";

/// A command to the chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    New(Option<String>),
    Model(Option<String>),
    Thinking(Option<String>),
    Sessions(Option<String>),
    /// With the focus of the summary.
    Compact(Option<String>),
    /// Lists the skills, or asks the agent to use one. The text is its name, and a message if there is one.
    Skill(Option<String>),
    /// Lists waiting messages, or takes the message of that number back.
    Queue(Option<usize>),
    /// Lists the background jobs, or ends the one with this id.
    Jobs(Option<String>),
    Continue,
    /// Undoes the file changes of a turn, or makes them again.
    Undo(Direction),
    Usage,
    Quit,
}

impl Command {
    /// True if the command calls a model, so that it can be aborted and can fail.
    pub(super) fn is_work(&self) -> bool {
        matches!(self, Self::Continue | Self::Compact(_) | Self::Skill(Some(_)))
    }
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Command(Command),
    /// For the agent.
    Message(String),
    /// An unknown command, with the message about it.
    Unknown(String),
}

/// Reads a line that is not blank.
pub(super) fn parse(text: &str) -> Parsed {
    let trimmed = text.trim();
    if matches!(trimmed, "exit" | "quit") {
        return Parsed::Command(Command::Quit);
    }
    if !text.starts_with('/') {
        return Parsed::Message(text.to_owned());
    }
    let (name, argument) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let argument = Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty());
    match (name, argument) {
        ("/help" | "/?", None) => Parsed::Command(Command::Help),
        ("/new", name) => Parsed::Command(Command::New(name)),
        ("/model", model) => Parsed::Command(Command::Model(model)),
        ("/thinking", level) => Parsed::Command(Command::Thinking(level)),
        ("/sessions", name) => Parsed::Command(Command::Sessions(name)),
        ("/compact", focus) => Parsed::Command(Command::Compact(focus)),
        ("/skill", argument) => Parsed::Command(Command::Skill(argument)),
        ("/queue", None) => Parsed::Command(Command::Queue(None)),
        ("/queue", Some(argument)) => match queue_number(&argument) {
            Some(number) => Parsed::Command(Command::Queue(Some(number))),
            None => Parsed::Unknown(
                "/queue lists the waiting messages; /queue drop NUMBER takes one back".to_owned(),
            ),
        },
        ("/undo", None) => Parsed::Command(Command::Undo(Direction::Undo)),
        ("/redo", None) => Parsed::Command(Command::Undo(Direction::Redo)),
        ("/undo" | "/redo", Some(_)) => Parsed::Unknown(format!(
            "{name} takes no argument; `myclaw sessions undo NAME --turn N` undoes a certain turn"
        )),
        ("/jobs", None) => Parsed::Command(Command::Jobs(None)),
        ("/jobs", Some(argument)) => match killed_id(&argument) {
            Some(id) => Parsed::Command(Command::Jobs(Some(id))),
            None => Parsed::Unknown(
                "/jobs lists the background jobs; /jobs kill ID ends one".to_owned(),
            ),
        },
        ("/continue", None) => Parsed::Command(Command::Continue),
        ("/later", Some(message)) => Parsed::Message(message),
        ("/later", None) => Parsed::Unknown("/later needs a text: /later TEXT".to_owned()),
        ("/stop", _) => Parsed::Unknown("/stop has nothing to stop: no turn runs".to_owned()),
        ("/usage", None) => Parsed::Command(Command::Usage),
        ("/quit" | "/exit", None) => Parsed::Command(Command::Quit),
        ("/help" | "/?" | "/continue" | "/usage" | "/quit" | "/exit", Some(_)) => {
            Parsed::Unknown(format!("{name} takes no argument"))
        }
        _ => Parsed::Unknown(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    let suggestion = did_you_mean(name, NAMES);
    format!(
        "there is no command `{name}`{suggestion} /help lists the commands; a space before the slash makes it a message"
    )
}

#[cfg(test)]
mod tests;
