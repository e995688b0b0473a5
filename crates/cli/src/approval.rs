//! Questions about tool calls that need an approval, in a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use myclaw_agent::approvals::escape;
use myclaw_agent::{Approval, ApprovalRequest, Approver, BoxFuture};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::terminal::{Keyboard, Output, Paint, Style, forget_typed};

/// Most lines of a diff that are shown before the question.
const MAX_DIFF_LINES: usize = 200;
/// Most characters of a line.
const MAX_LINE_CHARS: usize = 4000;
/// Most questions that wait for the part that asks: the engine makes at most eight calls at once.
const MAX_QUESTIONS: usize = 8;
/// The answer if the user says no.
const REFUSED: &str = "the user said no";

/// A question, with the channel for its answer.
pub(crate) struct Asked {
    pub(crate) request: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl Asked {
    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn answer(self, approval: Approval) {
        // The run may have ended meanwhile.
        let _ = self.answer.send(approval);
    }
}

/// Passes questions to the part of a front-end that asks the user.
pub(crate) struct Questions(mpsc::Sender<Asked>);

/// The approver of a run, and the channel on which its questions arrive.
pub(crate) fn questions() -> (Arc<Questions>, mpsc::Receiver<Asked>) {
    let (sender, receiver) = mpsc::channel(MAX_QUESTIONS);
    (Arc::new(Questions(sender)), receiver)
}

impl Approver for Questions {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let asked = Asked { request: request.clone(), answer };
            let sent = self.0.send(asked).await;
            let approval = if sent.is_ok() { answered.await.ok() } else { None };
            approval.unwrap_or_else(|| denied("the terminal cannot ask"))
        })
    }
}

/// Asks on the terminal that standard input and standard error are, one question at a time.
pub(crate) struct TerminalApprover {
    output: Arc<Output>,
    turn: Semaphore,
}

impl TerminalApprover {
    /// The approver, if standard input and standard error are a terminal.
    pub(crate) fn on_terminal(output: &Arc<Output>) -> Option<Arc<dyn Approver>> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_terminal.then(|| {
            Arc::new(Self { output: Arc::clone(output), turn: Semaphore::new(1) })
                as Arc<dyn Approver>
        })
    }

    async fn ask(&self, request: &ApprovalRequest) -> std::io::Result<Approval> {
        self.output.end_line();
        self.output.flush();
        let paint = Paint::for_stream(&std::io::stderr());
        let lines = question(request);
        let text: Vec<String> =
            lines.iter().map(|(style, line)| paint.paint(*style, line)).collect();
        // Keys that were pressed before the question was shown are not an answer.
        forget_typed()?;
        write!(std::io::stderr(), "{} ", text.join("\n"))?;
        let mut keyboard = Keyboard::listen()?;
        loop {
            let keys = keyboard.read().await?;
            let answer = keys.iter().find_map(|key| read_answer(&char::from(*key).to_string()));
            if let Some(answer) = answer {
                writeln!(std::io::stderr(), "{}", word(&answer))?;
                return Ok(answer);
            }
        }
    }
}

impl Approver for TerminalApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let _turn = self.turn.acquire().await;
            let asked = self.ask(request).await;
            asked.unwrap_or_else(|error| denied(&format!("the terminal cannot ask: {error}")))
        })
    }
}

/// A question about a call of a tool.
pub(crate) struct Question<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) reason: &'a str,
    /// What the answer "always" covers.
    pub(crate) always: &'a str,
    pub(crate) diff: Option<&'a str>,
}

/// The lines of a question, the last of which asks. Characters that hide or move text are written out.
pub(crate) fn question(request: &ApprovalRequest) -> Vec<(Style, String)> {
    let question = Question {
        tool: &request.call.tool_name,
        arguments: &request.call.arguments,
        reason: &request.reason,
        always: &request.always,
        diff: request.diff.as_deref(),
    };
    question.lines()
}

impl Question<'_> {
    /// Its lines, the last of which asks.
    pub(crate) fn lines(&self) -> Vec<(Style, String)> {
        let about = match (self.arguments.get("command"), self.arguments.get("path")) {
            (Some(Value::String(command)), _) => command.clone(),
            (None, Some(Value::String(path))) => path.clone(),
            _ => Value::Object(self.arguments.clone()).to_string(),
        };
        let mut lines = vec![(Style::Bold, shown(&format!("{} wants to run: {about}", self.tool)))];
        lines.extend(self.reason.lines().map(|line| (Style::Dim, shown(line))));
        let diff: Vec<&str> = self.diff.unwrap_or_default().lines().collect();
        let first = diff.iter().take(MAX_DIFF_LINES);
        lines.extend(first.map(|line| (diff_style(line), shown_code(line))));
        if diff.len() > MAX_DIFF_LINES {
            let more = diff.len() - MAX_DIFF_LINES;
            lines.push((Style::Warning, format!("… and {more} more lines that are not shown")));
        }
        let always = shown(self.always);
        lines.push((Style::Warning, format!("(o)nce, (a)lways for {always}, or (n)o?")));
        lines
    }
}

/// The answer that a key or a line gives, if it is one.
pub(crate) fn read_answer(text: &str) -> Option<Approval> {
    match text.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Some(Approval::Once),
        "a" | "always" => Some(Approval::Always),
        "n" | "no" => Some(denied(REFUSED)),
        _ => None,
    }
}

/// The answer in one word.
pub(crate) fn word(approval: &Approval) -> &'static str {
    match approval {
        Approval::Once => "once",
        Approval::Always => "always",
        _ => "no",
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}

fn diff_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::Good,
        Some('-') => Style::Bad,
        Some('@') => Style::Code,
        _ => Style::Dim,
    }
}

/// A line of a file: its indentation stays.
fn shown_code(line: &str) -> String {
    shown(&line.replace('\t', "    "))
}

fn shown(text: &str) -> String {
    let escaped = escape(text);
    match escaped.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => {
            let more = escaped[at..].chars().count();
            format!("{}… ({more} more characters)", &escaped[..at])
        }
        None => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_answers_count() {
        for (text, expected) in [
            ("o", Some("once")),
            ("Yes", Some("once")),
            (" always ", Some("always")),
            ("N", Some("no")),
            ("", None),
            ("on", None),
            ("ok go", None),
        ] {
            assert_eq!(read_answer(text).as_ref().map(word), expected, "{text}");
        }
    }

    #[test]
    fn a_long_line_says_how_much_is_not_shown() {
        let line = shown(&"x".repeat(MAX_LINE_CHARS + 7));
        assert!(line.ends_with("x… (7 more characters)"), "{line}");
        assert_eq!(shown("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
    }
}
