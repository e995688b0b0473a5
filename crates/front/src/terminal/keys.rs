//! Tells keys from what a terminal reports, for the prompt and for turns alike.
//!
//! A terminal answers questions, also late ones and those of a program before this one, and it reports what it is not
//! asked for. Such reports are no keys. A key that sends several bytes may arrive in pieces.
//!
//! Control sequences begin with ESC, or with one C1 character, as terminals send them that have 8-bit controls.

use std::time::Duration;

use myclaw_config::KeyBindings;
use parking_lot::{Mutex, MutexGuard};

const ESCAPE: u8 = 0x1b;
/// Ctrl-D.
const END: u8 = 0x04;
/// Letters whose keys with Ctrl may end the line at the prompt.
pub const ENDING_LETTERS: &str = "cdgotvz";
/// The first byte of U+0080 to U+00BF in UTF-8, where the C1 characters are.
const C1_LEAD: u8 = 0xc2;
/// What a terminal sends before pasted text.
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
/// What it sends after it.
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longest wait for what follows an escape character: without it, that was the Escape key.
const ESCAPE_DELAY: Duration = Duration::from_millis(100);
/// How long after an escape character, over a slow line, the rest of a key may begin that was taken for Escape.
const LATE_DELAY: Duration = Duration::from_millis(500);
/// Longest wait for the rest of a sequence that no key is by itself.
const REST_DELAY: Duration = Duration::from_secs(1);
/// Bytes of a sequence that are kept; those of keys are much shorter.
const MOST_KEPT: usize = 64;

/// The one filter of standard input: a sequence may begin at the prompt and end in a turn.
static FILTER: Mutex<KeyFilter> = Mutex::new(KeyFilter::new());

/// Keys that stand for others from now on: what is sent for each, and what the chat reads in its place, which may be nothing.
type BoundKeys = Vec<(Vec<u8>, Vec<u8>)>;

/// Has the keys of `bindings` do what the usual ones do, at the prompt and in turns. A usual key whose action has another one does
/// nothing.
pub fn bind_keys(bindings: &KeyBindings) {
    let usual = KeyBindings::default();
    let mut bound = BoundKeys::new();
    let moved =
        bindings.all().into_iter().zip(usual.all()).filter(|((_, own), (_, usual))| own != usual);
    for ((_, own), (_, usual)) in moved {
        let meant = usual.bytes().swap_remove(0);
        bound.extend(own.bytes().into_iter().map(|sent| (sent, meant.clone())));
        let left = usual
            .bytes()
            .into_iter()
            .filter(|sent| !bindings.all().iter().any(|(_, own)| own.bytes().contains(sent)));
        bound.extend(left.map(|sent| (sent, Vec::new())));
    }
    FILTER.lock().bound = bound;
}

/// The filter of standard input.
pub(super) fn filter() -> MutexGuard<'static, KeyFilter> {
    FILTER.lock()
}

/// Makes the keys of the first `before` bytes, which were sent in the terminal's own mode, those that they are in a mode
/// in which keys arrive one by one. Counts the bytes.
pub(super) fn translate_earlier(bytes: &mut [u8], before: &mut u64) {
    let earlier = usize::try_from(*before).map_or(bytes.len(), |before| before.min(bytes.len()));
    *before -= earlier as u64;
    for byte in &mut bytes[..earlier] {
        *byte = match *byte {
            b'\n' => b'\r',
            // What the kernel keeps of a Ctrl-D that ends the input.
            0 => END,
            other => other,
        };
    }
}

/// What a key that was passed on is to the line editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Key,
    /// May end the line at the prompt: Enter, Escape, Shift-Tab, and the keys of [`ENDING_LETTERS`].
    End,
    /// The place of the cursor, which the editor waits for before it reads keys.
    Place,
}

