//! Replaces a summary: when the engine compacts a session it asks the model to summarise it, and a planner can only
//! quote. The extract is always shorter than the text it replaces, and says that it is an extract.

/// The marks around the messages in the engine's request for a summary.
const OPENING: &str = "<conversation>";
const CLOSING: &str = "</conversation>";

/// Most lines quoted from the beginning, which usually says what is wanted.
const FIRST_LINES: usize = 4;

/// Most lines quoted from the end, which usually holds the present state.
const LAST_LINES: usize = 8;

/// Longest quoted line, in characters.
const MAX_LINE_CHARS: usize = 160;

/// The messages in a request for a summary; `None` if `text` is no such request.
pub(super) fn conversation_in(text: &str) -> Option<&str> {
    let (_, behind) = text.split_once(OPENING)?;
    Some(behind.rsplit_once(CLOSING).map_or(behind, |(conversation, _)| conversation))
}

/// The first and last lines of the messages, at most half of them.
pub(super) fn extract_of(conversation: &str) -> String {
    let lines: Vec<&str> =
        conversation.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let heading = format!(
        "Extract by the built-in demo planner ({} lines shortened, not a summary):",
        lines.len()
    );
    let head = lines.len().min(FIRST_LINES);
    let tail = lines.len().saturating_sub(LAST_LINES).max(head);
    let left_out = tail - head;
    let mut quoted: Vec<String> = lines[..head].iter().map(|line| bullet(line)).collect();
    if left_out > 0 {
        quoted.push(format!("- … {left_out} lines left out …"));
    }
    quoted.extend(lines[tail..].iter().map(|line| bullet(line)));
    // Of few messages the extract could be longer than the text: keep what fits into half of it, the end first.
    let mut budget = conversation.len() / 2;
    let kept = quoted.iter().rev().take_while(|line| {
        let fits = line.len() < budget;
        budget = budget.saturating_sub(line.len() + 1);
        fits
    });
    quoted.drain(..quoted.len() - kept.count());
    std::iter::once(heading).chain(quoted).collect::<Vec<_>>().join("\n")
}

fn bullet(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("- {}…", &line[..end]),
        None => format!("- {line}"),
    }
}

#[cfg(test)]
mod tests;
