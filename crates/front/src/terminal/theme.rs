//! Which colours the terminal's background allows.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use myclaw_config::ThemeName;
use tokio::time::Instant;

use super::images::use_sixel;
use super::keyboard::Keyboard;
use super::keys::{filter, with_escapes};
use super::title::write_sequence;

/// Asks for the colour of the background and for what the terminal can, and then for the position of the cursor, which every
/// terminal answers: so the wait ends also where the other questions are not understood.
const QUESTION: &str = "\x1b]11;?\x1b\\\x1b[c\x1b[6n";
/// The number of sixels among what a terminal can.
const SIXEL: &str = "4";
/// Longest wait for the answers.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Bytes that are looked at.
const MOST_BYTES: usize = 4_096;
/// Light that divides dark from light backgrounds; white has 1.
const MIDDLE: f64 = 0.5;

/// The palette in use, as a number.
static PALETTE: AtomicU8 = AtomicU8::new(0);

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The 16 colours that every theme of a terminal defines.
    Basic,
    /// For a dark background: 256 colours.
    Dark,
    /// For a light background: 256 colours.
    Light,
    /// None.
    Plain,
    /// Few and strong ones, for every background.
    HighContrast,
}

impl Palette {
    /// The one in use: the basic one until another one is set.
    pub fn current() -> Self {
        match PALETTE.load(Ordering::Relaxed) {
            1 => Self::Dark,
            2 => Self::Light,
            3 => Self::Plain,
            4 => Self::HighContrast,
            _ => Self::Basic,
        }
    }

    /// Whether new and old lines of a diff stand on a background of their own.
    pub fn has_backgrounds(self) -> bool {
        matches!(self, Self::Dark | Self::Light)
    }

    /// Uses this one from now on.
    pub fn choose(self) {
        let number = match self {
            Self::Basic => 0,
            Self::Dark => 1,
            Self::Light => 2,
            Self::Plain => 3,
            Self::HighContrast => 4,
        };
        PALETTE.store(number, Ordering::Relaxed);
    }
}

/// What a terminal has said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answers {
    /// The colours that its background allows, if it said what it is.
    palette: Option<Palette>,
    /// Whether it shows sixels.
    has_sixel: bool,
    /// The keys that were pressed meanwhile.
    typed: Vec<u8>,
}

/// Chooses the colours as the config says, or as the terminal answers. Returns the keys that were typed meanwhile.
pub async fn choose_palette(theme: ThemeName) -> Vec<u8> {
    let answers = match theme {
        ThemeName::Basic => Answers::default(),
        ThemeName::Auto if !has_256_colours() => Answers::default(),
        _ => ask().await,
    };
    let palette = match theme {
        ThemeName::Dark => Palette::Dark,
        ThemeName::Light => Palette::Light,
        ThemeName::Plain => Palette::Plain,
        ThemeName::HighContrast => Palette::HighContrast,
        ThemeName::Auto if has_256_colours() => {
            answers.palette.or_else(of_variable).unwrap_or(Palette::Basic)
        }
        ThemeName::Basic | ThemeName::Auto => Palette::Basic,
    };
    palette.choose();
    if answers.has_sixel {
        use_sixel();
    }
    answers.typed
}

fn has_256_colours() -> bool {
    let has = |name, word: &str| std::env::var(name).is_ok_and(|value| value.contains(word));
    has("TERM", "256color")
        || has("TERM", "kitty")
        || std::env::var_os("COLORTERM").is_some_and(|it| !it.is_empty())
}

/// What `COLORFGBG` says, as in `15;0`: the last number is the background, one of 16 colours.
fn of_variable() -> Option<Palette> {
    let value = std::env::var("COLORFGBG").ok()?;
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(background, 7 | 9..=15) { Palette::Light } else { Palette::Dark })
}

