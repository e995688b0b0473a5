//! Tests of sending, with channels that do what a test says.

use std::collections::VecDeque;

use myclaw_channels::{Account, Capabilities, Part};
use myclaw_session::{BlobError, BlobLimits, MemoryBlobs};
use myclaw_store::{BoxFuture, Claims, MemoryStore, SqliteStore, Store};
use tempfile::TempDir;

use super::*;
use crate::channels::ChannelSetup;
use crate::ledger::Acceptance;
use crate::rows::PartKind;
use crate::rows::{Incoming, MessageId, MessageState, Outgoing, PartId, Refers, SentFile};
use crate::tests::Nobody;

/// What a channel has sent, and what it does next; without a next step it sends.
struct Scripted {
    account: Account,
    after_interruption: AfterInterruption,
    steps: Mutex<VecDeque<SendFailure>>,
    sent: Mutex<Vec<String>>,
    /// What a look finds.
    found: Result<Option<String>, SendFailure>,
}

impl Scripted {
    fn new(after_interruption: AfterInterruption, steps: Vec<SendFailure>) -> Self {
        let (steps, sent) = (Mutex::new(steps.into()), Mutex::default());
        let account = Account::new("scripted", "default");
        Self { account, after_interruption, steps, sent, found: Ok(None) }
    }

    fn sent(&self) -> Vec<String> {
        self.sent.lock().clone()
    }
}

impl Channel for Scripted {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.after_interruption,
            most_file_bytes: None,
            actions: &[],
        }
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        let step = self.steps.lock().pop_front();
        let sent = match step {
            Some(failure) => Err(failure),
            None => {
                let mut sent = self.sent.lock();
                let mark = if part.is_repeat { " (repeat)" } else { "" };
                let place =
                    part.replaces.as_deref().map(|id| format!(" as {id}")).unwrap_or_default();
                let file = part.file.as_ref().map(|file| {
                    let content = file.content.read().expect("the content of a file");
                    format!("{} with {}", file.name, String::from_utf8_lossy(&content))
                });
                let what = file.as_ref().unwrap_or(&part.text);
                sent.push(format!("{what}{mark}{place}"));
                Ok(format!("id of {}", part.text))
            }
        };
        Box::pin(async move { sent })
    }

    fn find<'a>(&'a self, _part: &'a Part) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async { self.found.clone() })
    }
}

/// A channel that sends when its rate allows it, which a test decides.
struct Paced {
    account: Account,
    asked: Notify,
    allowed: Notify,
    sent: AtomicUsize,
}

impl Channel for Paced {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        let after_interruption = AfterInterruption::Look;
        Capabilities { after_interruption, most_file_bytes: None, actions: &[] }
    }

    fn send<'a>(&'a self, _part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async {
            self.asked.notify_one();
            self.allowed.notified().await;
            self.sent.fetch_add(1, Ordering::SeqCst);
            Ok("id".to_owned())
        })
    }

    fn find<'a>(&'a self, _part: &'a Part) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async { Ok(None) })
    }
}

fn route(chat: &str) -> Route {
    let [channel, account] = ["scripted", "default"].map(str::to_owned);
    Route { channel, account, chat: chat.to_owned() }
}

fn part(chat: &str, text: &str, state: PartState) -> (PartId, Outgoing) {
    let route = route(chat);
    let id = PartId::of("session", text, &route, 0);
    let row = Outgoing {
        route,
        session: "session".to_owned(),
        answers: vec![MessageId::from_text("m")],
        kind: PartKind::Reply,
        part: 0,
        parts: 1,
        text: text.to_owned(),
        buttons: Vec::new(),
        act: None,
        refers: Refers::default(),
        pause_ms: None,
        created_at: 1,
        state,
    };
    (id, row)
}

fn files() -> Arc<dyn Blobs> {
    Arc::new(MemoryBlobs::default())
}

/// Stores parts as answers, sends them, and gives their states.
fn send(channel: &Arc<Scripted>, parts: Vec<(PartId, Outgoing)>) -> Vec<PartState> {
    send_with(channel, parts, files())
}

