//! `myclaw doctor --security`: what is open in this set-up.

use std::io;

use myclaw_agent::{
    Home,
    config_check::load_checked,
    security_check::{SecurityFinding, Severity, security_findings},
};

use crate::args::DoctorArgs;
use myclaw_front::exit::CliError;
use myclaw_front::print::Printer;
use myclaw_front::terminal::{Paint, Style};

/// Prints the findings, the worst first.
///
/// # Errors
/// There is a finding, or the config cannot be read.
pub(super) fn run(args: &DoctorArgs, home: &Home) -> Result<(), CliError> {
    let loaded = load_checked(&home.environment)?;
    let findings = security_findings(&loaded.config, home);
    let mut printer = Printer::stdout();
    let paint = Paint::for_stream(&io::stdout());
    for finding in &findings {
        if args.json {
            printer.json(finding)?;
        } else {
            print(finding, paint, &mut printer)?;
        }
    }
    if findings.is_empty() && !args.json {
        printer.line(format_args!(
            "nothing is open that a check knows; docs/operate/security.md says what that means"
        ))?;
    }
    printer.finish()?;
    match findings.len() {
        0 => Ok(()),
        1 => Err(CliError::failure("one finding; the command below it closes it")),
        count => {
            Err(CliError::failure(format!("{count} findings; the command below each closes it")))
        }
    }
}

fn print(finding: &SecurityFinding, paint: Paint, printer: &mut Printer) -> Result<(), CliError> {
    let (word, style) = match finding.severity {
        Severity::High => ("high  ", Style::Bad),
        Severity::Medium => ("medium", Style::Warning),
        Severity::Low => ("low   ", Style::Warning),
    };
    let line = printer.fitting(&format!("{word}  {}", finding.message));
    let rest = line.strip_prefix(word).unwrap_or(&line);
    printer.line(format_args!("{}{rest}", paint.paint(style, word)))?;
    printer.safe_lines([format!("        -> {}", finding.fix)])?;
    Ok(())
}
