//! The order in which calls that wait at the same time are carried out.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use myclaw_store::{Batch, ClaimRequest, Commit, Place, QueueId, RecordId, Write};

use crate::server::{block_on, database, open, server};

const CLAIMS: usize = 200;

/// A gateway takes everything at once that a dead one had.
#[test]
fn many_claims_keep_no_write_waiting() {
    let Some(server) = server() else { return };
    block_on(async {
        let store = open(&database(server).await).await;
        let records: Vec<Write> = (0..CLAIMS)
            .map(|number| Write::Insert {
                id: RecordId::new("desk", format!("{number}")),
                value: Vec::new(),
                place: Some(Place::new(format!("q{number}"), 0)),
            })
            .collect();
        let _ = store.commit(Batch::from(records)).await.unwrap();
        let request = |number: usize| ClaimRequest {
            queue: QueueId::new(format!("q{number}")),
            up_to: Place::LAST,
            owner: "one".to_owned(),
            lease: Duration::from_secs(60),
            most: 1,
        };
        let mut claims: Vec<_> =
            (0..CLAIMS).map(|number| Box::pin(store.claim(request(number)))).collect();
        for claim in &mut claims {
            let begun = poll_fn(|context| Poll::Ready(claim.as_mut().poll(context))).await;
            assert!(begun.is_pending());
        }
        let message =
            Write::Insert { id: RecordId::new("message", "m"), value: Vec::new(), place: None };
        let version = match store.commit(Batch::of(message)).await.unwrap() {
            Commit::Done(version) => version.0,
            Commit::Refused(_) => 0,
        };
        let mut before = 0;
        for claim in claims {
            let (_, claim) = claim.await.unwrap().pop().unwrap();
            // Versions and epochs come from one counter.
            before += usize::from(claim.epoch < version);
        }
        assert!(version > 0 && before < CLAIMS / 2, "{before} claims came first");
    });
}
