//! Counts the content that an import leaves out.

use std::collections::BTreeMap;
use std::fmt;

/// Most kinds that are counted separately. A hostile file could hold any number of them.
const MOST_KINDS: usize = 100;
/// Most characters of a name from a file that are shown.
const MOST_NAME_CHARS: usize = 40;
/// The name under which further kinds are counted.
const REST: &str = "other parts";

/// Counts by kind. Its text follows the number of messages in a report.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<String, u64>);

impl LeftOut {
    /// Counts one of `kind`, which the program itself words.
    pub(super) fn add(&mut self, kind: &str) {
        self.add_many(kind, 1);
    }

    /// Counts one of a kind that the file names.
    pub(super) fn add_named(&mut self, kind: &str, name: &str) {
        let name: String = name
            .chars()
            .filter(|character| !character.is_control())
            .take(MOST_NAME_CHARS)
            .collect();
        self.add(&format!("{kind} `{name}`"));
    }

    /// Counts several.
    pub(super) fn add_many(&mut self, kind: &str, count: u64) {
        if count == 0 {
            return;
        }
        let is_known = self.0.contains_key(kind) || self.0.len() < MOST_KINDS;
        let kind = if is_known { kind } else { REST };
        *self.0.entry(kind.to_owned()).or_default() += count;
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (kind, count)) in self.0.iter().enumerate() {
            formatter.write_str(if place == 0 { "; left out: " } else { ", " })?;
            write!(formatter, "{count} × {kind}")?;
        }
        Ok(())
    }
}
