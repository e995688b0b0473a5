use clap::{CommandFactory, Parser};

use super::{Cli, Command};

#[test]
fn the_grammar_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn agent_is_an_alias_of_run_and_words_are_kept() {
    let cli = Cli::try_parse_from(["myclaw", "agent", "say", "hello"]).expect("parses");
    let Some(Command::Run(run)) = cli.command else { panic!("not a run: {cli:?}") };
    assert_eq!(run.message, ["say", "hello"]);
}

#[test]
fn no_command_is_a_chat_with_its_options() {
    let cli = Cli::try_parse_from(["myclaw", "--session", "trip"]).expect("parses");
    assert!(cli.command.is_none());
    assert_eq!(cli.chat.session.session.as_deref(), Some("trip"));
}

#[test]
fn every_command_has_a_long_help_with_an_example_of_itself() {
    fn check(command: &mut clap::Command, path: &str) {
        for command in command.get_subcommands_mut().filter(|found| found.get_name() != "help") {
            let path = format!("{path} {}", command.get_name());
            let help = command.render_long_help().to_string();
            let examples = help.split_once("Examples:").map(|(_, examples)| examples.to_owned());
            assert!(examples.is_some_and(|examples| examples.contains(&path)), "{path}: {help}");
            check(command, &path);
        }
    }
    check(&mut Cli::command(), "myclaw");
}
