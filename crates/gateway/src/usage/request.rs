//! Questions about usage, and their answers.

use std::collections::BTreeMap;

use myclaw_delivery::counters::Caller;
use serde::{Deserialize, Serialize};

use super::book::{Page, Row, UsageBook};
use super::bucket::DAY_MS;
use super::{Bucket, OTHER, Used};
use crate::GatewayError;

/// Most names in an answer; the others are counted together.
const MOST_NAMES: usize = 50;

/// What an answer is divided by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// `provider/model`.
    #[default]
    Model,
    /// The agent's id.
    Agent,
    /// Where the message came from that was answered.
    Channel,
    /// The session's key.
    Session,
}

/// A question.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct UsageRequest {
    /// Milliseconds since the Unix epoch; seven days before `to` if it is missing.
    pub from: Option<u64>,
    /// Milliseconds since the Unix epoch, not included; now if it is missing.
    pub to: Option<u64>,
    /// What the answer is divided by.
    pub group: Group,
    /// The length of its parts. Whole ones are counted, also the first and the last.
    pub bucket: Bucket,
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageAnswer {
    /// Beginning of the first part.
    pub from: u64,
    /// End of the time that was asked for.
    pub to: u64,
    /// The length of the parts.
    pub bucket: Bucket,
    /// What the rows are.
    pub group: Group,
    /// The parts in which something was used, the oldest first.
    pub buckets: Vec<UsageBucket>,
    /// The rows of all parts together, the one with the most tokens first.
    pub rows: Vec<UsageRow>,
    /// Everything.
    pub total: Used,
}

/// What was used in an hour or a day.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageBucket {
    /// Its beginning, in milliseconds since the Unix epoch.
    pub start: u64,
    /// Its rows, in the order of the names.
    pub rows: Vec<UsageRow>,
}

/// What one model, agent, channel or session has used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageRow {
    /// Its name.
    pub name: String,
    /// What it has used.
    #[serde(flatten)]
    pub used: Used,
}

impl Group {
    /// The name in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Channel => "channel",
            Self::Session => "session",
        }
    }

    fn name(self, caller: &Caller) -> &str {
        match self {
            Self::Model => &caller.model,
            Self::Agent => &caller.agent,
            Self::Channel => &caller.channel,
            Self::Session => &caller.session,
        }
    }
}

impl UsageRequest {
    /// The beginning of the first part, and the end.
    fn range(self, now: u64) -> Result<(u64, u64), GatewayError> {
        let bucket = self.bucket;
        let to = self.to.unwrap_or(now).min(now);
        let from = self.from.unwrap_or_else(|| to.saturating_sub(7 * DAY_MS));
        if from > to {
            let why = "`from` is after `to`, or in the future; give an earlier time";
            return Err(GatewayError::Unusable(why.to_owned()));
        }
        let from = bucket.start_of(from);
        if to - from > bucket.kept_ms() + bucket.ms() {
            let (name, days) = (bucket.as_str(), bucket.kept_ms() / DAY_MS);
            let why = format!("usage by {name} is kept for {days} days; ask for less");
            return Err(GatewayError::Unusable(why));
        }
        Ok((from, to))
    }
}

impl UsageAnswer {
    /// The answer where nothing was used.
    pub(super) fn empty(request: UsageRequest, now: u64) -> Result<Self, GatewayError> {
        let (from, to) = request.range(now)?;
        Ok(summary(from, to, request.bucket, request.group, &[]))
    }
}

impl UsageBook {
    /// Answers a question.
    ///
    /// # Errors
    /// The time cannot be used, or the store failed.
    pub(crate) async fn answer(
        &self,
        request: UsageRequest,
        now: u64,
    ) -> Result<UsageAnswer, GatewayError> {
        let UsageRequest { group, bucket, .. } = request;
        let (from, to) = request.range(now)?;
        self.flush().await?;
        let mut pages = Vec::new();
        let mut start = from;
        while start < to {
            pages.push((start, self.page(bucket, start).await?));
            start += bucket.ms();
        }
        Ok(summary(from, to, bucket, group, &pages))
    }
}

fn summary(from: u64, to: u64, bucket: Bucket, group: Group, pages: &[(u64, Page)]) -> UsageAnswer {
    let every = pages.iter().flat_map(|(_, page)| &page.rows);
    let mut rows = by_name(every, |row| group.name(&row.caller));
    rows.sort_by_key(|row| std::cmp::Reverse(row.used.tokens()));
    let mut total = Used::default();
    for row in &rows {
        total.add(&row.used);
    }
    let shown: Vec<String> = rows.iter().take(MOST_NAMES).map(|row| row.name.clone()).collect();
    let is_shown = |name: &str| shown.iter().any(|one| one == name);
    let name_of = |row: &Row| {
        let name = group.name(&row.caller).to_owned();
        if is_shown(&name) { name } else { OTHER.to_owned() }
    };
    if let Some(rest) = rows.get(MOST_NAMES..) {
        let mut others = Used::default();
        rest.iter().for_each(|row| others.add(&row.used));
        rows.truncate(MOST_NAMES);
        match rows.iter_mut().find(|row| row.name == OTHER) {
            Some(row) => row.used.add(&others),
            None if others.calls > 0 => {
                rows.push(UsageRow { name: OTHER.to_owned(), used: others })
            }
            None => {}
        }
    }
    let of_page = |(start, page): &(u64, Page)| {
        let rows = by_name(page.rows.iter(), name_of);
        (!rows.is_empty()).then_some(UsageBucket { start: *start, rows })
    };
    let buckets = pages.iter().filter_map(of_page).collect();
    UsageAnswer { from, to, bucket, group, buckets, rows, total }
}

/// The sums of the rows with the same name, in the order of the names.
fn by_name<'a, N: Into<String>>(
    rows: impl Iterator<Item = &'a Row>,
    name: impl Fn(&'a Row) -> N,
) -> Vec<UsageRow> {
    let mut sums: BTreeMap<String, Used> = BTreeMap::new();
    for row in rows {
        sums.entry(name(row).into()).or_default().add(&row.used);
    }
    sums.into_iter().map(|(name, used)| UsageRow { name, used }).collect()
}
