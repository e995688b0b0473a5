//! What is planned, and what it may cost: for the owner, when the gateway starts.

use std::sync::Arc;

use myclaw_config::Config;
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::schedule::{Book, Outlook};

use crate::GatewayError;
use crate::usage::{Bucket, Group, UsageBook, UsageRequest, Used};

/// Where the messages come from that the clock begins, as usage names it.
const CHANNELS: [&str; 2] = ["schedule", "heartbeat"];

/// The lines.
pub(crate) async fn planned(
    book: &Book,
    usage: &UsageBook,
    config: &Arc<Config>,
) -> Result<Vec<String>, GatewayError> {
    let Outlook { mut lines, most } = Outlook::of(book, Arc::clone(config)).await?;
    if let Some(most) = most {
        lines.extend([cost_of_a_day(usage).await?, most]);
    }
    Ok(lines)
}

/// What planned work has cost on a day of the last week: the future is not known better.
async fn cost_of_a_day(usage: &UsageBook) -> Result<String, GatewayError> {
    let request =
        UsageRequest { group: Group::Channel, bucket: Bucket::Day, ..UsageRequest::default() };
    let answer = usage.answer(request, now_ms()).await?;
    let (mut total, mut days) = (Used::default(), 0_u32);
    for bucket in &answer.buckets {
        let mut rows = bucket.rows.iter().filter(|row| CHANNELS.contains(&row.name.as_str()));
        let before = total.calls;
        rows.by_ref().for_each(|row| total.add(&row.used));
        days += u32::from(total.calls > before);
    }
    let unknown = "what planned work costs a day is not known:";
    Ok(match total.unpriced_calls {
        _ if days == 0 => format!("{unknown} none has called a model in the last week"),
        unpriced if unpriced == total.calls => format!("{unknown} its models have no known price"),
        unpriced => {
            let average = total.cost / f64::from(days);
            let except = match unpriced {
                0 => String::new(),
                calls => format!(", without {calls} calls whose price is not known"),
            };
            format!(
                "planned work cost ${average:.4} a day last week{except}; `myclaw usage --by channel` shows it"
            )
        }
    })
}
