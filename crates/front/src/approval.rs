//! Questions about tool calls that need an approval, in a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::approvals::{INSTEAD, Question, WrittenAnswer, escape, refusal};
use myclaw_engine::{
    AlwaysScope, Approval, ApprovalRequest, Approver, FactForm, ScopeKind, ShownFact,
};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::pager;
use crate::terminal::{Keyboard, Output, Paint, Style, StyledLine, forget_typed};

/// Most questions that wait for the part that asks: the engine makes at most eight calls at once.
const MAX_QUESTIONS: usize = 8;
/// Stands before what has changed, in the terminal and in editors.
pub const CHANGED: &str = "this is different since you were asked:";
/// Marks what is not shown whole.
pub const CUT: &str = " (not all of it is known)";
/// The key Escape, and the first byte of keys that send several.
const ESCAPE: u8 = 0x1b;
/// What the key that removes the last character sends.
const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;
/// Before each line of a text, so that none of them looks like a line of the question.
const BAR: &str = "\u{2502} ";

/// A question, with the channel for its answer.
pub struct Asked {
    /// The question.
    pub request: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl Asked {
    /// The question as it is shown.
    pub fn question(&self) -> Question {
        (&self.request).into()
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// Answers the question.
    pub fn answer(self, approval: Approval) {
        // The run may have ended meanwhile.
        let _ = self.answer.send(approval);
    }
}

/// Passes questions to the part of a front-end that asks the user.
pub struct Questions(mpsc::Sender<Asked>);

/// The approver of a run, and the channel on which its questions arrive.
pub fn questions() -> (Arc<Questions>, mpsc::Receiver<Asked>) {
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
pub struct TerminalApprover {
    output: Arc<Output>,
    turn: Semaphore,
}

impl TerminalApprover {
    /// The approver, if standard input and standard error are a terminal.
    pub fn on_terminal(output: &Arc<Output>) -> Option<Arc<Self>> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_terminal.then(|| Arc::new(Self { output: Arc::clone(output), turn: Semaphore::new(1) }))
    }

    /// Asks, and gives an answer that the question offers.
    ///
    /// # Errors
    /// The terminal cannot be read or written.
    pub async fn ask(&self, question: &Question) -> std::io::Result<ApprovalAnswer> {
        let _turn = self.turn.acquire().await;
        self.output.end_line();
        self.output.flush();
        let paint = Paint::for_stream(&std::io::stderr());
        let lines = lines(question);
        let text: Vec<String> =
            lines.iter().map(|line| paint.paint(line.style, &line.text)).collect();
        // Keys that were pressed before the question was shown are not an answer.
        forget_typed()?;
        write!(std::io::stderr(), "{} ", text.join("\n"))?;
        if question.wants.is_some() {
            write!(std::io::stderr(), "\n> ")?;
        }
        let mut keyboard = Keyboard::listen()?;
        loop {
            let typed = match question.wants {
                Some(_) => vec![typed_line(&mut keyboard, Vec::new()).await?],
                None => {
                    let keys = keyboard.read_keys().await?;
                    let keys = if keys.first() == Some(&ESCAPE) { Vec::new() } else { keys };
                    match keys.first().copied().map(char::from) {
                        Some(INSTEAD) => {
                            write!(std::io::stderr(), "\n{INSTEAD}")?;
                            let begun = keys[1..].to_vec();
                            vec![format!("{INSTEAD}{}", typed_line(&mut keyboard, begun).await?)]
                        }
                        _ => keys.into_iter().map(|key| char::from(key).to_string()).collect(),
                    }
                }
            };
            for typed in typed {
                match read_answer(&typed, question) {
                    Some(ApprovalAnswer::View) => {
                        if std::io::stdout().is_terminal() {
                            pager::show(&mut keyboard, &lines, 0).await?;
                        } else {
                            write!(std::io::stderr(), "\n{} ", text.join("\n"))?;
                        }
                    }
                    None if question.wants.is_some() => {
                        write!(std::io::stderr(), "{}\n> ", asking(question))?;
                    }
                    Some(ApprovalAnswer::Always(scope)) if !question.offers(scope) => {}
                    Some(answer) => {
                        writeln!(std::io::stderr(), "{}", answer.word())?;
                        return Ok(answer);
                    }
                    None => {}
                }
            }
        }
    }
}

impl Approver for TerminalApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            match self.ask(&request.into()).await {
                // Only offered answers come back, so nothing is denied here.
                Ok(answer) => answer.to(request).unwrap_or_else(|| denied(&refusal(None))),
                Err(error) => denied(&format!("the terminal cannot ask: {error}")),
            }
        })
    }
}

/// A line that is typed now, which is shown meanwhile. Its beginning may have been read already.
async fn typed_line(keyboard: &mut Keyboard, begun: Vec<u8>) -> std::io::Result<String> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut read = Some(begun).filter(|begun| !begun.is_empty());
    loop {
        let keys = match read.take() {
            Some(keys) => keys,
            None => keyboard.read_keys().await?,
        };
        for key in keys.iter().copied().filter(|_| keys.first() != Some(&ESCAPE)) {
            match key {
                b'\r' | b'\n' => {
                    writeln!(std::io::stderr())?;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                BACKSPACE | DELETE => {
                    // The bytes of a character behind its first one.
                    while bytes.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
                    let shown = String::from_utf8_lossy(&bytes);
                    write!(std::io::stderr(), "\r\x1b[K> {shown}")?;
                }
                b' '.. => {
                    bytes.push(key);
                    std::io::stderr().write_all(&[key])?;
                }
                _ => {}
            }
        }
    }
}

