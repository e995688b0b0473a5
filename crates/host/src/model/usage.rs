//! What a group has used: tokens and cost by day.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use myclaw_files::{Durability, NewFile, parent_of, read_regular};
use myclaw_llm::{Price, Usage};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Days that are kept.
const MAX_DAYS: usize = 400;
/// Most bytes of the file.
const MAX_BYTES: u64 = 1024 * 1024;
/// Bytes of the end of an answer that are searched for its counters.
const TAIL: usize = 16 * 1024;
/// Bytes for which a token is counted where a server counts none.
const BYTES_PER_TOKEN: u64 = 4;

/// The calls of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DayUsage {
    /// Calls that the server took.
    pub calls: u64,
    /// Those of which the server did not say what they used, or whose answers broke off. Their tokens are estimated from
    /// the bytes.
    pub estimated: u64,
    /// Input tokens, those from a cache included.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// US dollars, as far as prices are known.
    pub cost: f64,
    /// Calls whose price is not known.
    pub unpriced: u64,
}

/// What a group has used, by the day in UTC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupUsage(pub BTreeMap<String, DayUsage>);

impl GroupUsage {
    /// Reads what is stored; nothing if there is no file, or none that can be read.
    pub fn load(file: &Path) -> Self {
        let bytes = read_regular(file, MAX_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// What was used today.
    pub fn today(&self) -> DayUsage {
        self.0.get(&today()).copied().unwrap_or_default()
    }

    /// What was used in all days that are kept.
    pub fn total(&self) -> DayUsage {
        self.0.values().fold(DayUsage::default(), |sum, day| DayUsage {
            calls: sum.calls + day.calls,
            estimated: sum.estimated + day.estimated,
            input: sum.input + day.input,
            output: sum.output + day.output,
            cost: sum.cost + day.cost,
            unpriced: sum.unpriced + day.unpriced,
        })
    }
}

/// The usage of one group in memory and in its file.
#[derive(Clone)]
pub(super) struct UsageBook {
    file: Arc<PathBuf>,
    usage: Arc<Mutex<GroupUsage>>,
}

impl UsageBook {
    pub(super) fn open(file: PathBuf) -> Self {
        let usage = Arc::new(Mutex::new(GroupUsage::load(&file)));
        Self { file: Arc::new(file), usage }
    }

    pub(super) fn tokens_today(&self) -> u64 {
        let today = self.usage.lock().today();
        today.input.saturating_add(today.output)
    }

    /// A call with a body of this size begins.
    pub(super) fn begin(&self, price: Option<Price>, request_bytes: usize) -> Meter {
        Meter {
            book: self.clone(),
            price,
            sent: bytes(request_bytes),
            received: 0,
            tail: Vec::new(),
            is_counted: true,
        }
    }

    fn add(&self, call: &DayUsage) {
        let mut usage = self.usage.lock();
        let day = usage.0.entry(today()).or_default();
        day.calls += call.calls;
        day.estimated += call.estimated;
        day.input = day.input.saturating_add(call.input);
        day.output = day.output.saturating_add(call.output);
        day.cost += call.cost;
        day.unpriced += call.unpriced;
        while usage.0.len() > MAX_DAYS {
            usage.0.pop_first();
        }
        // Under the lock, so that the newest state stays. A full disk must not keep calls from being made.
        drop(write(&self.file, &usage));
    }
}

/// Counts one call. It is in the book when this is dropped: at the end of the answer, or where it broke off.
pub(super) struct Meter {
    book: UsageBook,
    price: Option<Price>,
    sent: u64,
    received: u64,
    /// The end of what has come.
    tail: Vec<u8>,
    /// Whether the server took the call, or may have taken it.
    is_counted: bool,
}

/// The counters of an answer. Some servers say the cost.
#[derive(Debug, Deserialize)]
struct Counters {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
    #[serde(default)]
    cost: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Meter {
    /// A part of the answer has come.
    pub(super) fn saw(&mut self, chunk: &[u8]) {
        self.received += bytes(chunk.len());
        self.tail.extend_from_slice(chunk);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// The server did not take the call, which then costs nothing.
    pub(super) fn was_refused(&mut self) {
        self.is_counted = false;
    }

    fn used(&self) -> DayUsage {
        let Some(counters) = counters(&self.tail) else {
            return DayUsage {
                calls: 1,
                estimated: 1,
                input: self.sent / BYTES_PER_TOKEN,
                output: self.received / BYTES_PER_TOKEN,
                cost: 0.0,
                unpriced: 1,
            };
        };
        let details = counters.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.unwrap_or(0).min(counters.prompt_tokens);
        let usage = Usage {
            input: counters.prompt_tokens - cached,
            output: counters.completion_tokens,
            cache_read: cached,
            ..Usage::default()
        };
        let cost = usage.priced(self.price).cost;
        DayUsage {
            calls: 1,
            estimated: 0,
            input: counters.prompt_tokens,
            output: counters.completion_tokens,
            cost: counters.cost.filter(|cost| cost.is_finite()).unwrap_or(cost.total),
            unpriced: if counters.cost.is_some() { 0 } else { cost.unpriced_calls },
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_counted {
            self.book.add(&self.used());
        }
    }
}

/// The last counters of an answer, streamed or whole. Quotes within texts are escaped, so no text looks like them.
fn counters(answer: &[u8]) -> Option<Counters> {
    const NAME: &[u8] = b"\"usage\":";
    let places: Vec<usize> = memmem::find_iter(answer, NAME).collect();
    places.into_iter().rev().find_map(|at| {
        let rest = answer.get(at + NAME.len()..)?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Counters>();
        values.next()?.ok()
    })
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

fn write(file: &Path, usage: &GroupUsage) -> std::io::Result<()> {
    let mut new = NewFile::in_directory(&parent_of(file), "usage")?;
    new.write_all(&serde_json::to_vec_pretty(usage)?)?;
    new.put_at(file, Durability::Unsynced).map(drop)
}

#[cfg(test)]
mod tests {
    use super::counters;

    #[test]
    fn the_last_counters_count_and_texts_do_not() {
        let streamed = concat!(
            "data: {\"usage\":null,\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":1}\"}}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,",
            "\"prompt_tokens_details\":{\"cached_tokens\":5},\"cost\":0.25}}\n\ndata: [DONE]\n\n",
        );
        let found = counters(streamed.as_bytes()).map(|found| {
            let cached = found.prompt_tokens_details.and_then(|details| details.cached_tokens);
            (found.prompt_tokens, found.completion_tokens, cached, found.cost)
        });
        assert_eq!(found, Some((12, 3, Some(5), Some(0.25))));
        assert!(counters(b"data: [DONE]").is_none());
        assert!(counters(b"\"usage\":{\"prompt_tokens\":").is_none());
    }
}
