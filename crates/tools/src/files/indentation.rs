//! Indentation that differs in the same way on every line.

/// How the indentation of lines in a file relates to the indentation of the same lines as a model wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shift {
    /// No difference.
    None,
    /// Every line of the file has this prefix in addition.
    Deeper(String),
    /// Every line of the file lacks this prefix.
    Shallower(String),
    /// Each step of `from` is a step of `to` in the file.
    Steps {
        /// One step as the model wrote it.
        from: &'static str,
        /// One step in the file.
        to: &'static str,
    },
}

/// Pairs of steps that models mix up.
const STEPS: [(&str, &str); 8] = [
    ("    ", "\t"),
    ("  ", "\t"),
    ("        ", "\t"),
    ("\t", "    "),
    ("\t", "  "),
    ("\t", "        "),
    ("  ", "    "),
    ("    ", "  "),
];

impl Shift {
    /// The shift that makes every line of `written` indented like its partner in `file`, if there is one. Lines that
    /// are blank on either side do not count.
    pub(crate) fn between<'a>(written: &[&'a str], file: &[&'a str]) -> Option<Self> {
        let pairs: Vec<(&str, &str)> = written
            .iter()
            .zip(file)
            .filter(|(written, file)| !is_blank(written) && !is_blank(file))
            .map(|(written, file)| (indentation(written), indentation(file)))
            .collect();
        let Some(&(written, file)) = pairs.first() else { return Some(Self::None) };
        let simple = if written == file {
            Some(Self::None)
        } else if let Some(extra) = file.strip_suffix(written) {
            Some(Self::Deeper(extra.to_owned()))
        } else {
            written.strip_suffix(file).map(|extra| Self::Shallower(extra.to_owned()))
        };
        let steps = STEPS.into_iter().map(|(from, to)| Self::Steps { from, to });
        simple
            .into_iter()
            .chain(steps)
            .find(|shift| pairs.iter().all(|(written, file)| shift.indent(written) == *file))
    }

    /// `line`, indented like the model's other lines, with the indentation of the file.
    pub(crate) fn apply(&self, line: &str) -> String {
        if is_blank(line) {
            return line.to_owned();
        }
        let own = indentation(line);
        let mut shifted = self.indent(own);
        shifted.push_str(&line[own.len()..]);
        shifted
    }

    fn indent(&self, own: &str) -> String {
        match self {
            Self::None => own.to_owned(),
            Self::Deeper(extra) => format!("{extra}{own}"),
            Self::Shallower(extra) => own.strip_prefix(extra.as_str()).unwrap_or("").to_owned(),
            Self::Steps { from, to } => {
                let mut rest = own;
                let mut shifted = String::new();
                while let Some(less) = rest.strip_prefix(from) {
                    shifted.push_str(to);
                    rest = less;
                }
                shifted.push_str(rest);
                shifted
            }
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests;
