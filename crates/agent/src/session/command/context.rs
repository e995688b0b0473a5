//! What fills the context window, by part.

use std::collections::HashMap;

use myclaw_llm::Usage;
use myclaw_session::{Catalog, Role, SessionKey, TailLimit, TranscriptMessage};
use serde::Deserialize;

use super::CommandAnswer;
use crate::export::tool_calls;
use crate::session::Session;
use crate::{AgentError, RunAdditions};

/// Bytes of text in one token, as the engine estimates it.
const BYTES_PER_TOKEN: usize = 4;

/// The parts with their sizes. What the provider counted last is exact; the parts are estimates.
///
/// # Errors
/// The session cannot be read, or no model can be used.
pub(super) async fn describe(
    session: &Session,
    used: Option<u64>,
) -> Result<CommandAnswer, AgentError> {
    let selection = session.selection().await?;
    let config = session.config();
    let params = config.run_params(&selection, RunAdditions::default()).await?;
    let tools: usize = params
        .tools
        .iter()
        .map(|tool| serde_json::to_string(tool.schema()).map_or(0, |schema| schema.len()))
        .sum();
    let skills: usize =
        params.skills.iter().map(|skill| skill.name.len() + skill.description.len()).sum();
    let (mut summary, mut rows, mut reductions) = (0, Vec::new(), HashMap::new());
    let used = used.unwrap_or_else(|| {
        last_usage(&**config.home.catalog(), session.key()).map_or(0, |usage| window_tokens(&usage))
    });
    if let Some(reader) = config.home.catalog().read(session.key())? {
        let tail = reader.tail(TailLimit::UNLIMITED)?;
        summary = tail.compaction.map_or(0, |compaction| compaction.summary.len());
        (rows, reductions) = (tail.messages, tail.reductions);
    }
    // Of some messages only a part is sent.
    let sent = |row: &TranscriptMessage| {
        let most = reductions.get(&row.id).map(|part| part.head + part.tail);
        bytes_of(row).min(most.unwrap_or(usize::MAX))
    };
    let size_of =
        |role: Role| -> usize { rows.iter().filter(|row| row.role == role).map(sent).sum() };
    let window = selection.model().context_window;
    let mut parts = vec![
        ("tools", tools),
        ("skills", skills),
        ("summary of older messages", summary),
        ("your messages", size_of(Role::User)),
        ("answers and tool calls", size_of(Role::Assistant)),
        ("tool results", size_of(Role::Tool)),
    ];
    let known: usize = parts.iter().map(|(_, bytes)| bytes / BYTES_PER_TOKEN).sum();
    let used_tokens = usize::try_from(used).unwrap_or(usize::MAX);
    if used_tokens > 0 && known > used_tokens {
        // What the provider counted is all that was sent, so the estimates are too high.
        for (_, bytes) in &mut parts {
            *bytes = (*bytes as f64 * used_tokens as f64 / known as f64) as usize;
        }
    } else if let Some(rest) = used_tokens.checked_sub(known) {
        parts.insert(0, ("instructions and the rest", rest * BYTES_PER_TOKEN));
    }
    let mut table: Vec<Vec<String>> = parts
        .iter()
        .map(|(name, bytes)| {
            let tokens = (bytes / BYTES_PER_TOKEN) as u64;
            let share = match window {
                0 => String::new(),
                window => format!("{:.1}%", tokens as f64 * 100.0 / window as f64),
            };
            vec![(*name).to_owned(), format!("about {tokens}"), share]
        })
        .collect();
    let total = match (used, window) {
        (0, _) => vec!["counted by the provider".to_owned(), "no call yet".to_owned()],
        (used, 0) => vec!["counted by the provider".to_owned(), used.to_string()],
        (used, window) => vec![
            "counted by the provider".to_owned(),
            format!("{used} of {}k", window / 1_000),
            format!("{:.1}%", used as f64 * 100.0 / window as f64),
        ],
    };
    table.push(total);
    Ok(CommandAnswer { rows: table, ..CommandAnswer::default() })
}

/// The tokens of a model's context window that a call and its answer take.
pub fn window_tokens(usage: &Usage) -> u64 {
    usage.input + usage.cache_read + usage.cache_write + usage.output
}

/// The usage of the newest answer in the log, of which only the last turn is read. What cannot be read counts as none.
pub fn last_usage(catalog: &dyn Catalog, key: &SessionKey) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Kept {
        usage: Usage,
    }
    let reader = catalog.read(key).ok()??;
    let last = TailLimit { max_cost: 1, cost: |_, _| 1, ..TailLimit::UNLIMITED };
    let rows = reader.tail(last).ok()?.messages;
    let answers = rows.iter().rev().filter(|row| row.role == Role::Assistant);
    let used = answers.filter_map(|row| Some(row.meta.as_ref()?.read::<Kept>()?.usage));
    used.into_iter().find(|usage| window_tokens(usage) > 0)
}

/// Bytes of a row, with its tool calls.
fn bytes_of(row: &TranscriptMessage) -> usize {
    let calls: usize =
        tool_calls(row).iter().map(|(name, arguments)| name.len() + arguments.len()).sum();
    row.content.len() + calls
}