/// Asks the terminal.
async fn ask() -> Answers {
    let Ok(mut keyboard) = Keyboard::listen() else { return Answers::default() };
    write_sequence(QUESTION);
    let deadline = Instant::now() + LONGEST_WAIT;
    let mut bytes = Vec::new();
    while bytes.len() < MOST_BYTES {
        let Ok(Ok(more)) = tokio::time::timeout_at(deadline, keyboard.read()).await else { break };
        bytes.extend(more);
        bytes = with_escapes(&bytes);
        if report(&bytes, b"\x1b[", b'R').is_some() {
            break;
        }
    }
    let mut answers = answer(bytes);
    // What else the terminal reports was not typed.
    let arrived = std::mem::take(&mut answers.typed);
    filter().push(&arrived, &mut answers.typed);
    answers
}

/// Takes the answers out of what arrived; the rest was typed.
fn answer(mut bytes: Vec<u8>) -> Answers {
    if let Some(range) = report(&bytes, b"\x1b[", b'R') {
        bytes.drain(range);
    }
    let mut has_sixel = false;
    if let Some(range) = report(&bytes, b"\x1b[?", b'c') {
        let numbers = String::from_utf8_lossy(&bytes[range.start + 3..range.end - 1]).into_owned();
        // The first one is the kind of the terminal.
        has_sixel = numbers.split(';').skip(1).any(|number| number == SIXEL);
        bytes.drain(range);
    }
    let found = bytes.windows(5).position(|window| window == b"\x1b]11;");
    let Some(start) = found else { return Answers { palette: None, has_sixel, typed: bytes } };
    let ending = |at: &usize| matches!(&bytes[*at..], [0x07, ..] | [0x1b, b'\\', ..]);
    let Some(end) = (start + 5..bytes.len()).find(ending) else {
        // The rest of the answer is lost with it.
        bytes.truncate(start);
        return Answers { palette: None, has_sixel, typed: bytes };
    };
    let colour = String::from_utf8_lossy(&bytes[start + 5..end]).into_owned();
    let after = if bytes[end] == 0x07 { end + 1 } else { end + 2 };
    bytes.drain(start..after);
    Answers { palette: palette_of(&colour), has_sixel, typed: bytes }
}

/// Where a report such as `ESC [ row ; column R` is.
fn report(bytes: &[u8], begin: &[u8], end: u8) -> Option<std::ops::Range<usize>> {
    let starts = bytes.windows(begin.len()).enumerate().filter(|(_, window)| *window == begin);
    for (start, _) in starts {
        let rest = &bytes[start + begin.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        if digits > 0 && rest.get(digits) == Some(&end) {
            return Some(start..start + begin.len() + digits + 1);
        }
    }
    None
}

/// The palette for a background such as `rgb:1e1e/1e1e/1e1e`.
fn palette_of(colour: &str) -> Option<Palette> {
    let (_, parts) = colour.split_once(':')?;
    let light = |part: &str| {
        let most = (16_f64).powi(i32::try_from(part.len()).ok()?) - 1.0;
        let value = u32::from_str_radix(part, 16).ok()?;
        (most > 0.0).then(|| f64::from(value) / most)
    };
    let mut parts = parts.split('/').map(light);
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    // How bright the eye finds the three (ITU-R BT.601).
    let sum = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(if sum > MIDDLE { Palette::Light } else { Palette::Dark })
}

#[cfg(test)]
mod tests {
    use super::{Answers, Palette, answer, palette_of};

    #[test]
    fn answers_are_told_from_keys() {
        for (arrived, palette, has_sixel, typed) in [
            ("a\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\b\x1b[12;1Rc", Some(Palette::Dark), false, "abc"),
            ("\x1b]11;rgb:ff/ff/f0\x07\x1b[?62;4;22c\x1b[1;1R", Some(Palette::Light), true, ""),
            ("\x1b[A\x1b[?4;6c\x1b[3;4Rx", None, false, "\x1b[Ax"),
            ("x\x1b[?62;14;44cy\x1b]11;rgb:ff", None, false, "xy"),
        ] {
            let answers = Answers { palette, has_sixel, typed: typed.as_bytes().to_vec() };
            assert_eq!(answer(arrived.as_bytes().to_vec()), answers, "{arrived:?}");
        }
    }

    #[test]
    fn colours_that_cannot_be_read_decide_nothing() {
        for colour in ["", "rgb:", "rgb:1/2", "rgb:x/y/z", "black"] {
            assert_eq!(palette_of(colour), None, "{colour}");
        }
    }
}
