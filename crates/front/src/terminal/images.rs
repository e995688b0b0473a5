//! Pictures in terminals that can show them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_tools::{Pixels, picture_pixels};

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
    /// Kitty's, which takes PNG or pixels.
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

    /// The sequence that shows a picture with these pixels at the cursor, in so many rows, and puts the cursor below it.
    fn sequence(self, picture: &[u8], pixels: &Pixels, rows: u32) -> String {
        match self {
            Self::Kitty => {
                let (format, encoded) = if picture.starts_with(PNG) {
                    ("f=100".to_owned(), BASE64_STANDARD.encode(picture))
                } else {
                    let format = format!("f=32,s={},v={}", pixels.width, pixels.height);
                    (format, BASE64_STANDARD.encode(&pixels.rgba))
                };
                let count = encoded.len().div_ceil(PIECE);
                let mut out = String::with_capacity(encoded.len() + count * 16);
                for number in 0..count {
                    let piece = &encoded[number * PIECE..encoded.len().min((number + 1) * PIECE)];
                    let head = if number == 0 {
                        format!("a=T,{format},r={rows},q=2,")
                    } else {
                        String::new()
                    };
                    let more = usize::from(number + 1 < count);
                    out.push_str(&format!("\x1b_G{head}m={more};{piece}\x1b\\"));
                }
                out.push_str("\r\n");
                out
            }
            Self::ITerm => format!(
                "\x1b]1337;File=inline=1;size={};height={rows};preserveAspectRatio=1:{}\x07\r\n",
                picture.len(),
                BASE64_STANDARD.encode(picture)
            ),
        }
    }
}

/// Whether the name of a file is that of a picture.
pub fn is_picture(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// The sequence that shows the picture in a file, if the terminal can show it.
pub fn shown_picture(path: &Path) -> Option<String> {
    let of = |name| std::env::var(name).unwrap_or_default();
    // A multiplexer would not pass it on.
    let is_inside = std::env::var_os("TMUX").is_some() || std::env::var_os("STY").is_some();
    let protocol = Protocol::of(&of("TERM"), &of("TERM_PROGRAM")).filter(|_| !is_inside);
    let has_sixel = HAS_SIXEL.load(Ordering::Relaxed);
    if protocol.is_none() && !has_sixel {
        return None;
    }
    let picture = myclaw_files::read_regular(path, MOST_BYTES + 1).ok()?;
    if !u64::try_from(picture.len()).is_ok_and(|bytes| bytes <= MOST_BYTES) {
        return None;
    }
    let Room { width, row } = Room::of_terminal();
    let pixels = picture_pixels(&picture, width, row * ROWS).ok()?;
    Some(match protocol {
        Some(protocol) => protocol.sequence(&picture, &pixels, rows(&pixels, row)),
        // The terminal leaves the cursor in the last row of the picture or below it.
        None => format!("{}\r\n", sixel::encode(&pixels)),
    })
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

/// The rows of `row_height` pixels that a picture needs.
fn rows(pixels: &Pixels, row_height: u32) -> u32 {
    pixels.height.div_ceil(row_height).clamp(1, ROWS)
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Pixels, Protocol, rows};

    #[test]
    fn pictures_are_sent_in_the_form_of_the_terminal() {
        let picture = [b"\x89PNG".as_slice(), &[7; 4_000]].concat();
        let pixels = Pixels { width: 1, height: 2, rgba: vec![7; 8] };
        let kitty = Protocol::Kitty.sequence(&picture, &pixels, 12);
        assert!(kitty.starts_with("\x1b_Ga=T,f=100,r=12,q=2,m=1;"), "{kitty}");
        assert!(kitty.contains("\x1b\\\x1b_Gm=0;") && kitty.ends_with("\x1b\\\r\n"), "{kitty}");
        assert!(kitty.split("\x1b\\").all(|piece| piece.len() < PIECE + 40));
        assert_eq!(
            Protocol::Kitty.sequence(b"GIF89a", &pixels, 1),
            "\x1b_Ga=T,f=32,s=1,v=2,r=1,q=2,m=0;BwcHBwcHBwc=\x1b\\\r\n"
        );
        let other = Protocol::ITerm.sequence(b"GIF89a", &pixels, 12);
        assert_eq!(
            other,
            "\x1b]1337;File=inline=1;size=6;height=12;preserveAspectRatio=1:R0lGODlh\x07\r\n"
        );
        assert_eq!(Protocol::of("xterm-256color", ""), None);
    }

    #[test]
    fn a_picture_takes_the_rows_that_its_pixels_need() {
        for (height, expected) in [(0, 1), (16, 1), (17, 2), (160, 10), (192, 12), (4_000, 12)] {
            assert_eq!(rows(&Pixels { width: 1, height, rgba: Vec::new() }, 16), expected);
        }
    }
}
