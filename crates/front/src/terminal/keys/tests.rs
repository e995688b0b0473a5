use super::*;

/// What passes when the pieces arrive one after the other, with the time for the rest over after each `None`.
fn passed(pieces: &[Option<&str>]) -> String {
    let pieces: Vec<_> = pieces.iter().map(|piece| piece.map(str::as_bytes)).collect();
    String::from_utf8(passed_bytes(&pieces)).unwrap()
}

fn passed_bytes(pieces: &[Option<&[u8]>]) -> Vec<u8> {
    let (mut filter, mut keys) = (KeyFilter::new(), Vec::new());
    for piece in pieces {
        match piece {
            Some(piece) => filter.push(piece, &mut keys),
            None => filter.give_up(&mut keys),
        }
    }
    keys
}

/// A sequence as a terminal with 8-bit controls sends it, in UTF-8.
fn in_c1(sequence: &str) -> String {
    let mut chars = sequence.chars().peekable();
    let mut written = String::new();
    while let Some(char) = chars.next() {
        let c1 = chars.peek().filter(|_| char == '\x1b').and_then(|second| {
            "[]P_^XO\\".contains(*second).then(|| char::from(*second as u8 + 0x40))
        });
        written.push(c1.unwrap_or(char));
        if c1.is_some() {
            chars.next();
        }
    }
    written
}

/// The same with single bytes.
fn in_bytes(sequence: &str) -> Vec<u8> {
    in_c1(sequence).chars().map(|char| char as u8).collect()
}

/// Reports of terminals: colours, versions, clipboards, modes, attributes, sizes, pictures, mice.
const REPORTS: [&str; 18] = [
    "\x1b]11;rgb:1e1e/1e1e/2e2e\x07",
    "\x1b]10;rgb:ff/ff/ff\x1b\\",
    "\x1b]4;1;rgb:cd/00/00\x07",
    "\x1b]52;c;aGVsbG8=\x1b\\",
    "\x1bP>|xterm(390)\x1b\\",
    "\x1bP1+r544e=787465726d\x1b\\",
    "\x1bP1$r0m\x1b\\",
    "\x1b_Gi=31;OK\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstring\x1b\\",
    "\x1b[?62;4;22c",
    "\x1b[>0;276;0c",
    "\x1b[=1;2c",
    "\x1b[?2026;2$y",
    "\x1b[?1u",
    "\x1b[0n",
    "\x1b[4;600;800t",
    "\x1b[<0;10;10M",
];

/// Keys, whose bytes stay together.
const KEYS: [&str; 22] = [
    "\x1b[A",
    "\x1b[1;5D",
    "\x1bOP",
    "\x1b[3~",
    "\x1b[15;2~",
    "\x1b[Z",
    "\x1b[I",
    "\x1b[O",
    "\x1b[H",
    "\x1bb",
    "\x1b\r",
    "a",
    "é",
    // Characters with bytes of C1 characters.
    "ě",
    "✜",
    "雛",
    "😛",
    "\u{a7}",
    "\u{85}",
    "\r",
    "\n",
    "\x07",
];

#[test]
fn reports_are_no_keys_wherever_they_are_cut() {
    for report in REPORTS {
        for cut in 0..=report.len() {
            let (before, after) = report.split_at(cut);
            let pieces = [Some("a"), Some(before), Some(after), Some("b")];
            assert_eq!(passed(&pieces), "ab", "{report:?} {cut}");
        }
    }
    assert_eq!(passed(&[Some(&REPORTS.concat())]), "");
}