fn send_with(
    channel: &Arc<Scripted>,
    parts: Vec<(PartId, Outgoing)>,
    files: Arc<dyn Blobs>,
) -> Vec<PartState> {
    let directory = TempDir::new().expect("a directory");
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).expect("a store");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let ledger = Ledger::new(Arc::new(store));
        let (ids, tasks): (Vec<PartId>, _) =
            (parts.iter().map(|(id, _)| id.clone()).collect(), TaskTracker::new());
        let stored = ledger
            .settle(&[], &|_| MessageState::Open, parts, Vec::new())
            .await
            .expect("stored")
            .expect("new")
            .0;
        let mut of_server = Scripted::new(AfterInterruption::Report, Vec::new());
        of_server.account = Account::new("server", "default");
        let setup = ChannelSetup {
            channel: "scripted",
            account: "default".to_owned(),
            made: Ok(Arc::<Scripted>::clone(channel)),
            fingerprint: 0,
        };
        let channels = Channels::new(Arc::new(of_server), vec![setup]);
        Outbox::new(ledger.clone(), channels, files, Arc::new(Nobody), tasks.clone()).push(stored);
        tasks.close();
        tasks.wait().await;
        let mut states = Vec::new();
        for id in ids {
            states.push(ledger.part(&id).await.expect("read").expect("a part").state);
        }
        assert_eq!(ledger.unsent_parts().await.expect("read").len(), 0);
        states
    })
}

fn sent(text: &str) -> PartState {
    PartState::Sent { id: format!("id of {text}") }
}

#[test]
fn the_copy_of_a_file_is_sent_and_removed_once_it_is_sent() {
    let limits = BlobLimits { each: 100, together: None };
    for steps in [Vec::new(), vec![SendFailure::Never { reason: "no".to_owned() }]] {
        let files = files();
        let blob = files.put("part", &mut &b"hello"[..], limits).expect("kept");
        let of_old_row = serde_json::json!({"name": "old.txt", "path": "/elsewhere/outgoing/part"});
        let of_old_row: SentFile = serde_json::from_value(of_old_row).expect("an old row");
        assert!(files.open(&of_old_row.blob).is_ok());
        let mut part = part("a", "", PartState::Queued);
        part.1.refers.file = Some(SentFile { blob: blob.clone(), name: "a.txt".to_owned() });
        let is_sent = steps.is_empty();
        let channel = Arc::new(Scripted::new(AfterInterruption::Report, steps));
        send_with(&channel, vec![part], Arc::clone(&files));
        let expected: &[&str] = if is_sent { &["a.txt with hello"] } else { &[] };
        assert_eq!(channel.sent(), expected);
        assert!(matches!(files.open(&blob), Err(BlobError::Missing)));
    }
}

#[test]
fn parts_of_a_route_are_sent_in_order() {
    let channel = Arc::new(Scripted::new(AfterInterruption::SendAgain, Vec::new()));
    let parts = ["one", "two", "three"].map(|text| part("a", text, PartState::Queued));
    assert_eq!(send(&channel, parts.to_vec()), ["one", "two", "three"].map(sent));
    assert_eq!(channel.sent(), ["one", "two", "three"]);
}

#[test]
fn a_failure_that_passes_is_tried_again_and_one_that_stays_is_recorded() {
    let later = |after| SendFailure::Later { after, reason: "busy".to_owned() };
    let never = SendFailure::Never { reason: "gone".to_owned() };
    let steps = vec![later(None), later(Some(Duration::from_secs(7))), never];
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, steps));
    let parts = vec![part("a", "refused", PartState::Queued), part("a", "next", PartState::Queued)];
    let failed = PartState::Failed { reason: "gone".to_owned() };
    assert_eq!(send(&channel, parts), [failed, sent("next")]);
    assert_eq!(channel.sent(), ["next"]);

    let steps = vec![later(None); MOST_ATTEMPTS as usize];
    let channel = Arc::new(Scripted::new(AfterInterruption::SendAgain, steps));
    let states = send(&channel, vec![part("a", "one", PartState::Queued)]);
    assert_eq!(states, [PartState::Failed { reason: "busy".to_owned() }]);
}