/// The lines of a question, the last of which asks. Characters that hide or move text are written out.
pub fn lines(question: &Question) -> Vec<StyledLine> {
    let line = StyledLine::new;
    let (about, others) = match question.shown.as_slice() {
        [first, others @ ..] => (Some(first), others),
        [] => (None, question.shown.as_slice()),
    };
    let is_cut = about.is_some_and(|about| !about.is_whole);
    let cut = if is_cut { CUT } else { "" };
    let text = about.map_or("", |about| about.text.as_str());
    let wants = if question.wants.is_some() { "asks" } else { "wants to run" };
    let head = format!("{} {wants}{cut}: {}", escape(&question.tool_name), escape(text));
    let mut lines = vec![line(Style::Bold, head)];
    lines.extend(question.reason.lines().map(|reason| line(Style::Dim, escape(reason))));
    if !question.changes.is_empty() {
        lines.push(line(Style::Warning, CHANGED.to_owned()));
        lines.extend(question.changes.iter().flat_map(fact_lines));
    }
    lines.extend(others.iter().flat_map(fact_lines));
    lines.push(line(Style::Warning, asking(question)));
    lines
}

/// The line that asks: what can be answered, and what each "always" covers.
pub fn asking(question: &Question) -> String {
    if let Some(asking) = question.asking_for_words() {
        return asking;
    }
    let words = |scope: &AlwaysScope| {
        let key = match scope.kind() {
            ScopeKind::Directory => "always in this (d)irectory",
            _ => "(a)lways",
        };
        format!(", {key} for {}", escape(scope.covers()))
    };
    let always: String = question.always.iter().map(words).collect();
    let instead = match question {
        command if command.has_command() => ", !COMMAND in its place",
        plan if plan.is_plan() => ", !STEP; STEP in its place",
        _ => "",
    };
    format!("(v)iew it all, (o)nce{always}{instead}, or (n)o?")
}

/// The lines of a fact: all of it.
fn fact_lines(fact: &ShownFact) -> Vec<StyledLine> {
    let label = escape(&fact.label);
    let cut = if fact.is_whole { "" } else { CUT };
    let head = |text: &str| StyledLine::new(Style::Dim, format!("{label}{cut}:{text}"));
    match (fact.form, fact.text.lines().count()) {
        (FactForm::Text, 0 | 1) => vec![head(&format!(" {}", escape(&fact.text)))],
        (form, _) => {
            let body = fact.text.lines().map(|line| match form {
                FactForm::Diff => StyledLine::new(diff_style(line), shown_code(line)),
                FactForm::Text => {
                    StyledLine::new(Style::Code, format!("{BAR}{}", shown_code(line)))
                }
            });
            [head("")].into_iter().chain(body).collect()
        }
    }
}

/// An answer of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Yes, this time.
    Once,
    /// With the scope of this kind, or with the least one.
    Always(Option<ScopeKind>),
    /// With the reason for the model.
    No(Option<String>),
    /// The words that the question wants.
    Said(String),
    /// The question is closed without an answer.
    Cancel,
    /// Another command runs in its place.
    Instead(String),
    /// Shows the question page by page.
    View,
}

impl ApprovalAnswer {
    /// What it means for a question; `None` if the question does not offer it.
    pub fn to(&self, request: &ApprovalRequest) -> Option<Approval> {
        match self {
            Self::Once => Some(Approval::Once),
            Self::Always(kind) => request.always(*kind),
            Self::No(reason) => Some(denied(&refusal(reason.as_deref()))),
            Self::Said(words) => Some(Approval::Said { words: words.clone() }),
            Self::Cancel => Some(Approval::Cancelled),
            Self::Instead(command) => Some(Approval::Instead { command: command.clone() }),
            Self::View => None,
        }
    }
}

impl ApprovalAnswer {
    /// The answer in one word.
    fn word(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always(_) => "always",
            Self::Said(_) => "answered",
            Self::Cancel => "cancelled",
            Self::Instead(_) => "what you wrote in its place",
            Self::No(_) | Self::View => "no",
        }
    }
}

/// The answer that a key or a line gives to a question, if it is one.
pub fn read_answer(text: &str, question: &Question) -> Option<ApprovalAnswer> {
    match (text.trim().to_ascii_lowercase().as_str(), &question.wants) {
        ("v" | "view", None) | ("/view", Some(_)) => Some(ApprovalAnswer::View),
        _ => question.read(text).map(|answer| match answer {
            WrittenAnswer::Once => ApprovalAnswer::Once,
            WrittenAnswer::Always(kind) => ApprovalAnswer::Always(kind),
            WrittenAnswer::No(reason) => ApprovalAnswer::No(reason),
            WrittenAnswer::Said(words) => ApprovalAnswer::Said(words),
            WrittenAnswer::Cancel => ApprovalAnswer::Cancel,
            WrittenAnswer::Instead(command) => ApprovalAnswer::Instead(command),
        }),
    }
}

/// The answer in one word.
pub fn word(approval: &Approval) -> &'static str {
    match approval {
        Approval::Once => "once",
        Approval::Always(_) => "always",
        Approval::Said { .. } => "answered",
        Approval::Cancelled => "cancelled",
        Approval::Instead { .. } => "what you wrote in its place",
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
    escape(&line.replace('\t', "    "))
}

#[cfg(test)]
mod tests;
