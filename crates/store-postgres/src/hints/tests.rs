use std::collections::HashSet;

use myclaw_store::{Partition, QueueId};

use super::{MOST_BYTES, payloads, queues};

#[test]
fn hints_hold_all_names_within_the_limit_of_the_database() {
    let queue = |name: String| QueueId { partition: Partition::new("a \"b\"\n"), name };
    let mut all: Vec<QueueId> = (0..900).map(|number| queue(format!("queue\n{number}"))).collect();
    all.push(queue("q".repeat(1_024)));
    let payloads = payloads(&all);
    assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() <= MOST_BYTES));
    let read: Vec<QueueId> = payloads.iter().flat_map(|payload| queues(payload)).collect();
    assert_eq!(read.len(), all.len());
    assert_eq!(HashSet::<QueueId>::from_iter(read), HashSet::from_iter(all));
    // What others send on the channel is no queue.
    assert_eq!(queues("words\n[1, 2]\n"), []);
}
