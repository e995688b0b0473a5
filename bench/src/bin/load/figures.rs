//! Figures, and the table of them.

use std::fmt::Write as _;

/// Figures of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The figure that `share` of all do not exceed; 0 without figures.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(at.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    pub(crate) fn most(&self) -> f64 {
        self.quantile(1.0)
    }
}

/// The lines of the report.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<[String; 5]>);

impl Table {
    /// Adds a line. `relay` is the figure of the bare relay, and `aim` holds where it is known to hold.
    pub(crate) fn add(
        &mut self,
        name: &str,
        gateway: impl Into<String>,
        relay: Option<String>,
        aim: &str,
        is_met: Option<bool>,
    ) {
        let (gateway, relay) = (gateway.into(), relay.unwrap_or_else(|| "–".to_owned()));
        let met = is_met.map_or("–", |met| if met { "yes" } else { "no" });
        eprintln!("{name}: {gateway} (relay {relay}; aim {aim}, met {met})");
        self.0.push([name.to_owned(), gateway, relay, aim.to_owned(), met.to_owned()]);
    }

    /// The table in Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text =
            "| measured | gateway | bare relay | aim | met |\n| --- | --- | --- | --- | --- |\n"
                .to_owned();
        for line in &self.0 {
            let _ = writeln!(text, "| {} |", line.join(" | "));
        }
        text
    }
}
