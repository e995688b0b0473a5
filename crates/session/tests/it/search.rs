//! Searching the messages of sessions.

use std::collections::HashSet;
use std::fs;

use myclaw_session::{
    Case, Entry, MetaPatch, Role, SearchFilters, SearchHit, SearchQuery, SearchScope, SessionKey,
    TranscriptMessage,
};

use crate::{Home, assistant, user, work};

fn key(name: &str) -> SessionKey {
    SessionKey::for_cli("main", name)
}

fn at(ts: u64, text: &str) -> TranscriptMessage {
    TranscriptMessage::new(Role::User, text, ts)
}

fn say(home: &Home, key: &SessionKey, messages: &[TranscriptMessage]) {
    let entries: Vec<Entry> = messages.iter().cloned().map(Entry::from).collect();
    home.open(key).append(&entries).unwrap();
}

fn text(text: &str) -> SearchQuery {
    SearchQuery::text(text, Case::Sensitive).unwrap()
}

fn everywhere() -> SearchScope {
    SearchScope::default()
}

fn found(home: &Home, query: &SearchQuery, scope: &SearchScope) -> Vec<(SessionKey, String)> {
    let report = home.store().search(query, scope, 100).unwrap();
    assert!(report.unreadable.is_empty(), "{:?}", report.unreadable);
    report.hits.into_iter().map(|hit| (hit.key, format!("{}{}", hit.matched, hit.after))).collect()
}

#[test]
fn the_newest_messages_come_first_and_all_are_counted() {
    let home = Home::new();
    say(&home, &key("a"), &[at(1, "needle one"), at(4, "needle four"), at(5, "hay")]);
    say(&home, &key("b"), &[at(2, "needle two"), at(3, "a \"needle\"\nthree")]);
    let report = home.store().search(&text("needle"), &everywhere(), 3).unwrap();
    let times: Vec<u64> = report.hits.iter().map(|hit| hit.ts).collect();
    assert_eq!(times, [4, 3, 2]);
    assert_eq!(report.matches.into_iter().collect::<Vec<_>>(), [(key("a"), 2), (key("b"), 2)]);
    let expected = SearchHit {
        key: key("b"),
        id: report.hits[1].id,
        role: Role::User,
        ts: 3,
        before: "a \"".into(),
        matched: "needle".into(),
        after: "\" three".into(),
    };
    assert_eq!(report.hits[1], expected);
}

#[test]
fn only_the_text_of_messages_counts() {
    let home = Home::new();
    say(&home, &work(), &[user("hello")]);
    // In the header, in field names and in ids, but nowhere in what was said.
    for word in ["session", "content", "work", "user"] {
        assert_eq!(found(&home, &text(word), &everywhere()), [], "{word}");
    }
}

#[test]
fn a_scope_leaves_the_others_out() {
    let home = Home::new();
    let ops = SessionKey::for_cli("ops", "a");
    say(&home, &key("a"), &[at(1, "needle a")]);
    say(&home, &key("b"), &[at(2, "needle b")]);
    say(&home, &ops, &[at(3, "needle ops")]);
    let agent = SearchScope { agent_id: Some("ops".into()), ..everywhere() };
    assert_eq!(found(&home, &text("needle"), &agent), [(ops, "needle ops".into())]);
    let keys = SearchScope { keys: Some(HashSet::from([key("b")])), ..everywhere() };
    assert_eq!(found(&home, &text("needle"), &keys), [(key("b"), "needle b".into())]);
}

