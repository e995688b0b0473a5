//! The conformance suite of catalogs: each store that has one passes it, through the traits alone.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use myclaw_session::{
    About, Case, Entry, EntryId, LockWait, MetaPatch, PruneScope, Role, SearchQuery, SearchScope,
    SessionError, SessionKey, SessionUse, TailLimit, TranscriptMessage, UpdatedAt,
};
use serde_json::Map;

use crate::subjects::{Faces as Subject, of_each_catalog as of_each};
use crate::values::{Push as _, assistant, compaction, texts, user, work};

impl Subject {
    fn write(&self, key: &SessionKey, messages: &[TranscriptMessage]) {
        let entries: Vec<Entry> = messages.iter().cloned().map(Entry::from).collect();
        self.sessions.open(key, LockWait::Fail).unwrap().push(&entries).unwrap();
    }

    /// Writes a session that was last changed at `at`.
    fn write_at(&self, key: &SessionKey, at: u64, messages: &[TranscriptMessage]) {
        self.write(key, messages);
        let updated_at = UpdatedAt::At(at);
        self.catalog.update(key, MetaPatch { updated_at, ..MetaPatch::default() }).unwrap();
    }

    fn texts(&self, key: &SessionKey) -> Vec<String> {
        let tail = self.catalog.read(key).unwrap().unwrap().tail(TailLimit::UNLIMITED).unwrap();
        texts(&tail.messages).into_iter().map(str::to_owned).collect()
    }

    fn listed(&self) -> Vec<SessionKey> {
        let (sessions, count) = self.catalog.latest(usize::MAX).unwrap();
        assert_eq!(sessions.len(), count);
        sessions.into_iter().map(|session| session.key).collect()
    }

