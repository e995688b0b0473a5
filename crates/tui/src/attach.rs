//! `myclaw attach`: the chat on a session of a gateway, on this machine or elsewhere.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use myclaw_agent::Home;
use myclaw_config::ThemeName;
use myclaw_gateway_client::{GatewayLink, LinkNews};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::display::{Display, Drawing};
use super::editor::Editor;
use super::input::{Input, Source, next_input};
use super::outputs::Common;
use super::typed::{Key, TypedLine};
use super::welcome::put_heading;
use super::{Wake, is_interactive, put_line, theme};
use crate::args::{AttachArgs, ChatArgs};
use command::Command;
use myclaw_front::exit::CliError;
use myclaw_front::gateway;
use myclaw_front::home::find_home;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::pager;
use myclaw_front::runtime;
use myclaw_front::terminal::{
    Keyboard, Paint, PasteMarks, Size, Style, StyledLine, bind_keys, choose_palette, escaped,
    suspend, wrapped,
};
use myclaw_front::time::local_minute;
use view::View;

mod asked;
mod command;
mod mode;
mod view;

/// The gateway cannot read files of this machine.
const NO_PICTURES: &str = "pictures cannot be sent from here while the agent works";
/// Most news that wait while the user types.
const MOST_STASHED: usize = 256;

/// Attaches until the user leaves.
pub fn run(args: &AttachArgs) -> Result<(), CliError> {
    run_with(args, String::new(), Interrupts::install)
}

/// The chat where the sessions are those of a gateway.
pub(super) fn run_chat(args: &ChatArgs) -> Result<(), CliError> {
    gateway::refuse(&[
        ("--image", !args.images.paths.is_empty()),
        ("--worktree", args.worktree.worktree.is_some()),
        ("--continue", args.resume.continue_last),
        ("--resume", args.resume.resume),
    ])?;
    let session = Some(gateway::session_of(&args.session)?);
    let attach = AttachArgs { session, ..AttachArgs::default() };
    run_with(&attach, args.message.join(" "), Interrupts::install)
}

/// The same as [`run`] with the handlers of signals that the process has. A `first` message that is not blank is sent at once.
pub(super) fn run_with(
    args: &AttachArgs,
    first: String,
    interrupts: impl FnOnce() -> Result<Interrupts, CliError>,
) -> Result<(), CliError> {
    if !is_interactive() {
        return Err(CliError::usage(
            "attach needs a terminal; scripts send messages to the gateway over HTTP (docs/operate/gateway.md)",
        ));
    }
    let home = find_home()?;
    let paths = home.paths.clone();
    // A config that cannot be used is no reason to stay away from a gateway.
    let terminal = myclaw_config::load_or_default(&home.environment)
        .map(|loaded| loaded.config.terminal.clone())
        .unwrap_or_default();
    bind_keys(&terminal.bindings);
    let address = args.gateway.address(&home)?;
    let interrupts = interrupts()?;
    let session = args.session.clone().unwrap_or_else(|| gateway::DEFAULT_SESSION.to_owned());
    runtime::block_on(async {
        let label = address.label();
        let socket = gateway::connect(&address).await?;
        let breaks = Arc::new(AtomicBool::new(false));
        let mut attached = Attached {
            editor: None,
            breaks: Arc::clone(&breaks),
            link: GatewayLink::begin(address, socket, session.clone()),
            view: View::default(),
            stash: VecDeque::new(),
            interrupts,
            closed: CancellationToken::new(),
            unsent: String::new(),
            wants_to_leave: false,
            common: Arc::default(),
            home,
            theme: terminal.theme,
        };
        if Paint::for_stream(&io::stdout()) == Paint::Styled {
            // What was typed while the terminal answered is in the editor.
            let typed = choose_palette(terminal.theme).await;
            let typed = String::from_utf8_lossy(&typed).into_owned();
            attached.unsent = typed.chars().filter(|key| !key.is_control()).collect();
        }
        attached.editor = Some(Source::Editor(Box::new(Editor::new(
            &paths,
            terminal.keys,
            breaks,
            Arc::clone(&attached.common),
        ))));
        put_heading(&label, &session)?;
        attached.converse(first).await
    })?
}

struct Attached {
    /// The source of lines, while it is not read.
    editor: Option<Source>,
    /// Breaks the line editor off.
    breaks: Arc<AtomicBool>,
    link: GatewayLink,
    view: View,
    /// News that came while the user typed.
    stash: VecDeque<LinkNews>,
    interrupts: Interrupts,
    /// Fires when the terminal is gone.
    closed: CancellationToken,
    /// Text that was typed and not sent.
    unsent: String,
    wants_to_leave: bool,
    common: Arc<Common>,
    home: Home,
    /// The theme that the config names.
    theme: ThemeName,
}

