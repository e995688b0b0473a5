//! A picture from the clipboard, through the programs that desktops have for it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use myclaw_config::Paths;
use myclaw_files::{create_private_directory, private_options};

use super::pastes::{digest, keep_newest};
use myclaw_front::attachments;

/// Largest picture.
const MOST_BYTES: u64 = 20 * 1024 * 1024;
/// The longest wait for a program: the window that offers the picture may not answer.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Pictures that are kept.
const MOST_KEPT: usize = 50;
/// How a PNG file begins.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// How AppleScript begins and ends data, with hexadecimal digits between them.
const APPLE_DATA: (&str, &str) = ("«data PNGf", "»");

/// A program that writes the picture of the clipboard to standard output.
struct Source {
    program: &'static str,
    arguments: &'static [&'static str],
    /// The variable without which there is no such clipboard.
    needs: Option<&'static str>,
}

#[cfg(not(target_os = "macos"))]
const SOURCES: [Source; 2] = [
    Source {
        program: "wl-paste",
        arguments: &["--no-newline", "--type", "image/png"],
        needs: Some("WAYLAND_DISPLAY"),
    },
    Source {
        program: "xclip",
        arguments: &["-selection", "clipboard", "-target", "image/png", "-out"],
        needs: Some("DISPLAY"),
    },
];
#[cfg(target_os = "macos")]
const SOURCES: [Source; 2] = [
    Source { program: "pngpaste", arguments: &["-"], needs: None },
    Source {
        program: "osascript",
        arguments: &["-e", "get the clipboard as «class PNGf»"],
        needs: None,
    },
];

/// Where the pictures are kept.
pub(super) fn directory(paths: &Paths) -> PathBuf {
    paths.state_dir().join("chat_pictures")
}

/// Writes the picture of the clipboard to a file in `directory`, and returns the text that names it in a message.
///
/// # Errors
/// A sentence for the user: there is no clipboard, no program for it, or no picture in it.
pub(super) fn picture(directory: &Path) -> Result<String, String> {
    let is_there = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut missing = Vec::new();
    let mut tried = false;
    for Source { program, arguments, needs } in SOURCES {
        if needs.is_some_and(|needed| !is_there(&needed)) {
            continue;
        }
        match output(program, arguments) {
            Ok(bytes) => {
                tried = true;
                let bytes = from_apple_script(&bytes).unwrap_or(bytes);
                if bytes.starts_with(PNG) {
                    return keep(directory, &bytes)
                        .map(|path| format!("{} ", attachments::quoted(&path)))
                        .map_err(|error| format!("the picture could not be kept: {error}"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(program),
            Err(error) => return Err(format!("{program} could not read the clipboard: {error}")),
        }
    }
    Err(match missing.as_slice() {
        _ if tried => "the clipboard holds no picture".to_owned(),
        [] => "there is no clipboard here: neither WAYLAND_DISPLAY nor DISPLAY is set; write the path of the picture"
            .to_owned(),
        missing => format!(
            "install {} to paste pictures, or write the path of the picture",
            missing.join(" or ")
        ),
    })
}

/// [`picture`] while the caller does other work.
///
/// # Errors
/// As [`picture`].
pub(super) async fn picture_meanwhile(directory: PathBuf) -> Result<String, String> {
    let reading = tokio::task::spawn_blocking(move || picture(&directory));
    reading.await.unwrap_or_else(|error| Err(format!("internal error: {error}")))
}

/// What a program prints. It is ended if it takes too long.
fn output(program: &str, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (done, read) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        let work = move || {
            let mut bytes = Vec::new();
            let outcome = stdout.take(MOST_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes);
            // If nobody waits any more, it took too long.
            let _ = done.send(outcome);
        };
        if let Err(error) = std::thread::Builder::new().spawn(work) {
            let _ = child.kill();
            child.wait()?;
            return Err(error);
        }
    }
    let outcome = read.recv_timeout(LONGEST_WAIT);
    // It has closed its output, or is not waited for any longer.
    let _ = child.kill();
    child.wait()?;
    let bytes = outcome.map_err(|_| io::Error::other("it does not answer"))??;
    match u64::try_from(bytes.len()) {
        Ok(count) if count <= MOST_BYTES => Ok(bytes),
        _ => Err(io::Error::other(format!("it has more than {} MiB", MOST_BYTES / 1024 / 1024))),
    }
}

/// The bytes that AppleScript prints as text.
fn from_apple_script(bytes: &[u8]) -> Option<Vec<u8>> {
    let (begin, end) = APPLE_DATA;
    let digits = std::str::from_utf8(bytes).ok()?.trim().strip_prefix(begin)?.strip_suffix(end)?;
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn keep(directory: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    create_private_directory(directory)?;
    let path = directory.join(format!("{}.png", digest(bytes)));
    private_options().write(true).create(true).truncate(true).open(&path)?.write_all(bytes)?;
    keep_newest(directory, MOST_KEPT)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::from_apple_script;

    #[test]
    fn the_data_of_apple_script_is_read() {
        let printed = "«data PNGf89504E47»\n".as_bytes();
        assert_eq!(from_apple_script(printed).as_deref(), Some(&b"\x89PNG"[..]));
        for other in ["", "«data PNGf8»", "«data PNGfxy»", "text"] {
            assert_eq!(from_apple_script(other.as_bytes()), None, "{other}");
        }
    }
}
