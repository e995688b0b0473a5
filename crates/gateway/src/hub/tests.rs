//! Tests of the events that are kept.

use super::*;

/// The events, which have neighbouring numbers, and the first of these.
fn texts(since: Since) -> (u64, Vec<String>) {
    let Since::Events(events) = since else { unreachable!("a gap: {since:?}") };
    let first = events.first().map_or(0, |event| *event.numbers.start());
    for (number, event) in (first..).zip(&events) {
        assert_eq!(event.numbers, number..=number);
    }
    (first, events.iter().map(|event| event.text.to_string()).collect())
}

#[test]
fn a_watcher_reads_from_where_it_was() {
    let hub = Hub::new();
    let Watching { newest: begin, news, .. } = hub.watch("one");
    for event in ["a", "b", "c"] {
        hub.publish("one", &event);
        hub.publish("two", &"elsewhere");
    }
    assert_eq!(*news.borrow(), begin + 3);
    let all = ["\"a\"", "\"b\"", "\"c\""].map(str::to_owned).to_vec();
    assert_eq!(texts(hub.since("one", begin)), (begin + 1, all.clone()));
    assert_eq!(texts(hub.since("one", begin + 2)), (begin + 3, all[2..].to_vec()));
    assert_eq!(hub.since("one", begin + 3), Since::Events(Vec::new()));
}

#[test]
fn numbers_that_are_gone_or_unknown_are_a_gap() {
    let hub = Hub::new();
    let begin = hub.newest("one");
    for number in 0..MOST_EVENTS + 10 {
        hub.publish("one", &number);
    }
    let newest = begin + MOST_EVENTS + 10;
    assert_eq!(hub.since("one", begin + 9), Since::Gap(newest));
    assert_eq!(texts(hub.since("one", begin + 10)).1.len() as u64, MOST_EVENTS);
    assert_eq!(hub.since("one", newest + 1), Since::Gap(newest));
    let large = "x".repeat(MOST_BYTES / 2);
    (0..3).for_each(|_| hub.publish("one", &large));
    assert_eq!(texts(hub.since("one", newest + 2)).1.len(), 1);
    assert_eq!(hub.since("one", newest), Since::Gap(newest + 3));
}

#[test]
fn quiet_sessions_make_room_and_watched_ones_stay() {
    let hub = Hub::new();
    let Watching { newest: watched, news: _news, .. } = hub.watch("watched");
    hub.publish("watched", &1);
    (0..MOST_SESSIONS * 2).for_each(|number| hub.publish(&number.to_string(), &number));
    assert_eq!(hub.sequences().len(), MOST_SESSIONS);
    // Those that are gone are not looked at any more.
    assert_eq!(hub.round.lock().sessions.len(), MOST_SESSIONS);
    assert_eq!(texts(hub.since("watched", watched)).1.len(), 1);
    // A sequence that was removed begins with numbers that nobody has seen.
    assert!(matches!(hub.since("0", 5), Since::Gap(_)));
}

#[test]
fn old_events_of_quiet_sessions_go() {
    let hub = Hub::new();
    let [quiet, busy] = ["quiet", "busy"].map(|session| hub.newest(session));
    let later = Instant::now() + KEPT;
    hub.publish("quiet", &1);
    hub.publish("busy", &2);
    hub.sweep(later);
    assert_eq!(texts(hub.since("quiet", quiet)).1, ["1"]);
    let too_late = Instant::now() + KEPT + SWEEP;
    hub.with("busy", |busy| busy.kept = Kept::after(busy.kept.newest() - 1));
    hub.with("busy", |busy| busy.kept.add(too_late, Origin::Here, &2));
    hub.sweep(too_late);
    assert_eq!(hub.since("quiet", quiet), Since::Gap(quiet + 1));
    assert_eq!(texts(hub.since("busy", busy)).1, ["2"]);
    // The numbers go on.
    hub.publish("quiet", &3);
    assert_eq!(texts(hub.since("quiet", quiet + 1)), (quiet + 2, vec!["3".to_owned()]));
    assert_eq!(hub.with("quiet", |quiet| quiet.kept.bytes()), 1);
}

