use super::*;

fn entry(pid: i32, parent: i32, group: i32, session: i32, start: u64) -> Entry {
    Entry { pid, name: format!("p{pid}"), is_zombie: false, parent, group, session, start }
}

fn selected(table: &[Entry], seen: &[(i32, u64)], marked: &[i32]) -> Vec<i32> {
    let seen = seen.iter().copied().collect();
    let is_member = select_members(table, 100, &seen, |pid| marked.contains(&pid));
    table.iter().zip(is_member).filter(|(_, member)| *member).map(|(entry, _)| entry.pid).collect()
}

#[test]
fn a_line_of_the_process_table_is_read_whatever_the_name() {
    let line = "42 (a) b (c) S 7 40 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 1844";
    let expected = Entry {
        pid: 42,
        name: "a) b (c".into(),
        is_zombie: false,
        parent: 7,
        group: 40,
        session: 30,
        start: 98765,
    };
    assert_eq!(parse_entry(line), Some(expected));
    assert_eq!(parse_entry("42 (a S 7"), None);
    assert_eq!(parse_entry(""), None);
}

#[test]
fn descendants_groups_and_sessions_belong_to_the_tree() {
    let table = [
        entry(100, 50, 100, 100, 1000),
        entry(101, 100, 100, 100, 1001), // child
        entry(102, 101, 102, 102, 1002), // escaped by a session of its own
        entry(103, 1, 102, 102, 1003),   // orphan in that session
        entry(104, 1, 100, 100, 1004),   // orphan in the root's group
        entry(105, 103, 105, 105, 1005), // child of an orphan
    ];
    assert_eq!(selected(&table, &[], &[]), [100, 101, 102, 103, 104, 105]);
}

#[test]
fn strangers_do_not_belong_to_the_tree() {
    let own = std::process::id().cast_signed();
    let table = [
        entry(1, 0, 1, 1, 0),
        entry(50, 1, 50, 50, 10),
        entry(own, 50, own, 50, 20),
        entry(60, 50, 60, 50, 30),
        entry(100, own, 100, 100, 1000),
        entry(200, 50, 200, 200, 2000),
        entry(300, 1, 300, 300, 3000),
    ];
    assert_eq!(selected(&table, &[], &[]), [100]);
}

#[test]
fn a_mark_finds_daemons_but_never_what_is_older_than_the_root() {
    let table =
        [entry(100, 50, 100, 100, 1000), entry(90, 1, 90, 90, 900), entry(200, 1, 190, 190, 1100)];
    assert_eq!(selected(&table, &[], &[90, 200]), [100, 200]);
}

#[test]
fn a_known_member_counts_only_with_its_own_start_time() {
    let table = [entry(100, 50, 100, 100, 1000), entry(200, 1, 190, 190, 1100)];
    assert_eq!(selected(&table, &[(200, 1100)], &[]), [100, 200]);
    assert_eq!(selected(&table, &[(200, 1099)], &[]), [100], "another process has the id now");
}

#[test]
fn the_real_process_table_holds_this_process() {
    let own = std::process::id().cast_signed();
    let table = process_table().unwrap();
    let entry = table.iter().find(|entry| entry.pid == own).unwrap();
    assert!(!entry.is_zombie);
    assert_eq!(process_entry(own).unwrap().start, entry.start);
}

/// The check right before a signal: between the survey and the signal the process may have ended, and another one may
/// have got its id.
#[test]
fn a_process_that_took_over_an_id_is_not_signalled() {
    let mut stranger = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let entry = process_entry(stranger.id().cast_signed()).unwrap();
    let member =
        |start| Member { pid: entry.pid, name: entry.name.clone(), group: entry.group, start };
    member(entry.start - 1).signal(Signal::KILL);
    member(entry.start).signal(Signal::TERM);
    // Of two signals the deadlier would have won, had both been sent.
    let status = stranger.wait().unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(Signal::TERM.as_raw()));
}
