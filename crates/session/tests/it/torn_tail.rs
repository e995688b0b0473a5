//! Logs that a crash in the middle of a write left, cut at every byte.

use std::fs;
use std::path::PathBuf;

use myclaw_session::{Entry, TailLimit};

use crate::{Home, assistant, entries, user, work};

fn torn_files(home: &Home) -> Vec<PathBuf> {
    let torn = home.names().into_iter().filter(|name| name.contains(".torn-"));
    torn.map(|name| home.sessions().join(name)).collect()
}

/// A log of two messages, and where its last line begins.
fn whole_log() -> (Vec<u8>, usize, Vec<Entry>) {
    let home = Home::new();
    let written = vec![Entry::from(user("héllo")), Entry::from(assistant("wörld \u{1F600}"))];
    home.open(&work()).append(&written).unwrap();
    let bytes = fs::read(home.store().transcript_path(&work())).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    (bytes, last, written)
}

#[test]
fn a_log_cut_anywhere_in_its_last_line_is_repaired_by_the_next_append() {
    let (bytes, last_line, written) = whole_log();
    for cut in last_line..=bytes.len() {
        let home = Home::new();
        let path = home.write_log(&work(), &bytes[..cut]);
        let is_torn = cut > last_line && cut < bytes.len() - 1;
        let expected = if cut >= bytes.len() - 1 { &written[..] } else { &written[..1] };

        let reader = home.store().reader(&work()).unwrap().unwrap();
        let mut forward = reader.entries();
        assert_eq!(
            forward.by_ref().map(Result::unwrap).collect::<Vec<_>>(),
            expected,
            "cut at {cut}"
        );
        assert_eq!(
            (forward.has_torn_tail(), forward.skipped_lines()),
            (is_torn, 0),
            "cut at {cut}"
        );

        let mut log = home.open(&work());
        let next = Entry::from(user("next"));
        log.append(std::slice::from_ref(&next)).unwrap();
        let tail = log.tail(TailLimit::UNLIMITED).unwrap();
        assert_eq!(tail.repaired_torn_tail, cut > last_line && cut < bytes.len(), "cut at {cut}");
        assert_eq!(tail.skipped_lines, 0, "cut at {cut}");
        assert_eq!(entries(&home, &work()), [expected, &[next]].concat(), "cut at {cut}");

        let saved: Vec<Vec<u8>> =
            torn_files(&home).iter().map(|path| fs::read(path).unwrap()).collect();
        let lost: Vec<Vec<u8>> =
            is_torn.then(|| bytes[last_line..cut].to_vec()).into_iter().collect();
        assert_eq!(saved, lost, "cut at {cut}");
        assert!(fs::read(&path).unwrap().ends_with(b"\n"));
    }
}

#[test]
fn a_line_that_is_finished_while_it_is_read_is_left_out() {
    use std::io::Write;
    let (bytes, last_line, written) = whole_log();
    let home = Home::new();
    let path = home.write_log(&work(), &bytes[..last_line + 10]);
    let reader = home.store().reader(&work()).unwrap().unwrap();
    let mut forward = reader.entries();
    assert_eq!(forward.by_ref().map(Result::unwrap).collect::<Vec<_>>(), written[..1]);
    let mut writer = fs::OpenOptions::new().append(true).open(path).unwrap();
    writer.write_all(&bytes[last_line + 10..]).unwrap();
    assert!(forward.next().is_none());
    assert_eq!((forward.has_torn_tail(), forward.skipped_lines()), (true, 0));
    assert_eq!(reader.entries().count(), 2);
}

#[test]
fn a_torn_header_is_written_anew() {
    let (bytes, _, _) = whole_log();
    let home = Home::new();
    home.write_log(&work(), &bytes[..20]);
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    let reader = home.store().reader(&work()).unwrap().unwrap();
    assert_eq!(reader.header().unwrap().unwrap().session_key, work().to_string());
    assert_eq!(reader.message_count().unwrap(), 1);
    assert_eq!(fs::read(&torn_files(&home)[0]).unwrap(), &bytes[..20]);
}

#[test]
fn blocks_of_zeros_after_a_power_cut_are_moved_aside() {
    let (mut bytes, _, written) = whole_log();
    let length = bytes.len();
    bytes.resize(length + 100_000, 0);
    let home = Home::new();
    home.write_log(&work(), &bytes);
    let mut log = home.open(&work());
    let tail = log.tail(TailLimit::UNLIMITED).unwrap();
    assert_eq!((tail.messages.len(), tail.repaired_torn_tail, tail.skipped_lines), (2, true, 0));
    assert_eq!(fs::metadata(log.path()).unwrap().len(), length as u64);
    assert_eq!(fs::metadata(&torn_files(&home)[0]).unwrap().len(), 100_000);
    assert_eq!(entries(&home, &work()), written);
}

#[test]
fn two_crashes_leave_two_side_files() {
    let home = Home::new();
    for _ in 0..2 {
        let mut bytes = fs::read(home.store().transcript_path(&work())).unwrap_or_default();
        bytes.extend(b"{\"role\":\"us");
        home.write_log(&work(), bytes);
        home.open(&work()).append(&[user("hi").into()]).unwrap();
    }
    assert_eq!(torn_files(&home).len(), 2);
    assert_eq!(entries(&home, &work()).len(), 2);
}

#[test]
fn a_line_that_another_writer_leaves_unfinished_is_terminated() {
    use std::io::Write;
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[user("one").into()]).unwrap();
    let mut rude = fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    rude.write_all(b"{\"role\":\"user\",\"content\":\"by hand\"}").unwrap();
    log.append(&[user("two").into()]).unwrap();
    let found: Vec<_> =
        log.tail(TailLimit::UNLIMITED).unwrap().messages.into_iter().map(|m| m.content).collect();
    assert_eq!(found, ["one", "by hand", "two"]);
}

#[test]
fn a_torn_end_is_reported_with_its_size_and_its_side_file() {
    let (mut bytes, last_line, _) = whole_log();
    // As a file system leaves it that had grown the file and not written it yet.
    bytes.truncate(last_line);
    bytes.extend([0; 5000]);
    let home = Home::new();
    home.write_log(&work(), &bytes);
    let mut log = home.open(&work());
    let moved = log.tail(TailLimit::UNLIMITED).unwrap().moved_aside.unwrap();
    assert_eq!((moved.bytes, fs::read(&moved.path).unwrap()), (5000, vec![0; 5000]));
    assert_eq!(home.store().moved_aside(&work()).unwrap(), std::slice::from_ref(&moved));
    assert_eq!(home.store().all_moved_aside().unwrap(), [moved]);
    let other = myclaw_session::SessionKey::for_cli("main", "other");
    assert!(home.store().moved_aside(&other).unwrap().is_empty());
    drop(log);
    assert_eq!(home.open(&work()).tail(TailLimit::UNLIMITED).unwrap().moved_aside, None);
}
