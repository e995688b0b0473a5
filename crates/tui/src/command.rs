//! Parses a line of the chat: a message, or a command to the chat itself.

use std::path::Path;

use myclaw_agent::{did_you_mean, goal::GoalOrder};
use myclaw_tools::Direction;

use super::back::GoesBack;
use super::jobs::killed_id;
use super::queue;
use myclaw_front::servers::ServerCommand;

mod elsewhere;

/// The commands and their arguments, for completion and suggestions.
pub(super) const NAMES: [&str; 44] = [
    "/help",
    "/new",
    "/clear",
    "/fork",
    "/retry",
    "/tree",
    "/back",
    "/rewind",
    "/image",
    "/title",
    "/search",
    "/export",
    "/copy",
    "/context",
    "/cost",
    "/memory",
    "/skills",
    "/config",
    "/later",
    "/stop",
    "/model",
    "/thinking",
    "/mode",
    "/plan",
    "/todos",
    "/sessions",
    "/resume",
    "/compact",
    "/goal",
    "/btw",
    "/diff",
    "/questions",
    "/undo",
    "/redo",
    "/skill",
    "/agents",
    "/queue",
    "/jobs",
    "/mcp",
    "/theme",
    "/continue",
    "/usage",
    "/quit",
    "/exit",
];

/// The text of `/help`.
pub(super) const HELP: &str = "\
/help                    this help
/new [NAME]              begin a new session; the one before is kept (also: /clear)
/fork [NAME]             go on in a copy of this session
/back                    go back to an earlier message, in a copy of the session (also: Esc twice)
/rewind                  the same, and undo what was changed in files since
/tree                    show the branches of this session, and change to one
/image FILE [MESSAGE]    send a picture (also: a message with the path of one)
/retry                   send the last message again, in a copy of the session without the answer
/model [PROVIDER/MODEL]  choose the model from a list, or change it
/thinking [LEVEL]        show or change how much the model thinks: off, minimal, low, medium, high, xhigh
/thinking show, hide     show what the model thinks, or hide it (also: Ctrl-T)
/mode [NAME]             show or change the permission mode: read-only, plan, ask, auto, sandbox (also: Shift-Tab)
/plan                    the same as /mode plan: nothing changes until you approve a plan
/todos                   the steps of the agent's plan
/sessions [NAME]         list the sessions, or continue one
/resume                  choose a session from a list
/title [TEXT]            show or change the title of this session
/search TEXT             find messages in all sessions, and open one
/export FILE             write this session to a new file: .md, .html or .jsonl
/copy                    copy the last answer
/context                 what fills the context window
/compact [FOCUS]         replace the older messages with a summary, which concentrates on FOCUS
/goal [CONDITION]        work until CONDITION holds, or until !COMMAND succeeds; /goal resume, /goal stop
/btw QUESTION            ask aside: neither the question nor the answer is added to the session
/diff                    what the agent's tools have changed in this session
/questions               the questions that wait for your answer
/init                    have the agent write an AGENTS.md for this project
/review [WHAT]           have the agent review the working tree, a branch or a pull request
/undo                    undo the file changes of the last turn; again: of the one before
/redo                    make the changes again that were undone last
/skill [NAME [MESSAGE]]  list the skills, or ask the agent to use one (also: /skills)
/agents                  the agents that are files, which sub-agents can be
/queue [drop NUMBER]     list the waiting messages, or take one back
/jobs [kill ID]          list the background jobs, or end one
/mcp [tools|approve NAME] list the MCP servers, show the tools of one, or approve them
/theme [NAME]            show or change the colours: auto, dark, light, basic, plain, high-contrast
/continue                answer the waiting messages, or continue an interrupted turn
/usage                   tokens and cost so far (also: /cost)
/memory [COMMAND]        what the agent remembers: search WORDS, why ID, edit ID TEXT, forget ID, add TEXT
/config                  where the config file and the workspace are
/quit                    leave (also: /exit, exit, quit, Ctrl-D)

!COMMAND runs a command here and shows its output to the model with the next message; !!COMMAND only to you.
Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line. Tab completes commands and paths; \
@ and Tab find a file. Ctrl-V takes a picture from the clipboard. Ctrl-G opens the message in $VISUAL or $EDITOR. \
Ctrl-O shows the last outputs in full, Ctrl-T what the model thinks.
While the agent works, Enter sends a message that it reads before its next step. Alt-Enter, or /later TEXT, sends one \
that it reads when it is done. /stop stops it.
Esc or Ctrl-C aborts the current turn; Ctrl-C twice at an empty prompt leaves the chat.
To send a message that begins with a slash or an exclamation mark, put a space before it.";

