//! Commands and options that other programs have: what does the same here.

use std::error::Error;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Parser};
use myclaw_agent::did_you_mean;

use super::Cli;

const RUN: &str = "`myclaw run \"…\"` prints one answer";
const MCP: &str = "`myclaw mcp list` lists the MCP servers, `myclaw mcp add` and `import` add some; docs/use/mcp.md";
const UPDATE: &str = "`myclaw update` installs a newer version; docs/use/install.md";
const GATEWAY: &str =
    "the gateway runs with `myclaw gateway`, or as a service with `myclaw gateway install`";
const STOP: &str =
    "Ctrl-C in its terminal, or `systemctl --user stop myclaw-gateway`, stops the gateway";
const RESTART: &str = "`systemctl --user restart myclaw-gateway`, or start `myclaw gateway` again";
const LOGIN: &str = "`myclaw auth login PROVIDER` logs in, `myclaw auth add PROVIDER` keeps a key";
const LOGOUT: &str = "`myclaw auth remove PROVIDER` forgets a key";
const SESSIONS: &str = "`myclaw sessions list` lists the sessions";
const CONFIG: &str = "`myclaw config get` prints the config, and `myclaw config edit` changes it";
const RULES: &str =
    "which tools and commands may run is in `tools` of the config; docs/operate/policy.md";
const THINKING: &str = "`--thinking LEVEL` is off, minimal, low, medium, high or xhigh";
const PLACE: &str = "the variable MYCLAW_CONFIG_PATH names another config file, and MYCLAW_HOME another directory for everything; docs/use/environment.md";
const LOG: &str =
    "the variable MYCLAW_LOG=debug writes more to standard error; docs/use/environment.md";
const ADDRESS: &str = "`gateway.bind` and `gateway.port` of the config say where the gateway listens; docs/operate/remote.md";
const QUIT: &str = "a chat ends with `/quit`";
const PROMPT: &str = "instructions are in AGENTS.md of the workspace; docs/use/workspace.md";

