//! Whether the arguments of a call are a whole object, asked again and again while they grow.

use crate::wire::arguments;

/// Texts that look whole and are not read more often than this: what is no object at the fourth look is none.
const MAX_LOOKS: u8 = 4;

/// How far a growing text was looked at. Hosts that repeat the name of a function do so with every fragment, so every
/// byte is looked at once.
#[derive(Debug, Default)]
pub(super) struct Extent {
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Texts that looked whole and were not.
    looks: u8,
}

impl Extent {
    /// Whether `text` is a whole object. It must begin with what was asked about before.
    pub(super) fn is_whole(&mut self, text: &str) -> bool {
        for byte in &text.as_bytes()[self.scanned.min(text.len())..] {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.depth += 1,
                b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.scanned = text.len();
        if self.depth > 0 || self.in_string || !text.ends_with('}') || self.looks == MAX_LOOKS {
            return false;
        }
        let is_whole = arguments::parse(text).is_some();
        self.looks += u8::from(!is_whole);
        is_whole
    }
}
