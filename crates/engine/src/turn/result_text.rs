//! Result texts for calls whose tool gave no result, and the length limit for results.

use myclaw_llm::ContentBlock;

use super::shared::Stop;

/// Result of a call in a message that the output limit cut off.
pub(super) const CUT_CALL: &str = "Not run: the message was cut off by the model's output limit before it was complete. \
                                   Send the call again, with less text in it: write large files in several parts.";

/// Result of a call that had not started when the user sent a message.
pub(super) const SKIPPED: &str = "Not run: the user said something before this call started. Read the user's message \
                                  first; make the call again if it is still wanted.";

/// Result of a call in a closing summary.
pub(super) const CLOSING_CALL: &str =
    "Not run: the run was stopped, and only a summary was asked for.";

/// Result of a call that had not started when the run was stopped.
pub(super) fn stopped_before_start(stop: Stop) -> &'static str {
    match stop {
        Stop::User => "Not run: the user aborted before this call started.",
        Stop::TimeLimit => {
            "Not run: the time limit of the run was reached before this call started."
        }
    }
}

/// Most characters of invalid JSON that are quoted.
const QUOTED_CHARS: usize = 200;

pub(super) fn unknown_tool(name: &str, tools: &[&str]) -> String {
    match tools {
        [] => format!("Unknown tool: {name}. This run has no tools; answer without one."),
        _ => format!("Unknown tool: {name}. The tools are: {}.", tools.join(", ")),
    }
}

pub(super) fn invalid_json(name: &str, raw: &str) -> String {
    let quoted: String = raw.chars().take(QUOTED_CHARS).collect();
    format!(
        "Not run: the arguments of {name} were not a JSON object. They began: {quoted}\nSend the call again with valid JSON."
    )
}

pub(super) fn wrong_arguments(name: &str, problems: &[String]) -> String {
    format!(
        "Not run: the arguments of {name} do not fit.\n- {}\nSend the call again, corrected.",
        problems.join("\n- ")
    )
}

pub(super) fn blocked(hook: &str, reason: &str) -> String {
    format!("Not run: blocked by {hook}: {reason}")
}

/// What stands before the result of a command that the user wrote in the place of the model's.
pub(super) fn instead(command: &str) -> String {
    format!("The user ran another command in place of yours: {command}")
}

/// Result of a call that a rule denies.
pub(super) fn refused(reason: &str) -> String {
    format!("Not run: {reason}")
}

/// Result of the calls of a message beyond the limit.
pub(super) fn too_many_calls(count: usize, most: usize) -> String {
    format!(
        "Not run: one message may make {most} tool calls, and this one made {count}. The first {most} were run; make the \
         others in your next message if they are still needed."
    )
}

/// Result of a call that needs an approval in a run without an approver.
pub(super) fn nobody_to_ask(reason: &str) -> String {
    format!(
        "Not run: this call needs an approval, and this run cannot ask anybody. It needs one because: {reason}"
    )
}

/// Result of a call whose question would be too long.
pub(super) fn too_long_to_show(bytes: usize, most: usize) -> String {
    format!(
        "Not run: this call needs an approval, and its question would show {bytes} bytes; at most {most} are shown. Split \
         it into several calls."
    )
}

/// Result of a call that is different after each answer.
pub(super) const KEEPS_CHANGING: &str = "Not run: what this call depends on changed after each answer of the user. Ask \
                                         the user what changes it, and try again later.";

pub(super) fn denied(reason: &str) -> String {
    match reason.trim() {
        "" => "Not run: the approval for this call was denied.".to_owned(),
        reason => format!("Not run: the approval for this call was denied: {reason}"),
    }
}

pub(super) fn unfit_change(hook: &str, problems: &[String]) -> String {
    let reason =
        format!("it changed the arguments, and they no longer fit.\n- {}", problems.join("\n- "));
    blocked(hook, &reason)
}

pub(super) fn tool_failed(text: &str) -> String {
    format!("Tool execution error: {text}")
}

/// Result of an aborted call. If the tool itself reported the abort, its own text is used.
pub(super) fn aborted(done_so_far: &str, stop: Stop) -> String {
    let note = match stop {
        Stop::User => "Aborted by the user before it finished.",
        Stop::TimeLimit => "Stopped before it finished: the time limit of the run was reached.",
    };
    match done_so_far {
        "" => note.to_owned(),
        said if said.contains("[aborted") => said.to_owned(),
        said => format!("{said}\n\n{note}"),
    }
}

/// The results of one message together may be this many times as long as one of them may be.
const RESULTS_PER_MESSAGE: usize = 8;
/// Characters of each result that stay when the others have taken the room: enough for an error and its reason.
const LEAST_CHARS: usize = 2_000;

/// The characters that the results of one message may still have. A hundred calls with results of full length would be more
/// than the window of any model.
pub(super) struct MessageRoom {
    left: usize,
    most: usize,
    /// Characters of one result, without the note about what was cut.
    of_one: usize,
}

impl MessageRoom {
    /// Room for the results of a message, each of which may have `max_chars` characters.
    pub(super) fn new(max_chars: usize) -> Self {
        let most = max_chars.saturating_mul(RESULTS_PER_MESSAGE);
        Self { left: most, most, of_one: max_chars }
    }

    /// Cuts a result to what is left.
    pub(super) fn take(&mut self, content: &mut Vec<ContentBlock>) {
        // A result of full length already fits, with the note about what was cut.
        let removed = match self.left < self.of_one {
            true => cut(content, self.left.max(LEAST_CHARS)),
            false => 0,
        };
        let length: usize = content.iter().map(length).sum();
        self.left = self.left.saturating_sub(length.min(self.of_one));
        if removed > 0 {
            content.push(ContentBlock::text(format!(
                "[truncated {removed} chars: the results of one message may have {} together. Make fewer calls at once, \
                 and read this one again in a message of its own]",
                self.most
            )));
        }
    }
}

/// Characters of text.
fn length(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.chars().count(),
        _ => 0,
    }
}

/// Cuts the text of `content` to `max_chars` characters in total and adds how many were removed.
pub(crate) fn limit(content: &mut Vec<ContentBlock>, max_chars: usize) {
    let removed = cut(content, max_chars);
    if removed > 0 {
        content.push(ContentBlock::text(format!("[truncated {removed} chars]")));
    }
}

/// Cuts the text of `content` to `max_chars` characters in total, and returns how many were removed.
fn cut(content: &mut Vec<ContentBlock>, max_chars: usize) -> usize {
    let mut left = max_chars;
    let mut removed = 0;
    for block in content.iter_mut() {
        let ContentBlock::Text(text) = block else { continue };
        // The number of bytes is at least the number of characters, so most results need no counting.
        if text.text.len() <= left {
            left -= text.text.len();
            continue;
        }
        match text.text.char_indices().nth(left) {
            Some((at, _)) => {
                removed += text.text[at..].chars().count();
                text.text.truncate(at);
                left = 0;
            }
            None => left -= text.text.chars().count(),
        }
    }
    if removed > 0 {
        content.retain(|block| !matches!(block, ContentBlock::Text(text) if text.text.is_empty()));
    }
    removed
}

#[cfg(test)]
mod tests;