    /// The sessions with this text in a message, and in how many.
    fn with_text(&self, text: &str) -> Vec<(SessionKey, u64)> {
        let query = SearchQuery::text(text, Case::Ignored).unwrap();
        let report = self.catalog.search(&query, &SearchScope::default(), 10).unwrap();
        assert!(report.unreadable.is_empty(), "{:?}", report.unreadable);
        let again = self.catalog.search_again(&query, 10).unwrap();
        assert_eq!((&again.hits, &again.matches), (&report.hits, &report.matches));
        report.matches.into_iter().collect()
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::for_cli("main", name)
}

fn result(text: &str) -> TranscriptMessage {
    TranscriptMessage {
        tool_call_id: Some("call-1".to_owned()),
        ..TranscriptMessage::new(Role::Tool, text, 1_700_000_000_002)
    }
}

fn at(message: &TranscriptMessage) -> Option<EntryId> {
    Some(message.id)
}

#[test]
fn an_empty_catalog_finds_nothing_and_fails_nowhere() {
    of_each(|subject| {
        let catalog = &subject.catalog;
        assert!(!catalog.exists(&work()) && !catalog.has_any());
        assert!(catalog.read(&work()).unwrap().is_none());
        assert_eq!(catalog.entry(&work()).unwrap(), None);
        assert_eq!(catalog.directory_of(&work()).unwrap(), None);
        assert_eq!(subject.listed(), []);
        assert_eq!(catalog.latest_keys(9, &|_| true).unwrap(), []);
        assert_eq!(subject.with_text("a"), []);
        assert!(!catalog.delete(&work()).unwrap());
        assert_eq!(catalog.adopt().unwrap(), 0);
        assert_eq!(catalog.moved_aside(None).unwrap(), []);
        assert_eq!(catalog.moved_aside(Some(&work())).unwrap(), []);
        assert_eq!(catalog.take_repairs(), []);
        let pruned = catalog.prune(Duration::ZERO, PruneScope::WithTranscripts).unwrap();
        assert!(pruned.removed.is_empty() && pruned.kept.is_empty());
        let missing = catalog.fork(&work(), None, &key("b")).unwrap_err();
        assert!(matches!(missing, SessionError::NoSuchSession { .. }), "{missing}");
        let missing = catalog.change_about(&work(), LockWait::Fail, &mut |_| {}).unwrap_err();
        assert!(matches!(missing, SessionError::NoSuchSession { .. }), "{missing}");
        assert!(!catalog.exists(&work()), "a failed call makes no session");
        assert!(!catalog.describe(&work()).is_empty());
    });
}

#[test]
fn a_session_that_is_only_opened_or_recorded_does_not_exist() {
    of_each(|subject| {
        drop(subject.sessions.open(&work(), LockWait::Fail).unwrap());
        assert!(!subject.catalog.exists(&work()));
        subject.catalog.update(&work(), MetaPatch::default()).unwrap();
        assert!(!subject.catalog.exists(&work()));
        assert_eq!(subject.listed(), [work()]);
        assert!(subject.catalog.delete(&work()).unwrap(), "it was listed");
        assert_eq!(subject.listed(), []);
    });
}

#[test]
fn sessions_are_listed_by_their_time_and_then_by_their_key() {
    of_each(|subject| {
        for (name, at) in [("b", 7), ("a", 7), ("new", 9), ("old", 3)] {
            subject.write_at(&key(name), at, &[user(name)]);
        }
        let order = ["new", "a", "b", "old"].map(key);
        assert_eq!(subject.listed(), order);
        let (latest, count) = subject.catalog.latest(2).unwrap();
        let latest: Vec<_> = latest.into_iter().map(|session| session.key).collect();
        assert_eq!((latest, count), (order[..2].to_vec(), 4));
        assert_eq!(subject.catalog.latest(0).unwrap(), (Vec::new(), 4));
        let keys = subject.catalog.latest_keys(2, &|key| !key.ends_with("new")).unwrap();
        assert_eq!(keys, order[1..3]);
        let mut seen = Vec::new();
        let mut visit = |session: myclaw_session::IndexedSession| {
            seen.push((session.key, session.entry.updated_at));
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        subject.catalog.visit(&mut visit).unwrap();
        assert_eq!(seen, [(key("new"), 9), (key("a"), 7), (key("b"), 7)]);
        let label = |name: &str, labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
            let mut set = |about: &mut About| about.labels.clone_from(&labels);
            subject.catalog.change_about(&key(name), LockWait::Fail, &mut set).unwrap();
        };
        label("b", &["pinned", "two\nlines"]);
        label("old", &["archived", "pinned"]);
        label("new", &["pinned"]);
        label("new", &[]);
        let labelled = |limit: usize, with: &[&str], without: &[&str]| {
            let (found, count) = subject.catalog.latest_labelled(limit, with, without).unwrap();
            (found.into_iter().map(|session| session.key).collect::<Vec<_>>(), count)
        };
        assert_eq!(labelled(9, &["pinned"], &["archived"]), (vec![key("b")], 1));
        assert_eq!(labelled(9, &["pinned", "archived"], &[]), (vec![key("old")], 1));
        assert_eq!(labelled(9, &["pin", "labels"], &[]), (vec![], 0));
        assert_eq!(labelled(1, &[], &["pinned", "archived"]), (vec![key("new")], 2));
        assert_eq!(labelled(0, &["pinned"], &[]), (vec![], 2));
        assert_eq!(labelled(2, &[], &[]), (order[..2].to_vec(), 4));
        // A change moves a session to the front, unless it is no activity.
        subject.catalog.update(&key("old"), MetaPatch::default()).unwrap();
        assert_eq!(subject.listed()[0], key("old"));
        let updated_at = UpdatedAt::Keep;
        subject
            .catalog
            .update(&key("a"), MetaPatch { updated_at, ..MetaPatch::default() })
            .unwrap();
        assert_eq!(subject.listed(), ["old", "new", "a", "b"].map(key));
    });
}

#[test]
fn a_visitor_that_fails_ends_the_visit_with_its_failure() {
    of_each(|subject| {
        subject.write_at(&key("a"), 1, &[user("a")]);
        subject.write_at(&key("b"), 2, &[user("b")]);
        let mut seen = 0;
        let outcome = subject.catalog.each(|session| {
            seen += 1;
            Err::<ControlFlow<()>, _>(SessionError::NoSuchSession { key: session.key })
        });
        assert!(
            matches!(outcome, Err(SessionError::NoSuchSession { key: found }) if found == key("b"))
        );
        assert_eq!(seen, 1);
    });
}

#[test]
fn what_is_recorded_adds_up_in_one_entry_and_keeps_its_id() {
    of_each(|subject| {
        subject.write(&work(), &[user("q")]);
        let id = subject.sessions.session_id(&work()).unwrap();
        let patch = |tokens, name: &str| MetaPatch {
            add_tokens: tokens,
            add_messages: 2,
            model: Some(name.to_owned()),
            extra: Some(Map::from_iter([(name.to_owned(), 1.into())])),
            ..MetaPatch::default()
        };
        subject.sessions.record(&work(), patch(3, "one")).outcome.unwrap();
        let entry = subject.catalog.update(&work(), patch(4, "other")).unwrap();
        assert_eq!((entry.total_tokens, entry.messages), (Some(7), Some(4)));
        assert_eq!(entry.model.as_deref(), Some("other"));
        assert_eq!(Some(entry.session_id.clone()), id);
        let extra = entry.extra.clone().unwrap();
        assert!(extra.contains_key("one") && extra.contains_key("other"));
        assert_eq!(subject.catalog.entry(&work()).unwrap(), Some(entry));
    });
}

#[test]
fn a_session_remembers_where_it_works_and_so_do_its_forks() {
    of_each(|subject| {
        let directory = Some(Path::new("/somewhere/else").to_owned());
        let use_of = SessionUse { directory: directory.clone(), is_reopened: true };
        let elsewhere = subject.sessions.used(use_of);
        elsewhere.open(&work(), LockWait::Fail).unwrap().push(&[user("q").into()]).unwrap();
        // It stays there, whoever opens it next.
        subject.write(&work(), &[assistant("a")]);
        subject.write(&key("usual"), &[user("q")]);
        subject.catalog.fork(&work(), None, &key("fork")).unwrap();
        let of = |name: &SessionKey| subject.catalog.directory_of(name).unwrap();
        assert_eq!(of(&work()), directory);
        assert_eq!(of(&key("fork")), directory);
        assert_eq!(of(&key("usual")), None);
        let entry = subject.catalog.update(&work(), MetaPatch::default()).unwrap();
        assert_eq!(entry.directory.as_deref(), Some("/somewhere/else"));
        assert!(!subject.sessions.is_in_use(&work()).unwrap(), "what stays is no lock");
    });
}

#[test]
fn a_reader_sees_a_session_from_both_ends_while_it_is_written() {
    of_each(|subject| {
        let said = [user("one"), assistant("two"), user("three"), assistant("four")];
        let mut log = subject.sessions.open(&work(), LockWait::Fail).unwrap();
        let entries: Vec<Entry> = said.iter().cloned().map(Entry::from).collect();
        log.push(&entries).unwrap();
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        let mut all = reader.entries();
        let read: Vec<Entry> = all.by_ref().map(Result::unwrap).collect();
        assert_eq!((read, all.skipped_lines()), (entries, 0));
        drop(all);
        assert_eq!(texts(&reader.last_messages(2).unwrap()), ["three", "four"]);
        let before = reader.messages_before(at(&said[2]), 9).unwrap().unwrap();
        assert_eq!(texts(&before), ["one", "two"]);
        assert_eq!(texts(&reader.messages_before(at(&said[3]), 1).unwrap().unwrap()), ["three"]);
        assert_eq!(reader.messages_before(at(&said[0]), 9).unwrap(), Some(Vec::new()));
        assert_eq!(reader.messages_before(Some(EntryId::generate()), 9).unwrap(), None);
        let mut newest = Vec::new();
        let mut visit = |message: TranscriptMessage| {
            newest.push(message.content);
            if newest.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        reader.visit_newest(&mut visit).unwrap();
        assert_eq!(newest, ["four", "three"]);
        assert_eq!(reader.last_compaction().unwrap(), None);
        let summary = compaction(said[2].id);
        log.push(&[summary.clone().into(), user("five").into()]).unwrap();
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        assert_eq!(reader.last_compaction().unwrap(), Some(summary));
        let tail = reader.tail(TailLimit::UNLIMITED).unwrap();
        assert_eq!(texts(&tail.messages), ["three", "four", "five"]);
        assert_eq!(reader.torn_bytes().unwrap(), 0);
        assert_eq!(reader.describe(), subject.catalog.describe(&work()));
        let header = reader.header().unwrap().unwrap();
        assert_eq!(header.session_key, work().as_str());
        assert_eq!(header.session_id, subject.sessions.session_id(&work()).unwrap());
    });
}

#[test]
fn who_reads_a_session_that_is_deleted_gets_what_was_there_or_an_error() {
    of_each(|subject| {
        let said = user("old");
        subject.write(&work(), std::slice::from_ref(&said));
        let mut title = |about: &mut About| about.title = Some("old".to_owned());
        let about = subject.catalog.change_about(&work(), LockWait::Fail, &mut title).unwrap();
        let summary = compaction(said.id);
        let mut log = subject.sessions.open(&work(), LockWait::Fail).unwrap();
        log.push(&[summary.clone().into()]).unwrap();
        drop(log);
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        let check = || {
            was_there(reader.about(), &about);
            was_there(reader.last_compaction(), &Some(summary.clone()));
            let texts = |said: Vec<TranscriptMessage>| said.into_iter().map(|row| row.content);
            let texts = |said: Vec<TranscriptMessage>| texts(said).collect::<Vec<_>>();
            was_there(reader.last_messages(9).map(texts), &vec!["old".to_owned()]);
            was_there(reader.messages_before(at(&said), 9), &Some(Vec::new()));
            let read: Result<Vec<Entry>, SessionError> = reader.entries().collect();
            was_there(read.map(|rows| rows.len()), &3);
        };
        assert!(subject.catalog.delete(&work()).unwrap());
        check();
        subject.write(&work(), &[user("another session with its key")]);
        check();
    });
}

fn was_there<T: PartialEq + std::fmt::Debug>(read: Result<T, SessionError>, before: &T) {
    match read {
        Err(SessionError::NoSuchSession { key }) => assert_eq!(key, work()),
        read => assert_eq!(read.unwrap(), *before),
    }
}

#[test]
fn messages_without_a_time_get_that_of_what_was_before() {
    of_each(|subject| {
        let timeless = TranscriptMessage { ts: 0, ..user("timeless") };
        subject.write(&work(), &[user("q"), timeless]);
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        let times: Vec<u64> = reader.entries().filter_map(|entry| entry.unwrap().ts()).collect();
        assert_eq!(times, [1_700_000_000_000; 2]);
        let newest = reader.last_messages(2).unwrap();
        assert_eq!(newest.iter().map(|row| row.ts).collect::<Vec<_>>(), times);
    });
}

#[test]
fn a_title_and_labels_are_in_the_session_and_in_the_list() {
    of_each(|subject| {
        subject.write_at(&work(), 5, &[user("q")]);
        let set = |title: &str, labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            let mut change = |about: &mut myclaw_session::About| {
                about.title = Some(title.to_owned());
                about.labels.clone_from(&labels);
            };
            subject.catalog.change_about(&work(), LockWait::Fail, &mut change).unwrap()
        };
        set("Paris", &[]);
        let about = set("Rome by train", &["travel"]);
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        assert_eq!(reader.about().unwrap(), about);
        let entry = subject.catalog.entry(&work()).unwrap().unwrap();
        assert_eq!(entry.updated_at, 5, "a title is no activity");
        let listed = myclaw_session::About::from_extra(entry.extra.as_ref());
        assert_eq!((listed.title, listed.labels), (about.title, about.labels));
        let find = |text: &str| {
            let query = SearchQuery::text(text, Case::Ignored).unwrap();
            let (found, count) = subject.catalog.find(&query, 9, &|_| false).unwrap();
            assert_eq!(found.len(), count);
            found.len()
        };
        assert_eq!((find("rome"), find("paris"), find("main:work")), (1, 0, 0));
        assert_eq!(find("agent:main"), 1, "the key is searched too");
        let query = SearchQuery::text("nothing", Case::Ignored).unwrap();
        let wanted = subject.catalog.find(&query, 9, &|key| key == work().as_str()).unwrap();
        assert_eq!(wanted.1, 1);
        // A fork has no title of its parent.
        subject.catalog.fork(&work(), None, &key("fork")).unwrap();
        let fork = subject.catalog.read(&key("fork")).unwrap().unwrap();
        assert_eq!(fork.about().unwrap(), myclaw_session::About::default());
        assert_eq!(subject.texts(&work()), ["q"]);
    });
}

#[test]
fn an_open_session_is_neither_described_deleted_nor_replaced() {
    of_each(|subject| {
        let mut log = subject.sessions.open(&work(), LockWait::Fail).unwrap();
        log.push(&[user("q").into()]).unwrap();
        let catalog = &subject.catalog;
        let is_locked = |error: SessionError| matches!(error, SessionError::Locked { .. });
        assert!(is_locked(catalog.delete(&work()).unwrap_err()));
        assert!(is_locked(catalog.change_about(&work(), LockWait::Fail, &mut |_| {}).unwrap_err()));
        assert!(is_locked(catalog.create(&work(), 1, None).unwrap_err()));
        let new = subject.sessions.open(&key("new"), LockWait::Fail).unwrap();
        assert!(is_locked(catalog.fork(&work(), None, &key("new")).unwrap_err()));
        drop(new);
        catalog.fork(&work(), None, &key("new")).unwrap();
        log.push(&[assistant("a").into()]).unwrap();
        assert_eq!(
            (subject.texts(&work()), subject.texts(&key("new"))),
            (vec!["q".to_owned(), "a".to_owned()], vec!["q".to_owned()])
        );
        drop(log);
        assert!(catalog.delete(&work()).unwrap());
        assert!(!catalog.exists(&work()));
    });
}

#[test]
fn a_fork_of_a_fork_keeps_everything_when_its_parents_go() {
    of_each(|subject| {
        let said = [user("one"), assistant("two"), user("three"), assistant("four")];
        subject.write(&work(), &said);
        let origin = subject.catalog.fork(&work(), at(&said[1]), &key("b")).unwrap().origin;
        assert_eq!(origin.session_key, work().as_str());
        assert_eq!(origin.entry_id, at(&said[1]));
        let own = user("own");
        subject.write(&key("b"), &[own.clone(), assistant("reply")]);
        subject.catalog.fork(&key("b"), at(&own), &key("c")).unwrap();
        subject.catalog.fork(&key("c"), at(&said[0]), &key("d")).unwrap();
        subject.write(&key("c"), &[user("last")]);
        let listed: HashSet<_> = subject.listed().into_iter().collect();
        assert!(["b", "c", "d"].iter().all(|name| listed.contains(&key(name))), "forks are listed");
        for gone in [work(), key("b")] {
            assert!(subject.catalog.delete(&gone).unwrap());
            assert_eq!(subject.texts(&key("c")), ["one", "two", "own", "last"]);
            assert_eq!(subject.texts(&key("d")), ["one"]);
        }
        let reader = subject.catalog.read(&key("c")).unwrap().unwrap();
        let parent = reader.header().unwrap().unwrap().forked_from.unwrap();
        assert_eq!((parent.session_key.as_str(), parent.entry_id), (key("b").as_str(), at(&own)));
        let entry = subject.catalog.entry(&key("c")).unwrap().unwrap();
        assert_eq!(entry.extra.unwrap()["forkedFrom"], key("b").as_str());
        assert_ne!(
            subject.sessions.session_id(&key("c")).unwrap(),
            subject.sessions.session_id(&key("d")).unwrap()
        );
    });
}

#[test]
fn a_fork_never_separates_a_call_from_its_results() {
    of_each(|subject| {
        let said =
            [user("q"), assistant("calls"), result("first"), result("second"), user("thanks")];
        subject.write(&work(), &said);
        for place in 1..4 {
            let fork = key(&format!("at-{place}"));
            let made = subject.catalog.fork(&work(), at(&said[place]), &fork).unwrap();
            assert_eq!(made.origin.entry_id, at(&said[3]));
            assert_eq!(subject.texts(&fork), ["q", "calls", "first", "second"]);
        }
    });
}

#[test]
fn a_refused_fork_makes_nothing() {
    of_each(|subject| {
        subject.write(&work(), &[user("q")]);
        subject.write(&key("taken"), &[user("other")]);
        let fork =
            |from: &SessionKey, at, to: &str| subject.catalog.fork(from, at, &key(to)).unwrap_err();
        let missing = fork(&work(), Some(EntryId::generate()), "new");
        assert!(matches!(missing, SessionError::NoSuchEntry { .. }), "{missing}");
        let taken = fork(&work(), None, "taken");
        assert!(matches!(taken, SessionError::SessionExists { .. }), "{taken}");
        let itself = subject.catalog.fork(&work(), None, &work()).unwrap_err();
        assert!(matches!(itself, SessionError::SessionExists { .. }), "{itself}");
        assert!(!subject.catalog.exists(&key("new")));
        assert_eq!(subject.texts(&key("taken")), ["other"]);
        assert!(!subject.sessions.is_in_use(&key("new")).unwrap());
        // The name is free.
        subject.write(&key("new"), &[user("here")]);
        assert_eq!(subject.texts(&key("new")), ["here"]);
    });
}

#[test]
fn an_imported_session_is_there_when_it_is_finished_and_not_before() {
    of_each(|subject| {
        let directory = Path::new("/imported");
        let mut new = subject.catalog.create(&work(), 42, Some(directory)).unwrap();
        assert_eq!(new.key(), &work());
        new.append(&user("q").into()).unwrap();
        assert!(!subject.catalog.exists(&work()));
        assert!(subject.catalog.read(&work()).unwrap().is_none());
        let error = subject.sessions.open(&work(), LockWait::Fail).unwrap_err();
        assert!(matches!(error, SessionError::Locked { .. }), "{error}");
        new.append(&assistant("a").into()).unwrap();
        new.finish().unwrap();
        assert_eq!(subject.texts(&work()), ["q", "a"]);
        let reader = subject.catalog.read(&work()).unwrap().unwrap();
        assert_eq!(reader.header().unwrap().unwrap().created_at, 42);
        assert_eq!(subject.catalog.directory_of(&work()).unwrap().as_deref(), Some(directory));
        let error = subject.catalog.create(&work(), 1, None).unwrap_err();
        assert!(matches!(error, SessionError::SessionExists { .. }), "{error}");
        let mut given_up = subject.catalog.create(&key("half"), 1, None).unwrap();
        given_up.append(&user("q").into()).unwrap();
        drop(given_up);
        assert!(!subject.catalog.exists(&key("half")));
        subject.write(&key("half"), &[user("free")]);
        assert_eq!(subject.texts(&key("half")), ["free"]);
    });
}

#[test]
fn a_deleted_session_leaves_nothing_and_its_name_is_free() {
    of_each(|subject| {
        let (sessions, catalog) = (&subject.sessions, &subject.catalog);
        subject.write_at(&work(), 5, &[user("the needle")]);
        subject.write_at(&key("work-2"), 6, &[user("another needle")]);
        let waiting = myclaw_session::QueuedMessage {
            id: EntryId::generate(),
            kind: myclaw_session::QueuedKind::Steer,
            content: "waits".to_owned(),
            ts: 1,
            meta: None,
            keeper: myclaw_session::Keeper::Inbox,
        };
        sessions.inbox(&work()).push(&waiting).unwrap();
        let id = sessions.session_id(&work()).unwrap();
        let directory = subject.side_files.artifact_directory(&work());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("file"), "x").unwrap();
        assert_eq!(subject.with_text("needle").len(), 2);
        assert!(catalog.delete(&work()).unwrap());
        assert_eq!(subject.with_text("needle"), [(key("work-2"), 1)]);
        assert_eq!(subject.listed(), [key("work-2")]);
        assert!(catalog.read(&work()).unwrap().is_none());
        assert_eq!(sessions.inbox(&work()).pending().unwrap(), []);
        assert!(!directory.exists());
        assert!(!catalog.delete(&work()).unwrap(), "it is gone");
        subject.write(&work(), &[user("again")]);
        assert_eq!(subject.texts(&work()), ["again"]);
        assert_ne!(sessions.session_id(&work()).unwrap(), id, "it is another session");
    });
}