/// Words in the place of a command, and what does the same here.
const COMMANDS: [(&str, &str); 79] = [
    ("version", "`myclaw --version` prints it"),
    ("exec", RUN),
    ("ask", RUN),
    ("prompt", RUN),
    ("print", RUN),
    ("query", RUN),
    ("send", "`myclaw run \"…\"` prints one answer, and `myclaw cron wake \"…\"` tells a gateway"),
    ("message", "`myclaw run \"…\"` prints one answer"),
    ("plugin", "plugins are packages: `myclaw packages add`; docs/use/packages.md"),
    ("plugins", "plugins are packages: `myclaw packages add`; docs/use/packages.md"),
    ("extensions", MCP),
    ("install", "`myclaw onboard` sets MyClaw up, and `myclaw gateway install` its service"),
    ("upgrade", UPDATE),
    ("self-update", UPDATE),
    ("login", LOGIN),
    ("signin", LOGIN),
    ("keys", LOGIN),
    ("logout", LOGOUT),
    ("whoami", "`myclaw auth list` lists the keys"),
    ("export", "`myclaw sessions export NAME` prints a session"),
    ("import", "`myclaw sessions import FILE…` takes sessions of other programs over"),
    ("share", "`myclaw sessions export NAME --format html` makes a page to pass on"),
    ("search", "`myclaw sessions search TEXT` looks through the sessions"),
    ("history", SESSIONS),
    ("session", SESSIONS),
    ("threads", SESSIONS),
    ("list", SESSIONS),
    ("ls", SESSIONS),
    ("continue", "`myclaw --continue` goes on with the last session"),
    ("resume", "`myclaw --resume` chooses a session to go on with"),
    ("undo", "`myclaw sessions undo NAME` undoes changes of files"),
    ("fork", "`myclaw sessions fork NAME NEW` copies a session"),
    ("compact", "`myclaw sessions compact NAME` summarises a session"),
    ("delete", "`myclaw sessions delete NAME` deletes a session"),
    ("remember", "`myclaw memory add FACT` remembers a fact"),
    ("forget", "`myclaw memory forget ID` forgets a fact"),
    ("setup", "`myclaw onboard` sets MyClaw up"),
    ("configure", "`myclaw onboard` sets MyClaw up, and `myclaw config edit` changes the config"),
    ("settings", CONFIG),
    ("set", "`myclaw config set KEY VALUE` changes the config"),
    ("get", "`myclaw config get KEY` prints a value of the config"),
    ("new", "`myclaw --session NAME` begins a session of that name"),
    ("tui", "`myclaw` begins a chat in the terminal"),
    ("start", GATEWAY),
    ("serve", GATEWAY),
    ("server", GATEWAY),
    ("daemon", GATEWAY),
    ("service", GATEWAY),
    ("web", "the page in the browser comes from `myclaw gateway`; docs/use/web-ui.md"),
    ("ui", "the page in the browser comes from `myclaw gateway`; docs/use/web-ui.md"),
    ("dashboard", "the page in the browser comes from `myclaw gateway`; docs/use/web-ui.md"),
    ("stop", STOP),
    ("restart", RESTART),
    ("status", "`myclaw doctor` shows what is configured, and `myclaw gateway status` what runs"),
    ("health", "`myclaw doctor` shows what is configured, and `myclaw gateway status` what runs"),
    ("logs", "`myclaw gateway logs` shows the log"),
    ("log", "`myclaw gateway logs` shows the log"),
    ("cost", "`myclaw usage` shows calls, tokens and cost"),
    ("stats", "`myclaw usage` shows calls, tokens and cost"),
    ("hooks", "hooks are in `hooks` of the config; docs/operate/hooks.md"),
    ("permissions", RULES),
    ("allow", RULES),
    ("tools", "`myclaw policy explain` lists the tools"),
    ("provider", "`myclaw models list` lists providers with their models"),
    ("providers", "`myclaw models list` lists providers with their models"),
    ("schedule", "`myclaw cron` plans what the agent does by itself"),
    (
        "heartbeat",
        "a heartbeat is in `agents.defaults.heartbeat` of the config; docs/use/schedule.md",
    ),
    ("reset", "`myclaw sessions delete NAME` deletes a session; ~/.myclaw holds everything"),
    ("security", "`myclaw doctor --security` shows what is open"),
    ("secrets", LOGIN),
    ("system", "`myclaw cron wake \"…\"` tells the agent of a gateway"),
    ("webhooks", "a webhook is in `channels.webhook` of the config; docs/channels/webhook.md"),
    ("docs", "`myclaw COMMAND --help` explains each command"),
    ("agent", RUN),
    ("test", "`myclaw config check` tests the config, and `myclaw models test` a model"),
    ("completion", "`myclaw completions SHELL` prints the completions of a shell"),
    ("exit", QUIT),
    ("quit", QUIT),
    ("bye", QUIT),
];

