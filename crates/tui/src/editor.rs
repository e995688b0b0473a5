//! The prompt of the chat: line editing, history, several lines, completion.

mod vi_undo;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossterm::cursor::SetCursorStyle;
use myclaw_agent::SessionConfig;
use myclaw_config::{KeysName, Paths};
use myclaw_files::{create_private_directory, private_options};
use reedline::{
    Color, ColumnarMenu, CursorConfig, EditCommand, EditMode, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, Keybindings, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};

use self::vi_undo::WholeCommands;
use super::attention::Focus;
use super::clipboard;
use super::completion::ChatCompleter;
use super::outputs::Common;
use super::pastes::{FoldingKeys, Pastes};
use super::soft_wrap::SoftWrap;
use super::{Input, Wake};
use myclaw_front::print::note;
use myclaw_front::sessions::Sessions;
use myclaw_front::terminal::{FocusReports, Paint, Relay, Size, Style, line_is_drawn, suspend};

/// What stands before a message.
pub(super) const PROMPT: &str = "You: ";
/// What stands before its other lines, as wide as the prompt.
const NEXT_LINE: &str = "     ";
/// File in the state directory with the history of typed messages.
const HISTORY_FILE: &str = "chat_history";
/// Entries that are kept.
const HISTORY_ENTRIES: usize = 1_000;
/// Name of the menu that Tab opens.
const MENU: &str = "completion";
/// The host command that Ctrl-C sends to this program.
const INTERRUPT: &str = "interrupt";
/// The host command of Ctrl-O.
const UNFOLD: &str = "unfold";
/// The host command of Ctrl-T.
const THINKING: &str = "thinking";
/// The host command of Shift-Tab.
const MODE: &str = "mode";
/// The host command of Ctrl-V.
const PICTURE: &str = "picture";
/// The host command of Ctrl-Z.
const SUSPEND: &str = "suspend";
/// The host command of Esc.
const ESCAPE: &str = "escape";
/// Longest time between two presses of Esc that belong together.
const ESCAPE_TWICE: Duration = Duration::from_secs(2);
/// Directory below the state directory with the long pastes that the history names.
const PASTES_DIRECTORY: &str = "chat_pastes";
/// The host command of Ctrl-G.
const EDITOR: &str = "editor";
/// The editor if neither `VISUAL` nor `EDITOR` names one.
const DEFAULT_EDITOR: &str = "vi";

/// How often the editor checks whether it should break off. Typed keys are read at once.
const BREAK_INTERVAL: Duration = Duration::from_millis(500);

/// The line editor.
pub(super) struct Editor {
    reedline: Reedline,
    /// Whether Ctrl-C was pressed at an empty prompt just now.
    may_leave: bool,
    /// When Esc was pressed last.
    escaped: Option<Instant>,
    prompt: ChatPrompt,
    pastes: Pastes,
    /// The file that an editor is opened with.
    draft: PathBuf,
    /// Where pictures of the clipboard are kept.
    pictures: PathBuf,
}

impl Editor {
    /// The line editor of a chat, which completes its commands.
    pub(super) fn of_chat(
        session_config: &SessionConfig,
        breaks: Arc<AtomicBool>,
        common: Arc<Common>,
    ) -> Self {
        let keys = session_config.config.terminal.keys;
        let completer = ChatCompleter {
            sessions: Sessions::of_agent(session_config),
            own_models: own_models(session_config),
            config: session_config.clone(),
        };
        let editor = Self::new(&session_config.home.paths, keys, breaks, common);
        Self { reedline: editor.reedline.with_completer(Box::new(completer)), ..editor }
    }

