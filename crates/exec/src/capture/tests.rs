use std::fs;

use tempfile::TempDir;

use super::*;

fn limits(bytes: usize, lines: usize, side_file: Option<PathBuf>) -> OutputLimits {
    OutputLimits {
        keep_tail_bytes: bytes,
        keep_tail_chars: usize::MAX,
        keep_tail_lines: lines,
        side_file,
    }
}

async fn captured(limits: OutputLimits, pieces: &[&[u8]]) -> CapturedOutput {
    let mut capture = Capture::new(limits);
    for piece in pieces {
        capture.push(piece).await;
    }
    capture.finish().await
}

#[tokio::test]
async fn short_output_is_kept_whole_and_makes_no_file() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("out.log");
    let output = captured(limits(10, 2, Some(file.clone())), &[b"one\n", b"", b"two"]).await;
    let expected = CapturedOutput {
        tail: "one\ntwo".into(),
        total_bytes: 7,
        total_lines: 2,
        truncated: false,
        side_file: None,
    };
    assert_eq!(output, expected);
    assert!(!file.exists());
}

#[tokio::test]
async fn long_output_is_in_the_side_file_from_its_first_byte() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("new/directory/out.log");
    let output =
        captured(limits(9, 100, Some(file.clone())), &[b"first\n", b"sec", b"ond\nthird\n"]).await;
    let expected = CapturedOutput {
        tail: "third\n".into(),
        total_bytes: 19,
        total_lines: 3,
        truncated: true,
        side_file: Some(SideFile { path: file.clone(), problem: None }),
    };
    assert_eq!(output, expected);
    assert_eq!(fs::read_to_string(file).unwrap(), "first\nsecond\nthird\n");
}

#[tokio::test]
async fn characters_are_counted_not_bytes() {
    let of_chars = |chars| OutputLimits { keep_tail_chars: chars, ..limits(1000, 100, None) };
    let whole = captured(of_chars(4), &["äöüß".as_bytes()]).await;
    assert_eq!((whole.tail.as_str(), whole.truncated), ("äöüß", false));
    let cut = captured(of_chars(3), &["äöüß".as_bytes()]).await;
    assert_eq!((cut.tail.as_str(), cut.truncated), ("öüß", true));
}

#[tokio::test]
async fn too_many_lines_count_as_long() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("out.log");
    for (text, tail) in [("a\nb\nc\n", "b\nc\n"), ("a\nb\nc", "b\nc")] {
        let output = captured(limits(1000, 2, Some(file.clone())), &[text.as_bytes()]).await;
        assert_eq!((output.tail.as_str(), output.total_lines, output.truncated), (tail, 3, true));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let exactly = captured(limits(1000, 2, Some(file)), &[b"a\nb\n"]).await;
    assert_eq!((exactly.tail.as_str(), exactly.truncated), ("a\nb\n", false));
    let exactly = captured(limits(4, 100, None), &[b"a\nb\n"]).await;
    assert_eq!((exactly.tail.as_str(), exactly.truncated), ("a\nb\n", false));
}

