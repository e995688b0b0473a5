//! Pictures in terminals that can show them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_agent::tools::picture_pixels;

use super::{Size, sixel};

/// Rows that a picture takes at most.
const ROWS: u32 = 12;
/// Base64 characters of one piece, as the protocol of kitty demands.
const PIECE: usize = 4_096;
/// Larger pictures are named only: the terminal would be busy for a while.
const MOST_BYTES: u64 = 5 * 1024 * 1024;
/// Endings of files with pictures.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// How a PNG file begins.
const PNG: &[u8] = b"\x89PNG";

/// Whether the terminal shows sixels.
static HAS_SIXEL: AtomicBool = AtomicBool::new(false);

/// A protocol for pictures that the name of the terminal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// Kitty's, for PNG alone.
    Kitty,
    /// That of iTerm2, for all kinds.
    ITerm,
}

impl Protocol {
    fn of(terminal: &str, program: &str) -> Option<Self> {
        if terminal.starts_with("xterm-kitty") || terminal.starts_with("xterm-ghostty") {
            return Some(Self::Kitty);
        }
        match program {
            "ghostty" => Some(Self::Kitty),
            "iTerm.app" | "WezTerm" => Some(Self::ITerm),
            _ => None,
        }
    }

    /// The sequence that shows a picture at the cursor, in so many rows, and puts the cursor below it.
    fn sequence(self, picture: &[u8], rows: u32) -> Option<String> {
        let encoded = BASE64_STANDARD.encode(picture);
        match self {
            Self::Kitty if !picture.starts_with(PNG) => None,
            Self::Kitty => {
                let count = encoded.len().div_ceil(PIECE);
                let mut out = String::with_capacity(encoded.len() + count * 16);
                for number in 0..count {
                    let piece = &encoded[number * PIECE..encoded.len().min((number + 1) * PIECE)];
                    let head = if number == 0 {
                        format!("a=T,f=100,r={rows},q=2,")
                    } else {
                        String::new()
                    };
                    let more = usize::from(number + 1 < count);
                    out.push_str(&format!("\x1b_G{head}m={more};{piece}\x1b\\"));
                }
                out.push_str("\r\n");
                Some(out)
            }
            Self::ITerm => Some(format!(
                "\x1b]1337;File=inline=1;size={};height={rows};preserveAspectRatio=1:{encoded}\x07\r\n",
                picture.len()
            )),
        }
    }
}

/// Whether the name of a file is that of a picture.
pub(crate) fn is_picture(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// The sequence that shows the picture in a file, if the terminal can show it.
pub(crate) fn shown_picture(path: &Path) -> Option<String> {
    let of = |name| std::env::var(name).unwrap_or_default();
    // A multiplexer would not pass it on.
    let is_inside = std::env::var_os("TMUX").is_some() || std::env::var_os("STY").is_some();
    let protocol = Protocol::of(&of("TERM"), &of("TERM_PROGRAM")).filter(|_| !is_inside);
    let has_sixel = HAS_SIXEL.load(Ordering::Relaxed);
    if protocol.is_none() && !has_sixel {
        return None;
    }
    let picture = myclaw_agent::files::read_regular(path, MOST_BYTES + 1).ok()?;
    if !u64::try_from(picture.len()).is_ok_and(|bytes| bytes <= MOST_BYTES) {
        return None;
    }
    match protocol {
        Some(protocol) => protocol.sequence(&picture, rows(&picture, Room::of_terminal())),
        None => {
            let Room { width, row } = Room::of_terminal();
            let pixels = picture_pixels(&picture, width, row * ROWS).ok()?;
            // The terminal leaves the cursor in the last row of the picture or below it.
            Some(format!("{}\r\n", sixel::encode(&pixels)))
        }
    }
}

/// The terminal has said that it shows sixels.
pub(super) fn use_sixel() {
    HAS_SIXEL.store(true, Ordering::Relaxed);
}

/// What a picture may take, in pixels.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// The width of all columns.
    width: u32,
    /// The height of one row.
    row: u32,
}

impl Room {
    /// Where the terminal does not say how large its columns and rows are, a usual size is taken.
    fn of_terminal() -> Self {
        const USUAL_CELL: (u32, u32) = (8, 16);
        let size = Size::current();
        let (columns, lines) =
            (u32::try_from(size.columns).unwrap_or(80), u32::try_from(size.rows).unwrap_or(24));
        let (width, height) = match crossterm::terminal::window_size() {
            Ok(window) if window.width > 0 && window.height > 0 => {
                (u32::from(window.width) / columns, u32::from(window.height) / lines)
            }
            _ => USUAL_CELL,
        };
        Self { width: (width * columns).max(1), row: height.max(1) }
    }
}

/// The rows that a picture needs at its own size, made narrower where the terminal is. Only PNG files say their size where
/// it is easily read; others get the most.
fn rows(picture: &[u8], room: Room) -> u32 {
    // The first chunk begins after 8 bytes and, behind its length and name, with the width and the height.
    let number = |from: usize| {
        let bytes = picture.get(from..from + 4)?;
        Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?)))
    };
    let size = number(16).zip(number(20)).filter(|_| picture.starts_with(PNG));
    let Some((width, height)) = size else { return ROWS };
    let room_width = u64::from(room.width);
    let height = if width > room_width { height * room_width / width } else { height };
    let rows = height.div_ceil(u64::from(room.row));
    u32::try_from(rows).unwrap_or(ROWS).clamp(1, ROWS)
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Protocol, Room, rows};

    #[test]
    fn pictures_are_sent_in_the_form_of_the_terminal() {
        let picture = [b"\x89PNG".as_slice(), &[7; 4_000]].concat();
        let kitty = Protocol::Kitty.sequence(&picture, 12).expect("a sequence");
        assert!(kitty.starts_with("\x1b_Ga=T,f=100,r=12,q=2,m=1;"), "{kitty}");
        assert!(kitty.contains("\x1b\\\x1b_Gm=0;") && kitty.ends_with("\x1b\\\r\n"), "{kitty}");
        assert!(kitty.split("\x1b\\").all(|piece| piece.len() < PIECE + 40));
        assert_eq!(Protocol::Kitty.sequence(b"GIF89a", 12), None);
        let other = Protocol::ITerm.sequence(b"GIF89a", 12).expect("a sequence");
        assert_eq!(
            other,
            "\x1b]1337;File=inline=1;size=6;height=12;preserveAspectRatio=1:R0lGODlh\x07\r\n"
        );
        assert_eq!(Protocol::of("xterm-256color", ""), None);
    }

    #[test]
    fn a_picture_takes_the_rows_that_its_pixels_need() {
        let room = Room { width: 800, row: 16 };
        let png = |width: u32, height: u32| {
            let head = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
            [head, width.to_be_bytes().to_vec(), height.to_be_bytes().to_vec()].concat()
        };
        for ((width, height), expected) in [
            ((16, 16), 1),
            ((16, 17), 2),
            ((100, 160), 10),
            ((100, 4_000), 12),
            // It is made narrower, and so lower.
            ((3_200, 320), 5),
            ((u32::MAX, u32::MAX), 12),
            ((u32::MAX, 1), 1),
            ((0, 0), 1),
        ] {
            assert_eq!(rows(&png(width, height), room), expected, "{width} by {height}");
        }
        assert_eq!(rows(&png(16, 40), Room { row: 20, ..room }), 2);
        assert_eq!(rows(b"GIF89a\x10\0\x10\0 and so on, more than 24 bytes", room), 12);
        assert_eq!(rows(b"\x89PNG", room), 12);
    }
}
