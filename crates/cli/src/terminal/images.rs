//! Pictures in terminals that can show them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_agent::tools::picture_pixels;

use super::{Size, sixel};

/// Rows that a picture takes at most.
const ROWS: usize = 12;
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

    /// The sequence that shows a picture at the cursor, and puts the cursor below it.
    fn sequence(self, picture: &[u8]) -> Option<String> {
        let encoded = BASE64_STANDARD.encode(picture);
        match self {
            Self::Kitty if !picture.starts_with(PNG) => None,
            Self::Kitty => {
                let count = encoded.len().div_ceil(PIECE);
                let mut out = String::with_capacity(encoded.len() + count * 16);
                for number in 0..count {
                    let piece = &encoded[number * PIECE..encoded.len().min((number + 1) * PIECE)];
                    let head = if number == 0 {
                        format!("a=T,f=100,r={ROWS},q=2,")
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
                "\x1b]1337;File=inline=1;size={};height={ROWS};preserveAspectRatio=1:{encoded}\x07\r\n",
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
        Some(protocol) => protocol.sequence(&picture),
        None => {
            let (width, height) = room();
            let pixels = picture_pixels(&picture, width, height).ok()?;
            // The terminal leaves the cursor in the last row of the picture or below it.
            Some(format!("{}\r\n", sixel::encode(&pixels)))
        }
    }
}

/// The terminal has said that it shows sixels.
pub(super) fn use_sixel() {
    HAS_SIXEL.store(true, Ordering::Relaxed);
}

/// The pixels that a picture takes at most: all columns, and some rows. Where the terminal does not say how large they are, a
/// usual size is taken.
fn room() -> (u32, u32) {
    const USUAL_CELL: (u32, u32) = (8, 16);
    let rows = u32::try_from(ROWS).unwrap_or(1);
    let size = Size::current();
    let (columns, lines) =
        (u32::try_from(size.columns).unwrap_or(80), u32::try_from(size.rows).unwrap_or(24));
    let (width, height) = match crossterm::terminal::window_size() {
        Ok(window) if window.width > 0 && window.height > 0 => {
            (u32::from(window.width) / columns, u32::from(window.height) / lines)
        }
        _ => USUAL_CELL,
    };
    ((width * columns).max(1), (height * rows).max(1))
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Protocol};

    #[test]
    fn pictures_are_sent_in_the_form_of_the_terminal() {
        let picture = [b"\x89PNG".as_slice(), &[7; 4_000]].concat();
        let kitty = Protocol::Kitty.sequence(&picture).expect("a sequence");
        assert!(kitty.starts_with("\x1b_Ga=T,f=100,r=12,q=2,m=1;"), "{kitty}");
        assert!(kitty.contains("\x1b\\\x1b_Gm=0;") && kitty.ends_with("\x1b\\\r\n"), "{kitty}");
        assert!(kitty.split("\x1b\\").all(|piece| piece.len() < PIECE + 40));
        assert_eq!(Protocol::Kitty.sequence(b"GIF89a"), None);
        let other = Protocol::ITerm.sequence(b"GIF89a").expect("a sequence");
        assert_eq!(
            other,
            "\x1b]1337;File=inline=1;size=6;height=12;preserveAspectRatio=1:R0lGODlh\x07\r\n"
        );
        assert_eq!(Protocol::of("xterm-256color", ""), None);
    }
}
