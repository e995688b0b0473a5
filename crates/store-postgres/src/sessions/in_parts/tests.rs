use std::io::Read as _;

use super::InParts;

const WORD: &[u8] = b"tea";

/// Removes the word where no letter is before or behind it.
fn remove(bytes: &mut [u8]) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let mut is_changed = false;
    for at in 0..bytes.len().saturating_sub(WORD.len() - 1) {
        let end = at + WORD.len();
        let is_part =
            is_letter(at.checked_sub(1).map(|at| &bytes[at])) || is_letter(bytes.get(end));
        if &bytes[at..end] == WORD && !is_part {
            bytes[at..end].fill(b'*');
            is_changed = true;
        }
    }
    is_changed
}

#[test]
fn parts_are_changed_like_the_whole_wherever_a_word_stands() {
    for at in 0..90 {
        for word in [" tea ", "steak", "teas ", "     "] {
            let mut content = vec![b'.'; 100];
            content[at..at + word.len()].copy_from_slice(word.as_bytes());
            let mut expected = content.clone();
            let is_changed = remove(&mut expected);
            let mut change = remove;
            let mut parts = InParts::of(content.as_slice(), &mut change, 16, 8);
            let mut changed = Vec::new();
            parts.read_to_end(&mut changed).unwrap();
            let shown = String::from_utf8(changed.clone()).unwrap();
            assert_eq!((changed, parts.is_changed), (expected, is_changed), "{at} {word}: {shown}");
        }
    }
}

#[test]
fn contents_of_all_sizes_are_read_to_their_end() {
    for size in 0..80 {
        let content = vec![b'.'; size];
        let mut change = remove;
        let mut read = Vec::new();
        InParts::of(content.as_slice(), &mut change, 16, 8).read_to_end(&mut read).unwrap();
        assert_eq!(read, content);
    }
}
