use super::*;

#[test]
fn the_encoding_comes_from_the_mark_the_header_the_page_or_the_bytes() {
    let latin = b"caf\xe9";
    assert_eq!(decode(latin, Some("text/html; charset=ISO-8859-1")), "café");
    assert_eq!(decode(latin, Some("text/html")), "café");
    assert_eq!(decode("café".as_bytes(), None), "café");
    assert_eq!(decode(b"\xef\xbb\xbfhi", Some("text/plain; charset=iso-8859-1")), "hi");
    assert_eq!(decode(b"\xff\xfeh\0i\0", None), "hi");
    let page = b"<meta http-equiv=content-type content='text/html; charset=windows-1251'>\xcf\xf0";
    assert!(decode(page, Some("text/html")).ends_with("Пр"));
    assert!(decode(b"<?xml version='1.0' encoding=\"Shift_JIS\"?>\x82\xa0", None).ends_with('あ'));
    assert_eq!(decode(b"caf\xc3\xa9 \xe2\x82", None), "café \u{fffd}");
    assert_eq!(decode(latin, Some("text/html; charset=nonsense")), "café");
}
