//! What a line of the chat means: a message, or a command to the chat itself.

use crate::similar::did_you_mean;

/// The commands with what they take, for completion and for guessing.
pub(super) const NAMES: [&str; 7] =
    ["/help", "/new", "/model", "/thinking", "/sessions", "/usage", "/quit"];

/// What `/help` prints.
pub(super) const HELP: &str = "\
/help                    this help
/new [NAME]              begin a new conversation
/model [PROVIDER/MODEL]  show or change the model
/thinking [LEVEL]        show or change how much the model thinks: off, minimal, low, medium, high, xhigh
/sessions [NAME]         list the conversations, or continue one
/usage                   tokens and cost so far
/quit                    leave (also: exit, quit, Ctrl-D)

Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line. Tab completes.
Ctrl-C aborts the turn that runs; at an empty prompt, twice, it leaves.
A space before the slash makes it a message.";

/// A command to the chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    New(Option<String>),
    Model(Option<String>),
    Thinking(Option<String>),
    Sessions(Option<String>),
    Usage,
    Quit,
}

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Command(Command),
    /// For the agent.
    Message(String),
    /// A command that there is not, with what to say about it.
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
        ("/usage", None) => Parsed::Command(Command::Usage),
        ("/quit" | "/exit", None) => Parsed::Command(Command::Quit),
        ("/help" | "/?" | "/usage" | "/quit" | "/exit", Some(_)) => {
            Parsed::Unknown(format!("{name} takes nothing behind it"))
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