/// Words in the place of a command of a command.
const SUBCOMMANDS: [(&str, &str, &str); 37] = [
    ("gateway", "start", GATEWAY),
    ("gateway", "run", GATEWAY),
    ("gateway", "stop", STOP),
    ("gateway", "restart", RESTART),
    ("gateway", "health", "`myclaw gateway status` shows what runs"),
    ("gateway", "token", "`myclaw gateway status` names the file with the token"),
    ("auth", "set", "`myclaw auth add PROVIDER` keeps a key"),
    ("auth", "logout", LOGOUT),
    ("auth", "delete", LOGOUT),
    ("auth", "rm", LOGOUT),
    ("auth", "status", "`myclaw auth list` lists the keys"),
    ("auth", "ls", "`myclaw auth list` lists the keys"),
    ("config", "list", "`myclaw config get` prints all of it"),
    ("config", "ls", "`myclaw config get` prints all of it"),
    ("config", "show", "`myclaw config get` prints all of it"),
    ("config", "view", "`myclaw config get` prints all of it"),
    ("config", "print", "`myclaw config get` prints all of it"),
    ("config", "validate", "`myclaw config check` checks it"),
    ("config", "test", "`myclaw config check` checks it"),
    ("config", "file", "`myclaw config path` prints where it is"),
    ("config", "add", "`myclaw config set KEY VALUE` sets a value"),
    ("config", "delete", "`myclaw config unset KEY` removes a value"),
    ("config", "remove", "`myclaw config unset KEY` removes a value"),
    ("config", "init", "`myclaw init` writes a starter config"),
    ("sessions", "ls", SESSIONS),
    ("sessions", "rm", "`myclaw sessions delete NAME` deletes one"),
    ("sessions", "remove", "`myclaw sessions delete NAME` deletes one"),
    ("sessions", "resume", "`myclaw --session NAME` goes on with one"),
    ("sessions", "new", "`myclaw --session NAME` begins one"),
    ("models", "set", "`myclaw config set agents.defaults.model PROVIDER/MODEL` chooses one"),
    ("models", "use", "`myclaw config set agents.defaults.model PROVIDER/MODEL` chooses one"),
    ("models", "auth", LOGIN),
    ("models", "status", "`myclaw doctor` shows which model answers"),
    (
        "skills",
        "install",
        "`myclaw packages add` takes skills of others; your own are directories in ~/.myclaw/skills; docs/use/skills.md",
    ),
    (
        "skills",
        "add",
        "`myclaw packages add` takes skills of others; your own are directories in ~/.myclaw/skills; docs/use/skills.md",
    ),
    ("channels", "login", "`myclaw channels add` adds one"),
    ("cron", "rm", "`myclaw cron remove JOB` removes one"),
];

/// Options of other programs.
const OPTIONS: [(&str, &str); 48] = [
    ("-p", RUN),
    ("--print", RUN),
    ("--prompt", RUN),
    ("--exec", RUN),
    ("--message", RUN),
    ("--last", "`myclaw --continue` continues the last session"),
    ("--text", RUN),
    ("--output-format", "`myclaw run --json \"…\"` prints one event per line"),
    ("--format", "`myclaw run --json \"…\"` prints one event per line"),
    ("--dangerously-skip-permissions", RULES),
    ("--dangerously-bypass-approvals-and-sandbox", RULES),
    ("--permission-mode", RULES),
    ("--allowedTools", RULES),
    ("--allowed-tools", RULES),
    ("--disallowedTools", RULES),
    ("--yolo", RULES),
    ("--full-auto", RULES),
    (
        "--sandbox",
        "which sessions are sandboxed is in `agents.defaults.sandbox.mode`; docs/operate/sandbox.md",
    ),
    ("--mcp-config", MCP),
    ("--system-prompt", PROMPT),
    ("--append-system-prompt", PROMPT),
    ("--add-dir", "-C DIR chooses the directory in which the tools work"),
    ("--cwd", "-C DIR chooses the directory in which the tools work"),
    ("--cd", "-C DIR chooses the directory in which the tools work"),
    ("--workdir", "-C DIR chooses the directory in which the tools work"),
    ("--max-turns", "`agents.defaults.limits` of the config bounds a message; docs/use/config.md"),
    ("--api-key", LOGIN),
    ("--provider", "`--model PROVIDER/MODEL` names both"),
    (
        "--base-url",
        "`provider.baseUrl` of the config is the address of a model server; docs/use/models.md",
    ),
    ("--effort", THINKING),
    ("--reasoning-effort", THINKING),
    ("--config", PLACE),
    ("--config-file", PLACE),
    ("--home", PLACE),
    ("--profile", PLACE),
    ("--verbose", LOG),
    ("-v", LOG),
    ("--debug", LOG),
    ("--log-level", LOG),
    ("--host", ADDRESS),
    ("--port", ADDRESS),
    ("--bind", ADDRESS),
    ("--tools", RULES),
    ("--no-tools", RULES),
    ("--json", "`myclaw run --json \"…\"` prints one event per line"),
    ("--session-id", "`--session NAME` names a session"),
    ("--fork", "`myclaw sessions fork NAME NEW_NAME` continues a copy of a session"),
    ("--no-color", "the variable NO_COLOR=1 turns colours off"),
];

