//! The packages of others: which are off.

use myclaw_agent::Home;

use super::Check;

const NAME: &str = "packages";

pub(super) fn check(home: &Home) -> Vec<Check> {
    let states = match home.packages().load() {
        Ok(states) => states,
        Err(error) => {
            return vec![Check::warn(NAME, error.to_string(), "restore or remove that file")];
        }
    };
    let off = states.iter().filter_map(|state| {
        let why = state.loaded.as_ref().err()?;
        Some(Check::warn(
            NAME,
            format!("the package {} is off: {why}", state.name),
            format!("run `myclaw packages update {}`", state.name),
        ))
    });
    let off: Vec<Check> = off.collect();
    match off.is_empty() && !states.is_empty() {
        true => vec![Check::ok(NAME, format!("{} as you approved them", states.len()))],
        false => off,
    }
}
