use super::*;

fn splice(range: Range<usize>, replacement: &str) -> Splice {
    Splice { range, replacement: replacement.to_owned() }
}

#[test]
fn bytes_that_are_not_utf8_are_one_character_each() {
    let document = Document::decode(b"\xEF\xBB\xBF\xFFa\xC3\xA4\xE9".to_vec());
    assert_eq!(document.text(), "ÿaäé");
    // "ÿ" takes two bytes of the text but one of the file.
    let spliced = document.spliced(&[splice(2..3, "bc"), splice(5..5, "d")]).unwrap();
    assert_eq!(spliced, b"\xEF\xBB\xBF\xFFbc\xC3\xA4d\xE9");
}

#[test]
fn every_byte_has_a_character_of_its_own() {
    let bytes: Vec<u8> = (0..=0xFF_u8).collect();
    let document = Document::decode(bytes.clone());
    assert_eq!(document.text().chars().count(), 256);
    assert_eq!(encode_windows_1252(document.text()), Ok(bytes));
}

#[test]
fn what_a_splice_shares_with_the_old_text_keeps_its_bytes() {
    // Two characters beyond ASCII in UTF-8, one byte that is none: new text is UTF-8, the old byte stays.
    let document = Document::decode(b"\xC3\xA4\xC3\xA4 \xE9!".to_vec());
    assert_eq!(document.text(), "ää é!");
    assert_eq!(document.spliced(&[splice(0..8, "ää é?")]).unwrap(), b"\xC3\xA4\xC3\xA4 \xE9?");
}

#[test]
fn utf16_offsets_count_units() {
    let bytes =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let document = Document::decode(bytes("\u{FEFF}🎉a🎉b"));
    let spliced = document.spliced(&[splice(4..5, "🎈"), splice(9..10, "")]).unwrap();
    assert_eq!(spliced, bytes("\u{FEFF}🎉🎈🎉"));
}

#[test]
fn text_that_an_old_encoding_lacks_is_refused() {
    let document = Document::decode(b"\xE9".to_vec());
    assert_eq!(document.spliced(&[splice(0..2, "a日b")]), Err(Unencodable { character: '日' }));
    assert_eq!(document.spliced(&[splice(0..2, "€")]), Ok(b"\x80".to_vec()));
}
