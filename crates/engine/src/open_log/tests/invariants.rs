//! Property tests: the request built from any log is one that a provider accepts.

use std::collections::HashSet;

use myclaw_llm::{ContentBlock, Message, PairedMessages, StopReason};
use myclaw_session::{
    CompactionEntry, Entry, EntryId, LockWait, Reduction, ReductionEntry, SwitchedOff,
};
use proptest::prelude::*;

use super::{Fixture, assistant, result, user};
use crate::open_log::OpenLog;
use crate::transcript::message_to_row;

/// The next entry to append. Numbers select among existing messages.
#[derive(Debug, Clone)]
enum Step {
    User(usize),
    Assistant(Vec<u8>, StopReason),
    Result(u8, usize),
    Compaction { kept: usize, summary: &'static str },
    Reduction { which: Vec<usize>, head: usize, tail: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let stop = prop_oneof![
        4 => Just(StopReason::ToolUse),
        1 => Just(StopReason::Stop),
        1 => Just(StopReason::Length),
        1 => Just(StopReason::Error),
        1 => Just(StopReason::Aborted),
        1 => Just(StopReason::Refusal),
    ];
    prop_oneof![
        3 => (0_usize..5_000).prop_map(Step::User),
        // Few ids, so that they repeat and stray results occur.
        4 => (prop::collection::vec(0_u8..6, 0..4), stop)
            .prop_map(|(ids, stop)| Step::Assistant(ids, stop)),
        5 => (0_u8..6, 0_usize..60_000).prop_map(|(id, length)| Step::Result(id, length)),
        1 => (any::<usize>(), prop_oneof![Just("summary"), Just("")])
            .prop_map(|(kept, summary)| Step::Compaction { kept, summary }),
        1 => (prop::collection::vec(any::<usize>(), 0..4), 0_usize..3_000, 0_usize..3_000)
            .prop_map(|(which, head, tail)| Step::Reduction { which, head, tail }),

    ]
}

/// The entry of a step. `ids` are those of the messages appended so far.
fn entry(step: &Step, ids: &[EntryId]) -> Option<Entry> {
    let pick = |number: usize| ids.get(number % ids.len().max(1)).copied();
    Some(match step {
        Step::User(length) => {
            Entry::Message(message_to_row(&Message::User(user(&"u".repeat(*length)))))
        }
        Step::Assistant(calls, stop) => {
            let calls: Vec<String> = calls.iter().map(|id| format!("call_{id}")).collect();
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            Entry::Message(message_to_row(&assistant(&calls, *stop)))
        }
        Step::Result(id, length) => {
            let Message::ToolResult(mut result) = result(&format!("call_{id}")) else {
                return None;
            };
            result.content = vec![ContentBlock::text("r".repeat(*length))];
            Entry::Message(message_to_row(&Message::ToolResult(result)))
        }
        Step::Compaction { kept, summary } => Entry::Compaction(CompactionEntry {
            id: EntryId::generate(),
            ts: 0,
            summary: (*summary).to_owned(),
            first_kept_id: pick(*kept).unwrap_or_else(EntryId::generate),
            tokens_before: 0,
            old_count: 0,
            new_count: 0,
        }),
        Step::Reduction { which, head, tail } => Entry::Reduction(ReductionEntry {
            id: EntryId::generate(),
            ts: 0,
            reason: "pruning".to_owned(),
            messages: which
                .iter()
                .filter_map(|number| pick(*number))
                .map(|id| Reduction { id, head: *head, tail: *tail })
                .collect(),
        }),
    })
}

/// The checks of every provider, written independently of the tested code.
fn check(paired: &PairedMessages) {
    let messages = paired.as_slice();
    assert!(
        matches!(messages.first(), None | Some(Message::User(_))),
        "starts with a user message"
    );
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::ToolResult(result) => {
                assert_eq!(open.first(), Some(&result.tool_call_id), "results follow their calls");
                open.remove(0);
            }
            Message::User(_) => assert!(open.is_empty(), "no call is left without a result"),
            Message::Assistant(assistant) => {
                assert!(open.is_empty(), "no call is left without a result");
                open.extend(assistant.tool_calls().map(|call| call.id.clone()));
                assert!(open.iter().all(|id| seen.insert(id.clone())), "ids are unique");
            }
        }
    }
    assert!(open.is_empty(), "no call is left without a result");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_prefix_of_every_log_gives_a_valid_request(
        steps in prop::collection::vec(step(), 1..40),
        budget in 50_u64..20_000,
    ) {
        let fixture = Fixture::new();
        let mut ids = Vec::new();
        for step in &steps {
            let Some(entry) = entry(step, &ids) else { continue };
            if let Entry::Message(message) = &entry {
                ids.push(message.id);
            }
            let mut log = fixture.store.open(&fixture.key, LockWait::Fail).unwrap();
            log.append(&[entry]).unwrap();
            let (mut log, _) =
                OpenLog::load(Box::new(log), budget, SwitchedOff::default()).unwrap();
            let first = log.take_paired();
            check(&first);
            // Building the request twice gives the same result: the provider's cache depends on it.
            log.put_back(first.clone());
            prop_assert_eq!(log.take_paired(), first);
        }
    }
}
