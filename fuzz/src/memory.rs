//! How much memory an input takes at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes of memory that an input may take for each of its own. The dearest honest ones are arrays of one-digit
/// numbers as arguments of a call: two bytes of text become a JSON value of 32 bytes in a vector that grows by
/// doubling, and the message, its last event and the properties keep copies.
const PER_BYTE: isize = 512;

/// What even an empty input may take.
const ALLOWANCE: isize = 1 << 20;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator, which counts what the current thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; counting touches only cells without destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

/// Runs `check` on `input`.
///
/// # Panics
/// When that takes more memory than the length of the input allows.
pub fn bounded(input: &[u8], check: impl FnOnce(&[u8])) {
    let before = HELD.get();
    PEAK.set(before);
    check(input);
    let taken = PEAK.get() - before;
    let allowed = ALLOWANCE + PER_BYTE * input.len() as isize;
    assert!(taken <= allowed, "{} bytes of input took {taken} bytes of memory", input.len());
}