#[test]
fn a_search_finds_what_forks_share_once_even_without_their_parent() {
    of_each(|subject| {
        let said = [user("needle one"), assistant("two"), user("needle three")];
        subject.write(&work(), &said);
        subject.catalog.fork(&work(), at(&said[1]), &key("short")).unwrap();
        subject.catalog.fork(&work(), at(&said[2]), &key("long")).unwrap();
        subject.write(&key("long"), &[user("needle of its own")]);
        assert_eq!(subject.with_text("NEEDLE"), [(key("long"), 1), (work(), 2)]);
        // Without the parent, the fork that shares most of it has its messages.
        subject.catalog.delete(&work()).unwrap();
        assert_eq!(subject.with_text("needle"), [(key("long"), 3)]);
        let query = SearchQuery::text("needle", Case::Sensitive).unwrap();
        let within = |keys: &[SessionKey]| {
            let keys = Some(keys.iter().cloned().collect());
            let scope = SearchScope { keys, ..SearchScope::default() };
            subject.catalog.search(&query, &scope, 1).unwrap()
        };
        let short = within(&[key("short")]);
        assert_eq!(short.matches.into_iter().collect::<Vec<_>>(), [(key("short"), 1)]);
        assert_eq!(short.hits[0].id, said[0].id);
        assert_eq!(within(&[key("long")]).hits.len(), 1, "the limit holds");
        let other = SearchScope { agent_id: Some("other".to_owned()), ..SearchScope::default() };
        assert!(subject.catalog.search(&query, &other, 9).unwrap().matches.is_empty());
    });
}

