//! Turns a failure to load the config into a report with positions.

use std::path::Path;

use serde_json::Value;

use crate::config_path::ConfigPath;
use crate::load::MAX_ISSUES;
use crate::locate::{Located, Target};
use crate::lookup::SubstitutionLookup;
use crate::strict::Misfit;
use crate::substitute::MissingVariable;
use crate::tree::{Fault, MAX_DEPTH, ParseFailure};
use crate::validate::{Finding, validate};
use crate::{ConfigError, Paths, Report, json_schema};

/// The text cannot be parsed.
pub(crate) fn syntax(file: &Path, text: &str, failure: ParseFailure) -> ConfigError {
    let mut report = Report::new(file, text);
    let offset = failure.offset;
    let span = Some(offset..offset + text[offset..].chars().next().map_or(0, char::len_utf8));
    let (path, message, help) = match failure.fault {
        Fault::Syntax(_) if text.trim().is_empty() => (
            ConfigPath::default(),
            "the file is empty".to_owned(),
            Some("the config is one object, `{ … }`"),
        ),
        Fault::Syntax(error) => {
            let (message, help) = error.message();
            (ConfigPath::default(), message.to_owned(), help)
        }
        Fault::TooDeep => {
            let message = format!("nested deeper than {MAX_DEPTH} objects and lists");
            (ConfigPath::default(), message, None)
        }
        Fault::NotFinite => {
            let path = Located::new(text).path_at(offset).unwrap_or_default();
            (path, "expected a finite number".to_owned(), None)
        }
        Fault::DuplicateKey => {
            push_duplicates(&mut report, text);
            return ConfigError::Syntax(Box::new(report));
        }
    };
    report.push(path, message, help.map(str::to_owned), span);
    ConfigError::Syntax(Box::new(report))
}

fn push_duplicates(report: &mut Report, text: &str) {
    for duplicate in Located::new(text).duplicate_keys(MAX_ISSUES) {
        let line = text[..duplicate.first.start].matches('\n').count() + 1;
        let help = format!("it is on line {line} already; keep one of the two");
        report.push(
            duplicate.path,
            "this key appears twice".to_owned(),
            Some(help),
            Some(duplicate.span),
        );
    }
}

/// References to variables that are unset or empty.
pub(crate) fn missing_variables(
    first: &MissingVariable,
    missing: &[MissingVariable],
    file: &Path,
    text: &str,
    paths: &Paths,
    lookup: &SubstitutionLookup<'_>,
) -> ConfigError {
    let located = Located::new(text);
    let mut report = Report::new(file, text);
    let dotenv = paths.state_dir().join(crate::environment::DOTENV_FILE);
    for MissingVariable { name, path } in missing {
        let mut help = format!("set it in the environment or in {}", dotenv.display());
        if lookup.passed_over_current_dir() {
            help.push_str(
                "; `.env` of the current directory is not read, since it belongs to a project or an agent works there",
            );
        }
        let span = located.span(path, Target::Value);
        report.push(
            path.clone(),
            format!("the variable `{name}` is not set, or empty"),
            Some(help),
            span,
        );
    }
    report.sort();
    ConfigError::MissingEnvVar {
        var: first.name.clone(),
        config_path: first.path.clone(),
        report: Box::new(report),
    }
}

/// The tree does not fit the schema.
pub(crate) fn invalid(file: &Path, text: &str, tree: &Value, misfit: Misfit) -> ConfigError {
    let found = validate(&json_schema(), tree, MAX_ISSUES);
    if !found.is_empty() {
        return findings(file, text, found);
    }
    // The types refuse what the schema allows. Their message may quote a value, so only the position is shown.
    let message = "this value is not one that is expected here".to_owned();
    let target = Target::Value;
    findings(file, text, vec![Finding { path: misfit.path, target, message, help: None }])
}

/// The config has mistakes.
pub(crate) fn findings(file: &Path, text: &str, findings: Vec<Finding>) -> ConfigError {
    let located = Located::new(text);
    let mut report = Report::new(file, text);
    for finding in findings.into_iter().take(MAX_ISSUES) {
        let span = located.span(&finding.path, finding.target);
        report.push(finding.path, finding.message, finding.help, span);
    }
    report.sort();
    ConfigError::Invalid(Box::new(report))
}
