use super::{Audience, Command, HELP, NAMES, Parsed, ShellLine};

fn parse(line: &str) -> Parsed {
    super::parse(line, Vec::new)
}

#[test]
fn commands_and_their_arguments_are_read() {
    for (line, command) in [
        ("/help", Command::Help),
        ("/new", Command::New(None)),
        ("/new trip", Command::New(Some("trip".to_owned()))),
        ("/model  ollama/qwen3:8b ", Command::Model(Some("ollama/qwen3:8b".to_owned()))),
        ("/model", Command::Model(None)),
        ("/sessions", Command::Sessions(None)),
        ("/compact", Command::Compact(None)),
        ("/compact  what it cost ", Command::Compact(Some("what it cost".to_owned()))),
        ("/skill", Command::Skill(None)),
        ("/skill trip  now ", Command::Skill(Some("trip  now".to_owned()))),
        ("/usage", Command::Usage),
        ("/cost", Command::Usage),
        ("/clear", Command::New(None)),
        ("/retry", Command::Retry),
        ("/fork plan-b", Command::Fork(Some("plan-b".to_owned()))),
        ("/export notes.md", Command::Export("notes.md".to_owned())),
        ("/title A trip", Command::Title(Some("A trip".to_owned()))),
        ("/search train", Command::Search("train".to_owned())),
        ("/context", Command::Context),
        ("/quit", Command::Quit),
        (" exit\n", Command::Quit),
        ("quit", Command::Quit),
    ] {
        assert_eq!(parse(line), Parsed::Command(command), "{line}");
    }
}

#[test]
fn everything_else_is_a_message_as_it_was_typed() {
    for line in [
        "hello",
        " /etc/hosts: what is in it?",
        "exit the loop",
        "a\n/quit",
        "/etc/hosts: why?",
        "/tmp is full",
    ] {
        assert_eq!(parse(line), Parsed::Message(line.to_owned()));
    }
}

#[test]
fn exclamation_marks_say_who_sees_the_output() {
    for (line, command, audience) in [
        ("!ls -l", "ls -l", Audience::UserAndModel),
        ("!! git status ", "git status", Audience::User),
    ] {
        let command = command.to_owned();
        assert_eq!(parse(line), Parsed::Shell(ShellLine { command, audience }));
    }
    assert!(matches!(parse("! "), Parsed::Unknown(_)));
}

#[test]
fn an_unknown_command_gets_the_nearest() {
    let Parsed::Unknown(message) = parse("/modle x/y") else { panic!("a command") };
    assert!(message.contains("did you mean `/model`?"), "{message}");
    let Parsed::Unknown(message) = parse("/exi") else { panic!("a command") };
    assert!(message.contains("did you mean `/exit`?"), "{message}");
    let own = || vec!["/review".to_owned()];
    let Parsed::Unknown(message) = super::parse("/reveiw x", own) else { panic!("a command") };
    assert!(message.contains("did you mean `/review`?"), "{message}");
    let Parsed::Unknown(message) = parse("/xyzzy") else { panic!("a command") };
    assert!(
        message.contains("/help lists the commands") && !message.contains("did you mean"),
        "{message}"
    );
    assert_eq!(parse("/quit now"), Parsed::Unknown("/quit takes no argument".to_owned()));
}

#[test]
fn a_command_of_another_agent_gets_what_does_the_same_here() {
    // On Linux there is a directory with this name.
    let Parsed::Unknown(message) = parse("/run cargo test") else { panic!("a command") };
    assert!(message.starts_with("there is no command `/run` here: `!COMMAND` runs"), "{message}");
    for (names, here) in super::elsewhere::COMMANDS {
        for name in names {
            assert!(!NAMES.contains(name), "{name}");
        }
        let commands = here.split('`').filter(|word| word.starts_with('/'));
        for command in commands.filter_map(|command| command.split(' ').next()) {
            assert!(NAMES.contains(&command), "{command} in: {here}");
        }
    }
}

#[test]
fn the_help_names_every_command() {
    for name in NAMES {
        assert!(HELP.contains(name), "{name}");
    }
}
