//! The beginning of a chat in a terminal: what the terminal can, who answers, and the end of the session so far.

use std::io;
use std::sync::Arc;

use myclaw_agent::{SessionConfig, goal::Goal, is_remark, is_reminder, plan::Plan};
use myclaw_engine::Mode;
use myclaw_llm::StopReason;
use myclaw_session::{Role, TranscriptMessage};

use super::plan_lines;
use super::typed::{Key, TypedLine};
use super::{Chat, View, put_line};
use myclaw_front::exit::CliError;
use myclaw_front::report::first_line;
use myclaw_front::terminal::{
    Paint, Size, Style, Title, bind_keys, choose_palette, escaped, rendered, set_title, truncated,
    wrapped,
};

/// Rows of the last answer that are shown when a session is continued.
const RESUMED_ROWS: usize = 20;
/// Messages at the end of a session among which the last exchange is looked for.
const RESUMED_MESSAGES: usize = 50;

/// What the agent may not do here, if the permission mode or the sandbox limits it.
fn restriction(config: &SessionConfig) -> Option<String> {
    let mode = config.mode.get();
    let mode_line = format!("mode {mode}: {}; Shift-Tab or /mode changes it", mode.meaning());
    let mode_line = (mode != Mode::Auto).then_some(mode_line);
    let sandboxed = config.is_sandboxed() && mode != Mode::Sandbox;
    let sandboxed = sandboxed.then(|| {
        "sandboxed: files and commands are confined; `myclaw sandbox explain` says to what"
            .to_owned()
    });
    let lines: Vec<String> = mode_line.into_iter().chain(sandboxed).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Whether a turn has not ended: the program was killed, or another one works on it.
fn is_open(rows: &[TranscriptMessage]) -> bool {
    let message = rows.iter().rfind(|row| !(row.role == Role::User && is_remark(&row.content)));
    let ended_with = |row: &TranscriptMessage| row.meta.as_ref()?.field("stopReason");
    message.is_some_and(|last| match last.role {
        Role::Assistant => ended_with(last) == Some(StopReason::ToolUse),
        _ => true,
    })
}

/// Prints the first line of a chat: who answers, and in which session.
pub(super) fn put_heading(who: &str, session: &str) -> Result<(), CliError> {
    let program = concat!("myclaw ", env!("CARGO_PKG_VERSION"));
    let (who, session) = (escaped(who), escaped(session));
    let line = format!("{program}  {who}, session `{session}`, /help for help");
    let lines = wrapped(&line, Size::current().columns.saturating_sub(1)).join("\n");
    let painted = Paint::for_stream(&io::stdout()).paint(Style::Heading, program);
    put_line(&lines.replacen(program, &painted, 1))
}

impl Chat {
    /// Learns from the terminal which colours can be read on it. Returns what was typed meanwhile.
    pub(super) async fn look_at_terminal(&self) -> Vec<u8> {
        let config = Arc::clone(&self.session.config().config);
        self.common.attention.set(config.terminal.clone());
        bind_keys(&config.terminal.bindings);
        if Paint::for_stream(&io::stdout()) == Paint::Plain {
            return Vec::new();
        }
        choose_palette(config.terminal.theme).await
    }

    /// What was typed before the editor began is a message if Enter ended it; the rest is in the editor.
    pub(super) fn keep_early(&mut self, early: &[u8], first: &mut String) {
        let early: Vec<u8> =
            early.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
        let mut line = TypedLine::default();
        let mut lines = Vec::new();
        for key in line.press(&early) {
            match key {
                Key::Send(sent) if first.trim().is_empty() => *first = sent.text,
                Key::Send(sent) => lines.push(sent.text),
                _ => {}
            }
        }
        lines.push(line.take());
        self.leftover.unsent = lines.join("\n");
    }

    pub(super) async fn greet(&self) -> Result<(), CliError> {
        let model = self.session.selection().await?.reference.to_string();
        put_heading(&model, &self.sessions.name_of(self.session.key()))?;
        if let Some(place) = &self.place {
            self.say(place)?;
        }
        if let Some(line) = restriction(&self.session.config()) {
            self.say(&line)?;
        }
        set_title(Title::Begin);
        set_title(Title::Waiting(&self.title_line()));
        self.show_end()
    }

    /// Shows the last exchange of a session that is continued.
    pub(super) fn show_end(&self) -> Result<(), CliError> {
        let View::Terminal = self.view else { return Ok(()) };
        let Some(reader) = self.sessions.catalog.read(self.session.key())? else { return Ok(()) };
        if Goal::of(&self.session.config())?.is_some() {
            self.common.show_goal(Some("goal paused".to_owned()));
        }
        let plan = Plan::last_of(&*reader)?.filter(Plan::is_open);
        self.common.set_plan(plan);
        let rows = reader.last_messages(RESUMED_MESSAGES)?;
        let is_said = |row: &TranscriptMessage| row.role == Role::User && !is_remark(&row.content);
        let Some(at) = rows.iter().rposition(is_said) else { return Ok(()) };
        let paint = Paint::for_stream(&io::stdout());
        let size = Size::current();
        if let Some(title) = self.sessions.title_of(self.session.key()) {
            put_line(&paint.paint(Style::Dim, &truncated(&escaped(&title), size.columns - 1)))?;
        }
        let said = format!("> {}", escaped(&first_line(&rows[at].content)));
        put_line(&paint.paint(Style::Bold, &truncated(&said, size.columns - 1)))?;
        let answer =
            rows[at..].iter().rfind(|row| row.role == Role::Assistant && !row.content.is_empty());
        if let Some(answer) = answer {
            let text = rendered(&answer.content, paint, size);
            let lines: Vec<&str> = text.lines().collect();
            let from = lines.len().saturating_sub(RESUMED_ROWS);
            if from > 0 {
                put_line(&paint.paint(Style::Dim, &format!("… {from} lines above")))?;
            }
            put_line(&lines[from..].join("\n"))?;
        }
        for (style, line) in self.common.plan_to_print().iter().flat_map(plan_lines::all) {
            put_line(&paint.paint(style, &truncated(&line, size.columns - 1)))?;
        }
        if is_open(&rows[at..]) {
            self.say("the last message has no answer yet; /continue goes on with it")?;
        }
        put_line("")
    }

    /// The same when a session is opened.
    pub(super) async fn tell_what_waits_at_opening(&self) -> Result<(), CliError> {
        // A turn begins by itself for reminders, and takes everything.
        match self.session.pending().await?.iter().any(is_reminder) {
            true => Ok(()),
            false => self.tell_what_waits().await,
        }
    }

    /// Prints how many messages an earlier turn left unanswered, if input is interactive.
    pub(super) async fn tell_what_waits(&self) -> Result<(), CliError> {
        let View::Terminal = self.view else { return Ok(()) };
        let text = match self.session.pending().await?.len() {
            0 => return Ok(()),
            1 => "1 message waits to be answered".to_owned(),
            count => format!("{count} messages wait to be answered"),
        };
        self.say(&format!(
            "{text}: with your next message, or now with /continue; /queue lists them"
        ))
    }
}