#[test]
fn sessions_are_looked_at_in_turn_for_old_events() {
    let hub = Hub::new();
    let sessions = 3 * MOST_SWEPT;
    (0..sessions).for_each(|number| hub.publish(&number.to_string(), &number));
    let with_events = |hub: &Hub| {
        hub.sequences().values().filter(|sequence| !sequence.lock().kept.is_empty()).count()
    };
    let mut now = Instant::now() + KEPT + SWEEP;
    for left in [2 * MOST_SWEPT, MOST_SWEPT, 0] {
        hub.sweep(now);
        assert_eq!(with_events(&hub), left);
        // No time has passed, so no session is due.
        hub.sweep(now);
        assert_eq!(with_events(&hub), left);
        now += SWEEP;
    }
}

/// Takes events while it is ready.
#[derive(Default)]
struct Ready {
    is_ready: std::sync::atomic::AtomicBool,
    taken: Mutex<Vec<u64>>,
    woken: Mutex<u64>,
}

impl Watcher for Ready {
    fn wake(&self) {
        *self.woken.lock() += 1;
    }

    fn take(&self, session: &str, event: &Joined) -> bool {
        assert_eq!((session, &*event.text), ("one", "\"event\""));
        let is_ready = self.is_ready.load(std::sync::atomic::Ordering::SeqCst);
        if is_ready {
            self.taken.lock().push(*event.numbers.end());
        }
        is_ready
    }
}

#[test]
fn an_only_watcher_is_offered_each_event_and_woken_if_it_refuses() {
    let hub = Hub::new();
    let ready = Arc::new(Ready::default());
    let seen = |ready: &Ready| (ready.taken.lock().clone(), *ready.woken.lock());
    let weak = |ready: &Arc<Ready>| Arc::downgrade(ready) as Weak<dyn Watcher>;
    let Watching { newest: begin, news: _news, .. } = hub.watch_with("one", weak(&ready));
    hub.publish("one", &"event");
    hub.publish("two", &"elsewhere");
    assert_eq!(seen(&ready), (vec![], 1));
    ready.is_ready.store(true, std::sync::atomic::Ordering::SeqCst);
    hub.publish("one", &"event");
    assert_eq!(seen(&ready), (vec![begin + 2], 1));
    // Several watchers are woken, and read for themselves.
    let other = Arc::new(Ready::default());
    let _watching = hub.watch_with("one", weak(&other));
    hub.publish("one", &"event");
    assert_eq!((seen(&ready), seen(&other)), ((vec![begin + 2], 2), (vec![], 1)));
    drop(other);
    hub.publish("one", &"event");
    assert_eq!(seen(&ready), (vec![begin + 2, begin + 4], 2));
}

#[test]
fn a_watcher_that_has_left_is_neither_woken_nor_keeps_the_sequence() {
    let hub = Hub::new();
    let ready = Arc::new(Ready::default());
    let weak = Arc::downgrade(&ready) as Weak<dyn Watcher>;
    let Watching { newest, news, .. } = hub.watch_with("one", weak.clone());
    (0..MOST_SESSIONS).for_each(|number| hub.publish(&number.to_string(), &number));
    assert_eq!((hub.newest("one"), news.load(Ordering::SeqCst)), (newest, newest));
    hub.publish("one", &"event");
    assert_eq!((news.load(Ordering::SeqCst), *ready.woken.lock()), (newest + 1, 1));
    drop(news);
    hub.unwatch("one", &weak);
    hub.publish("one", &"event");
    assert_eq!(*ready.woken.lock(), 1);
    (0..MOST_SESSIONS).for_each(|number| hub.publish(&format!("more {number}"), &number));
    assert!(!hub.sequences().contains_key("one"));
}

#[test]
fn events_of_many_threads_are_numbered_without_a_gap() {
    const EACH: u64 = 2_000;
    let hub = Hub::new();
    let sessions = ["one", "two"];
    let begun = sessions.map(|session| hub.newest(session));
    std::thread::scope(|scope| {
        for session in [sessions, sessions].concat() {
            let hub = &hub;
            scope.spawn(move || (0..EACH).for_each(|number| hub.publish(session, &number)));
        }
    });
    for (session, begun) in sessions.into_iter().zip(begun) {
        assert_eq!(hub.newest(session), begun + 2 * EACH);
        let newest = texts(hub.since(session, hub.newest(session) - MOST_EVENTS)).1;
        assert_eq!(newest.len() as u64, MOST_EVENTS);
    }
}
