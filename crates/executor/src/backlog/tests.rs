use super::*;

fn chunk(skipped_bytes: u64, skipped_lines: u64, bytes: &[u8]) -> Chunk {
    Chunk { skipped_bytes, skipped_lines, bytes: bytes.to_vec() }
}

#[test]
fn what_does_not_fit_is_skipped_and_counted() {
    let backlog = Backlog::default();
    assert_eq!(backlog.take(), None);
    backlog.push(b"a\nb\n");
    backlog.push(&vec![b'x'; MAX_PIECE_BYTES - 1]);
    assert_eq!(
        backlog.take(),
        Some(chunk(3, 1, &[b"\n", &vec![b'x'; MAX_PIECE_BYTES - 1][..]].concat()))
    );
    assert_eq!(backlog.take(), None);
}

#[test]
fn a_gap_comes_after_what_waits() {
    let backlog = Backlog::default();
    backlog.push(b"a\n");
    backlog.push_chunk(&chunk(10, 2, b"new"));
    assert_eq!(backlog.take(), Some(chunk(12, 3, b"new")));
    backlog.push_chunk(&chunk(0, 0, b"more"));
    assert_eq!(backlog.take(), Some(chunk(0, 0, b"more")));
}
