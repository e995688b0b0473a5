//! The messages of one prompt.

use crate::host::Shared;
use crate::job::{Said, prompt};
use crate::ledger::Stored;
use crate::rows::{AcceptedMessage, MessageState};
use crate::speech::is_heard;
use crate::{Group, HostError};

/// Most messages of one prompt, and most bytes of their texts. Others wait for the next query.
const MAX_BATCH: usize = 100;
const MAX_PROMPT: usize = 256 * 1024;
/// Most overheard messages of one prompt: the newest, with at most as many bytes.
const MAX_OVERHEARD: usize = 50;

/// The messages that wait and are not among `known`, with what was overheard before; empty if none waits.
pub(super) async fn gather(
    shared: &Shared,
    group: &Group,
    known: &[String],
) -> Result<Vec<Stored<AcceptedMessage>>, HostError> {
    let is_new = |message: &Stored<AcceptedMessage>| !known.contains(&message.id);
    let open = shared.ledger.open_messages(&group.folder, MAX_BATCH + known.len()).await?;
    // What comes after a recording waits with it, because its order tells what it means.
    let open = open.into_iter().take_while(|message| is_heard(shared, &message.row));
    let mut open: Vec<_> = open.filter(is_new).take(MAX_BATCH).collect();
    let mut bytes = 0;
    let mut fitting = 0;
    for message in &open {
        bytes += message.row.text.len();
        if bytes > MAX_PROMPT && fitting > 0 {
            break;
        }
        fitting += 1;
    }
    open.truncate(fitting);
    let Some(last) = open.last().map(|message| message.order()) else { return Ok(open) };
    let overheard = shared.ledger.overheard(&group.folder, usize::MAX).await?;
    let mut overheard: Vec<_> =
        overheard.into_iter().filter(|message| is_new(message) && message.order() < last).collect();
    let mut bytes = 0;
    let fitting = overheard.iter().rev().take(MAX_OVERHEARD).take_while(|message| {
        bytes += message.row.text.len();
        bytes <= MAX_PROMPT
    });
    let surplus = overheard.len() - fitting.count();
    open.extend(overheard.drain(surplus..));
    open.sort_by_key(|message| message.order());
    Ok(open)
}

pub(super) fn keys(batch: &[Stored<AcceptedMessage>]) -> Vec<String> {
    batch.iter().map(|message| message.id.clone()).collect()
}

/// Whether somebody has spoken to the agent, so that the answer is spoken too.
pub(super) fn is_spoken(batch: &[Stored<AcceptedMessage>]) -> bool {
    batch.iter().any(|message| message.row.is_spoken && message.row.state == MessageState::Open)
}

pub(super) fn prompt_of(batch: &[Stored<AcceptedMessage>]) -> String {
    prompt(batch.iter().map(|Stored { row, .. }| Said {
        sender: &row.sender,
        at_ms: row.at_ms,
        text: &row.text,
    }))
}
