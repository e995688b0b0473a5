//! Writes of a process that is killed, and what must be in the store afterwards.
//!
//! The process calls [`write_until_killed`] and reports each acknowledged step; another one kills it at any moment and
//! passes what was reported to [`verify`]. Several chains of steps run at the same time, so that their writes share
//! transactions. Each step is one batch that inserts, replaces and removes; every third one is made under a claim.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;

use super::{done, found, insert, keys, replace, text};
use crate::{Batch, ClaimRequest, Place, QueueId, RecordId, Store, Version, Write};

/// Chains of steps that run at the same time.
pub const CHAINS: usize = 4;
/// Records that each chain keeps.
const KEPT: u64 = 5;

/// Continues from what the store holds, until the process is killed. `acknowledge` gets the chain and the step, once the
/// step is stored.
pub async fn write_until_killed(
    store: Arc<dyn Store>,
    acknowledge: impl Fn(usize, u64) + Clone + Send + 'static,
) {
    let chains = (0..CHAINS).map(|chain| {
        let (store, acknowledge) = (Arc::clone(&store), acknowledge.clone());
        tokio::spawn(async move {
            for step in last_step(&*store, chain).await + 1.. {
                take_step(&*store, chain, step).await;
                acknowledge(chain, step);
            }
        })
    });
    // None ends by itself, so the first that does has found a mistake.
    let (ended, _, _) = select_all(chains).await;
    ended.expect("a chain that works");
}

/// Checks the store after a kill. `acknowledged` is the last step of each chain that was reported, 0 if there was none.
/// Returns the last step that is stored.
pub async fn verify(store: &dyn Store, acknowledged: [u64; CHAINS]) -> [u64; CHAINS] {
    let mut stored = [0; CHAINS];
    for (chain, acknowledged) in acknowledged.into_iter().enumerate() {
        let last = last_step(store, chain).await;
        assert!(
            last == acknowledged || last == acknowledged + 1,
            "chain {chain}: step {acknowledged} was acknowledged, and {last} is stored"
        );
        let wanted: Vec<String> =
            (last.saturating_sub(KEPT) + 1..=last).map(|step| key(chain, step)).collect();
        assert_eq!(keys(store, &queue(chain)).await, wanted, "half a step is stored");
        stored[chain] = last;
    }
    stored
}

async fn take_step(store: &dyn Store, chain: usize, step: u64) {
    let id = RecordId::new("step", key(chain, step));
    let mut batch: Batch = vec![insert(&id, "", Some(Place::new(queue(chain), step)))].into();
    let place = Some(Place::new(format!("chains-{chain}"), 0));
    let value = step.to_string();
    let chain_id = RecordId::new("chain", chain.to_string());
    match store.get(chain_id.clone()).await.expect("a store that works") {
        None => batch.writes.push(insert(&chain_id, &value, place)),
        Some(record) => {
            batch.writes.push(replace(&chain_id, record.version, &value, place));
            if step.is_multiple_of(3) {
                // The lease of a killed process has ended at once.
                let request = ClaimRequest {
                    queue: QueueId::new(format!("chains-{chain}")),
                    up_to: 0,
                    owner: "chain".to_owned(),
                    lease: Duration::ZERO,
                    most: 1,
                };
                let claims = store.claim(request).await.expect("a store that works");
                batch.under.extend(claims.into_iter().map(|(_, claim)| claim));
            }
        }
    }
    if let Some(old) = step.checked_sub(KEPT).filter(|old| *old > 0) {
        let id = RecordId::new("step", key(chain, old));
        let expected: Version = found(store, &id).await.version;
        batch.writes.push(Write::Remove { id, expected });
    }
    done(store.commit(batch).await);
}

async fn last_step(store: &dyn Store, chain: usize) -> u64 {
    let record = store.get(RecordId::new("chain", chain.to_string())).await;
    let record = record.expect("a store that works");
    record.map_or(0, |record| text(&record).parse().expect("a number"))
}

fn queue(chain: usize) -> String {
    format!("steps-{chain}")
}

fn key(chain: usize, step: u64) -> String {
    format!("{chain}-{step}")
}
