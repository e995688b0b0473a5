//! Questions about tool calls that need an approval, in a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use myclaw_agent::approvals::escape;
use myclaw_agent::{
    AlwaysScope, Approval, ApprovalRequest, Approver, BoxFuture, FactForm, ShownFact,
};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::terminal::{Keyboard, Output, Paint, Style, forget_typed};

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
            let answer =
                keys.iter().find_map(|key| read_answer(&char::from(*key).to_string())?.to(request));
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
    pub(crate) reason: &'a str,
    /// Everything that decides what happens.
    pub(crate) shown: &'a [ShownFact],
    /// What has changed since an earlier answer.
    pub(crate) changes: &'a [ShownFact],
    /// What the answer "always" covers, if the call can be approved for good.
    pub(crate) always: Option<&'a str>,
}

/// The lines of a question, the last of which asks. Characters that hide or move text are written out.
pub(crate) fn question(request: &ApprovalRequest) -> Vec<(Style, String)> {
    let question = Question {
        tool: &request.call.tool_name,
        reason: &request.reason,
        shown: &request.shown,
        changes: &request.changes,
        always: request.always.first().map(AlwaysScope::covers),
    };
    question.lines()
}

impl Question<'_> {
    /// Its lines, the last of which asks.
    pub(crate) fn lines(&self) -> Vec<(Style, String)> {
        let (about, others) = match self.shown {
            [first, others @ ..] => (first.text.as_str(), others),
            [] => ("", self.shown),
        };
        let mut lines = vec![(Style::Bold, shown(&format!("{} wants to run: {about}", self.tool)))];
        lines.extend(self.reason.lines().map(|line| (Style::Dim, shown(line))));
        lines.extend(others.iter().chain(self.changes).flat_map(fact_lines));
        let ask = match self.always {
            Some(always) => format!("(o)nce, (a)lways for {}, or (n)o?", shown(always)),
            None => "(o)nce or (n)o?".to_owned(),
        };
        lines.push((Style::Warning, ask));
        lines
    }
}

/// The lines of a fact: all of it.
fn fact_lines(fact: &ShownFact) -> Vec<(Style, String)> {
    let label = shown(&fact.label);
    let cut = if fact.is_whole { "" } else { " (not all of it is known)" };
    match (fact.form, fact.text.lines().count()) {
        (FactForm::Text, 0 | 1) => {
            vec![(Style::Dim, format!("{label}{cut}: {}", shown(&fact.text)))]
        }
        (form, _) => {
            let style = |line: &str| match form {
                FactForm::Diff => diff_style(line),
                FactForm::Text => Style::Code,
            };
            let body = fact.text.lines().map(|line| (style(line), shown_code(line)));
            [(Style::Dim, format!("{label}{cut}:"))].into_iter().chain(body).collect()
        }
    }
}

/// An answer of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Once,
    Always,
    No,
}

impl Answer {
    /// The answer in one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::No => "no",
        }
    }

    /// What it means for a question; `None` if the question does not offer it.
    pub(crate) fn to(self, request: &ApprovalRequest) -> Option<Approval> {
        match self {
            Self::Once => Some(Approval::Once),
            Self::Always => (!request.always.is_empty()).then(|| request.approved_for_good()),
            Self::No => Some(denied(REFUSED)),
        }
    }
}

/// The answer that a key or a line gives, if it is one.
pub(crate) fn read_answer(text: &str) -> Option<Answer> {
    match text.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Some(Answer::Once),
        "a" | "always" => Some(Answer::Always),
        "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

/// The answer in one word.
pub(crate) fn word(approval: &Approval) -> &'static str {
    match approval {
        Approval::Once => "once",
        Approval::Always(_) => "always",
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
    escape(text)
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
            assert_eq!(read_answer(text).map(Answer::word), expected, "{text}");
        }
    }

    #[test]
    fn all_of_a_fact_is_shown() {
        let long = "x".repeat(100_000);
        let facts = [ShownFact::text("input", format!("a\u{1b}[2J\n{long}"))];
        let question =
            Question { tool: "t", reason: "", shown: &facts, changes: &facts, always: None };
        let lines: Vec<String> = question.lines().into_iter().map(|(_, line)| line).collect();
        let first = format!("t wants to run: a\\u{{1b}}[2J\\n{long}");
        assert_eq!(lines, [&first, "input:", "a\\u{1b}[2J", &long, "(o)nce or (n)o?"]);
    }
}
