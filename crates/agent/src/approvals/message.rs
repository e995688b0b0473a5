//! A question as a message of a chat.

use myclaw_engine::{AlwaysScope, ScopeKind, ShownFact};

use super::Question;

/// Before each line of a fact, so that none of them looks like a line of the question, also where code has no frame.
const BAR: &str = "\u{2502} ";
/// Before the rest of a long line.
const REST: &str = "\u{2506} ";
/// Longest piece of a line, in characters: channels cut longer lines at a space, which would hide it.
const MOST_LINE_CHARS: usize = 300;

impl Question {
    /// All that the question shows, in Markdown.
    pub fn message(&self) -> String {
        let needs = if self.wants.is_some() { "waits for your words" } else { "needs an approval" };
        let mut text = format!("The call of {} {needs}:\n", code(&self.tool_name));
        text.push_str(
            &self.reason.lines().map(|line| format!("- {}\n", code(line))).collect::<String>(),
        );
        if !self.changes.is_empty() {
            text.push_str("\n**This is different since you were asked:**\n");
            text.extend(self.changes.iter().map(block));
        }
        text.extend(self.shown.iter().map(block));
        text
    }

    /// What each "always" covers, in Markdown.
    pub fn scopes(&self) -> impl Iterator<Item = (ScopeKind, String)> {
        self.always.iter().map(|scope: &AlwaysScope| (scope.kind(), code(scope.covers())))
    }
}

/// A fact with all of its lines.
fn block(fact: &ShownFact) -> String {
    let cut = if fact.is_whole { "" } else { " (not all of it is known)" };
    // Three of these would end the block in some channels.
    let text = fact.text.replace('\t', "    ").replace("```", "``\\u{60}");
    let lines: String = text.lines().map(pieces).collect();
    format!("\n{}{cut}:\n```\n{lines}```\n", code(&fact.label))
}

/// A line in pieces, each a line of its own.
fn pieces(line: &str) -> String {
    let mut lines = BAR.to_owned();
    for (number, character) in line.chars().enumerate() {
        if number > 0 && number % MOST_LINE_CHARS == 0 {
            lines.push('\n');
            lines.push_str(REST);
        }
        lines.push(character);
    }
    lines.push('\n');
    lines
}

/// A text within a line in which nothing is markup.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}