/// A command to the chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    New(Option<String>),
    Model(Option<String>),
    Thinking(Option<String>),
    /// Shows or changes the permission mode.
    Mode(Option<String>),
    /// Shows the agent's plan.
    Todos,
    /// Works until a condition holds.
    Goal(GoalOrder),
    /// Asks aside.
    Aside(String),
    /// Shows what the session has changed.
    Diff,
    /// Lists the open questions.
    Questions,
    Sessions(Option<String>),
    /// Lets the user choose a session.
    Resume,
    /// With the focus of the summary.
    Compact(Option<String>),
    /// Lists the skills, or asks the agent to use one. The text is its name, and a message if there is one.
    Skill(Option<String>),
    /// Lists the agents that are files.
    Agents,
    /// Lists waiting messages, or takes the message of that number back.
    Queue(Option<usize>),
    /// Lists the background jobs, or ends the one with this id.
    Jobs(Option<String>),
    /// Lists the MCP servers, or does something with one.
    Mcp(ServerCommand),
    Continue,
    /// Undoes the file changes of a turn, or makes them again.
    Undo(Direction),
    Usage,
    /// Sends the last message again.
    Retry,
    /// Goes on in a copy of the session, which may be named.
    Fork(Option<String>),
    /// Goes back to an earlier message.
    Back(GoesBack),
    /// Shows the branches of the session.
    Tree,
    /// Writes the session to a file.
    Export(String),
    /// Copies the last answer.
    Copy,
    /// Shows or changes the title.
    Title(Option<String>),
    /// Searches all sessions.
    Search(String),
    /// Shows what fills the context window.
    Context,
    /// Shows or changes what the agent remembers.
    Memory(String),
    /// Shows or changes the colours.
    Theme(Option<String>),
    /// Shows where the config is.
    Config,
    Quit,
}

impl Command {
    /// True if the command calls a model, so that it can be aborted and can fail.
    pub(super) fn is_work(&self) -> bool {
        match self {
            Self::Goal(order) => order.is_work(),
            command => matches!(
                command,
                Self::Continue
                    | Self::Retry
                    | Self::Compact(_)
                    | Self::Aside(_)
                    | Self::Skill(Some(_))
            ),
        }
    }
}

impl Command {
    /// True if the command only says something.
    pub(super) fn changes_nothing(&self) -> bool {
        matches!(
            self,
            Self::Model(None)
                | Self::Thinking(None)
                | Self::Mode(None)
                | Self::Todos
                | Self::Diff
                | Self::Questions
                | Self::Sessions(None)
                | Self::Skill(None)
                | Self::Agents
                | Self::Usage
                | Self::Context
                | Self::Title(None)
                | Self::Memory(_)
                | Self::Config
        )
    }
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Command(Command),
    /// For the agent.
    Message(String),
    /// The same; it begins with the path of a picture.
    Image(String),
    /// For the shell.
    Shell(ShellLine),
    /// An unknown command, with the message about it.
    Unknown(String),
}

/// A command for the shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellLine {
    pub(super) command: String,
    pub(super) audience: Audience,
}

/// Who sees what a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// The user, and the model with the next message.
    UserAndModel,
    /// The user alone.
    User,
}

/// Reads a line that is not blank. A mistyped command may be one of the `others` too.
pub(super) fn parse(text: &str, others: impl FnOnce() -> Vec<String>) -> Parsed {
    let trimmed = text.trim();
    if matches!(trimmed, "exit" | "quit") {
        return Parsed::Command(Command::Quit);
    }
    if let Some(line) = text.strip_prefix('!') {
        return shell(line);
    }
    if !text.starts_with('/') || begins_with_path(trimmed) {
        return Parsed::Message(text.to_owned());
    }
    let (name, argument) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let argument = Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty());
    slash_command(name, argument, others)
}