    /// A line editor with the history of earlier chats, or without a history if the file cannot be read or written.
    /// `breaks` makes it break off.
    pub(super) fn new(
        paths: &Paths,
        keys: KeysName,
        breaks: Arc<AtomicBool>,
        common: Arc<Common>,
    ) -> Self {
        let menu = ColumnarMenu::default().with_name(MENU).with_marker(PROMPT);
        let pastes = Pastes::kept_in(paths.state_dir().join(PASTES_DIRECTORY));
        let edit_mode = FoldingKeys {
            inner: edit_mode(keys),
            pastes: pastes.clone(),
            common: Arc::clone(&common),
        };
        let reedline = Reedline::create()
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(edit_mode))
            .with_cursor_config(CursorConfig {
                vi_insert: Some(SetCursorStyle::SteadyBar),
                vi_normal: Some(SetCursorStyle::SteadyBlock),
                ..CursorConfig::default()
            })
            .with_transient_prompt(Box::new(ChatPrompt(None)))
            .with_validator(Box::new(BackslashContinues))
            .with_highlighter(Box::new(SoftWrap))
            .with_ansi_colors(Paint::for_stream(&io::stdout()) == Paint::Styled)
            .use_bracketed_paste(true)
            .with_break_signal(breaks)
            .with_poll_interval(BREAK_INTERVAL);
        let history = open_history(&paths.state_dir().join(HISTORY_FILE));
        let reedline = match history {
            Ok(history) => reedline.with_history(Box::new(history)),
            Err(message) => {
                note(format_args!("myclaw: the history of this chat is not saved: {message}"));
                reedline
            }
        };
        Self {
            reedline,
            may_leave: false,
            escaped: None,
            prompt: ChatPrompt(Some(common)),
            pastes,
            pictures: clipboard::directory(paths),
            draft: paths.state_dir().join(format!("draft-{}.md", std::process::id())),
        }
    }

    /// Waits for a message that is not blank. The line begins with `unsent`, which was typed before.
    pub(super) fn read(&mut self, unsent: String) -> io::Result<Input> {
        if !unsent.is_empty() {
            self.reedline.run_edit_commands(&[EditCommand::InsertString(unsent)]);
        }
        loop {
            let reports = FocusReports::begin();
            let relay = Relay::begin();
            let signal = self.reedline.read_line(&self.prompt).map_err(io::Error::other)?;
            drop((relay, reports));
            let input = match signal {
                Signal::Success(text) => self.accept(&text),
                Signal::CtrlD => Some(Input::Leave),
                Signal::ExternalBreak(_) => Some(Input::Wake(Wake::News)),
                Signal::HostCommand(command) => self.obey(&command),
                Signal::CtrlC => self.interrupt(),
                _ => None,
            };
            if let Some(input) = input {
                return Ok(input);
            }
        }
    }
}

impl Editor {
    /// Takes a line that was sent, unless it is blank or names a paste that is gone.
    fn accept(&mut self, text: &str) -> Option<Input> {
        if let ChatPrompt(Some(common)) = &self.prompt {
            // Who types looks at the terminal, also at one that does not report it.
            common.attention.focus(Focus::Gained);
        }
        // Saved at once, because a signal may end the process.
        if let Err(error) = self.reedline.sync_history() {
            note(format_args!("myclaw: the history could not be saved: {error}"));
        }
        self.may_leave = false;
        let text = text.replace("\\\n", "\n");
        if let Err(error) = self.pastes.keep(&text) {
            note(format_args!("myclaw: the paste is not kept for later chats: {error}"));
        }
        match self.pastes.unfold(&text) {
            Ok(text) => (!text.trim().is_empty()).then_some(Input::Text(text)),
            Err(mark) => {
                note(format_args!(
                    "myclaw: not sent: {mark} is not kept any more; paste it again in its place"
                ));
                self.reedline.run_edit_commands(&[EditCommand::InsertString(text)]);
                None
            }
        }
    }

    /// Handles the key of a command.
    fn obey(&mut self, command: &str) -> Option<Input> {
        match command {
            UNFOLD => return Some(Input::Wake(Wake::Unfold)),
            THINKING => return Some(Input::Wake(Wake::Thinking)),
            MODE => return Some(Input::Wake(Wake::Mode)),
            SUSPEND => suspend(),
            PICTURE => self.paste_picture(),
            ESCAPE => return self.escape(),
            EDITOR => {
                if let Err(error) = self.edit_elsewhere() {
                    note(format_args!("\nmyclaw: the editor could not be used: {error}"));
                }
            }
            _ => return self.interrupt(),
        }
        None
    }

    /// Goes back to an earlier message if Escape was pressed twice in an empty line.
    fn escape(&mut self) -> Option<Input> {
        let is_empty = self.reedline.current_buffer_contents().is_empty();
        let before = self.escaped.replace(Instant::now()).filter(|_| is_empty);
        if before.is_some_and(|before| before.elapsed() < ESCAPE_TWICE) {
            self.escaped = None;
            return Some(Input::Wake(Wake::Back));
        }
        if is_empty {
            note("\nEsc again goes back to an earlier message");
        }
        None
    }

    /// Discards the line, or leaves after the second time in an empty one.
    fn interrupt(&mut self) -> Option<Input> {
        let was_empty = self.reedline.current_buffer_contents().is_empty();
        self.reedline.run_edit_commands(&[EditCommand::Clear]);
        if was_empty && std::mem::replace(&mut self.may_leave, true) {
            note("");
            return Some(Input::Leave);
        }
        self.may_leave = was_empty;
        if was_empty {
            note("\nCtrl-C again leaves, as Ctrl-D does");
        }
        None
    }

    /// Puts the path of the clipboard's picture into the line.
    fn paste_picture(&mut self) {
        match clipboard::picture(&self.pictures) {
            Ok(path) => self.reedline.run_edit_commands(&[EditCommand::InsertString(path)]),
            Err(message) => note(format_args!("\nmyclaw: {message}")),
        }
    }