#[test]
fn an_interrupted_sending_ends_as_the_channel_allows() {
    let interrupted = || vec![part("a", "one", PartState::Sending { attempt: 1 })];
    let again = Arc::new(Scripted::new(AfterInterruption::SendAgain, Vec::new()));
    assert_eq!(send(&again, interrupted()), [sent("one")]);

    let report = Arc::new(Scripted::new(AfterInterruption::Report, Vec::new()));
    assert_eq!(send(&report, interrupted()), [PartState::Uncertain]);
    let told = report.sent();
    assert!(told.len() == 1 && told[0].contains("/again"), "told once, not sent again: {told:?}");

    let lost = Arc::new(Scripted::new(AfterInterruption::Look, Vec::new()));
    assert_eq!(send(&lost, interrupted()), [sent("one")]);
    let there = Scripted::new(AfterInterruption::Look, Vec::new());
    let there = Arc::new(Scripted { found: Ok(Some("seen".to_owned())), ..there });
    assert_eq!(send(&there, interrupted()), [PartState::Sent { id: "seen".to_owned() }]);
    assert_eq!(there.sent().len(), 0, "a part that was delivered was sent again");

    // A look that the server will never allow does not keep the route.
    let never = Err(SendFailure::Never { reason: "forbidden".to_owned() });
    let blind = Scripted::new(AfterInterruption::Look, Vec::new());
    let blind = Arc::new(Scripted { found: never, ..blind });
    assert_eq!(send(&blind, interrupted()), [PartState::Uncertain]);
    assert!(matches!(&blind.sent()[..], [told] if told.contains("/again")));

    // The same holds for a time-out of this process.
    let unknown = || vec![SendFailure::Unknown { reason: "no answer".to_owned() }];
    let report = Arc::new(Scripted::new(AfterInterruption::Report, unknown()));
    assert_eq!(send(&report, vec![part("a", "one", PartState::Queued)]), [PartState::Uncertain]);
    assert!(matches!(&report.sent()[..], [told] if told.contains("/again")));
    let again = Arc::new(Scripted::new(AfterInterruption::SendAgain, unknown()));
    assert_eq!(send(&again, vec![part("a", "one", PartState::Queued)]), [sent("one")]);
}

#[test]
fn a_part_is_stored_once_and_messages_are_settled_with_it() {
    let directory = TempDir::new().expect("a directory");
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let ledger = Ledger::new(Arc::new(store));
        let mut open = Vec::new();
        for source in ["one", "two"] {
            let [session, text] = ["session", "hello"].map(str::to_owned);
            let row = Incoming::new(route("a"), source.to_owned(), session, text, 1);
            let id = MessageId::of(&row.route, source);
            let accepted = ledger
                .store_message(id.clone(), row.clone(), Vec::new(), &[])
                .await
                .expect("accepted");
            assert!(matches!(accepted, Acceptance::New(_)));
            let again = ledger.store_message(id, row, Vec::new(), &[]).await.expect("accepted");
            assert!(matches!(again, Acceptance::Known(_)), "a message was accepted twice");
            open.extend(ledger.open_messages().await.expect("read").into_iter().next_back());
        }
        let parts = || vec![part("a", "reply", PartState::Queued)];
        let answered = |_: &_| MessageState::Answered { parts: Vec::new() };
        let first = ledger
            .settle(&open[..1], &answered, parts(), Vec::new())
            .await
            .expect("settled")
            .expect("still open");
        assert_eq!(first.0.len(), 1);
        // The second message has the same reply, which is not sent twice.
        let second = ledger
            .settle(&open[1..], &answered, parts(), Vec::new())
            .await
            .expect("settled")
            .expect("still open");
        assert_eq!(second.0.len(), 0);
        assert_eq!(ledger.open_messages().await.expect("read").len(), 0);
        let third = ledger.settle(&open[1..], &answered, Vec::new(), Vec::new()).await;
        assert!(third.expect("a store that works").is_none(), "settled twice");
        ledger.sweep().await.expect("swept");
        assert!(ledger.message(&open[0].id).await.expect("read").is_some(), "swept too early");
    });
}

#[test]
fn a_part_that_may_have_been_delivered_is_marked_where_the_owner_wants_it_again() {
    let marked = Arc::new(Scripted::new(AfterInterruption::SendMarked, Vec::new()));
    let interrupted = vec![part("a", "one", PartState::Sending { attempt: 1 })];
    assert_eq!(send(&marked, interrupted), [sent("one")]);
    assert_eq!(marked.sent(), ["one (repeat)"]);

    let steps = vec![
        SendFailure::Later { after: None, reason: "busy".to_owned() },
        SendFailure::Unknown { reason: "no answer".to_owned() },
    ];
    let marked = Arc::new(Scripted::new(AfterInterruption::SendMarked, steps));
    assert_eq!(send(&marked, vec![part("a", "one", PartState::Queued)]), [sent("one")]);
    assert_eq!(marked.sent(), ["one (repeat)"]);
}

