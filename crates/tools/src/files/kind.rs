//! Recognises the kind of a file by its first bytes.

use myclaw_engine::ToolError;

/// Bytes from the start of a file that [`recognise`] needs (fewer for a shorter file). Git searches the same number for
/// NULs.
pub(crate) const BYTES_TO_RECOGNISE: usize = 8 * 1024;

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Text in some encoding.
    Text,
    /// A picture that models can look at.
    Image(ImageKind),
    /// Anything else.
    Binary(BinaryKind),
}

/// Picture formats that the providers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Png,
    Jpeg,
    Gif,
    WebP,
}

/// A kind of file that is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BinaryKind {
    /// Such as "a PDF document".
    pub name: &'static str,
    /// A command that shows its content.
    pub instead: &'static str,
}

/// The first bytes of a kind of file.
struct Magic {
    offset: usize,
    bytes: &'static [u8],
    kind: FileKind,
}

const fn binary(
    offset: usize,
    bytes: &'static [u8],
    name: &'static str,
    instead: &'static str,
) -> Magic {
    Magic { offset, bytes, kind: FileKind::Binary(BinaryKind { name, instead }) }
}

const fn image(bytes: &'static [u8], kind: ImageKind) -> Magic {
    Magic { offset: 0, bytes, kind: FileKind::Image(kind) }
}

/// Signatures that text never starts with.
const MAGICS: &[Magic] = &[
    image(b"\x89PNG\r\n\x1a\n", ImageKind::Png),
    image(b"\xFF\xD8\xFF", ImageKind::Jpeg),
    image(b"GIF87a", ImageKind::Gif),
    image(b"GIF89a", ImageKind::Gif),
    binary(0, b"%PDF-", "a PDF document", "pdftotext FILE -"),
    binary(0, b"PK\x03\x04", "a ZIP archive (or a document made of one)", "unzip -l FILE"),
    binary(0, b"PK\x05\x06", "an empty ZIP archive", "unzip -l FILE"),
    binary(0, b"\x1F\x8B", "gzip-compressed data", "zcat FILE | head"),
    binary(0, b"BZh", "bzip2-compressed data", "bzcat FILE | head"),
    binary(0, b"\xFD7zXZ\0", "xz-compressed data", "xzcat FILE | head"),
    binary(0, b"\x28\xB5\x2F\xFD", "zstd-compressed data", "zstdcat FILE | head"),
    binary(0, b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive", "7z l FILE"),
    binary(257, b"ustar", "a tar archive", "tar -tf FILE"),
    binary(0, b"\x7FELF", "an ELF program or library", "readelf -h FILE, or strings FILE | head"),
    binary(0, b"\xCF\xFA\xED\xFE", "a Mach-O program or library", "strings FILE | head"),
    binary(0, b"\xCA\xFE\xBA\xBE", "a Java class or Mach-O program", "strings FILE | head"),
    binary(0, b"\0asm", "a WebAssembly module", "strings FILE | head"),
    binary(0, b"SQLite format 3\0", "an SQLite database", "sqlite3 FILE .schema"),
    binary(0, b"OggS", "an Ogg audio or video file", "ffprobe FILE"),
    binary(0, b"fLaC", "a FLAC audio file", "ffprobe FILE"),
    binary(0, b"\x1A\x45\xDF\xA3", "a Matroska or WebM video", "ffprobe FILE"),
    binary(4, b"ftyp", "an MP4 video or HEIC picture", "ffprobe FILE"),
    binary(0, b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an old Microsoft Office document", "file FILE"),
    binary(0, b"MM\0\x2A", "a TIFF picture", "convert FILE picture.png, then read that"),
    binary(0, b"II\x2A\0", "a TIFF picture", "convert FILE picture.png, then read that"),
];

/// Signatures of plain letters. Text may start with them too, so they only identify the kind of a file that is known to
/// be binary.
const WEAK_MAGICS: &[Magic] = &[
    binary(0, b"BM", "a BMP picture", "convert FILE picture.png, then read that"),
    binary(0, b"MZ", "a Windows program", "strings FILE | head"),
    binary(0, b"ID3", "an MP3 audio file", "ffprobe FILE"),
    binary(0, b"RIFF", "an audio or video file", "ffprobe FILE"),
    binary(0, b"wOF", "a web font", "file FILE"),
];

const UNKNOWN: BinaryKind =
    BinaryKind { name: "a binary file", instead: "file FILE, or xxd FILE | head" };
const UNMARKED_UTF16: BinaryKind = BinaryKind {
    name: "text in UTF-16 without a byte order mark",
    instead: "iconv -f UTF-16LE -t UTF-8 FILE",
};

const UTF32: BinaryKind =
    BinaryKind { name: "text in UTF-32", instead: "iconv -f UTF-32 -t UTF-8 FILE" };

/// Recognises the kind of a file from its start, which has at least [`BYTES_TO_RECOGNISE`] bytes if the file is long
/// enough.
pub(crate) fn recognise(start: &[u8]) -> FileKind {
    if start.len() >= 12 && start.starts_with(b"RIFF") && &start[8..12] == b"WEBP" {
        return FileKind::Image(ImageKind::WebP);
    }
    if let Some(kind) = first_match(MAGICS, start) {
        return kind;
    }
    if start.starts_with(b"\xFF\xFE\0\0") {
        return FileKind::Binary(UTF32);
    }
    if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
        return FileKind::Text;
    }
    let sample = &start[..start.len().min(BYTES_TO_RECOGNISE)];
    if memchr::memchr(0, sample).is_none() {
        return FileKind::Text;
    }
    first_match(WEAK_MAGICS, start).unwrap_or_else(|| {
        FileKind::Binary(if is_unmarked_utf16(sample) { UNMARKED_UTF16 } else { UNKNOWN })
    })
}

/// The error for a file that is not text. `path` is in the form that the model reads.
pub(crate) fn refuse_binary(action: &str, path: &str, kind: BinaryKind, bytes: u64) -> ToolError {
    ToolError::Failed(format!(
        "cannot {action} {path}: it is {} ({}), not text. With bash you can look into it: {}",
        kind.name,
        shown_size(bytes),
        kind.instead.replace("FILE", path)
    ))
}

/// A size for people: `512 bytes`, `3.4 KB`, `5.0 GB` (steps of 1024).
pub fn shown_size(bytes: u64) -> String {
    const STEP: f64 = 1024.0;
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / STEP;
    for unit in ["KB", "MB", "GB"] {
        if size < STEP {
            return format!("{size:.1} {unit}");
        }
        size /= STEP;
    }
    format!("{size:.1} TB")
}

impl ImageKind {
    /// Such as `image/png`.
    pub(crate) fn mime_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

fn first_match(magics: &[Magic], start: &[u8]) -> Option<FileKind> {
    magics
        .iter()
        .find(|magic| start.get(magic.offset..).is_some_and(|rest| rest.starts_with(magic.bytes)))
        .map(|magic| magic.kind)
}

/// Text in a western language has a NUL as every second byte.
fn is_unmarked_utf16(sample: &[u8]) -> bool {
    let pairs = sample.len() / 2;
    let nuls =
        |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (nuls(0), nuls(1));
    pairs >= 4 && (odd * 10 > pairs * 9 && even == 0 || even * 10 > pairs * 9 && odd == 0)
}

#[cfg(test)]
mod tests;
