//! The list of the sessions that work, drawn again in place.

use std::io::{self, Write as _};

use myclaw_agent::approvals::WaitingApproval;
use myclaw_agent::running::RunningSession;
use myclaw_front::exit::CliError;
use myclaw_front::pager::key_length;
use myclaw_front::print::columns;
use myclaw_front::terminal::{AlternateScreen, Keyboard, Paint, Size, Style, escaped, truncated};
use tokio_util::sync::CancellationToken;

use super::at_gateway::has_it;
use super::{ANSWERS, INTERVAL, Watch, asked};

/// Most characters of an answer.
const MOST_TYPED: usize = 1_000;
const KEYS: &str = "Up, Down; y yes, n no, Enter writes an answer; s stops; a attaches; q leaves";

/// Shows the list until the user leaves; gives the session to attach to.
///
/// # Errors
/// The terminal is gone, or the sessions cannot be read.
pub(super) async fn show(
    watch: &Watch,
    left: &CancellationToken,
) -> Result<Option<String>, CliError> {
    let gone = |error: io::Error| CliError::output(&error);
    let mut keyboard = Keyboard::listen().map_err(gone)?;
    let _screen = AlternateScreen::enter().map_err(gone)?;
    let mut list = List { watch, now: watch.look()?, at: 0, typed: None, said: String::new() };
    loop {
        list.draw().map_err(gone)?;
        let keys = tokio::select! {
            keys = tokio::time::timeout(INTERVAL, keyboard.read_keys()) => keys,
            () = left.cancelled() => return Ok(None),
        };
        let keys = match keys {
            Ok(keys) => keys.map_err(gone)?,
            Err(_) => Vec::new(),
        };
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            let (key, others) = rest.split_at(key_length(rest));
            match list.press(key) {
                Pressed::Stay => {}
                Pressed::Leave => return Ok(None),
                Pressed::Attach(session) => match has_it(&watch.home, &session).await {
                    Ok(()) => return Ok(Some(session)),
                    Err(why) => list.said = why,
                },
            }
            rest = others;
        }
        list.look()?;
    }
}

/// What a key did.
enum Pressed {
    Stay,
    Leave,
    Attach(String),
}

struct List<'a> {
    watch: &'a Watch,
    now: Vec<RunningSession>,
    /// The marked session.
    at: usize,
    /// The answer that is being written, and the call that it is about.
    typed: Option<(String, String)>,
    /// What became of the last request.
    said: String,
}

