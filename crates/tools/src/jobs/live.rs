//! The newest output of a running command, in memory.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Fewest bytes that are kept. The whole output is in a side file.
const KEPT_BYTES: usize = 128 * 1024;

/// The sequences with which programs switch a mode of their terminal on and off.
const PASTE_BRACKETS: [&[u8]; 2] = [b"\x1b[?2004h", b"\x1b[?2004l"];
const CURSOR_KEYS: [&[u8]; 2] = [b"\x1b[?1h", b"\x1b[?1l"];
/// The longest of them.
const LONGEST_SWITCH: usize = 8;

/// The newest output.
#[derive(Debug, Default)]
pub(crate) struct LiveOutput {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The newest bytes.
    recent: Vec<u8>,
    /// Bytes before them.
    dropped: u64,
    /// Line ends among the dropped bytes.
    dropped_lines: u64,
    /// The modes of the program's terminal, if it has one.
    modes: Option<TerminalModes>,
}

/// The modes that a program has set on its terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TerminalModes {
    /// Pasted text is marked as such.
    pub(crate) paste_brackets: bool,
    /// The cursor keys send the sequences of application mode.
    pub(crate) cursor_keys: bool,
}

/// Some of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) bytes: Vec<u8>,
    /// Bytes between the requested start and the beginning of this excerpt. They are no longer in memory.
    pub(crate) missed: u64,
    /// Where the next excerpt begins.
    pub(crate) end: u64,
}

impl LiveOutput {
    /// The output of a program that has a terminal.
    pub(crate) fn of_terminal() -> Self {
        let state = State { modes: Some(TerminalModes::default()), ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// Takes a piece of output.
    pub(crate) fn push(&self, piece: &[u8]) {
        let mut state = self.state.lock();
        state.watch_modes(piece);
        state.recent.extend_from_slice(piece);
        if state.recent.len() > 2 * KEPT_BYTES {
            let surplus = state.recent.len() - KEPT_BYTES;
            state.dropped_lines += count_lines(&state.recent[..surplus]);
            state.dropped += surplus as u64;
            state.recent.drain(..surplus);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes output that did not get here. What came before it is dropped, so that the kept bytes have no gap.
    pub(crate) fn skip(&self, bytes: u64, lines: u64) {
        let mut state = self.state.lock();
        let before = std::mem::take(&mut state.recent);
        state.dropped_lines =
            state.dropped_lines.saturating_add(count_lines(&before)).saturating_add(lines);
        state.dropped = state.dropped.saturating_add(before.len() as u64).saturating_add(bytes);
    }

    /// All bytes so far.
    pub(crate) fn total(&self) -> u64 {
        self.state.lock().total()
    }

    /// The modes of the program's terminal.
    pub(crate) fn terminal_modes(&self) -> TerminalModes {
        self.state.lock().modes.unwrap_or_default()
    }

    /// The output from byte `start` on.
    pub(crate) fn since(&self, start: u64) -> Excerpt {
        let state = self.state.lock();
        let missed = state.dropped.saturating_sub(start);
        let from = usize::try_from(start.saturating_sub(state.dropped)).unwrap_or(usize::MAX);
        let bytes = state.recent[from.min(state.recent.len())..].to_vec();
        Excerpt { bytes, missed, end: state.total() }
    }

    /// The output in memory, and the number of lines before it.
    pub(crate) fn recent(&self) -> (Vec<u8>, u64) {
        let state = self.state.lock();
        (state.recent.clone(), state.dropped_lines)
    }

    /// Returns when there is output after byte `seen`. May be dropped.
    pub(crate) async fn grows_beyond(&self, seen: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.total() > seen {
                return;
            }
            changed.await;
        }
    }
}

impl State {
    fn total(&self) -> u64 {
        self.dropped.saturating_add(self.recent.len() as u64)
    }

    /// A sequence may be cut anywhere, so the last bytes of the previous piece are searched again.
    fn watch_modes(&mut self, piece: &[u8]) {
        let Some(modes) = &mut self.modes else { return };
        let overlap = self.recent.len().saturating_sub(LONGEST_SWITCH - 1);
        let seen = [&self.recent[overlap..], piece].concat();
        for (mode, [on, off]) in
            [(&mut modes.paste_brackets, PASTE_BRACKETS), (&mut modes.cursor_keys, CURSOR_KEYS)]
        {
            match (memchr::memmem::rfind(&seen, on), memchr::memmem::rfind(&seen, off)) {
                (None, None) => {}
                (on, off) => *mode = on > off,
            }
        }
    }
}

pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
