//! `myclaw chat`: a conversation in the terminal, or line by line where there is none.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use myclaw_config::ThinkingDefault;
use myclaw_engine::ModelChoice;
use myclaw_llm::{Model, ThinkingLevel, Usage};
use myclaw_session::SessionKey;
use tokio_util::sync::CancellationToken;

use crate::args::{ChatArgs, ConversationArgs};
use crate::commands::run::announce;
use crate::commands::sessions::Sessions;
use crate::exit::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::model_choice::{ChosenModel, choose};
use crate::print::{columns, note};
use crate::report::{Verbosity, text_reporter, tokens_and_cost};
use crate::runtime;
use crate::settings::Settings;
use crate::terminal::{Output, Paint, Style, escaped};
use crate::time::{local_minute, new_conversation_name};
use crate::turn::{Conversation, Turn};

use command::{Command, HELP, Parsed};
use display::Display;
use editor::Editor;
use lines::Lines;

mod command;
mod completion;
mod display;
mod editor;
mod lines;

/// Conversations that `/sessions` lists.
const LISTED_SESSIONS: usize = 20;

/// What the user did at the prompt.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// Sent this; it is not blank.
    Text(String),
    /// Wants to leave.
    Leave,
}

/// Where lines come from.
enum Source {
    /// A line editor.
    Editor(Box<Editor>),
    /// Standard input, line by line.
    Lines(Lines),
}

/// Where answers go.
enum View {
    /// A terminal that is drawn on.
    Terminal,
    /// Plain text, as `myclaw run` prints it.
    Plain(Arc<Output>),
}

/// Runs the chat until the user leaves.
pub(crate) fn run(args: &ChatArgs) -> Result<(), CliError> {
    let settings = Settings::load(&args.conversation)?;
    let interrupts = Interrupts::install()?;
    runtime::block_on(async {
        let mut chat = Chat::begin(settings, interrupts, &args.conversation).await?;
        chat.converse().await
    })?
}

struct Chat {
    settings: Settings,
    interrupts: Interrupts,
    conversation: Conversation,
    sessions: Sessions,
    session_key: SessionKey,
    model: ChosenModel,
    /// How much the model should think, if the user said so.
    thinking: Option<ThinkingLevel>,
    view: View,
    /// Fires when standard output is closed; each turn's token is a child.
    closed: CancellationToken,
    usage: Usage,
    turns: u32,
}

impl Chat {
    async fn begin(
        settings: Settings,
        interrupts: Interrupts,
        args: &ConversationArgs,
    ) -> Result<Self, CliError> {
        let configured = settings.agent.model.as_deref();
        let model =
            choose(&settings.config, &settings.home.environment, args.model.as_deref(), configured)
                .await?;
        announce(&model, Verbosity::Normal);
        let closed = CancellationToken::new();
        let view = if is_interactive() {
            View::Terminal
        } else {
            View::Plain(Arc::new(Output::stdout(closed.clone())))
        };
        let chat = Self {
            sessions: Sessions {
                store: settings.home.session_store(),
                agent_id: settings.agent.id.to_string(),
            },
            session_key: settings.session_key.clone(),
            conversation: Conversation::new(),
            usage: Usage::default(),
            turns: 0,
            settings,
            interrupts,
            model,
            thinking: args.thinking,
            view,
            closed,
        };
        if let Some(line) = chat.thinking_that_differs() {
            note(format_args!("myclaw: {line}"));
        }
        Ok(chat)
    }

