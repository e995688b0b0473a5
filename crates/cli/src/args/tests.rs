use clap::{CommandFactory, Parser};

use super::{Cli, Command};

mod page;

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

#[test]
fn only_the_command_that_is_asked_for_is_described() {
    let mut cli = Cli::command();
    let described = |cli: &clap::Command| {
        let all = cli.get_subcommands().filter(|one| one.get_name() != "help");
        all.filter(|one| one.get_arguments().next().is_some() || one.has_subcommands())
            .map(|one| one.get_name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(described(&cli), [""; 0]);
    cli.try_get_matches_from_mut(["myclaw", "run", "hello"]).expect("parses");
    assert_eq!(described(&cli), ["run"]);
}

#[test]
fn what_a_command_says_about_itself_stays_when_it_is_described() {
    fn abouts(cli: &clap::Command) -> Vec<(String, String, String)> {
        let text = |text: Option<&clap::builder::StyledStr>| {
            text.map(ToString::to_string).unwrap_or_default()
        };
        cli.get_subcommands()
            .filter(|one| one.get_name() != "help")
            .map(|one| {
                let (about, long) = (text(one.get_about()), text(one.get_long_about()));
                (one.get_name().to_owned(), about, long)
            })
            .collect()
    }
    let mut cli = Cli::command();
    let before = abouts(&cli);
    cli.build();
    assert_eq!(abouts(&cli), before);
}
