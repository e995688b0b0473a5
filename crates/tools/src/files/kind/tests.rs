use super::*;

fn name(start: &[u8]) -> &'static str {
    match recognise(start) {
        FileKind::Text => "text",
        FileKind::Image(kind) => kind.mime_type(),
        FileKind::Binary(kind) => kind.name,
    }
}

#[test]
fn first_bytes_name_the_kind() {
    assert_eq!(name(b"RIFF\x10\0\0\0WEBPVP8 "), "image/webp");
    assert_eq!(name(b"RIFF\x10\0\0\0WAVEfmt "), "an audio or video file");
    assert_eq!(name(b"PK\x03\x04"), "a ZIP archive (or a document made of one)");
    assert_eq!(name(&[&[b'n'; 257][..], b"ustar"].concat()), "a tar archive");
    assert_eq!(name(b"\0\0\0\x18ftypmp42"), "an MP4 video or HEIC picture");
    assert_eq!(name(b"MZ\0"), "a Windows program");
}

#[test]
fn text_is_what_has_no_nul() {
    assert_eq!(name(b""), "text");
    assert_eq!(name(b"MZ is no magic without a NUL"), "text");
    assert_eq!(name(b"caf\xE9"), "text");
    assert_eq!(name(b"\xFF\xFEa\0"), "text");
    assert_eq!(name(b"\xFF\xFE\0\0a\0\0\0"), "text in UTF-32");
    assert_eq!(name(b"a\0b"), "a binary file");
    assert_eq!(name(b"h\0e\0l\0l\0o\0"), "text in UTF-16 without a byte order mark");
}

#[test]
fn sizes_are_for_people() {
    let shown = [0, 1023, 1024, 1_500_000, 5 << 30, 3 << 40].map(shown_size);
    assert_eq!(shown, ["0 bytes", "1023 bytes", "1.0 KB", "1.4 MB", "5.0 GB", "3.0 TB"]);
}