    /// Opens the message in the user's editor, and takes it back from there.
    fn edit_elsewhere(&mut self) -> io::Result<()> {
        let text = self.reedline.current_buffer_contents().to_owned();
        let text = self.pastes.unfold(&text).unwrap_or(text);
        let mut file =
            private_options().write(true).create(true).truncate(true).open(&self.draft)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        let edited = self.run_editor().and_then(|()| std::fs::read(&self.draft));
        // The error is ignored: the file is private.
        let _ = std::fs::remove_file(&self.draft);
        let edited = String::from_utf8_lossy(&edited?).trim_end().to_owned();
        self.reedline.run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(edited)]);
        Ok(())
    }

    fn run_editor(&self) -> io::Result<()> {
        let named =
            |variable| std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
        let editor = named("VISUAL").or_else(|| named("EDITOR"));
        let editor = editor.unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
        // The variable may hold arguments, as in `code --wait`.
        let status = Command::new("sh")
            .arg("-c")
            .arg(format!("{editor} \"$1\""))
            .arg("sh")
            .arg(&self.draft)
            .status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("`{editor}` ended with {status}; the message is unchanged")))
    }
}

/// The keys by which lines are edited, with those of the chat.
fn edit_mode(keys: KeysName) -> Box<dyn EditMode> {
    let of_chat = |mut keybindings: Keybindings| {
        add_keys_of_chat(&mut keybindings);
        keybindings
    };
    match keys {
        KeysName::Emacs => Box::new(Emacs::new(of_chat(default_emacs_keybindings()))),
        // Esc changes the mode in all three, whatever it is bound to.
        KeysName::Vi => Box::new(WholeCommands::of(Vi::new(
            of_chat(default_vi_insert_keybindings()),
            of_chat(default_vi_normal_keybindings()),
            of_chat(default_vi_visual_keybindings()),
        ))),
    }
}

fn add_keys_of_chat(keybindings: &mut Keybindings) {
    keybindings.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keybindings.add_binding(KeyModifiers::CONTROL, KeyCode::Char('c'), before_it_ends(INTERRUPT));
    // While the menu is open, the key goes back in it.
    let next_mode = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::MenuPrevious,
        ReedlineEvent::ExecuteHostCommand(MODE.to_owned()),
    ]);
    for held in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        keybindings.add_binding(held, KeyCode::BackTab, next_mode.clone());
    }
    keybindings.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('j'),
        ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
    );
    keybindings.add_binding(KeyModifiers::NONE, KeyCode::Esc, before_it_ends(ESCAPE));
    for (key, command) in
        [('o', UNFOLD), ('t', THINKING), ('g', EDITOR), ('z', SUSPEND), ('v', PICTURE)]
    {
        let event = ReedlineEvent::ExecuteHostCommand(command.to_owned());
        keybindings.add_binding(KeyModifiers::CONTROL, KeyCode::Char(key), event);
    }
}

/// Ends a search in the history or closes the menu first. Otherwise the program gets `command` with the line intact, so
/// that it can distinguish an empty line from a discarded one.
fn before_it_ends(command: &str) -> ReedlineEvent {
    let command = ReedlineEvent::ExecuteHostCommand(command.to_owned());
    ReedlineEvent::UntilFound(vec![
        // A search ignores several events at once and takes the next event; only the line handles them.
        ReedlineEvent::Multiple(vec![ReedlineEvent::Esc, command]),
        ReedlineEvent::Esc,
    ])
}

fn own_models(session_config: &SessionConfig) -> Vec<String> {
    let providers = &session_config.config.models.providers;
    providers
        .iter()
        .flat_map(|(provider, own)| {
            own.models.iter().map(move |model| format!("{provider}/{}", model.id))
        })
        .collect()
}

/// Opens the history. A new file is readable only by its owner, because messages may be private.
fn open_history(path: &Path) -> Result<FileBackedHistory, String> {
    if let Some(directory) = path.parent() {
        create_private_directory(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(format!("{}: it is not a regular file", path.display()));
    }
    private_options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    FileBackedHistory::with_file(HISTORY_ENTRIES, path.to_path_buf())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// A backslash at the end asks for another line.
struct BackslashContinues;

impl Validator for BackslashContinues {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// The prompt, below the status line if there is one.
struct ChatPrompt(Option<Arc<Common>>);

impl Prompt for ChatPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        let Some(common) = &self.0 else { return Cow::Borrowed("") };
        line_is_drawn();
        let Some(status) = common.status().clone() else { return Cow::Borrowed("") };
        let line = status.line(Size::current().columns.saturating_sub(1));
        let paint = Paint::for_stream(&io::stdout());
        let mut styled = String::new();
        paint.reset(&mut styled);
        styled.push_str(&paint.paint(Style::Dim, &line));
        styled.push('\n');
        Cow::Owned(styled)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(PROMPT)
    }

    fn get_indicator_color(&self) -> Color {
        Color::Green
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(NEXT_LINE)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing found, ",
        };
        Cow::Owned(format!("({failing}search: {}) ", search.term))
    }
}
