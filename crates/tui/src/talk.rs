//! Input while a turn runs: a message is on disk before it is acknowledged.

use std::collections::VecDeque;

use myclaw_agent::Session;
use myclaw_engine::PendingMessage;
use myclaw_llm::joined_text;
use myclaw_session::QueuedKind;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::aside::OpenAside;
use super::command::{Command, Parsed, begins_with_path};
use super::display::{Display, Drawing, Queued};
use super::facts::Facts;
use super::outputs::{Common, IsShown};
use super::typed::{Key, SendKey, SentLine, TypedLine};
use super::{clipboard, custom, jobs, queue};
use myclaw_front::approval::{ApprovalAnswer, Asked, asking, lines, read_answer};
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::CliError;
use myclaw_front::mode::{change_mode, next_mode};
use myclaw_front::model::{change_model, change_thinking};
use myclaw_front::pager;
use myclaw_front::report::first_line;
use myclaw_front::terminal::{Keyboard, PasteMarks, Style, StyledLine, suspend};

/// The text of `/help` while the agent works.
const HELP: &str = "Enter: the agent reads it before its next step; Alt-Enter or /later TEXT: when it is done; \
                    /queue, /queue drop NUMBER: what waits; Ctrl-O: the last output in full; Ctrl-T: what the \
                    model thinks; Ctrl-V: a picture from the clipboard; /model NAME, /thinking LEVEL: from its next \
                    step on; /mode NAME or Shift-Tab: from its next call on; /btw QUESTION: asks aside; /cost, /context, /sessions, /skills, /config: as at the prompt; Esc, /stop or Ctrl-C: \
                    stop it";

/// The answer to the wish to leave.
const LEAVES: &str = "the chat ends when this turn is done; Ctrl-C stops the turn";

/// What the chat waits for while a question is on the screen.
pub(super) const WAITING: &str = "your answer, and Enter";

/// The Escape key alone.
const ESCAPE: &[u8] = b"\x1b";

/// A parsed line that was typed while the agent works.
#[derive(Debug, PartialEq, Eq)]
enum Talk {
    Say(QueuedKind, String),
    ShowQueue,
    Drop(usize),
    Jobs,
    Kill(String),
    Model(String),
    Thinking(String),
    Mode(String),
    /// A question aside.
    Aside(String),
    /// A command that changes nothing.
    Read(Command),
    Stop,
    Leave,
    Help,
    /// A command that has to wait.
    TooEarly(String),
    /// The message about a line that no command understands, or that was obeyed.
    Said(String),
}

/// The keyboard input while the agent works.
pub(super) struct Talker {
    keyboard: Option<Keyboard>,
    /// A paste of several lines is one message.
    marks: PasteMarks,
    line: TypedLine,
    /// Keys that were read and not handled yet.
    unhandled: Vec<u8>,
    /// What was asked for and is not handled yet: the turn may end meanwhile.
    pressed: VecDeque<Key>,
    wants_to_leave: bool,
    /// Whether the outputs are shown in full.
    is_unfolded: bool,
    aside: OpenAside,
}

/// Input that is left when the turn is over.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    /// Text that was typed and not sent.
    pub(super) unsent: String,
    /// Whether the chat was asked to end.
    pub(super) wants_to_leave: bool,
    /// Whether the user was reading the outputs in full.
    pub(super) is_unfolded: bool,
    pub(super) aside: OpenAside,
}

impl Leftover {
    /// Takes what the next turn left. Text that was typed before stays.
    pub(super) fn replace(&mut self, next: Self) {
        let mut texts = vec![std::mem::take(&mut self.unsent), next.unsent];
        texts.retain(|text| !text.is_empty());
        *self = Self { unsent: texts.join("\n"), ..next };
    }
}

impl Talker {
    /// Listens to the keyboard, if it can be listened to.
    pub(super) fn listen() -> Self {
        Self {
            keyboard: Keyboard::listen_after_editor().ok(),
            marks: PasteMarks::begin(),
            line: TypedLine::default(),
            unhandled: Vec::new(),
            pressed: VecDeque::new(),
            wants_to_leave: false,
            is_unfolded: false,
            aside: OpenAside::default(),
        }
    }