fn slash_command(
    name: &str,
    argument: Option<String>,
    others: impl FnOnce() -> Vec<String>,
) -> Parsed {
    match (name, argument) {
        ("/help" | "/?", None) => Parsed::Command(Command::Help),
        ("/retry", None) => Parsed::Command(Command::Retry),
        ("/back", None) => Parsed::Command(Command::Back(GoesBack::Talk)),
        ("/rewind", None) => Parsed::Command(Command::Back(GoesBack::TalkAndFiles)),
        ("/tree", None) => Parsed::Command(Command::Tree),
        ("/image", Some(message)) => Parsed::Image(message),
        ("/fork", name) => Parsed::Command(Command::Fork(name)),
        ("/export", Some(file)) => Parsed::Command(Command::Export(file)),
        ("/copy", None) => Parsed::Command(Command::Copy),
        ("/title", title) => Parsed::Command(Command::Title(title)),
        ("/search", Some(text)) => Parsed::Command(Command::Search(text)),
        ("/context", None) => Parsed::Command(Command::Context),
        ("/memory", arguments) => Parsed::Command(Command::Memory(arguments.unwrap_or_default())),
        ("/config", None) => Parsed::Command(Command::Config),
        ("/theme" | "/themes", name) => Parsed::Command(Command::Theme(name)),
        ("/new" | "/clear", name) => Parsed::Command(Command::New(name)),
        ("/model", model) => Parsed::Command(Command::Model(model)),
        ("/thinking", level) => Parsed::Command(Command::Thinking(level)),
        ("/mode" | "/modes", mode) => Parsed::Command(Command::Mode(mode)),
        ("/plan", None) => Parsed::Command(Command::Mode(Some("plan".to_owned()))),
        ("/todos" | "/todo" | "/tasks", None) => Parsed::Command(Command::Todos),
        ("/sessions", name) => Parsed::Command(Command::Sessions(name)),
        ("/resume", None) => Parsed::Command(Command::Resume),
        ("/compact", focus) => Parsed::Command(Command::Compact(focus)),
        ("/skill" | "/skills", argument) => Parsed::Command(Command::Skill(argument)),
        ("/agents", None) => Parsed::Command(Command::Agents),
        ("/queue", None) => Parsed::Command(Command::Queue(None)),
        ("/queue", Some(argument)) => match queue::number(&argument) {
            Some(number) => Parsed::Command(Command::Queue(Some(number))),
            None => Parsed::Unknown(
                "/queue lists the waiting messages; /queue drop NUMBER takes one back".to_owned(),
            ),
        },
        ("/goal", argument) => {
            Parsed::Command(Command::Goal(GoalOrder::parse(argument.as_deref())))
        }
        ("/btw", Some(question)) => Parsed::Command(Command::Aside(question)),
        ("/diff", None) => Parsed::Command(Command::Diff),
        ("/questions", None) => Parsed::Command(Command::Questions),
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
        ("/mcp", argument) => match ServerCommand::parse(argument.as_deref().unwrap_or_default()) {
            Some(command) => Parsed::Command(Command::Mcp(command)),
            None => Parsed::Unknown(ServerCommand::USAGE.to_owned()),
        },
        ("/continue", None) => Parsed::Command(Command::Continue),
        ("/later", Some(message)) => Parsed::Message(message),
        ("/stop", _) => Parsed::Unknown("/stop has nothing to stop: no turn runs".to_owned()),
        ("/usage" | "/cost", None) => Parsed::Command(Command::Usage),
        ("/quit" | "/exit", None) => Parsed::Command(Command::Quit),
        (_, given) => Parsed::Unknown(match needed(name) {
            Some(what) if given.is_none() => format!("{name} needs {what}"),
            None if takes_no_argument(name) => format!("{name} takes no argument"),
            _ => unknown(name, &others()),
        }),
    }
}

/// What a command that is nothing by itself needs, with an example.
fn needed(name: &str) -> Option<&'static str> {
    match name {
        "/image" => Some("a file: /image plan.png what is this?"),
        "/export" => Some("a file: /export notes.md, .html or .jsonl"),
        "/search" => Some("a text: /search TEXT"),
        "/btw" => Some("a question: /btw QUESTION"),
        "/later" => Some("a text: /later TEXT"),
        _ => None,
    }
}

fn takes_no_argument(name: &str) -> bool {
    matches!(
        name,
        "/help"
            | "/?"
            | "/continue"
            | "/usage"
            | "/cost"
            | "/quit"
            | "/exit"
            | "/retry"
            | "/copy"
            | "/plan"
            | "/todos"
            | "/diff"
            | "/questions"
            | "/context"
            | "/config"
            | "/back"
            | "/rewind"
            | "/tree"
            | "/resume"
            | "/agents"
    )
}

/// Reads what follows an exclamation mark.
fn shell(line: &str) -> Parsed {
    let (line, audience) = match line.strip_prefix('!') {
        Some(line) => (line, Audience::User),
        None => (line, Audience::UserAndModel),
    };
    let command = line.trim().to_owned();
    if command.is_empty() {
        return Parsed::Unknown(
            "! needs a command: !ls; !!ls does not show the output to the model".to_owned(),
        );
    }
    Parsed::Shell(ShellLine { command, audience })
}

/// Whether a message begins with an absolute path, such as `/etc/hosts`: commands have no second slash. `/run` is a
/// directory and a command of another agent; it is taken as the command.
pub(super) fn begins_with_path(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word[1..].contains('/')
        || (!NAMES.contains(&word)
            && elsewhere::here(word).is_none()
            && word.len() > 1
            && Path::new(word).exists())
}

fn unknown(name: &str, others: &[String]) -> String {
    if let Some(here) = elsewhere::here(name) {
        return format!("there is no command `{name}` here: {here}");
    }
    let known = NAMES.into_iter().chain(others.iter().map(String::as_str));
    let suggestion = did_you_mean(name, known);
    format!(
        "there is no command `{name}`{suggestion} /help lists the commands; a space before the slash makes it a message"
    )
}

#[cfg(test)]
mod tests;