#[test]
fn a_preview_is_replaced_as_often_as_needed_and_a_lost_one_is_not_waited_for() {
    let replacing = |state| {
        let (id, mut row) = part("a", "one", state);
        row.refers.replaces = Some("p".to_owned());
        vec![(id, row)]
    };
    let report = Arc::new(Scripted::new(AfterInterruption::Report, Vec::new()));
    assert_eq!(send(&report, replacing(PartState::Sending { attempt: 1 })), [sent("one")]);
    assert_eq!(report.sent(), ["one as p"]);

    let unknown = || SendFailure::Unknown { reason: "no answer".to_owned() };
    let report = Arc::new(Scripted::new(AfterInterruption::Report, vec![unknown()]));
    assert_eq!(send(&report, replacing(PartState::Queued)), [sent("one")]);

    let report = Arc::new(Scripted::new(AfterInterruption::Report, vec![SendFailure::NoPreview]));
    assert_eq!(send(&report, replacing(PartState::Queued)), [sent("one")]);
    assert_eq!(report.sent(), ["one"]);

    // The message of its own is one that must not be sent twice.
    let steps = vec![SendFailure::NoPreview, unknown()];
    let report = Arc::new(Scripted::new(AfterInterruption::Report, steps));
    assert_eq!(send(&report, replacing(PartState::Queued)), [PartState::Uncertain]);
}

#[test]
fn a_pause_is_as_long_as_the_channel_asks_and_leaves_no_doubt() {
    let directory = TempDir::new().expect("a directory");
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).expect("a store");
    let hour = Some(Duration::from_secs(60 * 60));
    let later = SendFailure::Later { after: hour, reason: "busy".to_owned() };
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, vec![later]));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let ledger = Ledger::new(Arc::new(store));
        let parts = vec![part("a", "one", PartState::Queued)];
        let id = parts[0].0.clone();
        let stored = ledger
            .settle(&[], &|_| MessageState::Open, parts, Vec::new())
            .await
            .expect("stored")
            .expect("new")
            .0;
        let channels = Channels::new(channel.clone(), Vec::new());
        Outbox::new(ledger.clone(), channels, files(), Arc::new(Nobody), TaskTracker::new())
            .push(stored);
        let state = async || ledger.part(&id).await.expect("read").expect("a part").state;
        let attempted = async {
            let is_waiting = || channel.steps.lock().is_empty();
            while !is_waiting() || state().await != PartState::Queued {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // A kill from here on finds a part that was not sent.
        tokio::time::timeout(Duration::from_secs(30), attempted).await.expect("a pause");
        assert_eq!(channel.sent(), [""; 0]);
    });
}

#[test]
fn one_notice_tells_of_all_that_may_be_missing_and_is_not_repeated() {
    let unknown = || SendFailure::Unknown { reason: "no answer".to_owned() };
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, vec![unknown(), unknown()]));
    let parts = vec![part("a", "one", PartState::Queued), part("a", "two", PartState::Queued)];
    assert_eq!(send(&channel, parts), [PartState::Uncertain, PartState::Uncertain]);
    assert!(matches!(&channel.sent()[..], [told] if told.contains("/again")));

    // The notice is uncertain, so the next message to the chat repeats it.
    let steps = vec![unknown(), unknown()];
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, steps));
    assert_eq!(send(&channel, vec![part("a", "one", PartState::Queued)]), [PartState::Uncertain]);
    assert_eq!(channel.sent(), [""; 0]);

    // Other chats have notices of their own.
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, vec![unknown(), unknown()]));
    let parts = vec![part("a", "one", PartState::Queued), part("b", "two", PartState::Queued)];
    assert_eq!(send(&channel, parts), [PartState::Uncertain, PartState::Uncertain]);
    assert_eq!(channel.sent().len(), 2);

    // What the tool `message` sent is for the model to tell: it gets the outcome of its call.
    let channel = Arc::new(Scripted::new(AfterInterruption::Report, vec![unknown()]));
    let (id, mut row) = part("a", "one", PartState::Queued);
    row.answers.clear();
    assert_eq!(send(&channel, vec![(id, row)]), [PartState::Uncertain]);
    assert_eq!(channel.sent(), [""; 0]);
}