    /// Stops listening; returns the input that is left.
    pub(super) fn finish(mut self) -> Leftover {
        let begun = self.keyboard.as_mut().map(Keyboard::take_begun);
        self.unhandled.extend(begun.unwrap_or_default());
        self.pressed.extend(self.line.press(&self.unhandled));
        let mut unsent: Vec<String> = Vec::new();
        for key in self.pressed {
            match key {
                Key::Send(line) => unsent.push(line.text),
                Key::Leave => self.wants_to_leave = true,
                _ => {}
            }
        }
        unsent.push(self.line.take());
        unsent.retain(|text| !text.is_empty());
        Leftover {
            unsent: unsent.join("\n"),
            wants_to_leave: self.wants_to_leave,
            is_unfolded: self.is_unfolded,
            aside: self.aside,
        }
    }

    /// Handles typed lines until the turn is over. A line that it has begun to obey is obeyed to its end.
    pub(super) async fn talk(
        &mut self,
        display: &Display,
        facts: &Facts<'_>,
        questions: &mut mpsc::Receiver<Asked>,
        turn_over: &CancellationToken,
    ) {
        let mut open = OpenQuestions::default();
        while let Some(keyboard) = &mut self.keyboard {
            let keys = tokio::select! {
                () = turn_over.cancelled() => return,
                keys = keyboard.read_keys() => keys,
                Some(asked) = questions.recv() => {
                    open.add(asked, display);
                    facts.common.attention.question();
                    continue;
                }
                answer = self.aside.answer() => {
                    answer.lines().for_each(|line| display.say(Style::Bold, line));
                    continue;
                }
            };
            // If the terminal is gone, another part ends the turn.
            let Ok(bytes) = keys else { break };
            if bytes == ESCAPE && !self.line.is_pasting() {
                facts.session.abort();
                continue;
            }
            self.unhandled.extend(bytes);
            self.handle_keys(display, facts, &mut open, turn_over).await;
        }
        turn_over.cancelled().await;
    }

    /// Handles the keys that were read. What the end of the turn overtakes stays in `pressed`.
    async fn handle_keys(
        &mut self,
        display: &Display,
        facts: &Facts<'_>,
        open: &mut OpenQuestions,
        turn_over: &CancellationToken,
    ) {
        let config = facts.session.config();
        while !turn_over.is_cancelled() {
            let pictures = match self.pressed.front() {
                Some(Key::Send(line)) => {
                    attachments::mentioned(&line.text, config.working_directory()).await
                }
                _ => Default::default(),
            };
            match self.pressed.pop_front() {
                Some(Key::Send(line)) => {
                    match open.take_answer(&line.text, display) {
                        Taken::Answer => continue,
                        Taken::View(question) => {
                            self.show_page(display, (&question, 0), turn_over).await;
                            continue;
                        }
                        Taken::No => {}
                    }
                    let talk = parse(line, |text| custom::parse(&config, text));
                    self.wants_to_leave |= talk == Talk::Leave;
                    let is_message = matches!(talk, Talk::Say(..));
                    let talk = match talk {
                        Talk::Aside(question) => Talk::Said(self.aside.ask(facts, question)),
                        talk => talk,
                    };
                    obey(talk, pictures, display, facts).await;
                    if is_message {
                        open.remind(display);
                    }
                }
                // What is asked about comes before what has been.
                Some(Key::Unfold) if let Some(question) = open.page() => {
                    self.show_page(display, (&question, 0), turn_over).await;
                }
                Some(Key::Unfold) => self.unfold(display, facts.common, turn_over).await,
                Some(key) => self.obey_key(key, display, facts).await,
                None if self.unhandled.is_empty() => return,
                None => {
                    self.pressed.extend(self.line.press_next(&mut self.unhandled));
                    display.show_typed(self.line.text());
                }
            }
        }
    }

    /// Does what a key asks for that sends nothing.
    async fn obey_key(&mut self, key: Key, display: &Display, facts: &Facts<'_>) {
        let common = facts.common;
        match key {
            Key::Send(_) | Key::Unfold => {}
            Key::Thinking => display.say(Style::Dim, common.toggle_thinking()),
            Key::Mode => match next_mode(facts.session).await {
                Ok(answer) => {
                    facts.show_mode();
                    display.say(Style::Dim, &answer);
                }
                Err(error) => display.say(Style::Bad, &error.message),
            },
            Key::Picture => take_picture(&mut self.line, display, facts).await,
            Key::Focus(focus) => common.attention.focus(focus),
            Key::Leave => {
                self.wants_to_leave = true;
                display.say(Style::Dim, LEAVES);
            }
            Key::Suspend => {
                if let Some(keyboard) = &mut self.keyboard {
                    display.lend(|| keyboard.lend(|| self.marks.lend(suspend)));
                }
            }
        }
    }

