//! Completion scripts that ask this program for the values of some options.
//!
//! The generator writes scripts that know the options, but not which sessions or models there are. The places where it
//! completes files for such an option get a call of `myclaw completions --values` instead.

use std::collections::BTreeMap;

use clap::{Command, ValueEnum};
use clap_complete::Shell;

use crate::args::CompletedValues;

/// What the generated script for bash does for a value that it does not know.
const BASH_FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";
/// The same for zsh.
const ZSH_FILES: &str = ":_default'";

/// What ends the generated script for elvish: the candidates of the command so far.
const ELVISH_CANDIDATES: &str = "    $completions[$command]\n";
/// After this line of the generated script for PowerShell the command is known.
const POWERSHELL_COMMAND: &str = "    }) -join ';'\n";

/// The script of `command` with the calls; unchanged for shells without them.
pub(super) fn completed(shell: Shell, script: &str, command: &Command) -> String {
    match shell {
        Shell::Bash => bash(script),
        Shell::Zsh => zsh(script),
        Shell::Fish => fish(script),
        Shell::Elvish => elvish(script, command),
        Shell::PowerShell => powershell(script, command),
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

/// The generated script knows no values. So the word before the one that is completed decides.
fn elvish(script: &str, command: &Command) -> String {
    let Options { of_kinds, others } = Options::of(command);
    let kinds: Vec<String> =
        of_kinds.iter().map(|(option, kind)| format!("&{option}={kind}")).collect();
    let others: Vec<String> = others.iter().map(|place| format!("'{place}'")).collect();
    let values = format!(
        r#"    var kinds = [{}]
    var others = [{}]
    var option = ''
    if (> (count $words) 2) {{
        set option = $words[-2]
    }}
    if (and (has-key $kinds $option) (not (has-value $others $command' '$option))) {{
        e:myclaw completions --values $kinds[$option] 2>/dev/null | from-lines
    }} else {{
    {ELVISH_CANDIDATES}    }}
"#,
        kinds.join(" "),
        others.join(" ")
    );
    script.replace(ELVISH_CANDIDATES, &values)
}

/// As for elvish. The word that is completed is not among the words if it is empty.
fn powershell(script: &str, command: &Command) -> String {
    let Options { of_kinds, others } = Options::of(command);
    let kinds: Vec<String> =
        of_kinds.iter().map(|(option, kind)| format!("'{option}' = '{kind}'")).collect();
    let others: Vec<String> = others.iter().map(|place| format!("'{place}'")).collect();
    let values = format!(
        r#"{POWERSHELL_COMMAND}
    $kinds = @{{ {} }}
    $others = @({})
    $before = $commandElements.Count - 1
    if ($wordToComplete -ne '') {{ $before -= 1 }}
    $option = if ($before -ge 1) {{ $commandElements[$before].Extent.Text }} else {{ '' }}
    if (($kinds.Keys -ccontains $option) -and ($others -cnotcontains "$command $option")) {{
        myclaw completions --values $kinds[$option] 2>$null |
            Where-Object {{ $_ -clike "$([WildcardPattern]::Escape($wordToComplete))*" }} |
            ForEach-Object {{ [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_) }}
        return
    }}
"#,
        kinds.join("; "),
        others.join(", ")
    );
    script.replace(POWERSHELL_COMMAND, &values)
}

/// The options of a command and those below it.
#[derive(Default)]
struct Options {
    /// Those that have values of a kind, in all their forms.
    of_kinds: BTreeMap<String, String>,
    /// Where the letter of such an option means another one, as in `myclaw;models;list -s`.
    others: Vec<String>,
}

impl Options {
    fn of(command: &Command) -> Self {
        let mut found = Self::default();
        found.of_kinds.extend(kinds().map(|kind| (format!("--{kind}"), kind)));
        let mut others = Vec::new();
        let mut commands = vec![(command, command.get_name().to_owned())];
        while let Some((command, path)) = commands.pop() {
            let below = command.get_subcommands();
            commands.extend(below.map(|below| (below, format!("{path};{}", below.get_name()))));
            for argument in command.get_arguments() {
                let Some(letter) = argument.get_short().map(|letter| format!("-{letter}")) else {
                    continue;
                };
                match kinds().find(|kind| argument.get_long() == Some(kind)) {
                    Some(kind) => drop(found.of_kinds.insert(letter, kind)),
                    None => others.push((path.clone(), letter)),
                }
            }
        }
        others.retain(|(_, letter)| found.of_kinds.contains_key(letter));
        found.others = others.iter().map(|(path, letter)| format!("{path} {letter}")).collect();
        found
    }
}
