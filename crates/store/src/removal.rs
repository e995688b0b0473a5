//! Removing records while others change them.

use crate::races::{MOST_RACES, stand_back};
use crate::{Batch, Commit, QueueId, Record, RecordId, Store, StoreError, Write};

/// Records that are removed at once.
const AT_ONCE: usize = 200;

/// Removes a record, in whichever version. Nothing happens if it is not there.
pub(crate) async fn delete(store: &dyn Store, id: RecordId) -> Result<(), StoreError> {
    for races in 0..MOST_RACES {
        let Some(record) = store.get(id.clone()).await? else { return Ok(()) };
        let write = Write::Remove { id: record.id, expected: record.version };
        if let Commit::Done(_) = store.commit(Batch::of(write)).await? {
            return Ok(());
        }
        stand_back(races).await;
    }
    Err(StoreError::Contended(id.to_string()))
}

/// Removes what stands before `until` in a queue. What others change or remove meanwhile is left to them.
///
/// # Errors
/// The store fails.
pub async fn sweep(store: &dyn Store, queue: &str, until: u64) -> Result<(), StoreError> {
    let mut races = 0_u32;
    loop {
        let records = store.scan(QueueId::new(queue), None, AT_ONCE).await?;
        let is_old =
            |record: &Record| record.place.as_ref().is_some_and(|place| place.order < until);
        let writes: Vec<Write> = records
            .into_iter()
            .take_while(is_old)
            .map(|record| Write::Remove { id: record.id, expected: record.version })
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        if let Commit::Refused(_) = store.commit(writes.into()).await? {
            races += 1;
            if races >= MOST_RACES {
                return Err(StoreError::Contended(queue.to_owned()));
            }
            stand_back(races).await;
        }
    }
}
