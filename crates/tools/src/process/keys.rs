//! The bytes that the keys of a terminal send.

use crate::jobs::TerminalModes;

const ESCAPE: u8 = 0x1b;
const PASTE_BEGIN: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// Keys with one sequence in every mode.
const FIXED: [(&str, &str); 28] = [
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("shift-tab", "\x1b[Z"),
    ("escape", "\x1b"),
    ("esc", "\x1b"),
    ("space", " "),
    ("backspace", "\x7f"),
    ("delete", "\x1b[3~"),
    ("insert", "\x1b[2~"),
    ("pageup", "\x1b[5~"),
    ("page-up", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("page-down", "\x1b[6~"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
    ("ctrl-space", "\0"),
    ("ctrl-enter", "\n"),
];

/// Keys whose sequence depends on the mode, with its last character.
const CURSOR: [(&str, char); 6] =
    [("up", 'A'), ("down", 'B'), ("right", 'C'), ("left", 'D'), ("home", 'H'), ("end", 'F')];

/// The bytes that the named keys send, in order.
///
/// # Errors
/// A name is not known; the message lists those that are.
pub(super) fn bytes_of(keys: &[String], modes: TerminalModes) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for key in keys {
        let sent = one(key, modes).ok_or_else(|| {
            format!(
                "there is no key {key:?}; keys are single characters, enter, tab, shift-tab, escape, space, backspace, \
                 delete, insert, up, down, left, right, home, end, pageup, pagedown, f1 to f12, ctrl-X and alt-X. Text \
                 goes with action write"
            )
        })?;
        bytes.extend(sent);
    }
    Ok(bytes)
}

fn one(key: &str, modes: TerminalModes) -> Option<Vec<u8>> {
    let mut chars = key.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return Some(char.to_string().into_bytes());
    }
    let name = key.to_ascii_lowercase().replace(['+', '_'], "-");
    if let Some((_, sent)) = FIXED.iter().find(|(known, _)| *known == name) {
        return Some(sent.as_bytes().to_vec());
    }
    if let Some((_, last)) = CURSOR.iter().find(|(known, _)| *known == name) {
        let between = if modes.cursor_keys { 'O' } else { '[' };
        return Some(format!("\x1b{between}{last}").into_bytes());
    }
    let behind = |prefixes: &[&str]| {
        prefixes
            .iter()
            .find_map(|prefix| key.get(prefix.len()..).filter(|_| name.starts_with(prefix)))
    };
    if let Some(key) = behind(&["ctrl-", "control-", "c-", "^"]) {
        return control(key).map(|byte| vec![byte]);
    }
    let rest = behind(&["alt-", "meta-", "m-"]).filter(|rest| !rest.is_empty())?;
    one(rest, modes).map(|sent| [vec![ESCAPE], sent].concat())
}

/// The byte that a key sends together with Ctrl.
fn control(key: &str) -> Option<u8> {
    let &[byte] = key.as_bytes() else { return None };
    match byte.to_ascii_uppercase() {
        upper @ b'@'..=b'_' => Some(upper & 0x1f),
        b'?' => Some(0x7f),
        _ => None,
    }
}

/// Pasted text, marked as such if the program wants that. Text that contains the end mark cannot end the paste.
pub(super) fn pasted(text: &str, modes: TerminalModes) -> Vec<u8> {
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if !modes.paste_brackets {
        return text.into_bytes();
    }
    let mut inner = text;
    // Removing a mark can join the text around it into another mark.
    while inner.contains(PASTE_END) {
        inner = inner.replace(PASTE_END, "");
    }
    format!("{PASTE_BEGIN}{inner}{PASTE_END}").into_bytes()
}

#[cfg(test)]
mod tests;
