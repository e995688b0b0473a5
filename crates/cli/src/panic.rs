//! Reports a panic as one line and restores the terminal.

use std::io::Write;
use std::panic::PanicHookInfo;

use crate::terminal;

/// The place to report defects.
const REPORT_TO: &str = "the project's issue tracker";

/// Replaces the standard hook. With `RUST_BACKTRACE` set, the standard hook runs too.
pub(crate) fn install_hook() {
    let standard = std::panic::take_hook();
    let wants_backtrace =
        std::env::var_os("RUST_BACKTRACE").is_some_and(|value| !value.is_empty() && value != "0");
    std::panic::set_hook(Box::new(move |info| {
        terminal::restore();
        // Standard error may be closed; then there is no place to report.
        drop(writeln!(std::io::stderr(), "{}", one_line(info)));
        if wants_backtrace {
            standard(info);
        }
    }));
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
