//! Reports a panic as one line and restores the terminal. What the system refused to a library that cannot return an error,
//! a thread or random numbers, ends here too; it is no defect, so the line says what to do instead.

use std::io::Write;
use std::panic::PanicHookInfo;

use crate::terminal;

/// The place to report defects.
const REPORT_TO: &str = "the project's issue tracker";

/// Replaces the standard hook. With `RUST_BACKTRACE` set, the standard hook runs too.
pub fn install_hook() {
    let standard = std::panic::take_hook();
    let wants_backtrace =
        std::env::var_os("RUST_BACKTRACE").is_some_and(|value| !value.is_empty() && value != "0");
    std::panic::set_hook(Box::new(move |info| {
        terminal::restore();
        // Standard error may be closed; then there is no place to report.
        drop(writeln!(std::io::stderr(), "{}", report(info)));
        if wants_backtrace {
            standard(info);
        }
    }));
}

/// What to do about an error of the system that says that there is no room for a thread; empty for others.
pub fn advice_about(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            "; end other programs of this user, or raise the limit of its processes (ulimit -u)"
        }
        _ => "",
    }
}

/// What a library cannot go on without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    Threads,
    Random,
}

impl Shortage {
    /// The shortage behind a panic in `file` with this text. The texts are those of tokio, the standard library, uuid and
    /// getrandom.
    fn of(file: &str, text: &str) -> Option<Self> {
        let is_in = |names: &[&str]| names.iter().any(|name| file.contains(name));
        if text.starts_with("OS can't spawn worker thread")
            || text.starts_with("failed to spawn thread")
        {
            Some(Self::Threads)
        } else if is_in(&["/uuid-", "/getrandom-", "/rand_core-"]) || text.contains("random data") {
            Some(Self::Random)
        } else {
            None
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Threads => {
                "myclaw: the system allows no further thread, so this cannot go on; your sessions are saved. End other \
                 programs of this user, or raise the limit of its processes (ulimit -u; in a container, the limit of \
                 pids)."
            }
            Self::Random => {
                "myclaw: the system gives no random numbers, so this cannot go on; your sessions are saved. Make \
                 /dev/urandom available, or permit the system call getrandom where a filter denies it."
            }
        }
    }
}

fn report(info: &PanicHookInfo<'_>) -> String {
    let text =
        match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
            (Some(text), _) => text,
            (None, Some(text)) => text.as_str(),
            (None, None) => "",
        };
    let file = info.location().map_or("", |location| location.file());
    Shortage::of(file, text).map_or_else(|| one_line(info), |it| it.message().to_owned())
}

/// The source location only: the payload may quote text of a user or a model.
fn one_line(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(
        || "an unknown place".to_owned(),
        |location| {
            // The compiled path may name a directory of the build machine.
            let file = location.file().rsplit_once("crates/").map_or_else(
                || location.file().rsplit('/').next().unwrap_or_default(),
                |(_, inside)| inside,
            );
            format!("{file}:{}", location.line())
        },
    );
    format!(
        "myclaw: this is a defect in myclaw {} (at {place}); your sessions are saved. Please report this line to {REPORT_TO}.",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests;