impl Attached {
    async fn converse(&mut self, first: String) -> Result<(), CliError> {
        // The state of the session comes first.
        self.look().await?;
        if !first.trim().is_empty() {
            self.act(&first).await?;
            self.look().await?;
        }
        while !self.wants_to_leave && !self.interrupts.is_ending() {
            match self.input().await? {
                Input::Leave => break,
                // Something happens in the session. The prompt stays on the screen.
                Input::Wake(Wake::News) => put_line("")?,
                Input::Wake(Wake::Thinking) => {
                    put_line("")?;
                    put_line(self.common.toggle_thinking())?;
                }
                Input::Wake(Wake::Back) => put_line("")?,
                Input::Wake(Wake::Mode) => self.view.next_mode(&self.link),
                Input::Wake(Wake::Unfold) => match self.common.page() {
                    (lines, _) if lines.is_empty() => put_line(pager::NOTHING)?,
                    (lines, start) => {
                        pager::show_at_prompt(&self.interrupts, &lines, start).await;
                    }
                },
                Input::Text(text) => self.act(&text).await?,
            }
            self.look().await?;
            if let Some((session, unsent)) = self.view.goes_on_in.take() {
                self.view.change_session();
                self.link.watch(&session).await;
                self.look().await?;
                self.unsent = unsent;
            }
        }
        match self.view.unsent() {
            0 => Ok(()),
            count => Err(CliError::failure_of_class(
                "unsent",
                format!(
                    "{count} messages were not taken by the gateway; send them again when it runs"
                ),
            )),
        }
    }

    /// Waits for the user, or for something to show.
    async fn input(&mut self) -> Result<Input, CliError> {
        let Some(source) = self.editor.take() else {
            return Err(CliError::failure("the line editor is gone"));
        };
        let reading = next_input(source, std::mem::take(&mut self.unsent));
        tokio::pin!(reading);
        let mut is_breaking = false;
        loop {
            tokio::select! {
                biased;
                done = &mut reading => {
                    let (input, source) = done?;
                    self.editor = Some(source);
                    return Ok(input);
                }
                Some(news) = self.link.news.recv(), if !is_breaking => {
                    is_breaking = self.view.is_worth_a_look(&news) || self.stash.len() >= MOST_STASHED;
                    self.stash.push_back(news);
                    self.breaks.store(is_breaking, Ordering::Relaxed);
                }
            }
        }
    }

    /// Shows what happens until the session rests.
    async fn look(&mut self) -> Result<(), CliError> {
        if self.stash.is_empty() && self.view.rests() {
            return Ok(());
        }
        let display = Display::new(self.closed.clone(), Arc::clone(&self.common));
        let cancel = self.closed.child_token();
        let armed = self.interrupts.arm(cancel.clone());
        let mut keyboard = Keyboard::listen().ok();
        let marks = PasteMarks::begin();
        let mut line = TypedLine::default();
        let work = async {
            let mut is_aborting = false;
            while let Some(news) = self.stash.pop_front() {
                self.view.heed(news, &self.link, &display)?;
            }
            while !self.view.rests() && !self.wants_to_leave {
                tokio::select! {
                    biased;
                    news = self.link.news.recv() => match news {
                        Some(news) => self.view.heed(news, &self.link, &display)?,
                        None => return Err(CliError::failure("the connection to the gateway has ended")),
                    },
                    keys = read(&mut keyboard) => {
                        let Ok(keys) = keys else {
                            // The terminal is gone.
                            self.wants_to_leave = true;
                            break;
                        };
                        // Escape alone; longer sequences are other keys.
                        if keys == b"\x1b" && !line.is_pasting() {
                            self.view.abort(&self.link, &display);
                            continue;
                        }
                        let pressed = line.press(&keys);
                        display.show_typed(line.text());
                        for key in pressed {
                            let watched = (&mut self.view, &self.link, &*self.common);
                            let shown = (&mut keyboard, &marks, &display);
                            self.wants_to_leave |= press(key, watched, shown, &cancel).await;
                        }
                    }
                    () = cancel.cancelled(), if !is_aborting => {
                        is_aborting = true;
                        if self.closed.is_cancelled() || !self.view.abort(&self.link, &display) {
                            break;
                        }
                    }
                }
            }
            Ok(())
        };
        let outcome = armed.unless_quit(display.drawing(work)).await;
        self.unsent = line.take();
        drop((keyboard, marks));
        display.finish();
        outcome
    }

