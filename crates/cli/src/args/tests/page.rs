//! The page of all commands with their options, made from the grammar.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

const HEAD: &str = "# Commands and options

Every command with its arguments and options, as `myclaw COMMAND --help` prints them. The page is made from the grammar of the
command line; `scripts/make-pages` writes it. What the commands do is in [cli.md](cli.md). `-h` and `--help` belong to each
command, and `-V` and `--version` print the version.
";

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// How an argument is written: `-s`, `--session NAME`.
fn form(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let value = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    let mut forms: Vec<String> = Vec::new();
    forms.extend(argument.get_short().map(|short| format!("`-{short}`")));
    if let Some(long) = argument.get_long() {
        let value = if takes { format!(" {value}") } else { String::new() };
        forms.push(format!("`--{long}{value}`"));
    }
    if forms.is_empty() {
        let more = if argument.get_num_args().is_some_and(|count| count.max_values() > 1) {
            "…"
        } else {
            ""
        };
        forms.push(format!("`{value}{more}`"));
    }
    forms.join(", ")
}

fn text_of(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let is_shown = argument.get_action().takes_values() && !argument.is_hide_possible_values_set();
    let values: Vec<String> = match is_shown {
        true => argument
            .get_possible_values()
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect(),
        false => Vec::new(),
    };
    if !values.is_empty() {
        let _ = write!(text, ". One of {}", values.join(", "));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(text, ". Default: `{}`", defaults.join(" "));
    }
    cell(&text)
}

fn describe(command: &mut Command, path: &str, page: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<_> = command.get_visible_aliases().map(|name| format!("`{name}`")).collect();
    let usage = command.render_usage().to_string();
    let arguments = usage.find(['[', '<']).and_then(|at| usage.get(at..)).unwrap_or_default();
    let _ = write!(page, "\n## `{path}`\n\n{about}.");
    if !aliases.is_empty() {
        let _ = write!(page, " Also {}.", aliases.join(", "));
    }
    let _ = write!(page, "\n\n```text\n{}\n```\n", format!("{path} {arguments}").trim());
    let shown = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        page.push_str("\n| | |\n|---|---|\n");
        for argument in arguments {
            let _ = writeln!(page, "| {} | {} |", cell(&form(argument)), text_of(argument));
        }
    }
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    if let Some((_, examples)) = examples.split_once("Examples:") {
        let lines: Vec<&str> =
            examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        let _ = write!(page, "\n```text\n{}\n```\n", lines.join("\n").trim());
    }
    for inner in command.get_subcommands_mut() {
        if inner.get_name() != "help" && !inner.is_hide_set() {
            let path = format!("{path} {}", inner.get_name());
            describe(inner, &path, page);
        }
    }
}

fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = HEAD.to_owned();
    describe(&mut command, "myclaw", &mut page);
    page
}

#[test]
fn docs_options_are_what_the_grammar_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/use/options.md");
    if std::env::var_os("MYCLAW_WRITE_PAGES").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/use/options.md is not what the grammar says: run scripts/make-pages"
    );
}