#[test]
fn reports_with_c1_characters_are_no_keys_wherever_they_are_cut() {
    for report in REPORTS {
        for report in [in_c1(report).into_bytes(), in_bytes(report)] {
            for cut in 0..=report.len() {
                let (before, after) = report.split_at(cut);
                let pieces: [Option<&[u8]>; 4] =
                    [Some(b"a"), Some(before), Some(after), Some(b"b")];
                assert_eq!(passed_bytes(&pieces), b"ab", "{report:?} {cut}");
            }
        }
    }
    // A title may hold characters whose bytes are those of an end.
    assert_eq!(passed(&[Some("\u{9d}0;✜ ě œ\u{9c}a\x1b]0;✜\u{9c}b\u{9c}c")]), "abc");
    assert_eq!(passed(&[Some("\u{9b}1;5D\u{8f}P\u{9b}13;2u")]), "\x1b[1;5D\x1bOP\n");
    // What is no such character after all is not lost.
    assert_eq!(passed_bytes(&[Some(b"\xc2"), None, Some(b"a")]), b"\xc2a");
}

#[test]
fn a_paste_with_c1_marks_ends_and_another_one_keeps_its_c1_characters() {
    assert_eq!(
        passed(&[Some("\u{9b}200~a\n\u{9d}x\u{9b}201~\u{9d}11;x\u{9c}b")]),
        "\x1b[200~a\n\u{9d}x\x1b[201~b"
    );
    let paste = "\x1b[200~a\u{9b}201~b\u{9d}\x1b[201~";
    assert_eq!(passed(&[Some(paste), Some("\u{9b}?1ux")]), format!("{paste}x"));
}

#[test]
fn keys_pass_in_one_piece_wherever_they_are_cut() {
    for key in KEYS {
        let bytes = key.as_bytes();
        for cut in 1..bytes.len() {
            let (mut filter, mut keys) = (KeyFilter::new(), Vec::new());
            filter.push(&bytes[..cut], &mut keys);
            if bytes[0] == ESCAPE {
                assert_eq!(keys, b"", "{key:?}: nothing of it before the rest");
                assert!(filter.patience().is_some());
            }
            filter.push(&bytes[cut..], &mut keys);
            assert_eq!(keys, bytes, "{key:?} {cut}");
            assert_eq!(filter.patience(), None);
        }
    }
    // The key Escape, alone and twice; and the rest of a key that came late.
    assert_eq!(passed(&[Some("\x1b"), None]), "\x1b");
    assert_eq!(passed(&[Some("\x1b\x1b"), None]), "\x1b\x1b");
    assert_eq!(passed(&[Some("\x1b"), None, Some("[D"), Some("[D")]), "\x1b\x1b[D[D");
    assert_eq!(passed(&[Some("\x1b"), None, Some("[1;5C")]), "\x1b\x1b[1;5C");
    assert_eq!(passed(&[Some("\x1b"), None, Some("[Dx]")]), "\x1b[Dx]");
}

#[test]
fn a_key_whose_pieces_come_slowly_is_escape_and_that_key() {
    for key in ["[D", "[1;5C", "OP", "[3~", "[97;3u"] {
        let mut pieces = vec![Some("\x1b"), None];
        pieces.extend((0..key.len()).map(|at| Some(&key[at..=at])));
        pieces.push(Some("X"));
        let whole = passed(&[Some(&format!("\x1b{key}"))]);
        assert_eq!(passed(&pieces), format!("\x1b{whole}X"), "{key}");
    }
    // Typed after Escape: nothing is lost, and nothing waits for longer than the rest of a sequence.
    for typed in ["[", "[12", "O", "[x", "Ok", "[1x", "[\r", "[\x1b[A"] {
        let mut pieces = vec![Some("\x1b"), None];
        pieces.extend((0..typed.len()).map(|at| Some(&typed[at..=at])));
        pieces.push(None);
        assert_eq!(passed(&pieces), format!("\x1b{typed}"), "{typed:?}");
    }
    // A while after Escape a character is that character, and Escape twice is Escape twice.
    let (mut filter, mut keys) = (KeyFilter::new(), Vec::new());
    filter.push(b"\x1b", &mut keys);
    filter.give_up(&mut keys);
    assert_eq!(filter.patience(), Some(LATE_DELAY - ESCAPE_DELAY));
    filter.give_up(&mut keys);
    assert_eq!(filter.patience(), None);
    filter.push(b"[", &mut keys);
    assert_eq!((keys.as_slice(), filter.patience()), (&b"\x1b["[..], None));
    assert_eq!(passed(&[Some("\x1b"), None, Some("\x1b"), None]), "\x1b\x1b");
}