/// Words in the place of a command that seldom begin a sentence, unlike `test` and `list`.
const GROUPS: [&str; 21] = [
    "daemon",
    "extensions",
    "history",
    "hooks",
    "keys",
    "logs",
    "permissions",
    "plugin",
    "plugins",
    "provider",
    "providers",
    "schedule",
    "secrets",
    "security",
    "server",
    "service",
    "session",
    "settings",
    "system",
    "tools",
    "webhooks",
];

/// Words that follow such a command of other programs.
const VERBS: [&str; 13] = [
    "add", "create", "delete", "disable", "enable", "get", "install", "list", "ls", "remove", "rm",
    "search", "show",
];

/// Words with which people begin a conversation. They are messages.
const GREETINGS: [&str; 12] =
    ["hi", "hello", "hey", "hallo", "hola", "salut", "moin", "ciao", "thanks", "ping", "yes", "no"];

/// The error for a message that is most likely a command, which does not exist or is misspelt: a word alone, `rnu hi`, or
/// `exec "…"`.
pub(super) fn refuse_message(words: &[String]) -> Option<clap::Error> {
    let (word, rest) = words.split_first()?;
    let typed = word;
    let word = &typed.to_ascii_lowercase();
    let is_word = word.len() > 1
        && word.starts_with(|char: char| char.is_ascii_lowercase())
        && word.chars().all(|char| char.is_ascii_lowercase() || char == '-');
    if !is_word || rest.is_empty() && GREETINGS.contains(&word.as_str()) {
        return None;
    }
    let known = COMMANDS.iter().find(|(other, _)| other == word).map(|(_, advice)| *advice);
    let is_own = || Cli::command().get_subcommands().any(|command| command.get_name() == word);
    let is_command = match (known, rest) {
        // A word with capitals is a command only if it is a known one.
        (None, _) if typed != word => rest.is_empty() && is_own(),
        // One argument, quoted or a single word, is for a command; a sentence has more words.
        (_, []) | (Some(_), [_]) => true,
        (Some(_), [verb, _]) => GROUPS.contains(&word.as_str()) && VERBS.contains(&verb.as_str()),
        _ => false,
    };
    let advice = match (known, is_command) {
        (Some(advice), true) => format!("; {advice}."),
        (None, true) => did_you_mean(word, Cli::command().get_subcommands().map(Command::get_name)),
        (_, false) => misspelt(word, rest)?,
    };
    let message = format!(
        "there is no command `{typed}`{advice} To send it as a message, write it after `chat` or `run`"
    );
    Some(Cli::command().error(ErrorKind::InvalidSubcommand, message))
}

/// Names the command that `word` nearly is, if what follows is what that command takes.
fn misspelt(word: &str, rest: &[String]) -> Option<String> {
    let next = rest.first()?;
    let has_same_letters = |name: &str| {
        let mut letters: (Vec<char>, Vec<char>) = (word.chars().collect(), name.chars().collect());
        letters.0.sort_unstable();
        letters.1.sort_unstable();
        // A letter may be there twice.
        let doubled = word.len() == name.len() + 1 && {
            letters.0.dedup();
            letters.1.dedup();
            true
        };
        letters.0 == letters.1 && (doubled || word.len() == name.len())
    };
    let takes = |command: &Command| {
        let name = command.get_name();
        if matches!(name, "run" | "chat") {
            return has_same_letters(name) || rest.len() == 1 && !name.starts_with(word);
        }
        let is_below = |known: &str| {
            let mut words = rest.to_vec();
            known.clone_into(&mut words[0]);
            fits(name, &words)
        };
        let elsewhere = SUBCOMMANDS.iter().any(|(of, other, _)| *of == name && other == next);
        let below: Vec<&str> = command.get_subcommands().flat_map(names).collect();
        elsewhere && rest.len() <= 2
            || below.contains(&next.as_str()) && is_below(next)
            // Both words are misspelt.
            || rest.len() <= 2 && below.iter().any(|known| is_near(next, known) && is_below(known))
    };
    nearest(word, takes)
}

