//! What [`Claims`] must do on a store. Each function takes the same store twice, as two processes would open it, and its clock.

use std::sync::Arc;
use std::time::Duration;

use super::{LEASE, TestClock, done, found, insert, replace, text};
use crate::{Batch, Claims, Commit, Held, RecordId, Refusal, Store};

/// How long something may take that is due at once, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn desk() -> RecordId {
    RecordId::new("desk", "one")
}

/// The claims of a process, which counts time by `clock`.
fn claims(store: &Arc<dyn Store>, holder: &str, clock: &TestClock) -> Arc<Claims> {
    let clock = clock.clone();
    let steady = Arc::new(move || Duration::from_millis(clock.now()));
    Claims::with_clock(Arc::clone(store), holder.to_owned(), LEASE, steady)
}

async fn acquire(claims: &Arc<Claims>) -> Option<Held> {
    claims.acquire(&desk()).await.expect("a store that works")
}

/// Writes a record under a claim. False if it is refused.
async fn writes(store: &dyn Store, held: &Held, key: &str) -> bool {
    let batch = held.under(Batch::of(insert(&RecordId::new("thing", key), "", None)));
    match store.commit(batch).await.expect("a store that works") {
        Commit::Done(_) => true,
        Commit::Refused(why) => {
            assert_eq!(why, Refusal::Fenced(held.id().clone()));
            false
        }
    }
}

/// Many try to get a thing at the same time, again and again: never do two have it.
pub async fn a_thing_has_one_holder(first: Arc<dyn Store>, second: Arc<dyn Store>) {
    const TURNS: usize = 5;
    let counter = RecordId::new("thing", "counter");
    done(first.commit(Batch::of(insert(&counter, "0", None))).await);
    let clock = TestClock::default();
    let holders = (0..8).map(|number: usize| {
        let store = Arc::clone(if number.is_multiple_of(2) { &first } else { &second });
        let (claims, counter) = (claims(&store, &number.to_string(), &clock), counter.clone());
        tokio::spawn(async move {
            for _ in 0..TURNS {
                let held = claims.own(&desk()).await.expect("a store that works");
                let holder = claims.holder_of(&desk()).await.expect("a store that works");
                assert_eq!(holder, Some(number.to_string()));
                // Without the claim, two would read the same number.
                let before = found(&*store, &counter).await;
                let next = text(&before).parse::<u64>().expect("a number") + 1;
                let write = replace(&counter, before.version, &next.to_string(), None);
                done(store.commit(held.under(Batch::of(write))).await);
                assert!(held.release().await.expect("a store that works"));
            }
        })
    });
    for holder in holders.collect::<Vec<_>>() {
        holder.await.expect("a holder that ends");
    }
    assert_eq!(text(&found(&*first, &counter).await), (8 * TURNS).to_string());
    assert_eq!(first.get(desk()).await.expect("a store that works"), None);
}

/// Several want what a dead holder left: one gets it, when the lease has ended and not before.
pub async fn what_a_dead_holder_left_goes_to_one(
    first: Arc<dyn Store>,
    second: Arc<dyn Store>,
    clock: TestClock,
) {
    let dead = claims(&first, "dead", &clock);
    drop(acquire(&dead).await.expect("a free thing"));
    // Nobody renews it any more.
    clock.set(clock.now() + LEASE.as_millis() as u64 / 2);
    dead.renew().await;
    let heirs: Vec<Arc<Claims>> = (0..6)
        .map(|number| claims(if number % 2 == 0 { &first } else { &second }, "heir", &clock))
        .collect();
    assert!(acquire(&heirs[0]).await.is_none(), "a lease that runs was taken over");
    clock.set(clock.now() + LEASE.as_millis() as u64 / 2);
    let tries = heirs.iter().cloned().map(|heir| {
        tokio::spawn(async move { heir.acquire(&desk()).await.expect("a store that works") })
    });
    let mut winners = Vec::new();
    for heir in tries.collect::<Vec<_>>() {
        winners.extend(heir.await.expect("an attempt that ends"));
    }
    assert_eq!(winners.len(), 1, "holders of one thing");
    assert!(writes(&*first, &winners[0], "of the heir").await);
    let holder = heirs[0].holder_of(&desk()).await.expect("a store that works");
    assert_eq!(holder.as_deref(), Some("heir"));
}

