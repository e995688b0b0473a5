//! Tests of the cost of reading a tail. Its content is tested through the public functions.

use std::cell::Cell;
use std::io::{Cursor, SeekFrom};
use std::rc::Rc;

use super::*;
use crate::backward::BLOCK;

struct Counting {
    inner: Cursor<Vec<u8>>,
    count: Rc<Cell<usize>>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count.set(self.count.get() + length);
        Ok(length)
    }
}

impl Seek for Counting {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.inner.seek(target)
    }
}

/// Reads the tail of a log of 100,000 messages. Returns it with the bytes that were read and the bytes of the log.
fn tail_of_long_log(limit: TailLimit) -> (Tail, usize, usize) {
    let mut log = Vec::new();
    for number in 0..50_000 {
        let turn = format!(
            "{{\"role\":\"user\",\"content\":\"question {number}\"}}\n\
             {{\"role\":\"assistant\",\"content\":\"answer {number}\"}}\n"
        );
        log.extend(turn.into_bytes());
    }
    let length = log.len();
    let count = Rc::new(Cell::new(0));
    let tail =
        read_tail([Counting { inner: Cursor::new(log), count: Rc::clone(&count) }], limit).unwrap();
    (tail, count.get(), length)
}

#[test]
fn a_limit_bounds_what_is_read() {
    let (tail, read, _) = tail_of_long_log(TailLimit {
        max_cost: 1000,
        cost: |message, _reduction| message.content.len() as u64,
        ..TailLimit::UNLIMITED
    });
    assert!(tail.older_messages_exist);
    assert_eq!(tail.messages.first().map(|message| message.role), Some(Role::User));
    assert_eq!(tail.messages.last().map(|message| message.content.as_str()), Some("answer 49999"));
    assert!(read <= BLOCK, "{read} bytes read");
}

#[test]
fn without_a_limit_each_byte_is_read_once() {
    let (tail, read, length) = tail_of_long_log(TailLimit::UNLIMITED);
    assert_eq!(tail.messages.len(), 100_000);
    assert_eq!(read, length);
}