#[test]
fn what_never_ends_takes_nothing_with_it() {
    // Alt-] is the beginning of a string; Enter ends it.
    assert_eq!(passed(&[Some("\x1b]"), None, Some("hello\r")]), "hello\r");
    assert_eq!(passed(&[Some("\x1b]\r"), Some("x")]), "\rx");
    assert_eq!(passed(&[Some("\x1b["), None, Some("D")]), "D");
    assert_eq!(passed(&[Some("\x1b[12\r"), Some("x")]), "\rx");
    assert_eq!(passed(&[Some("\x1b]11;rgb\x1b[A")]), "\x1b[A");
}

#[test]
fn a_paste_stays_as_it_is() {
    let paste = "\x1b[200~a\x1b]11;x\x07\n\x1b[?1u\x1b[\n\x1bOP\x1b[201~";
    for cut in 0..=paste.len() {
        let (before, after) = paste.split_at(cut);
        assert_eq!(
            passed(&[Some(before), Some(after), Some("\x1b[?1ux")]),
            format!("{paste}x"),
            "{cut}"
        );
    }
}

#[test]
fn keys_with_codes_are_those_keys() {
    for (sequence, key) in [
        ("\x1b[27;2;13~", "\n"),
        ("\x1b[13;2u", "\n"),
        ("\x1b[13;5u", "\n"),
        ("\x1b[27;5;106~", "\n"),
        ("\x1b[106;5u", "\n"),
        ("\x1b[13u", "\r"),
        ("\x1b[27;3;13~", "\x1b\r"),
        ("\x1b[27;5;99~", "\x03"),
        ("\x1b[27;2;65~", "A"),
        ("\x1b[233u", "é"),
        ("\x1b[97;3u", "\x1ba"),
        ("\x1b[27;2;9~", "\x1b[Z"),
        ("\x1b[57441;2u", ""),
        ("\x1b[97;1:3u", ""),
    ] {
        assert_eq!(passed(&[Some(sequence)]), key, "{sequence:?}");
    }
}

#[test]
fn only_bytes_from_the_earlier_mode_are_translated() {
    let (mut first, mut second) = (*b"a\n\0", *b"\n\0\n");
    let mut before = 4;
    translate_earlier(&mut first, &mut before);
    assert_eq!((&first, before), (b"a\r\x04", 1));
    translate_earlier(&mut second, &mut before);
    assert_eq!((&second, before), (b"\r\0\n", 0));
}

#[test]
fn keys_that_may_end_the_line_are_told_from_others_and_from_pastes() {
    let ends = |keys: &[u8], is_pasting| {
        let divided = kinds(keys, is_pasting);
        assert_eq!(divided.iter().flat_map(|(key, _)| *key).copied().collect::<Vec<_>>(), keys);
        divided
            .into_iter()
            .filter(|(_, kind)| *kind != Kind::Key)
            .map(|(key, kind)| (String::from_utf8_lossy(key).into_owned(), kind))
            .collect::<Vec<_>>()
    };
    let end = |key: &str| (key.to_owned(), Kind::End);
    assert_eq!(ends("aä\r\x14\x01\n".as_bytes(), false), [end("\r"), end("\x14")]);
    assert_eq!(
        ends(b"\x1b[A\x1bOP\x1bx\x1b[Z\x1b\x1b[B\x1b", false),
        [end("\x1b[Z"), end("\x1b"), end("\x1b")]
    );
    assert_eq!(ends(b"\x1b[200~a\rb\x14\x1b[Z\x1b[201~\r", false), [end("\r")]);
    assert_eq!(
        ends(b"a\rb\x1b[201~\x1b[5;20R\x03", true),
        [("\x1b[5;20R".to_owned(), Kind::Place), end("\x03")]
    );
}