    /// Shows the outputs in full.
    async fn unfold(&mut self, display: &Display, common: &Common, turn_over: &CancellationToken) {
        let (lines, start) = common.page();
        if lines.is_empty() {
            display.say(Style::Dim, pager::NOTHING);
            return;
        }
        self.show_page(display, (&lines, start), turn_over).await;
        // If the turn has ended it, the prompt shows it again.
        self.is_unfolded = turn_over.is_cancelled();
    }

    /// Shows lines, from one on, on a screen of their own until they are closed or the turn is over.
    async fn show_page(
        &mut self,
        display: &Display,
        (lines, start): (&[StyledLine], usize),
        turn_over: &CancellationToken,
    ) {
        let Some(keyboard) = &mut self.keyboard else { return };
        display.pause(Drawing::Off);
        tokio::select! {
            () = turn_over.cancelled() => {}
            // If the terminal is gone, another part ends the turn.
            _ = pager::show(keyboard, lines, start) => {}
        }
        display.pause(Drawing::On);
    }
}

/// Puts the path of the clipboard's picture into the line.
async fn take_picture(line: &mut TypedLine, display: &Display, facts: &Facts<'_>) {
    let directory = clipboard::directory(&facts.session.config().home.paths);
    match clipboard::picture_meanwhile(directory).await {
        Ok(path) => line.push(&path),
        Err(message) => display.say(Style::Bad, &message),
    }
    display.show_typed(line.text());
}

/// Executes a line, and shows the answer and what waits then.
async fn obey(
    talk: Talk,
    pictures: (Vec<Attachment>, Vec<String>),
    display: &Display,
    facts: &Facts<'_>,
) {
    let (style, answer) = match act(talk, pictures, facts).await {
        Ok(answer) => (Style::Dim, answer),
        Err(error) => (Style::Bad, error.message),
    };
    for line in answer.lines() {
        display.say(style, line);
    }
    display.show_queue(queued(facts.session).await);
}

/// What a line is for the question on the screen.
enum Taken {
    /// Its answer.
    Answer,
    /// The wish to see all of it.
    View(Vec<StyledLine>),
    /// Nothing.
    No,
}

/// The questions that wait for an answer; the first one is on the screen.
#[derive(Default)]
struct OpenQuestions(VecDeque<Asked>);

impl OpenQuestions {
    fn add(&mut self, asked: Asked, display: &Display) {
        self.0.retain(|asked| !asked.is_over());
        self.0.push_back(asked);
        if self.0.len() == 1 {
            self.show(display);
        }
    }

    /// Answers the question on the screen if `line` is an answer, and shows the next one.
    fn take_answer(&mut self, line: &str, display: &Display) -> Taken {
        self.0.retain(|asked| !asked.is_over());
        let Some(asked) = self.0.front() else { return Taken::No };
        let Some(answer) = read_answer(line, &asked.question()) else { return Taken::No };
        if answer == ApprovalAnswer::View {
            return Taken::View(lines(&asked.question()));
        }
        let Some(approval) = answer.to(&asked.request) else {
            // It is offered for other calls, so it is no message for the agent.
            self.remind(display);
            return Taken::Answer;
        };
        if let Some(asked) = self.0.pop_front() {
            asked.answer(approval);
        }
        self.show(display);
        Taken::Answer
    }

    /// All of the question on the screen.
    fn page(&self) -> Option<Vec<StyledLine>> {
        let asked = self.0.front().filter(|asked| !asked.is_over())?;
        Some(lines(&asked.question()))
    }

    fn show(&self, display: &Display) {
        let Some(asked) = self.0.front() else { return };
        for line in lines(&asked.question()) {
            display.say(line.style, &line.text);
        }
        display.wait_for(WAITING);
    }

    /// Says what the question on the screen can be answered with.
    fn remind(&self, display: &Display) {
        let Some(asked) = self.0.front().filter(|asked| !asked.is_over()) else { return };
        display.say(Style::Warning, &format!("still asked: {}", asking(&asked.question())));
        display.wait_for(WAITING);
    }
}

/// The waiting messages, for the lines below the text.
async fn queued(session: &Session) -> Vec<Queued> {
    let pending = session.pending().await.unwrap_or_default();
    let line = |message: &PendingMessage| {
        format!("{}: {}", queue::when(message), first_line(&joined_text(&message.content, " ")))
    };
    pending
        .iter()
        .map(|message| Queued { id: message.id.to_string(), line: line(message) })
        .collect()
}