#[test]
fn messages_that_forks_share_are_found_once() {
    let home = Home::new();
    let shared = [at(1, "needle shared"), at(2, "needle cut off")];
    say(&home, &work(), &shared);
    let store = home.store();
    store.fork(&work(), Some(shared[0].id), &key("short")).unwrap();
    store.fork(&work(), None, &key("long")).unwrap();
    say(&home, &work(), &[at(3, "needle later")]);
    say(&home, &key("short"), &[at(4, "needle own")]);
    let all = |owner: &SessionKey| {
        [
            (key("short"), "needle own".to_owned()),
            (owner.clone(), "needle cut off".to_owned()),
            (owner.clone(), "needle shared".to_owned()),
        ]
    };
    let mut with_parent = all(&work()).to_vec();
    with_parent.insert(1, (work(), "needle later".to_owned()));
    assert_eq!(found(&home, &text("needle"), &everywhere()), with_parent);
    let only_long = SearchScope { keys: Some(HashSet::from([key("long")])), ..everywhere() };
    assert_eq!(found(&home, &text("needle"), &only_long), all(&key("long"))[1..]);
    store.delete(&work()).unwrap();
    assert_eq!(found(&home, &text("needle"), &everywhere()), all(&key("long")));
}

#[test]
fn long_names_shortened_by_a_hash_are_found_under_their_keys() {
    let home = Home::new();
    let long = SessionKey::for_cli(&"a".repeat(100), &"p".repeat(120));
    assert!(long.slug().contains('='), "{}", long.slug());
    say(&home, &long, &[at(1, "needle")]);
    assert_eq!(found(&home, &text("needle"), &everywhere()), [(long, "needle".into())]);
}

#[test]
fn damaged_and_unrelated_files_do_not_stop_a_search() {
    let home = Home::new();
    say(&home, &key("a"), &[at(1, "needle")]);
    let path = home.store().transcript_path(&key("a"));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(b"\xff\xfe needle\n\0\0\n{\"role\":\"user\",\"content\":\"needle torn");
    fs::write(&path, bytes).unwrap();
    fs::create_dir(home.sessions().join("directory.jsonl")).unwrap();
    fs::write(home.sessions().join("notes.txt"), "needle").unwrap();
    assert_eq!(found(&home, &text("needle"), &everywhere()), [(key("a"), "needle".into())]);
    assert_eq!(Home::new().store().search(&text("x"), &everywhere(), 9).unwrap().hits, []);
}

#[test]
fn the_result_does_not_depend_on_the_threads_of_the_search() {
    let home = Home::new();
    for number in 0..100_u64 {
        let name = format!("s{number}");
        say(&home, &key(&name), &[at(number, &format!("needle {number}")), assistant("hay")]);
    }
    let newest: Vec<String> = (90..100).rev().map(|number| format!("needle {number}")).collect();
    for _ in 0..5 {
        let report = home.store().search(&text("needle"), &everywhere(), 10).unwrap();
        let hits: Vec<String> =
            report.hits.iter().map(|hit| format!("{}{}", hit.matched, hit.after)).collect();
        assert_eq!((hits, report.matches.len()), (newest.clone(), 100));
    }
}

/// What a search with `filters` finds, which is always what one without them finds, prepared for or not.
fn again(home: &Home, filters: &SearchFilters, sought: &str) -> Vec<String> {
    let prepared = SearchFilters::default();
    home.store().prepare_search(&prepared).unwrap();
    let after = home.store().search_again(&prepared, &text(sought), 100).unwrap();
    let report = home.store().search_again(filters, &text(sought), 100).unwrap();
    let fresh = home.store().search(&text(sought), &everywhere(), 100).unwrap();
    for report in [&report, &after] {
        assert_eq!((&report.hits, &report.matches), (&fresh.hits, &fresh.matches));
    }
    report.hits.iter().map(|hit| hit.matched.clone() + &hit.after).collect()
}