/// Names the command whose name is most similar to `word`, of those that are `meant`.
fn nearest(word: &str, meant: impl Fn(&Command) -> bool) -> Option<String> {
    let mut cli = Cli::command();
    // Adds the commands below each.
    cli.build();
    let near = cli.get_subcommands().filter(|command| is_near(word, command.get_name()));
    let advice = did_you_mean(word, near.filter(|one| meant(one)).map(Command::get_name));
    advice.starts_with(';').then_some(advice)
}

fn is_near(word: &str, name: &str) -> bool {
    did_you_mean(word, [name]).starts_with(';')
}

fn names(command: &Command) -> impl Iterator<Item = &str> {
    std::iter::once(command.get_name()).chain(command.get_all_aliases())
}

/// Whether the command takes these arguments. A few may be too few.
fn fits(name: &str, arguments: &[String]) -> bool {
    let line = ["myclaw", name].into_iter().chain(arguments.iter().map(String::as_str));
    match Cli::try_parse_from(line) {
        Ok(_) => true,
        Err(error) => arguments.len() <= 2 && error.kind() == ErrorKind::MissingRequiredArgument,
    }
}

/// What is meant by a command line such as `docter --fix`, where the options are those of the command.
fn misspelt_before_options() -> Option<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (word, rest) = arguments.split_first()?;
    let cli = Cli::command();
    let is_command = cli.get_subcommands().flat_map(names).any(|name| name == word);
    if is_command || word.starts_with('-') {
        return None;
    }
    let advice = nearest(word, |command| fits(command.get_name(), rest))?;
    Some(format!("there is no command `{word}`{advice}"))
}

/// The error with advice about an option or a command of another program, where there is any.
pub(super) fn with_advice(error: clap::Error) -> clap::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let advice = match error.kind() {
        ErrorKind::UnknownArgument => context(ContextKind::InvalidArg).and_then(|option| {
            let name = option.split(['=', ' ']).next().unwrap_or(option);
            let known = OPTIONS.iter().find(|(other, _)| *other == name);
            misspelt_before_options().or_else(|| {
                known.map(|(_, advice)| format!("there is no option `{name}`; {advice}"))
            })
        }),
        ErrorKind::InvalidSubcommand => context(ContextKind::InvalidSubcommand).and_then(|word| {
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            let before = arguments.iter().position(|argument| argument == word)?;
            let parent = arguments.get(before.checked_sub(1)?)?;
            let known = SUBCOMMANDS.iter().find(|(of, other, _)| of == parent && *other == word);
            known.map(|(_, _, advice)| format!("there is no command `{parent} {word}`; {advice}"))
        }),
        ErrorKind::ValueValidation => no_number(&error).and_then(|why| {
            let (value, option) =
                (context(ContextKind::InvalidValue)?, context(ContextKind::InvalidArg)?);
            Some(format!("invalid value '{value}' for '{option}': {why}"))
        }),
        _ => None,
    };
    match advice {
        Some(message) => Cli::command().error(error.kind(), message),
        None => error,
    }
}

/// What to give in place of a value that is no number.
fn no_number(error: &clap::Error) -> Option<&'static str> {
    let source = error.source()?.downcast_ref::<ParseIntError>()?;
    Some(match source.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
        _ => "give a whole number, 0 or more",
    })
}