#[test]
fn a_search_shows_the_newest_hits_with_what_is_around_them() {
    of_each(|subject| {
        for (name, ts) in [("a", 5), ("b", 9), ("c", 7)] {
            let text = format!("before {name} the Needle after {name}");
            subject.write(&key(name), &[TranscriptMessage::new(Role::User, text, ts)]);
        }
        let query = SearchQuery::regex("needle|pin", Case::Ignored).unwrap();
        let report = subject.catalog.search(&query, &SearchScope::default(), 2).unwrap();
        let hits: Vec<_> = report.hits.iter().map(|hit| (hit.key.clone(), hit.ts)).collect();
        assert_eq!(hits, [(key("b"), 9), (key("c"), 7)]);
        assert_eq!(report.hits[0].matched, "Needle");
        assert!(report.hits[0].before.ends_with("before b the "));
        assert_eq!(report.matches.len(), 3);
    });
}

#[test]
fn pruning_takes_off_the_list_or_deletes_but_nothing_that_is_open() {
    of_each(|subject| {
        let now = u64::MAX / 2;
        for name in ["old", "open"] {
            subject.write_at(&key(name), 1_000, &[user("needle")]);
        }
        subject.write_at(&key("new"), now, &[user("needle")]);
        let hour = Duration::from_secs(3_600);
        let pruned = subject.catalog.prune(hour, PruneScope::IndexOnly).unwrap();
        assert_eq!(pruned.removed, [key("old"), key("open")]);
        assert_eq!(subject.listed(), [key("new")]);
        assert_eq!(subject.catalog.adopt().unwrap(), 0, "they do not come back by themselves");
        assert_eq!(subject.with_text("needle").len(), 3, "but they are still there");
        assert!(subject.catalog.exists(&key("old")));
        for name in ["old", "open"] {
            let updated_at = UpdatedAt::At(1_000);
            let patch = MetaPatch { updated_at, ..MetaPatch::default() };
            subject.catalog.update(&key(name), patch).unwrap();
        }
        let open = subject.sessions.open(&key("open"), LockWait::Fail).unwrap();
        let pruned = subject.catalog.prune(hour, PruneScope::WithTranscripts).unwrap();
        assert_eq!(pruned.removed, [key("old")]);
        assert!(
            matches!(&pruned.kept[..], [(kept, SessionError::Locked { .. })] if *kept == key("open"))
        );
        drop(open);
        assert_eq!(subject.listed(), [key("new"), key("open")]);
        assert!(!subject.catalog.exists(&key("old")) && subject.catalog.exists(&key("open")));
    });
}

