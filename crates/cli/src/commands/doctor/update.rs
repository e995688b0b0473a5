//! Which version of the program writes the state directory, and what the update to it changed there.

use myclaw_agent::Home;
use myclaw_files::formats::{ALL, StateFormats};
use myclaw_front::time::local_minute;

use super::Check;

const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// `None` if nothing was written down yet.
pub(super) fn check(home: &Home) -> Option<Check> {
    let StateFormats { program, since, before, .. } =
        StateFormats::check(home.paths.state_dir()).ok()??;
    let mut text = format!("MyClaw {program} writes here since {}", local_minute(since));
    if let Some(before) = before {
        let earlier = before
            .program
            .map_or("an earlier version".to_owned(), |version| format!("MyClaw {version}"));
        text = format!("{text}, {earlier} did before");
        for format in ALL {
            if let Some((from, to)) = before.raised.get(format.name) {
                text = format!("{text}; {} has format {to} now, and had {from}", format.what);
            }
        }
    }
    if program != PROGRAM {
        text = format!("{text}; this is MyClaw {PROGRAM}, and has written nothing yet");
    }
    Some(Check::ok("update", text))
}
