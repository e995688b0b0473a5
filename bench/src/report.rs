//! Medians, spreads, ratios, and the table.

use std::fmt::Write;

use crate::options::Options;

/// Figures of one kind from several runs, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Milliseconds,
    Kilobytes,
    Megabytes,
    Count,
}

/// What the figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aim {
    /// At most so many times the bare loop's.
    Ratio(f64),
    /// Below this, in the row's unit.
    Below(f64),
    Exactly(f64),
    None,
}

/// One line of the table. The error of a program is why there are no figures.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    unit: Unit,
    myclaw: Result<Samples, String>,
    bare: Result<Samples, String>,
    aim: Aim,
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }
}

impl Samples {
    pub(crate) fn median(&self) -> Option<f64> {
        let middle = self.0.len() / 2;
        match self.0.as_slice() {
            [] => None,
            figures if figures.len() % 2 == 1 => Some(figures[middle]),
            figures => Some(f64::midpoint(figures[middle - 1], figures[middle])),
        }
    }

    fn range(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }
}

impl Row {
    pub(crate) fn new(
        name: &str,
        unit: Unit,
        myclaw: Result<Samples, String>,
        bare: Result<Samples, String>,
        aim: Aim,
    ) -> Self {
        Self { name: name.to_owned(), unit, myclaw, bare, aim }
    }

    fn ratio(&self) -> Option<f64> {
        let bare = self.bare.as_ref().ok()?.median()?;
        (bare > 0.0).then_some(self.myclaw.as_ref().ok()?.median()? / bare)
    }

    /// Whether the aim is met; `None` if there is no aim or nothing to compare.
    fn is_met(&self) -> Option<bool> {
        let median = self.myclaw.as_ref().ok()?.median()?;
        match self.aim {
            Aim::Ratio(most) => Some(self.ratio()? <= most),
            Aim::Below(limit) => Some(median < limit),
            Aim::Exactly(figure) => Some(median == figure),
            Aim::None => None,
        }
    }

    fn aim(&self) -> String {
        match self.aim {
            Aim::Ratio(most) => format!("≤ {most} ×"),
            Aim::Below(limit) => format!("< {limit}{}", self.unit.suffix()),
            Aim::Exactly(figure) => format!("{figure}{}", self.unit.suffix()),
            Aim::None => "–".to_owned(),
        }
    }
}

impl Unit {
    fn suffix(self) -> &'static str {
        match self {
            Self::Microseconds => " µs",
            Self::Milliseconds => " ms",
            Self::Kilobytes => " kB",
            Self::Megabytes => " MB",
            Self::Count => "",
        }
    }

    fn show(self, samples: &Result<Samples, String>) -> String {
        let Ok(samples) = samples else { return "–".to_owned() };
        match (samples.median(), samples.range()) {
            (Some(median), Some((least, most))) if least < most => {
                format!(
                    "{}{} ({} – {})",
                    digits(median),
                    self.suffix(),
                    digits(least),
                    digits(most)
                )
            }
            (Some(median), _) => format!("{}{}", digits(median), self.suffix()),
            (None, _) => "–".to_owned(),
        }
    }
}

/// About three significant digits.
fn digits(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 || figure.fract() == 0.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 0.1 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// The table in Markdown, with what went wrong below it.
pub(crate) fn table(rows: &[Row], options: &Options) -> String {
    let mut cells =
        vec![["measured", "myclaw", "bare loop", "ratio", "aim", "met"].map(str::to_owned)];
    for row in rows {
        let ratio =
            row.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{} ×", digits(ratio)));
        let met = match row.is_met() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        cells.push([
            row.name.clone(),
            row.unit.show(&row.myclaw),
            row.unit.show(&row.bare),
            ratio,
            row.aim(),
            met.to_owned(),
        ]);
    }
    let mut text = format!("Median of {} runs (least – most).\n\n", options.runs);
    let width = |column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    for (number, row) in cells.iter().enumerate() {
        let line: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            let _ = writeln!(text, "| {} |", rule.join(" | "));
        }
    }
    let mut troubles: Vec<String> = rows
        .iter()
        .flat_map(|row| [("myclaw", &row.myclaw), ("bare loop", &row.bare)])
        .filter_map(|(program, samples)| Some(format!("{program}: {}", samples.as_ref().err()?)))
        .filter(|trouble| !trouble.ends_with(": "))
        .collect();
    troubles.dedup();
    for trouble in troubles {
        let _ = writeln!(text, "\n{trouble}");
    }
    text
}

#[cfg(test)]
mod tests;