/// Divides what was passed on into keys. `is_pasting` says whether the first are pasted.
pub(super) fn kinds(mut keys: &[u8], mut is_pasting: bool) -> Vec<(&[u8], Kind)> {
    let mut divided = Vec::new();
    while !keys.is_empty() {
        let (length, kind) = match keys {
            [ESCAPE, b'[', after @ ..] if !is_pasting || keys.starts_with(PASTE_END) => {
                let last = after.iter().position(|byte| matches!(byte, 0x40..=0x7e));
                let kind = match last.map(|last| after[last]) {
                    Some(b'Z') => Kind::End,
                    Some(b'R') => Kind::Place,
                    _ => Kind::Key,
                };
                (last.map_or(keys.len(), |last| last + 3), kind)
            }
            _ if is_pasting => (1, Kind::Key),
            [ESCAPE] | [ESCAPE, ESCAPE, ..] => (1, Kind::End),
            [ESCAPE, b'O', _, ..] => (3, Kind::Key),
            [ESCAPE, ..] => (2, Kind::Key),
            [b'\r', ..] => (1, Kind::End),
            [byte @ ..0x20, ..] if ENDING_LETTERS.as_bytes().contains(&(byte | 0x60)) => {
                (1, Kind::End)
            }
            _ => (1, Kind::Key),
        };
        let (key, rest) = keys.split_at(length);
        is_pasting = key == PASTE_BEGIN || is_pasting && key != PASTE_END;
        divided.push((key, kind));
        keys = rest;
    }
    divided
}

/// Writes the C1 characters that begin or end a sequence as the two characters that mean the same.
pub(super) fn with_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        match after {
            [second, after @ ..] if *byte == C1_LEAD && is_control(*second) => {
                written.extend([ESCAPE, second - 0x40]);
                rest = after;
            }
            _ => written.push(*byte),
        }
    }
    written
}

/// Passes on keys, each in one piece, and nothing else.
#[derive(Debug)]
pub(super) struct KeyFilter {
    state: State,
    /// The sequence that has begun.
    begun: Vec<u8>,
    /// Whether the next byte tells a C1 character from another one.
    has_c1_lead: bool,
    /// How many bytes are missing of the character that has begun.
    missing: u8,
    is_pasting: bool,
    /// Whether the marks around the paste begin with a C1 character.
    pastes_with_c1: bool,
    /// Whether the Escape key was the last that was passed on, because nothing followed in time.
    has_escaped: bool,
    /// Whether that was a moment ago.
    has_just_escaped: bool,
    bound: BoundKeys,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After ESC.
    Escape,
    /// In what may be the rest of a key that was taken for Escape, without its ESC.
    Late,
    /// In `ESC [ … final`.
    Control,
    /// After `ESC O`.
    Function,
    /// In a string of the terminal: an answer of the kinds OSC, DCS, APC, PM and SOS.
    String,
    /// After ESC in such a string.
    StringEscape,
}