#[tokio::test]
async fn a_tail_begins_at_a_line_unless_most_of_it_would_be_lost() {
    for (pieces, limit, tail) in [
        (&[b"aaaa\nbbbb\ncccc\n".as_slice()], 10, "bbbb\ncccc\n"),
        (&[b"aaaa\nbbbb\ncccc\n"], 12, "bbbb\ncccc\n"),
        (&[b"aaaabbbbbbbbcccc\nd\n"], 12, "bbbbbcccc\nd\n"),
        (&["äääää".as_bytes()], 5, "ää"),
        (&[b"zaaaaaa\nbbbbb"], 12, "aaaaaa\nbbbbb"),
        (&[b"no newline at all"], 0, ""),
    ] {
        assert_eq!(captured(limits(limit, 100, None), pieces).await.tail, tail);
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let output = captured(limits(100, 100, None), &[b"a\0\xff\xfeb"]).await;
    assert_eq!(output.tail, "a\0\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn a_character_cut_between_two_pieces_is_whole() {
    let output = captured(limits(100, 100, None), &[b"\xc3", b"\xa4"]).await;
    assert_eq!(output.tail, "ä");
}

#[tokio::test]
async fn memory_stays_bounded() {
    let mut capture = Capture::new(limits(1000, 100, None));
    for _ in 0..1000 {
        capture.push(&[b'x'; 64 * 1024]).await;
        assert!(capture.recent.capacity() <= 4 * 1001, "{}", capture.recent.capacity());
    }
    let output = capture.finish().await;
    assert_eq!(
        (output.tail.len(), output.total_bytes, output.total_lines),
        (1000, 64 * 1024 * 1000, 1)
    );
}

#[tokio::test]
async fn a_side_file_that_cannot_be_written_is_only_noted() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    // A file where the directory should be; and a device that is always full.
    for path in [directory.path().join("file/out.log"), PathBuf::from("/dev/full")] {
        let output = captured(limits(4, 100, Some(path.clone())), &[b"one\n", b"two\n"]).await;
        assert_eq!((output.tail.as_str(), output.truncated), ("two\n", true));
        let side_file = output.side_file.unwrap();
        assert_eq!(side_file.path, path);
        assert!(
            matches!(side_file.problem, Some(SideFileProblem::Failed { .. })),
            "{:?}",
            side_file.problem
        );
    }
}

#[tokio::test]
async fn a_side_file_is_private_and_replaces_an_older_one() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("out.log");
    captured(limits(1, 100, Some(file.clone())), &[b"a longer one"]).await;
    captured(limits(1, 100, Some(file.clone())), &[b"short"]).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "short");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn last_lines_with_and_without_a_newline_at_the_end() {
    for (text, lines, expected) in [
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb\n", 2, "a\nb\n"),
        ("a\n\n\n", 2, "\n\n"),
        ("a", 1, "a"),
        ("a\n", 0, ""),
        ("", 3, ""),
    ] {
        assert_eq!(last_lines(text.as_bytes(), lines), expected.as_bytes(), "{text:?} {lines}");
    }
}

/// Every text of up to five of these pieces, under small limits: what is kept is always an end of it within the
/// limits, and the counts and the side file are right.
#[tokio::test]
async fn the_tail_is_an_end_within_the_limits() {
    let alphabet = ["a", "\n", "ä", "bcd"];
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("out.log");
    for number in 0..alphabet.len().pow(5) {
        let pieces: Vec<&[u8]> = (0..5)
            .map(|digit| alphabet[number / alphabet.len().pow(digit) % alphabet.len()].as_bytes())
            .collect();
        let text = String::from_utf8(pieces.concat()).unwrap();
        for (bytes, lines) in [(0, 9), (3, 9), (4, 2), (99, 1), (99, 3)] {
            let output = captured(limits(bytes, lines, None), &pieces).await;
            assert!(text.ends_with(&output.tail), "{text:?} gave {:?}", output.tail);
            assert!(
                output.tail.len() <= bytes && output.tail.lines().count() <= lines,
                "{text:?} {:?}",
                output.tail
            );
            assert_eq!(output.total_bytes, text.len() as u64);
            assert_eq!(output.total_lines, text.lines().count() as u64);
            assert_eq!(output.truncated, output.tail != text, "{text:?} {:?}", output.tail);
        }
        if number % 97 == 0 {
            let output = captured(limits(3, 9, Some(file.clone())), &pieces).await;
            assert_eq!(output.truncated, output.side_file.is_some());
            if output.truncated {
                assert_eq!(fs::read_to_string(&file).unwrap(), text);
            }
        }
    }
}

#[tokio::test]
async fn the_tail_does_not_depend_on_how_output_is_cut() {
    let text: String = (0..40).map(|number| format!("line {number}\n")).collect();
    let whole = captured(limits(30, 100, None), &[text.as_bytes()]).await;
    assert_eq!(whole.tail, "line 37\nline 38\nline 39\n");
    for size in 1..40 {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        assert_eq!(captured(limits(30, 100, None), &pieces).await, whole, "pieces of {size}");
    }
}
