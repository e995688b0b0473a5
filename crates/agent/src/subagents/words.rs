//! What a sub-agent and its parent read about each other, here and in the gateway.

use myclaw_llm::outside::{plain_name, quote};
use serde::{Deserialize, Serialize};

/// Most characters of a label.
const MOST_LABEL_CHARS: usize = 80;
/// Most characters of a result that its parent is shown. The rest is in the session.
const MOST_RESULT_CHARS: usize = 20_000;

/// How a sub-agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// With an answer.
    Completed,
    /// A run failed.
    Failed,
    /// Somebody stopped it.
    Stopped,
    /// Its time was over.
    TimedOut,
}

/// A sub-agent, as it is spoken of.
pub struct Named<'a> {
    /// Its label, or its id.
    pub name: &'a str,
    /// The key of its session.
    pub session: &'a str,
}

/// The first message of a sub-agent.
pub fn task_text(child: &Named<'_>, parent: &str, task: &str) -> String {
    format!(
        "[Task \"{}\" from the session {parent}. Your answer to this message is the result; that session gets it, and nobody \
         can answer questions meanwhile.]\n{task}",
        child.name
    )
}

/// What the parent reads in a message of its own.
pub fn result_text(child: &Named<'_>, how: Ending, seconds: u64, said: &str) -> String {
    let lead = match how {
        Ending::Completed => "Its answer, quoted:",
        Ending::Failed => "The failure, quoted:",
        Ending::Stopped | Ending::TimedOut => "The report, quoted:",
    };
    let (shown, note) = shortened(said);
    // So that none of its lines can pose as one of this program.
    format!("[{} {lead}]\n{}{note}", ended(child, how, seconds), quote(&shown, "> "))
}

/// What the parent reads as the result of the call that started the sub-agent.
pub(super) fn call_result(child: &Named<'_>, how: Ending, seconds: u64, said: &str) -> String {
    let (shown, note) = shortened(said);
    format!("{}\n\n{shown}{note}", ended(child, how, seconds))
}

fn ended(child: &Named<'_>, how: Ending, seconds: u64) -> String {
    let what = match how {
        Ending::Completed => "has completed its task",
        Ending::Failed => "has failed",
        Ending::Stopped => "was stopped",
        Ending::TimedOut => "was stopped, because its time was over",
    };
    let Named { name, session } = child;
    format!("The sub-agent \"{name}\" {what}, after {seconds} s. Its session is {session}.")
}

fn shortened(said: &str) -> (String, &'static str) {
    let shown: String = said.chars().take(MOST_RESULT_CHARS).collect();
    let note = match shown.len() < said.len() {
        true => "\n[cut here; its session has the rest]",
        false => "",
    };
    (shown, note)
}

/// The label of a sub-agent, if there is anything in it.
pub fn label_of(label: &str) -> Option<String> {
    Some(plain_name(label, MOST_LABEL_CHARS)).filter(|label| !label.is_empty())
}
