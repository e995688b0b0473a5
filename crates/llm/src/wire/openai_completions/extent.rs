//! Checks, while the arguments of a call grow, whether they are a whole object.

use crate::wire::arguments;

/// Most times that a text which looks whole is parsed. One that is not an object at the last attempt counts as invalid.
const MAX_LOOKS: u8 = 4;

/// The state of the check. Hosts that repeat the name of a function do so with every fragment, so the check reads each
/// byte only once.
#[derive(Debug, Default)]
pub(super) struct Extent {
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Number of texts that looked whole and were not.
    looks: u8,
}

impl Extent {
    /// Whether `text` is a whole object. It must begin with the text of the previous check.
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
