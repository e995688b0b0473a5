//! The command `get_session_stats`: figures about a session, from all of its log.

use myclaw_agent::Session;
use myclaw_agent::export::tool_calls;
use myclaw_llm::Usage;
use myclaw_session::{Entry, ReadSession, Role};
use serde_json::{Value, json};

use myclaw_front::exit::CliError;
use myclaw_front::sessions::Sessions;

/// The sums.
#[derive(Debug, Default)]
struct Sums {
    user: u64,
    assistant: u64,
    tool_results: u64,
    tool_calls: u64,
    summaries: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    /// Dollars.
    cost: f64,
    first: Option<u64>,
    last: Option<u64>,
    damaged: u64,
}

/// The figures of a session; those of one that is not on disk yet are zero.
///
/// # Errors
/// The log cannot be read.
pub(super) async fn of(session: &Session, sessions: &Sessions) -> Result<Value, CliError> {
    let (sessions, key) = (sessions.clone(), session.key().clone());
    let reading = tokio::task::spawn_blocking(move || {
        let reader = sessions.catalog.read(&key)?;
        let about = reader.as_ref().map(|reader| reader.about()).transpose()?.unwrap_or_default();
        let sums = reader.as_deref().map(count).unwrap_or_default();
        let Sums { input, output, cache_read, cache_write, .. } = sums;
        Ok::<Value, CliError>(json!({
            "session": key.as_str(),
            "title": about.title,
            "labels": about.labels,
            "messages": {
                "user": sums.user, "assistant": sums.assistant, "toolResults": sums.tool_results,
                "toolCalls": sums.tool_calls, "summaries": sums.summaries,
            },
            "tokens": {
                "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
                "total": input + output + cache_read + cache_write,
            },
            "cost": sums.cost,
            "firstAt": sums.first,
            "lastAt": sums.last,
            "damagedLines": sums.damaged,
            "path": reader.as_ref().map(|reader| reader.describe()),
        }))
    });
    reading.await.map_err(|error| CliError::failure(format!("internal error: {error}")))?
}

fn count(reader: &dyn ReadSession) -> Sums {
    let mut sums = Sums::default();
    for entry in reader.entries() {
        let row = match entry {
            Ok(Entry::Message(row)) => row,
            Ok(Entry::Compaction(_)) => {
                sums.summaries += 1;
                continue;
            }
            Ok(_) => continue,
            Err(_) => {
                sums.damaged += 1;
                continue;
            }
        };
        sums.first = sums.first.or(Some(row.ts));
        sums.last = Some(row.ts);
        match row.role {
            Role::User => sums.user += 1,
            Role::Assistant => sums.assistant += 1,
            Role::Tool => sums.tool_results += 1,
            Role::System => {}
        }
        sums.tool_calls += tool_calls(&row).len() as u64;
        let usage: Option<Usage> = row.meta.as_ref().and_then(|meta| meta.field("usage"));
        let Some(usage) = usage else { continue };
        sums.input += usage.input;
        sums.output += usage.output;
        sums.cache_read += usage.cache_read;
        sums.cache_write += usage.cache_write;
        sums.cost += usage.cost.total;
    }
    sums
}