#[test]
fn a_search_finds_texts_with_any_characters() {
    of_each(|subject| {
        let texts = [
            "50% of a_b",
            "50x of axb",
            "say \"Hi there\" in C:\\temp/dir",
            "ÉCLAIR, then TITLE",
            "one line\nand another",
        ];
        for (number, text) in texts.iter().enumerate() {
            subject.write(&key(&format!("t{number}")), &[user(text)]);
        }
        subject.catalog.adopt().unwrap();
        let found = |text: &str| -> Vec<String> {
            let found = subject.with_text(text).into_iter();
            found.map(|(key, _)| key.parts().peer_id).collect()
        };
        for (text, expected) in [
            ("50% of", vec!["t0"]),
            ("a_b", vec!["t0"]),
            ("of a", vec!["t0", "t1"]),
            ("\"hi there\" in c:\\TEMP/d", vec!["t2"]),
            ("éclair", vec!["t3"]),
            ("title", vec!["t3"]),
            ("line\nand", vec!["t4"]),
            ("li", vec!["t4"]),
            ("there and", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        let query = SearchQuery::regex("(title|another)$", Case::Ignored).unwrap();
        let report = subject.catalog.search(&query, &SearchScope::default(), 10).unwrap();
        let keys: Vec<_> = report.matches.into_keys().collect();
        assert_eq!(keys, [key("t3"), key("t4")]);
    });
}

#[test]
fn ten_thousand_sessions_are_listed_and_searched_like_three() {
    of_each(|subject| {
        let count = 10_000;
        for number in 0..count {
            let name = key(&format!("s{number:05}"));
            let text = if number % 2_500 == 0 { "a needle" } else { "hay" };
            subject.write(&name, &[user(text)]);
        }
        // The list is made of the sessions where they were only written.
        subject.catalog.adopt().unwrap();
        for number in (0..count).step_by(1_000) {
            let updated_at = UpdatedAt::At(u64::MAX / 4 + number);
            let patch = MetaPatch { updated_at, ..MetaPatch::default() };
            subject.catalog.update(&key(&format!("s{number:05}")), patch).unwrap();
        }
        let latest = subject.catalog.latest(3).unwrap().0;
        let latest: Vec<_> = latest.into_iter().map(|session| session.key).collect();
        assert_eq!(latest, ["s09000", "s08000", "s07000"].map(key));
        let wanted = subject.catalog.latest_keys(1, &|key| key.ends_with("s05000")).unwrap();
        assert_eq!(wanted, [key("s05000")]);
        let found: Vec<_> =
            ["s00000", "s02500", "s05000", "s07500"].map(|name| (key(name), 1)).into();
        assert_eq!(subject.with_text("needle"), found);
        let mut visited = 0;
        let mut visit = |_| {
            visited += 1;
            if visited == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        subject.catalog.visit(&mut visit).unwrap();
        assert_eq!(visited, 5);
        assert!(subject.catalog.delete(&key("s05000")).unwrap());
        assert_eq!(subject.with_text("needle").len(), 3);
    });
}

#[test]
fn rivals_delete_and_write_a_session_and_no_acknowledged_message_is_half_there() {
    of_each(|subject| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..200 {
                    let Ok(mut log) =
                        subject.sessions.open(&work(), LockWait::Until(Duration::from_secs(9)))
                    else {
                        continue;
                    };
                    let turn = [user(&format!("q{number}")).into(), assistant("a").into()];
                    log.push(&turn).unwrap();
                }
            });
            scope.spawn(|| {
                for _ in 0..100 {
                    match subject.catalog.delete(&work()) {
                        Ok(_) | Err(SessionError::Locked { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            for _ in 0..100 {
                let Some(reader) = subject.catalog.read(&work()).unwrap() else { continue };
                let rows = match reader.last_messages(10_000) {
                    Err(SessionError::NoSuchSession { .. }) => continue,
                    rows => rows.unwrap(),
                };
                assert!(rows.len() % 2 == 0, "both messages of a turn or none");
            }
        });
        assert!(!subject.sessions.is_in_use(&work()).unwrap());
    });
}
