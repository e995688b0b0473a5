//! What the planner says about itself.

use super::forms::FORMS;

/// How to get a language model instead.
const HOW_TO_CONNECT: &str = "To talk to a language model, set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, \
    start a local server such as Ollama, or run `myclaw init` and edit the settings file.";

/// The answer to whatever is not understood, and to a request for help.
pub(super) fn what_i_can_do() -> String {
    let lines: Vec<String> =
        FORMS.iter().map(|form| format!("- {}: {}", form.does, quoted(form.example))).collect();
    format!(
        "I am MyClaw's built-in demo planner, not a language model, and I understand only a handful of requests. \
         I can:\n\n{}\n\nJoin several with `then`. {HOW_TO_CONNECT}",
        lines.join("\n")
    )
}

/// The answer to "who are you?".
pub(super) fn who_i_am() -> String {
    format!(
        "I am `builtin/demo`, the demo planner built into MyClaw. I am not a language model: I recognise a handful of \
         requests and carry them out with the real tools. Ask for `help` to see them. {HOW_TO_CONNECT}"
    )
}

/// The answer to a command that is not in quotes.
pub(super) fn put_in_quotes(command: &str) -> String {
    let command = command.lines().next().unwrap_or_default();
    format!(
        "I run a command only if it is in quotes, so that it is clear where it ends: run \"{command}\""
    )
}

/// As code in Markdown; the examples hold no backticks (a test says so).
fn quoted(example: &str) -> String {
    format!("`{example}`")
}