#[test]
fn a_search_that_remembers_sees_every_change() {
    let (home, filters) = (Home::new(), SearchFilters::default());
    let long = SessionKey::for_cli(&"a".repeat(100), &"p".repeat(120));
    for (ts, key) in [(1, key("a")), (2, key("b")), (3, long)] {
        say(&home, &key, &[at(ts, &format!("needle {ts}")), at(ts, "hay")]);
    }
    // Files that belong to no session, under a name like that of one.
    fs::write(
        home.sessions().join("agent__x=.jsonl"),
        "{\"role\":\"user\",\"content\":\"needle\"}\n",
    )
    .unwrap();
    fs::create_dir(home.sessions().join("agent__main.jsonl")).unwrap();
    for _ in 0..3 {
        assert_eq!(again(&home, &filters, "needle"), ["needle 3", "needle 2", "needle 1"]);
        assert_eq!(again(&home, &filters, "thread"), [""; 0]);
    }
    say(&home, &key("b"), &[at(4, "thread 4")]);
    assert_eq!(again(&home, &filters, "thread"), ["thread 4"]);
    say(&home, &key("c"), &[at(5, "thread 5")]);
    assert_eq!(again(&home, &filters, "thread"), ["thread 5", "thread 4"]);
    home.store().fork(&key("c"), None, &key("d")).unwrap();
    say(&home, &key("d"), &[at(6, "thread 6")]);
    assert_eq!(again(&home, &filters, "thread"), ["thread 6", "thread 5", "thread 4"]);
    home.store().delete(&key("c")).unwrap();
    assert_eq!(again(&home, &filters, "thread"), ["thread 6", "thread 5", "thread 4"]);
    home.store().delete(&key("b")).unwrap();
    assert_eq!(again(&home, &filters, "thread"), ["thread 6", "thread 5"]);
    // Another program writes a log anew.
    let path = home.store().transcript_path(&key("a"));
    let written = fs::read_to_string(&path).unwrap().replace("needle 1", "a thread 1");
    fs::write(&path, written).unwrap();
    assert_eq!(again(&home, &filters, "a thread"), ["a thread 1"]);
    assert_eq!(again(&home, &filters, "needle"), ["needle 3"]);
}

#[test]
fn a_log_larger_than_one_buffer_is_searched_to_its_end() {
    let (home, filters) = (Home::new(), SearchFilters::default());
    let hay = "hay ".repeat(1 << 18);
    for count in 1..=6 {
        say(&home, &work(), &[at(count, &hay), at(count, &format!("needle {count}"))]);
        for _ in 0..2 {
            assert_eq!(again(&home, &filters, "needle").len() as u64, count);
            assert_eq!(again(&home, &filters, "thread"), [""; 0]);
        }
    }
}

#[test]
fn the_index_finds_keys_titles_and_what_is_wanted() {
    let home = Home::new();
    let index = home.store().index();
    for (time, name) in ["heron", "titled", "asked", "wanted", "other"].into_iter().enumerate() {
        say(&home, &key(name), &[at(time as u64 + 1, "hay")]);
        index.record(&key(name), MetaPatch::default()).unwrap();
    }
    let title = |about: &mut myclaw_session::About| about.title = Some("Der \"Reiher\"".into());
    home.store().change_about(&key("titled"), myclaw_session::LockWait::Fail, title).unwrap();
    let ignored = |text: &str| SearchQuery::text(text, Case::Ignored).unwrap();
    let found = |query: &SearchQuery, limit| {
        let (sessions, total) =
            index.search(query, limit, |wanted| wanted == key("wanted").as_str()).unwrap();
        let mut names: Vec<String> =
            sessions.iter().map(|session| session.key.parts().peer_id).collect();
        names.sort_unstable();
        (names, total)
    };
    assert_eq!(found(&ignored("HERON"), 9), (vec!["heron".into(), "wanted".into()], 2));
    assert_eq!(found(&ignored("\"reiher\""), 9), (vec!["titled".into(), "wanted".into()], 2));
    // Names of fields are no titles.
    assert_eq!(found(&ignored("updatedAt"), 9), (vec!["wanted".into()], 1));
    let shapeless = SearchQuery::regex("[Rr]eihe[r]", Case::Sensitive).unwrap();
    assert_eq!(found(&shapeless, 9), (vec!["titled".into(), "wanted".into()], 2));
    let any = SearchQuery::regex("[DdHh]e[r]", Case::Sensitive).unwrap();
    assert_eq!(found(&any, 2).1, 4);
    assert_eq!(found(&any, 2).0.len(), 2);
}