impl KeyFilter {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Text,
            begun: Vec::new(),
            has_c1_lead: false,
            missing: 0,
            is_pasting: false,
            pastes_with_c1: false,
            has_escaped: false,
            has_just_escaped: false,
            bound: Vec::new(),
        }
    }

    pub(super) const fn is_pasting(&self) -> bool {
        self.is_pasting
    }

    /// Appends a key, or the one that it stands for.
    fn pass(&self, key: &[u8], keys: &mut Vec<u8>) {
        let bound = self.bound.iter().find(|(sent, _)| sent.as_slice() == key);
        keys.extend(bound.map_or(key, |(_, meant)| meant.as_slice()));
    }

    /// How long to wait for the rest of what has begun; `None` if nothing has.
    pub(super) fn patience(&self) -> Option<Duration> {
        match self.state {
            _ if self.has_c1_lead => Some(REST_DELAY),
            State::Text if self.has_just_escaped => Some(LATE_DELAY - ESCAPE_DELAY),
            State::Text => None,
            State::Escape => Some(ESCAPE_DELAY),
            _ => Some(REST_DELAY),
        }
    }

    /// Takes bytes, and appends the keys among them to `keys`.
    pub(super) fn push(&mut self, bytes: &[u8], keys: &mut Vec<u8>) {
        // The rest of a key that was taken for Escape: nobody types these at once.
        let is_late = std::mem::take(&mut self.has_just_escaped);
        if std::mem::take(&mut self.has_escaped) && is_rest_of_key(bytes) {
            self.begin(State::Escape);
        } else if is_late && is_begin_of_rest(bytes) {
            self.state = State::Late;
            self.begun.clear();
        }
        for byte in bytes {
            self.decode(*byte, keys);
        }
    }

    /// Finds the C1 characters, in UTF-8 or as single bytes, which are no part of another character.
    fn decode(&mut self, byte: u8, keys: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_c1_lead) {
            if self.control_character(byte, keys) {
                return;
            }
            self.take(C1_LEAD, keys);
            self.missing = 1;
        }
        let is_within = self.missing > 0 && matches!(byte, 0x80..=0xbf);
        self.missing = match byte {
            _ if is_within => self.missing - 1,
            0xc3..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        if byte == C1_LEAD {
            self.has_c1_lead = true;
        } else if is_within || !self.control_character(byte, keys) {
            self.take(byte, keys);
        }
    }

    /// Takes a C1 character as the two characters that mean the same. False if it is none that begins or ends a sequence,
    /// or is pasted.
    fn control_character(&mut self, byte: u8, keys: &mut Vec<u8>) -> bool {
        if !is_control(byte) || self.is_pasting && !(self.pastes_with_c1 && byte == 0x9b) {
            return false;
        }
        if byte != 0x9c {
            let was_pasting = self.is_pasting;
            self.take(ESCAPE, keys);
            self.take(byte - 0x40, keys);
            self.pastes_with_c1 = was_pasting || byte == 0x9b;
        } else if matches!(self.state, State::String | State::StringEscape) {
            self.state = State::Text;
        }
        true
    }

    /// The rest of what has begun has not come in time.
    pub(super) fn give_up(&mut self, keys: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_c1_lead) {
            return self.take(C1_LEAD, keys);
        }
        match self.state {
            State::Escape => {
                keys.push(ESCAPE);
                (self.has_escaped, self.has_just_escaped) = (true, true);
            }
            State::Text => self.has_just_escaped = false,
            // Somebody typed it.
            State::Late => keys.append(&mut self.begun),
            State::Control if self.is_pasting => keys.append(&mut self.begun),
            _ => {}
        }
        self.state = State::Text;
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.pastes_with_c1 &= self.is_pasting;
        self.begun.clear();
        self.begun.push(ESCAPE);
    }

    fn take(&mut self, byte: u8, keys: &mut Vec<u8>) {
        match (self.state, byte) {
            (State::Text, ESCAPE) => self.begin(State::Escape),
            (State::Text, byte) if self.is_pasting => keys.push(byte),
            (State::Text, byte) => self.pass(&[byte], keys),
            (State::Late, byte) => self.late(byte, keys),
            (State::Escape, ESCAPE) => {
                keys.push(ESCAPE);
                self.begin(State::Escape);
            }
            (State::Escape, b'[') => {
                self.begun.push(byte);
                self.state = State::Control;
            }
            (State::Escape, byte) if self.is_pasting => {
                keys.extend([ESCAPE, byte]);
                self.state = State::Text;
            }
            (State::Escape, b'O') => self.state = State::Function,
            (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => self.state = State::String,
            (State::Escape, byte) => {
                self.pass(&[ESCAPE, byte], keys);
                self.state = State::Text;
            }
            (State::Function, byte) => {
                self.pass(&[ESCAPE, b'O', byte], keys);
                self.state = State::Text;
            }
            (State::Control, byte) => self.control(byte, keys),
            // The strings hold no line ends: what has begun was no string, and Enter is Enter.
            (State::String, b'\r' | b'\n') => {
                self.state = State::Text;
                keys.push(byte);
            }
            // BEL ends it; CAN and SUB break it off.
            (State::String, 0x07 | 0x18 | 0x1a) | (State::StringEscape, b'\\') => {
                self.state = State::Text;
            }
            (State::String, ESCAPE) => self.state = State::StringEscape,
            (State::String, _) => {}
            (State::StringEscape, byte) => {
                self.begin(State::Escape);
                self.take(byte, keys);
            }
        }
    }

    /// A byte after the Escape key, of a key or typed.
    fn late(&mut self, byte: u8, keys: &mut Vec<u8>) {
        let mut begun = std::mem::take(&mut self.begun);
        begun.push(byte);
        if is_rest_of_key(&begun) {
            self.begin(State::Escape);
            begun.iter().for_each(|byte| self.take(*byte, keys));
        } else if is_begin_of_rest(&begun) && begun.len() < MOST_KEPT {
            self.begun = begun;
        } else {
            begun.pop();
            keys.append(&mut begun);
            self.state = State::Text;
            self.take(byte, keys);
        }
    }

    /// A byte of `ESC [ … final`.
    fn control(&mut self, byte: u8, keys: &mut Vec<u8>) {
        if byte < 0x20 && !self.is_pasting {
            // No sequence holds it, so what has begun is none.
            self.state = State::Text;
            return self.take(byte, keys);
        }
        if self.begun.len() < MOST_KEPT {
            self.begun.push(byte);
        }
        // The function keys of the Linux console begin with `ESC [ [`.
        let is_final = matches!(byte, 0x40..=0x7e) && self.begun != b"\x1b[[";
        if !is_final && !(self.is_pasting && (byte < 0x20 || self.begun.len() == MOST_KEPT)) {
            return;
        }
        self.state = State::Text;
        let sequence = std::mem::take(&mut self.begun);
        if self.is_pasting {
            self.is_pasting = sequence != PASTE_END;
            keys.extend(sequence);
        } else if is_final {
            self.is_pasting = sequence == PASTE_BEGIN;
            let mut key = Vec::new();
            push_key(&sequence, byte, &mut key);
            self.pass(&key, keys);
        }
    }
}

