//! Tests of codes.

use std::sync::Arc;

use myclaw_channels::{Chat, Sender};
use myclaw_store::{SqliteStore, Store};
use tempfile::TempDir;

use super::*;
use crate::codes::CODE_CHARS;

fn arrival(account: &str, sender: &str) -> (Arrival, Route) {
    let chat = Chat { id: sender.to_owned(), ..Chat::default() };
    let route = Route {
        channel: "telegram".to_owned(),
        account: account.to_owned(),
        chat: chat.target().to_text(),
    };
    let arrival = Arrival {
        channel: route.channel.clone(),
        account: route.account.clone(),
        chat,
        source_id: "1".to_owned(),
        reply_id: None,
        sender: Sender { id: sender.to_owned(), name: None, handle: None, other_id: None },
        text: "x".to_owned(),
        attachments: Vec::new(),
        mentions_me: false,
        reply_to: None,
        passages: Vec::new(),
        edits: None,
        ..Arrival::default()
    };
    (arrival, route)
}

fn with_ledger<F: Future<Output = ()>>(test: impl FnOnce(Ledger) -> F) {
    let directory = TempDir::new().expect("a directory");
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(test(Ledger::new(Arc::new(store))));
}

/// Somebody asks; gives the code.
async fn asked(pairings: &Pairings, account: &str, sender: &str) -> Option<String> {
    let (arrival, route) = arrival(account, sender);
    let (_, say) = pairings.ask(&arrival, &route).await.expect("asked");
    let after = "approve ";
    say.map(|say| say.split(after).nth(1).expect("a code")[..CODE_CHARS].to_owned())
}

#[test]
fn a_code_expires_and_its_person_can_ask_again() {
    with_ledger(async |ledger| {
        let pairings = Pairings::load(ledger.clone()).await.expect("pairings");
        let code = asked(&pairings, "default", "7").await.expect("a code");
        let mut old = pairings.known.lock().values().next().expect("a pairing").clone();
        let hour = u64::try_from(CODE_TIME.as_millis()).expect("a time");
        old.row.since = now_ms() - hour;
        let (store, place) = (ledger.store(), Place::new(QUEUE, 0));
        let stored = PAIRINGS.replace(store, &old.id, old.version, &old.row, place).await;
        assert!(stored.expect("a store that works").is_some());

        let pairings = Pairings::load(ledger).await.expect("pairings");
        assert_eq!(pairings.list()["pairings"], json!([]));
        assert!(pairings.change(PairingChange::Approve, &code).await.is_err(), "an old code works");
        let new = asked(&pairings, "default", "7").await.expect("a new code");
        assert_ne!(new, code);
        pairings.change(PairingChange::Approve, &new).await.expect("approved");
        assert!(pairings.change(PairingChange::Approve, &new).await.is_err(), "it works twice");
    });
}

#[test]
fn strangers_take_no_more_than_their_places() {
    with_ledger(async |ledger| {
        let pairings = Pairings::load(ledger).await.expect("pairings");
        for number in 0..MOST_PENDING {
            assert!(asked(&pairings, "default", &number.to_string()).await.is_some());
        }
        assert_eq!(asked(&pairings, "default", "one more").await, None);
        // Another account has places of its own.
        assert!(asked(&pairings, "work", "one more").await.is_some());
        assert_eq!(pairings.known.lock().len(), MOST_PENDING + 1);
    });
}

#[test]
fn a_permission_is_for_one_account() {
    with_ledger(async |ledger| {
        let pairings = Pairings::load(ledger).await.expect("pairings");
        let code = asked(&pairings, "default", "7").await.expect("a code");
        pairings.change(PairingChange::Approve, &code).await.expect("approved");
        assert!(pairings.is_approved(&arrival("default", "7").0));
        assert!(!pairings.is_approved(&arrival("work", "7").0));
        pairings.change(PairingChange::Deny, "telegram:7").await.expect("denied");
        assert!(!pairings.is_approved(&arrival("default", "7").0));
    });
}

#[tokio::test]
async fn what_one_gateway_decides_about_a_person_holds_at_the_other() {
    let store: Arc<dyn Store> = Arc::new(myclaw_store::MemoryStore::default());
    let [one, other] = [0, 1].map(|_| Ledger::new(Arc::clone(&store)));
    let one = Pairings::load(one).await.expect("pairings");
    let other = Arc::new(Pairings::load(other).await.expect("pairings"));
    // It has not seen that somebody asked, and gives no second code.
    let code = asked(&one, "default", "7").await.expect("a code");
    assert_eq!(asked(&other, "default", "7").await, None);
    other.change(PairingChange::Approve, &code).await.expect("approved");
    // The first one decides again with what the second one stored.
    assert!(one.change(PairingChange::Approve, &code).await.is_err(), "a code works twice");

    let following = Arc::clone(&other);
    tokio::spawn(async move { following.follow().await });
    one.change(PairingChange::Deny, "telegram:7").await.expect("denied");
    let (arrival, _) = arrival("default", "7");
    let denied = async {
        while other.is_approved(&arrival) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(10), denied).await;
    assert!(seen.is_ok(), "the other gateway still lets the person write");
}