impl List<'_> {
    /// Looks again; the mark stays at its session.
    fn look(&mut self) -> Result<(), CliError> {
        let marked = self.now.get(self.at).map(|session| session.session.clone());
        self.now = self.watch.look()?;
        let place = self.now.iter().position(|session| Some(&session.session) == marked.as_ref());
        self.at = place.unwrap_or(self.at.min(self.now.len().saturating_sub(1)));
        let asked = self.question().map(|question| question.tool_call_id.as_str());
        if let Some((call, _)) = &self.typed
            && (place.is_none() || asked != Some(call))
        {
            self.typed = None;
            self.said = "the question is answered already; nothing was sent".to_owned();
        }
        Ok(())
    }

    /// The oldest question of the marked session.
    fn question(&self) -> Option<&WaitingApproval> {
        self.now.get(self.at).and_then(|session| session.questions.first())
    }

    fn press(&mut self, key: &[u8]) -> Pressed {
        if let Some((call, mut typed)) = self.typed.take() {
            match key {
                b"\x1b" | b"\x03" => return Pressed::Stay,
                b"\r" | b"\n" => {
                    self.answer(&typed);
                    return Pressed::Stay;
                }
                b"\x7f" | b"\x08" => drop(typed.pop()),
                [0x1b, ..] => {}
                text => typed.extend(
                    String::from_utf8_lossy(text).chars().filter(|char| !char.is_control()),
                ),
            }
            typed.truncate(typed.floor_char_boundary(MOST_TYPED));
            self.typed = Some((call, typed));
            return Pressed::Stay;
        }
        let last = self.now.len().saturating_sub(1);
        match key {
            b"q" | b"Q" | b"\x1b" | b"\x03" | b"\x04" => return Pressed::Leave,
            b"\x1b[A" | b"\x1bOA" | b"k" => self.at = self.at.saturating_sub(1),
            b"\x1b[B" | b"\x1bOB" | b"j" => self.at = last.min(self.at + 1),
            b"y" => self.answer("yes"),
            b"n" => self.answer("no"),
            b"s" => self.stop(),
            b"\r" | b"\n" => {
                let call = self.question().map(|question| question.tool_call_id.clone());
                self.typed = call.map(|call| (call, String::new()));
            }
            b"a" => {
                if let Some(session) = self.now.get(self.at) {
                    return Pressed::Attach(self.watch.sessions.name_of(&session.session));
                }
            }
            _ => {}
        }
        Pressed::Stay
    }

    fn answer(&mut self, text: &str) {
        self.said = match self.question() {
            None => "it asks nothing".to_owned(),
            Some(_) if text.trim().is_empty() => format!("answers are {ANSWERS}"),
            Some(question) => match self.watch.answer(question, text) {
                Ok(()) => format!("answered {text}: {}", asked(question)),
                Err(error) => error.message,
            },
        };
    }

    fn stop(&mut self) {
        let Some(session) = self.now.get(self.at) else { return };
        let name = self.watch.sessions.name_of(&session.session);
        self.said = match self.watch.stop(session) {
            Ok(()) => format!("`{name}` was asked to stop"),
            Err(error) => error.message,
        };
    }

    fn draw(&self) -> io::Result<()> {
        let mut stdout = io::stdout();
        let paint = Paint::for_stream(&stdout);
        let picture = self.picture(Size::current(), paint);
        stdout.write_all(picture.as_bytes())?;
        stdout.flush()
    }

    fn picture(&self, size: Size, paint: Paint) -> String {
        let width = size.columns.saturating_sub(1).max(1);
        let shown = |text: &str| truncated(&escaped(text), width);
        let head = format!("Sessions that work ({})", self.now.len());
        let mut out = format!("\x1b[H\x1b[2J{}\r\n", paint.paint(Style::Heading, &shown(&head)));
        let rows: Vec<Vec<String>> = self.now.iter().map(|now| self.watch.row(now)).collect();
        // Above the last three rows: the question, what was said, and the keys.
        let height = size.rows.saturating_sub(5).max(1);
        let top = (self.at + 1).saturating_sub(height);
        for (place, line) in columns(&rows).iter().enumerate().skip(top).take(height) {
            let mark = if place == self.at { "› " } else { "  " };
            let line = shown(&format!("{mark}{line}"));
            let is_asking = !self.now[place].questions.is_empty();
            out.push_str(&match (place == self.at, is_asking) {
                (true, _) => paint.paint(Style::Bold, &line),
                (false, true) => paint.paint(Style::Warning, &line),
                (false, false) => line,
            });
            out.push_str("\r\n");
        }
        if self.now.is_empty() {
            out.push_str("nothing works at this moment\r\n");
        }
        let reason = self.question().map(|question| format!("asked because: {}", question.reason));
        let below = match &self.typed {
            Some((_, typed)) => format!("answer ({ANSWERS}): {typed}"),
            None => reason.unwrap_or_default().replace('\n', "; "),
        };
        for (up, style, text) in [
            (2, Style::Warning, &below),
            (1, Style::Bold, &self.said),
            (0, Style::Dim, &KEYS.to_owned()),
        ] {
            let row = size.rows.saturating_sub(up).max(1);
            out.push_str(&format!("\x1b[{row};1H{}", paint.paint(style, &shown(text))));
        }
        out
    }
}