#[test]
fn two_gateways_on_one_store_settle_a_message_once_and_send_a_part_once() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let ledgers = [0, 1].map(|_| Ledger::new(Arc::clone(&store)));
        let row = Incoming::new(route("a"), "m".to_owned(), "s".to_owned(), "hi".to_owned(), 1);
        let id = MessageId::of(&row.route, "m");
        ledgers[0].store_message(id, row, Vec::new(), &[]).await.expect("accepted");
        let answered = |_: &_| MessageState::Answered { parts: Vec::new() };
        let (mut unsent, mut settled) = (Vec::new(), 0);
        let mut open = Vec::new();
        for ledger in &ledgers {
            open.push(ledger.open_messages().await.expect("read"));
        }
        for (ledger, open) in ledgers.iter().zip(open) {
            let parts = vec![part("a", "reply", PartState::Queued)];
            let done = ledger.settle(&open, &answered, parts, Vec::new()).await.expect("a store");
            settled += usize::from(done.is_some());
            let (still_open, over) = ledger.still_open(open).await.expect("read");
            assert_eq!((still_open.len(), over.len()), (0, 1));
            // Both have the part in memory, in the version in which it was stored.
            unsent.push(ledger.unsent_parts().await.expect("read"));
        }
        assert_eq!(settled, 1, "gateways that settled the message");
        let mut sent = Vec::new();
        for (ledger, unsent) in ledgers.iter().zip(unsent) {
            assert_eq!(unsent.len(), 1, "stored parts");
            let channel = Arc::new(Scripted::new(AfterInterruption::Report, Vec::new()));
            let (channels, tasks) =
                (Channels::new(channel.clone(), Vec::new()), TaskTracker::new());
            Outbox::new(ledger.clone(), channels, files(), Arc::new(Nobody), tasks.clone())
                .push(unsent);
            tasks.close();
            tasks.wait().await;
            sent.push(channel.sent());
        }
        assert_eq!(sent, [vec!["reply".to_owned()], Vec::new()]);
        assert_eq!(ledgers[0].trouble().await.expect("read").len(), 0);
        assert_eq!(ledgers[0].unsent_parts().await.expect("read").len(), 0);
    });
}

/// The process stood still meanwhile, or was without the database: another one sends the part by then.
#[test]
fn a_part_that_waits_is_not_sent_once_its_account_is_lost() {
    for is_lost in [true, false] {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (time, lease) = (Arc::new(AtomicUsize::new(0)), Duration::from_millis(1_000));
            let of_clock = Arc::clone(&time);
            let clock = move || Duration::from_millis(of_clock.load(Ordering::SeqCst) as u64);
            let store = Arc::new(MemoryStore::default());
            let claims = Claims::with_clock(store, "one".to_owned(), lease, Arc::new(clock));
            let account = crate::sharing::account_of("scripted", "default");
            let _held = claims.acquire(&account).await.expect("claimed").expect("free");
            let ledger = Ledger::of(claims);
            let parts = vec![part("a", "one", PartState::Queued)];
            let stored = ledger.settle(&[], &|_| MessageState::Open, parts, Vec::new()).await;
            let stored = stored.expect("stored").expect("new").0;
            let id = stored[0].id.clone();
            let channel = Arc::new(Paced {
                account: Account::new("scripted", "default"),
                asked: Notify::new(),
                allowed: Notify::new(),
                sent: AtomicUsize::new(0),
            });
            let mut of_server = Scripted::new(AfterInterruption::Report, Vec::new());
            of_server.account = Account::new("server", "default");
            let setup = ChannelSetup {
                channel: "scripted",
                account: "default".to_owned(),
                made: Ok(Arc::<Paced>::clone(&channel)),
                fingerprint: 0,
            };
            let channels = Channels::new(Arc::new(of_server), vec![setup]);
            let tasks = TaskTracker::new();
            let outbox =
                Outbox::new(ledger.clone(), channels, files(), Arc::new(Nobody), tasks.clone());
            outbox.push(stored);
            channel.asked.notified().await;
            if is_lost {
                time.store(1_000, Ordering::SeqCst);
            }
            channel.allowed.notify_one();
            tasks.close();
            tasks.wait().await;
            let state = ledger.part(&id).await.expect("read").expect("a part").state;
            let (sent, expected) = match is_lost {
                true => (0, PartState::Sending { attempt: 1 }),
                false => (1, PartState::Sent { id: "id".to_owned() }),
            };
            assert_eq!((channel.sent.load(Ordering::SeqCst), state), (sent, expected));
        });
    }
}
