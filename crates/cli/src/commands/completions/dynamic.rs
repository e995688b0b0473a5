//! Completion scripts that ask this program for the values of some options.
//!
//! The generator writes scripts that know the options, but not which sessions or models there are. The places where it
//! completes files for such an option get a call of `myclaw completions --values` instead.

use clap::ValueEnum;
use clap_complete::Shell;

use crate::args::CompletedValues;

/// What the generated script for bash does for a value that it does not know.
const BASH_FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";
/// The same for zsh.
const ZSH_FILES: &str = ":_default'";

/// The script with the calls; unchanged for shells without them.
pub(super) fn completed(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => bash(script),
        Shell::Zsh => zsh(script),
        Shell::Fish => fish(script),
        _ => script.to_owned(),
    }
}

/// The kinds of values, and the options that have them.
fn kinds() -> impl Iterator<Item = String> {
    let kinds = CompletedValues::value_variants().iter();
    kinds.filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()))
}

fn call(kind: &str) -> String {
    format!("myclaw completions --values {kind} 2>/dev/null")
}

/// Each option is a branch of a `case`; the short form of an option follows the long one.
fn bash(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    let mut kind: Option<String> = None;
    for line in script.lines() {
        let trimmed = line.trim();
        if let Some(option) = trimmed.strip_suffix(')').filter(|option| option.starts_with('-')) {
            match option.strip_prefix("--") {
                Some(long) => kind = kinds().find(|kind| kind == long),
                None if option.len() == 2 => {}
                None => kind = None,
            }
        }
        match &kind {
            Some(kind) if trimmed == BASH_FILES => {
                let words = format!("compgen -W \"$({})\" -- \"${{cur}}\"", call(kind));
                out.push_str(&line.replace(BASH_FILES, &format!("COMPREPLY=($({words}))")));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Each form of an option is a line; the long form follows the short one.
fn zsh(script: &str) -> String {
    let kind_of = |line: &str| kinds().find(|kind| line.contains(&format!("--{kind}=[")));
    let lines: Vec<&str> = script.lines().collect();
    let mut out = String::with_capacity(script.len());
    for (at, line) in lines.iter().copied().enumerate() {
        let is_short = line.contains("+[") && !line.contains("=[");
        let long = if is_short { lines.get(at + 1).copied().unwrap_or_default() } else { line };
        match kind_of(long).filter(|_| line.contains(ZSH_FILES)) {
            Some(kind) => {
                out.push_str(&line.replace(ZSH_FILES, &format!(":_myclaw_values_{kind}'")))
            }
            None => out.push_str(line),
        }
        out.push('\n');
        if at == 0 {
            for kind in kinds() {
                let values = format!("\"${{(@f)$({})}}\"", call(&kind));
                out.push_str(&format!("\n_myclaw_values_{kind}() {{ compadd -- {values} }}\n"));
            }
        }
    }
    out
}

/// Each option is a line.
fn fish(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    for line in script.lines() {
        out.push_str(line);
        if let Some(kind) = kinds().find(|kind| line.contains(&format!(" -l {kind} "))) {
            out.push_str(&format!(" -f -a '({})'", call(&kind)));
        }
        out.push('\n');
    }
    out
}