/// A holder that slept longer than its lease finds that the thing is lost, before or after it notices, and cannot take it from
/// the next one.
pub async fn a_holder_that_wakes_late_is_fenced(
    first: Arc<dyn Store>,
    second: Arc<dyn Store>,
    clock: TestClock,
) {
    // A process that was started again may have the same name, so the epoch alone must decide.
    let (sleeper, other) = (claims(&first, "node", &clock), claims(&second, "node", &clock));
    let late = acquire(&sleeper).await.expect("a free thing");
    assert!(writes(&*first, &late, "in time").await);
    clock.set(clock.now() + LEASE.as_millis() as u64);
    assert!(late.is_lost(), "a holder does not notice that its time is over");
    let held = acquire(&other).await.expect("a lease that has ended");
    assert!(!writes(&*first, &late, "late").await, "a late holder wrote");
    let by_name = sleeper.under(&desk(), Batch::of(insert(&RecordId::new("thing", "x"), "", None)));
    let by_name = first.commit(by_name).await.expect("a store that works");
    assert_eq!(by_name, Commit::Refused(Refusal::Fenced(desk())));
    sleeper.renew().await;
    tokio::time::timeout(PATIENCE, late.lost()).await.expect("a lost claim");
    assert!(!sleeper.holds(&desk()) && other.holds(&desk()));
    // It is not its own any more, so it gives nothing back.
    assert!(!late.release().await.expect("a store that works"));
    assert!(acquire(&sleeper).await.is_none(), "a claim was released by another holder");
    assert!(writes(&*second, &held, "of the other").await);
    // A batch in the name of a thing that its writer never had is refused too.
    let stranger = claims(&first, "stranger", &clock);
    let batch = stranger.under(&desk(), Batch::of(insert(&RecordId::new("thing", "y"), "", None)));
    let refused = first.commit(batch).await.expect("a store that works");
    assert_eq!(refused, Commit::Refused(Refusal::Fenced(desk())));
}

/// A clock of the store that goes back makes leases longer; one that jumps ahead ends them. Neither gives a thing to two.
pub async fn claims_survive_a_clock_that_jumps(
    first: Arc<dyn Store>,
    second: Arc<dyn Store>,
    clock: TestClock,
) {
    let lease = LEASE.as_millis() as u64;
    // The clocks of the processes go on while that of the store jumps.
    let (of_one, of_two) = (TestClock::default(), TestClock::default());
    let (one, two) = (claims(&first, "one", &of_one), claims(&second, "two", &of_two));
    let held = acquire(&one).await.expect("a free thing");
    let begun = clock.now();
    clock.set(begun - 500_000);
    assert!(acquire(&two).await.is_none());
    of_one.set(of_one.now() + lease / 2);
    one.renew().await;
    assert!(!held.is_lost() && writes(&*first, &held, "back").await);
    clock.set(begun + 10 * lease);
    let taken = acquire(&two).await.expect("a lease that has ended");
    // By its own clock the first one is in time, so only the store can tell.
    assert!(!held.is_lost());
    assert!(!writes(&*first, &held, "ahead").await, "a holder wrote whose claim another one has");
    one.renew().await;
    assert!(held.is_lost(), "a renewal of a claim that another one has succeeded");
    clock.set(begun);
    assert!(acquire(&one).await.is_none());
    assert!(writes(&*second, &taken, "of the second").await);
}

/// What is released is free at once, for one who waits for it too.
pub async fn what_is_released_is_free_at_once(first: Arc<dyn Store>, second: Arc<dyn Store>) {
    let clock = TestClock::default();
    let (one, two) = (claims(&first, "one", &clock), claims(&second, "two", &clock));
    let held = acquire(&one).await.expect("a free thing");
    assert!(acquire(&one).await.is_none(), "a process got a thing twice");
    let waiting = tokio::spawn(async move { two.own(&desk()).await.expect("a store that works") });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    let kept = held.under(Batch::default());
    assert!(held.release().await.expect("a store that works"));
    let next = tokio::time::timeout(PATIENCE, waiting).await.expect("a claim in time");
    let next = next.expect("a wait that ends");
    let write = insert(&RecordId::new("thing", "late"), "", None);
    let late = Batch { writes: vec![write], ..kept };
    let refused = first.commit(late).await.expect("a store that works");
    assert_eq!(refused, Commit::Refused(Refusal::Fenced(desk())));
    assert!(writes(&*second, &next, "of the next").await);
}
