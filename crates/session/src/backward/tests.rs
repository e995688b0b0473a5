//! Tests of reading lines backwards.

use std::cell::Cell;
use std::io::Cursor;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;

/// Counts the bytes that pass through it.
struct Counting<R> {
    inner: R,
    count: Rc<Cell<usize>>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count.set(self.count.get() + length);
        Ok(length)
    }
}

impl<R: Seek> Seek for Counting<R> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.inner.seek(target)
    }
}

fn backward(bytes: &[u8]) -> Vec<(u64, Vec<u8>, bool)> {
    let mut lines = BackwardLines::new(Cursor::new(bytes)).unwrap();
    let mut found = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        found.push((line.offset, line.bytes.to_vec(), line.terminated));
    }
    assert!(lines.next_line().unwrap().is_none(), "the end is final");
    found.reverse();
    found
}

fn forward(bytes: &[u8]) -> Vec<(u64, Vec<u8>, bool)> {
    let mut offset = 0;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            let start = offset;
            offset += line.len() as u64;
            match line.strip_suffix(b"\n") {
                Some(text) => (start, text.to_vec(), true),
                None => (start, line.to_vec(), false),
            }
        })
        .collect()
}

#[test]
fn small_files_are_read() {
    for text in ["", "\n", "a", "a\n", "\na", "a\nb", "a\n\n\nb\n", "\n\n"] {
        assert_eq!(backward(text.as_bytes()), forward(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn lines_around_the_block_size_are_read() {
    for length in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1] {
        let mut bytes = b"first\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', length));
        bytes.extend(b"\nlast\n");
        assert_eq!(backward(&bytes), forward(&bytes), "{length}");
    }
}

#[test]
fn a_huge_line_between_small_ones_is_read() {
    let mut bytes = b"before\n".repeat(50_000);
    bytes.extend(std::iter::repeat_n(b'x', 10 * 1024 * 1024));
    bytes.push(b'\n');
    bytes.extend(b"after\n".repeat(50_000));
    assert_eq!(backward(&bytes), forward(&bytes));
}

#[test]
fn memory_for_a_huge_line_is_released() {
    let mut bytes = b"before\n".repeat(50_000);
    bytes.extend(std::iter::repeat_n(b'x', 8 * 1024 * 1024));
    bytes.push(b'\n');
    let mut lines = BackwardLines::new(Cursor::new(&bytes)).unwrap();
    assert_eq!(lines.next_line().unwrap().unwrap().bytes.len(), 8 * 1024 * 1024);
    while lines.next_line().unwrap().is_some() {}
    assert!(lines.buffer.len() <= LARGE_BUFFER);
}

#[test]
fn only_the_end_is_read() {
    let bytes = b"0123456789\n".repeat(1_000_000);
    let count = Rc::new(Cell::new(0));
    let mut lines =
        BackwardLines::new(Counting { inner: Cursor::new(&bytes), count: Rc::clone(&count) })
            .unwrap();
    for _ in 0..100 {
        lines.next_line().unwrap().unwrap();
    }
    assert!(count.get() <= BLOCK, "{} bytes read", count.get());
}

proptest! {
    #[test]
    fn backward_equals_forward(
        runs in prop::collection::vec(
            (prop::sample::select(&b"\n\nab\r\0\xff"[..]), prop_oneof![4 => 1..5_usize, 1 => 1..200_000_usize]),
            0..12,
        )
    ) {
        let bytes: Vec<u8> = runs.into_iter().flat_map(|(byte, count)| {
            // Long runs of line feeds only make the test slow.
            std::iter::repeat_n(byte, if byte == b'\n' { count.min(3) } else { count })
        }).collect();
        prop_assert_eq!(backward(&bytes), forward(&bytes));
    }
}
