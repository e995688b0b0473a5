//! Parses a line: a message, or a command to the front-end.

use myclaw_agent::{SessionCommand, did_you_mean};
use myclaw_front::requests;

/// The commands, for suggestions.
const NAMES: [&str; 25] = [
    "/help",
    "/new",
    "/sessions",
    "/mode",
    "/plan",
    "/queue",
    "/later",
    "/stop",
    "/quit",
    "/title",
    "/model",
    "/thinking",
    "/todos",
    "/diff",
    "/usage",
    "/context",
    "/compact",
    "/undo",
    "/redo",
    "/agents",
    "/btw",
    "/rewind",
    "/goal",
    "/memory",
    "/theme",
];

/// The text of `/help`.
pub(super) const HELP: &str = "\
/help             this help
/new NAME         begin a session
/sessions [NAME]  list the sessions, or continue one
/mode [NAME]      show or change the permission mode (also: Shift-Tab)
/plan             the same as /mode plan: nothing changes until you approve a plan
/model [NAME]     show or change the model: PROVIDER/MODEL
/thinking [LEVEL] show or change how much the model thinks
/todos            the steps of the agent's plan
/diff             what the agent's tools have changed in this session
/usage            tokens and cost so far (also: /cost)
/context          what fills the context window
/compact [FOCUS]  replace the older messages with a summary, which concentrates on FOCUS
/btw QUESTION     ask aside: the answer is shown and not kept
/undo, /redo      undo the file changes of the last turn, or make them again
/rewind [NUMBER]  list your messages, or go back to before one, in files too, in a new session
/goal [CONDITION] work until CONDITION holds, or until !COMMAND succeeds; /goal resume, /goal stop
/memory [WHAT]    what is remembered: search WORDS, why ID, add TEXT, edit ID TEXT, forget ID
/title TEXT       change the title of this session
/theme [NAME]     show or change the colours of this terminal
/agents           the agents that are files, which sub-agents can be
/queue            list the messages that wait
/init             have the agent write an AGENTS.md for its project
/review [WHAT]    have the agent review the working tree, a branch or a pull request
/stop             stop what the session does (also: Esc, Ctrl-C)
/quit             leave (also: exit, quit, Ctrl-D); the session goes on without you

Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line.
While the agent works, Enter sends a message; the gateway's `messages.queue.mode` decides when the agent reads it.
Without a connection messages wait here, and each is sent once when the gateway is back.
To send a message that begins with a slash, put a space before the slash.";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Say(String),
    Help,
    Queue,
    Sessions,
    /// Shows or changes the permission mode.
    Mode(Option<String>),
    /// Continues or begins one.
    Session(String),
    /// A command that the gateway obeys.
    Ask(String),
    /// Changes the title.
    Title(String),
    /// Shows the themes, or changes to one.
    Theme(Option<String>),
    Stop,
    Leave,
    /// With the message about it.
    Unknown(String),
}

/// Reads a line that is not blank.
pub(super) fn parse(line: &str) -> Command {
    let trimmed = line.trim();
    if matches!(trimmed, "exit" | "quit") {
        return Command::Leave;
    }
    if !line.starts_with('/') {
        return Command::Say(line.to_owned());
    }
    if let Some(message) = requests::expand(line) {
        return Command::Say(message);
    }
    let (name, argument) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    match (name, argument.trim()) {
        ("/help" | "/?", _) => Command::Help,
        ("/later", text) if !text.is_empty() => Command::Say(text.to_owned()),
        ("/queue", "") => Command::Queue,
        ("/mode" | "/modes", "") => Command::Mode(None),
        ("/mode" | "/modes", name) => Command::Mode(Some(name.to_owned())),
        ("/plan", "") => Command::Mode(Some("plan".to_owned())),
        ("/theme", "") => Command::Theme(None),
        ("/theme", name) => Command::Theme(Some(name.to_owned())),
        ("/title", title) if !title.is_empty() => Command::Title(title.to_owned()),
        ("/title", _) => Command::Unknown("/title needs a text: /title TEXT".to_owned()),
        ("/btw", "") => Command::Unknown("/btw needs a question: /btw QUESTION".to_owned()),
        _ if SessionCommand::parse(trimmed).is_some() => Command::Ask(trimmed.to_owned()),
        ("/sessions", "") => Command::Sessions,
        ("/sessions" | "/new", name) if !name.is_empty() => Command::Session(name.to_owned()),
        ("/new", _) => Command::Unknown("/new needs a name: /new NAME".to_owned()),
        ("/stop", _) => Command::Stop,
        ("/quit" | "/exit", _) => Command::Leave,
        _ => Command::Unknown(format!(
            "there is no command `{name}` here{} /help lists the commands; others work in `myclaw chat` on the gateway's \
             machine",
            did_you_mean(name, NAMES)
        )),
    }
}