/// Whether this is the last byte of SS3, DCS, SOS, CSI, ST, OSC, PM or APC as a C1 character.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0x8f | 0x90 | 0x98 | 0x9b..=0x9f)
}

/// Whether bytes that arrived at once are a key without its escape character, such as `[D` or `[1;5C`.
fn is_rest_of_key(bytes: &[u8]) -> bool {
    match bytes {
        [b'O', b'A'..=b'Z'] => true,
        [b'[', parameters @ .., b'A'..=b'Z' | b'~' | b'u'] => {
            parameters.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        }
        _ => false,
    }
}

/// Whether bytes are the begin of a key without its escape character.
fn is_begin_of_rest(bytes: &[u8]) -> bool {
    match bytes {
        [b'O'] => true,
        [b'[', parameters @ ..] => {
            parameters.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        }
        _ => false,
    }
}

/// Appends a complete sequence if it is a key, in the form that all readers know; reports are dropped.
fn push_key(sequence: &[u8], last: u8, keys: &mut Vec<u8>) {
    let parameters = &sequence[2..sequence.len().saturating_sub(1)];
    let is_plain =
        parameters.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'));
    if !is_plain {
        return;
    }
    let text = String::from_utf8_lossy(parameters).into_owned();
    let numbers: Vec<&str> = text.split(';').collect();
    match (last, numbers.as_slice()) {
        // `modifyOtherKeys` of xterm, and the protocol of kitty.
        (b'~', ["27", modifiers, code]) => coded_key(code, modifiers, keys),
        (b'u', [code]) => coded_key(code, "1", keys),
        (b'u', [code, modifiers, ..]) => coded_key(code, modifiers, keys),
        // Also the place of the cursor, which the line editor asks for, and which is the key F3 to others.
        (b'A'..=b'F' | b'H' | b'P'..=b'S' | b'Z' | b'I' | b'O' | b'~', _) => keys.extend(sequence),
        _ => {}
    }
}

/// Appends a key that is given by its code and modifiers: 1, and 1 for Shift, 2 for Alt, 4 for Ctrl.
fn coded_key(code: &str, modifiers: &str, keys: &mut Vec<u8>) {
    let first = |text: &str| text.split(':').next().and_then(|number| number.parse::<u32>().ok());
    // It says that the key was released.
    if modifiers.split(':').nth(1) == Some("3") {
        return;
    }
    let (Some(code), Some(modifiers)) = (first(code), first(modifiers)) else { return };
    let held = modifiers.saturating_sub(1);
    let (shift, alt, ctrl) = (held & 1 != 0, held & 2 != 0, held & 4 != 0);
    let Some(key) = char::from_u32(code).filter(|_| !(0xe000..=0xf8ff).contains(&code)) else {
        return;
    };
    match key {
        '\r' if shift || ctrl => return keys.push(b'\n'),
        '\t' if shift => return keys.extend(b"\x1b[Z"),
        _ => {}
    }
    if alt {
        keys.push(ESCAPE);
    }
    match key {
        'a'..='z' | 'A'..='Z' | '[' | '\\' | ']' | '^' | '_' if ctrl => {
            keys.push(code as u8 & 0x1f)
        }
        key => keys.extend(key.encode_utf8(&mut [0; 4]).bytes()),
    }
}

#[cfg(test)]
mod tests;