    async fn converse(&mut self) -> Result<(), CliError> {
        let mut source = match self.view {
            View::Terminal => {
                self.greet()?;
                Source::Editor(Box::new(Editor::new(&self.settings, &self.sessions)))
            }
            View::Plain(_) => Source::Lines(Lines::new()),
        };
        // A script must learn that an answer is missing; a person has seen it.
        let mut first_failure = None;
        loop {
            let (input, returned) = next_input(source).await?;
            source = returned;
            let Input::Text(text) = input else { break };
            match command::parse(&text) {
                Parsed::Command(Command::Quit) => break,
                Parsed::Command(command) => self.obey(command).await?,
                Parsed::Unknown(message) => self.say(&message)?,
                Parsed::Message(message) => {
                    if let Err(error) = self.turn(message).await {
                        if error.is_silent()
                            || (error.exit == Exit::Aborted && !io::stdin().is_terminal())
                        {
                            return Err(error);
                        }
                        note(format_args!("myclaw: {error}"));
                        first_failure.get_or_insert(error.exit);
                    }
                }
            }
        }
        match first_failure {
            Some(exit) if !io::stdin().is_terminal() => {
                let mut error = CliError::failure("not every message was answered");
                error.exit = exit;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Runs one turn and shows it.
    async fn turn(&mut self, message: String) -> Result<(), CliError> {
        let cancel = self.closed.child_token();
        let armed = self.interrupts.arm(cancel.clone());
        let turn = |on_event| Turn {
            settings: &self.settings,
            session_key: &self.session_key,
            model: &self.model,
            message,
            // What differs from the user's wish was said when it was uttered.
            thinking: self.thinking.map(|level| self.known_model().thinking_level(level)),
            cancel: cancel.clone(),
            on_event,
        };
        let outcome = match &self.view {
            View::Terminal => {
                let display = Display::new(self.closed.clone());
                let outcome = armed
                    .unless_quit(display.drawing(self.conversation.run(turn(display.callback()))))
                    .await;
                display.finish();
                outcome
            }
            View::Plain(output) => {
                let reporter = text_reporter(Arc::clone(output), Verbosity::Normal);
                let outcome =
                    armed.unless_quit(output.flushing(self.conversation.run(turn(reporter)))).await;
                output.end_line();
                output.flush();
                if let Some(error) = output.take_failure() {
                    return Err(CliError::output(&error));
                }
                outcome
            }
        };
        let result = outcome?;
        self.usage.add_call(&result.usage);
        self.turns += 1;
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        match command {
            // Handled where the loop can end.
            Command::Quit => Ok(()),
            Command::Help => self.say(HELP),
            Command::New(name) => self.begin_conversation(name),
            Command::Model(None) => self.say(&self.describe_model()),
            Command::Model(Some(name)) => self.change_model(&name).await,
            Command::Thinking(None) => self.say(&self.describe_thinking()),
            Command::Thinking(Some(level)) => self.change_thinking(&level),
            Command::Sessions(None) => self.list_sessions(),
            Command::Sessions(Some(name)) => self.continue_conversation(&name),
            Command::Usage => self.say(&self.describe_usage()),
        }
    }

    fn begin_conversation(&mut self, name: Option<String>) -> Result<(), CliError> {
        let before = self.sessions.name_of(&self.session_key);
        let name = name.unwrap_or_else(|| new_conversation_name(|name| self.exists(name)));
        if self.exists(&name) {
            return self.say(&format!(
                "there is a conversation `{name}` already; /sessions {name} continues it"
            ));
        }
        match SessionKey::parse_for_agent(&self.sessions.agent_id, &name) {
            Ok(key) => self.session_key = key,
            Err(error) => return self.say(&error.to_string()),
        }
        self.say(&format!(
            "new conversation `{}`; the one before is kept as `{before}`",
            self.sessions.name_of(&self.session_key)
        ))
    }

    fn exists(&self, name: &str) -> bool {
        SessionKey::parse_for_agent(&self.sessions.agent_id, name)
            .is_ok_and(|key| self.sessions.store.exists(&key))
    }

    fn continue_conversation(&mut self, name: &str) -> Result<(), CliError> {
        match self.sessions.find(name) {
            Ok(key) => {
                self.session_key = key;
                self.say(&format!("continuing `{}`", self.sessions.name_of(&self.session_key)))
            }
            Err(error) => self.say(&error.message),
        }
    }

    fn list_sessions(&self) -> Result<(), CliError> {
        let sessions = match self.sessions.all() {
            Ok(sessions) => sessions,
            Err(error) => return self.say(&error.message),
        };
        if sessions.is_empty() {
            return self.say("no conversations yet");
        }
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .take(LISTED_SESSIONS)
            .map(|session| {
                let mark = if session.key == self.session_key { "*" } else { " " };
                vec![
                    format!("{mark} {}", self.sessions.name_of(&session.key)),
                    local_minute(session.entry.updated_at),
                    session.entry.model.clone().unwrap_or_default(),
                ]
            })
            .collect();
        let mut text = columns(&rows).join("\n");
        if sessions.len() > LISTED_SESSIONS {
            text.push_str(&format!(
                "\n  and {} more: myclaw sessions list",
                sessions.len() - LISTED_SESSIONS
            ));
        }
        self.say(&text)
    }

    async fn change_model(&mut self, name: &str) -> Result<(), CliError> {
        match choose(&self.settings.config, &self.settings.home.environment, Some(name), None).await
        {
            Ok(model) => {
                self.model = model;
                self.say(&format!("{} answers from now on", self.model.reference))?;
                self.thinking_that_differs().map_or(Ok(()), |line| self.say(&line))
            }
            Err(error) => self.say(&error.message),
        }
    }

    fn change_thinking(&mut self, level: &str) -> Result<(), CliError> {
        match level.parse() {
            Ok(level) => {
                self.thinking = Some(level);
                let effective = self.known_model().thinking_level(level);
                let line = self
                    .thinking_that_differs()
                    .unwrap_or_else(|| format!("the thinking level is {effective} from now on"));
                self.say(&line)
            }
            Err(error) => self.say(&format!("{error}")),
        }
    }

    /// What is known about the model that answers.
    fn known_model(&self) -> Model {
        ModelChoice::from_config(&self.model.config, &self.model.reference).model
    }

    /// What to say where the model does not think as the user wished.
    fn thinking_that_differs(&self) -> Option<String> {
        let asked = self.thinking?;
        let model = self.known_model();
        let effective = model.thinking_level(asked);
        (effective != asked).then(|| {
            format!(
                "{} does not offer the thinking level {asked} but {}; {effective} is used",
                self.model.reference,
                offered_levels(&model)
            )
        })
    }

    fn describe_thinking(&self) -> String {
        let model = self.known_model();
        let configured = self.settings.agent.thinking.map(ThinkingDefault::as_str);
        let requested = self
            .thinking
            .or_else(|| configured.and_then(|level| level.parse().ok()))
            .unwrap_or_default();
        format!(
            "the thinking level is {}; {} offers {}; /thinking LEVEL changes it",
            model.thinking_level(requested),
            self.model.reference,
            offered_levels(&model)
        )
    }

    fn describe_model(&self) -> String {
        format!(
            "{} answers; /model PROVIDER/MODEL changes it, `myclaw models list` shows what there is",
            self.model.reference
        )
    }

    fn describe_usage(&self) -> String {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let mut text =
            format!("this chat: {} {turns}, {}", self.turns, tokens_and_cost(&self.usage));
        let entry = self.sessions.store.index().get(&self.session_key).ok().flatten();
        if let Some(total) = entry.and_then(|entry| entry.total_tokens) {
            text.push_str(&format!(
                "\nconversation `{}`: {total} tokens",
                self.sessions.name_of(&self.session_key)
            ));
        }
        text
    }

    fn greet(&self) -> Result<(), CliError> {
        let paint = Paint::for_stream(&io::stdout());
        let head = paint.paint(Style::Heading, concat!("myclaw ", env!("CARGO_PKG_VERSION")));
        let model = self.model.reference.to_string();
        let session = self.sessions.name_of(&self.session_key);
        let line = format!(
            "{head}  {}, conversation `{}`, /help for help",
            escaped(&model),
            escaped(&session)
        );
        put_line(&line)
    }

    /// Says something that is no answer of a model.
    fn say(&self, text: &str) -> Result<(), CliError> {
        match &self.view {
            View::Terminal => put_line(&escaped(text)),
            View::Plain(output) => {
                output.push_text(text);
                output.end_line();
                output.flush();
                output.take_failure().map_or(Ok(()), |error| Err(CliError::output(&error)))
            }
        }
    }
}

/// `off, low, high`.
fn offered_levels(model: &Model) -> String {
    let levels = model.offered_thinking_levels();
    levels.into_iter().map(ThinkingLevel::as_str).collect::<Vec<_>>().join(", ")
}

/// Writes a line of the program's own to the terminal.
fn put_line(line: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| CliError::output(&error))
}

/// Whether there is somebody to edit lines and see them drawn.
fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// Waits for the user on a thread that may block, so that connections are looked after meanwhile.
async fn next_input(mut source: Source) -> Result<(Input, Source), CliError> {
    let waiting = tokio::task::spawn_blocking(move || {
        let input = source.read();
        (input, source)
    });
    let (input, source) = waiting
        .await
        .map_err(|error| CliError::failure(format!("the line editor failed: {error}")))?;
    Ok((input?, source))
}

impl Source {
    fn read(&mut self) -> Result<Input, CliError> {
        let error = match self {
            Self::Lines(lines) => return lines.read(),
            Self::Editor(editor) => match editor.read() {
                Ok(input) => return Ok(input),
                Err(error) => error,
            },
        };
        // Some terminals do not answer what an editor asks; a chat is possible all the same.
        note(format_args!("myclaw: lines cannot be edited here ({error}); going on without"));
        let mut lines = Lines::new();
        let input = lines.read();
        *self = Self::Lines(lines);
        input
    }
}