    /// Obeys a line that was typed at the prompt.
    async fn act(&mut self, text: &str) -> Result<(), CliError> {
        match command::parse(text) {
            Command::Say(text) => {
                if let Some(why) = self.view.say(&text, &self.link) {
                    tell(why)?;
                }
            }
            Command::Leave => self.wants_to_leave = true,
            Command::Help => tell(command::HELP)?,
            Command::Queue => tell(&escaped(&self.view.queue()))?,
            Command::Mode(name) => {
                if let Some(answer) = self.view.obey_mode(name.as_deref(), &self.link) {
                    tell(&escaped(&answer))?;
                }
            }
            Command::Ask(line) => {
                if let Some(why) = self.view.ask(&line, &self.link) {
                    tell(&why)?;
                }
            }
            Command::Title(title) => {
                if let Some(why) = self.view.entitle(&title, &self.link) {
                    tell(&why)?;
                }
            }
            Command::Sessions => {
                self.view.await_sessions(self.link.ask("sessions", json!({"limit": 20})))
            }
            Command::Session(name) => {
                self.view.change_session();
                self.link.watch(&name).await;
                tell(&format!("session `{}`", escaped(&name)))?;
            }
            Command::Theme(None) => tell(&theme::list(self.common.theme(self.theme)))?,
            Command::Theme(Some(name)) => {
                let (theme, said) = theme::change(&self.home, &name).await;
                self.common.set_theme(theme);
                tell(&escaped(&said))?;
            }
            Command::Stop => put_line("nothing runs")?,
            Command::Unknown(message) => tell(&escaped(&message))?,
        }
        Ok(())
    }
}

/// What a line that was typed during a turn means for the front-end.
#[derive(Debug, PartialEq, Eq)]
enum Talk {
    Stay,
    Leave,
    /// These lines are shown on a screen of their own.
    Page(Vec<StyledLine>),
}

/// Prints a text whose lines are broken between words.
fn tell(text: &str) -> Result<(), CliError> {
    let columns = Size::current().columns.saturating_sub(1).max(1);
    text.lines().flat_map(|line| wrapped(line, columns)).try_for_each(|row| put_line(&row))
}

/// Does what a key asks for while the agent works. True if the user wants to leave.
async fn press(
    key: Key,
    (view, link, common): (&mut View, &GatewayLink, &Common),
    (keyboard, marks, display): (&mut Option<Keyboard>, &PasteMarks, &Display),
    cancel: &CancellationToken,
) -> bool {
    match key {
        Key::Send(sent) => match view.talk(&sent.text, link, display) {
            Talk::Stay => {}
            Talk::Leave => return true,
            Talk::Page(lines) => show_page(keyboard, display, (lines, 0), cancel).await,
        },
        Key::Unfold => {
            let question = view.page().map(|lines| (lines, 0));
            let page = question.unwrap_or_else(|| common.page());
            show_page(keyboard, display, page, cancel).await;
        }
        Key::Thinking => display.say(Style::Dim, common.toggle_thinking()),
        Key::Mode => view.next_mode(link),
        Key::Picture => display.say(Style::Dim, NO_PICTURES),
        Key::Leave => return true,
        Key::Focus(focus) => common.attention.focus(focus),
        Key::Suspend => {
            if let Some(keyboard) = keyboard {
                display.lend(|| keyboard.lend(|| marks.lend(suspend)));
            }
        }
    }
    false
}

/// Shows lines on a screen of their own, from one of them on.
async fn show_page(
    keyboard: &mut Option<Keyboard>,
    display: &Display,
    (lines, start): (Vec<StyledLine>, usize),
    cancel: &CancellationToken,
) {
    let Some(keyboard) = keyboard else { return };
    display.pause(Drawing::Off);
    tokio::select! {
        // If the terminal is gone, the next read says so.
        _ = pager::show(keyboard, &lines, start) => {}
        () = cancel.cancelled() => {}
    }
    display.pause(Drawing::On);
}

/// Waits for keys; forever without a keyboard.
async fn read(keyboard: &mut Option<Keyboard>) -> io::Result<Vec<u8>> {
    match keyboard {
        Some(keyboard) => keyboard.read_keys().await,
        None => std::future::pending().await,
    }
}

/// The text of a field, empty if there is none.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Lists the sessions of the gateway.
fn show_sessions(found: &Value, current: &str, display: &Display) {
    let rows = found["sessions"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = rows
        .map(|session| {
            let mark = if text(session, "key") == current { "*" } else { " " };
            let updated = session["updatedAt"].as_u64().unwrap_or(0);
            vec![
                format!("{mark} {}", text(session, "name")),
                local_minute(updated),
                text(session, "model").to_owned(),
            ]
        })
        .collect();
    for line in myclaw_front::print::columns(&rows) {
        display.say(Style::Dim, &line);
    }
}