/// Executes a line, with the pictures that it names; returns the message to show.
async fn act(
    talk: Talk,
    (pictures, problems): (Vec<Attachment>, Vec<String>),
    facts: &Facts<'_>,
) -> Result<String, CliError> {
    let (session, common) = (facts.session, facts.common);
    match talk {
        Talk::Read(command) => Ok(facts.answer(&command).await?.unwrap_or_default()),
        Talk::Say(kind, text) => {
            let when = match kind {
                QueuedKind::Steer => "is read at the next step",
                _ => "is read when this is done",
            };
            let mut answer = problems;
            answer.extend(pictures.iter().map(Attachment::line));
            answer.push(format!("{when}: {}", first_line(&text)));
            // The turn may end at this moment; then the next one begins with it.
            let content = attachments::content(pictures, text);
            let (content, unread) = session.config().with_server_texts(content).await?;
            answer.extend(unread);
            session.enqueue(kind, content).await?;
            Ok(answer.join("\n"))
        }
        Talk::ShowQueue => Ok(queue::list(&session.pending().await?)),
        Talk::Drop(number) => queue::drop_one(session, number).await,
        Talk::Jobs => Ok(jobs::list(session).await),
        Talk::Kill(id) => Ok(jobs::kill(session, &id).await),
        Talk::Model(name) => change_model(session, &name).await,
        Talk::Thinking(level) => match show_thinking(common, &level) {
            Some(answer) => Ok(answer.to_owned()),
            None => change_thinking(session, &level).await,
        },
        Talk::Mode(name) => {
            let changed = change_mode(session, &name).await;
            facts.show_mode();
            changed
        }
        Talk::Stop => {
            session.abort();
            Ok(String::new())
        }
        Talk::Leave => Ok(LEAVES.to_owned()),
        Talk::Help => Ok(HELP.to_owned()),
        Talk::Said(message) | Talk::Aside(message) => Ok(message),
        Talk::TooEarly(command) => {
            Ok(format!("`{command}` has to wait until this is done. {HELP}"))
        }
    }
}

/// Reads a line; `at_the_prompt` says what it would be there.
fn parse(line: SentLine, at_the_prompt: impl FnOnce(&str) -> Parsed) -> Talk {
    let SentLine { text, key } = line;
    let trimmed = text.trim();
    let (name, argument) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    if matches!(trimmed, "exit" | "quit") {
        return Talk::Leave;
    }
    if text.starts_with('!') {
        return Talk::TooEarly(name.to_owned());
    }
    if !text.starts_with('/') || begins_with_path(trimmed) {
        let kind = match key {
            SendKey::Enter => QueuedKind::Steer,
            SendKey::AltEnter => QueuedKind::FollowUp,
        };
        return Talk::Say(kind, text);
    }
    match (name, argument.trim()) {
        ("/later", later) if !later.is_empty() => Talk::Say(QueuedKind::FollowUp, later.to_owned()),
        ("/queue", "") => Talk::ShowQueue,
        ("/queue", argument) => queue::number(argument).map_or(Talk::Help, Talk::Drop),
        ("/jobs", "") => Talk::Jobs,
        ("/jobs", argument) => jobs::killed_id(argument).map_or(Talk::Help, Talk::Kill),
        ("/model", name) if !name.is_empty() => Talk::Model(name.to_owned()),
        ("/thinking", level) if !level.is_empty() => Talk::Thinking(level.to_owned()),
        ("/mode" | "/modes", name) if !name.is_empty() => Talk::Mode(name.to_owned()),
        ("/stop", "") => Talk::Stop,
        ("/quit" | "/exit", "") => Talk::Leave,
        ("/help" | "/?" | "/later", _) => Talk::Help,
        _ => match at_the_prompt(trimmed) {
            Parsed::Command(Command::Aside(question)) => Talk::Aside(question),
            Parsed::Command(command) if command.changes_nothing() => Talk::Read(command),
            Parsed::Unknown(message) => Talk::Said(message),
            _ => Talk::TooEarly(name.to_owned()),
        },
    }
}

/// Obeys `/thinking show` and `/thinking hide`; `None` for a level.
pub(super) fn show_thinking(common: &Common, word: &str) -> Option<&'static str> {
    match word {
        "show" => {
            common.show_thinking(IsShown::Yes);
            Some("what the model thinks is shown")
        }
        "hide" => {
            common.show_thinking(IsShown::No);
            Some("what the model thinks is hidden")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
