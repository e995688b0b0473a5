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

/// A command, a line that it takes, and perhaps one that it refuses with the words of the refusal.
type Row = (&'static str, &'static str, Option<(&'static str, &'static str)>);

/// Each command with a good and a bad line; for commands that take anything, the bad one is the empty argument or `None`.
const TABLE: [Row; 44] = [
    ("/help", "/help", Some(("/help me", "/help takes no argument"))),
    ("/new", "/new trip", None),
    ("/clear", "/clear trip", None),
    ("/fork", "/fork plan-b", None),
    ("/retry", "/retry", Some(("/retry 2", "/retry takes no argument"))),
    ("/tree", "/tree", Some(("/tree main", "/tree takes no argument"))),
    ("/back", "/back", Some(("/back 3", "/back takes no argument"))),
    ("/rewind", "/rewind", Some(("/rewind 3", "/rewind takes no argument"))),
    (
        "/image",
        "/image plan.png why?",
        Some(("/image ", "/image needs a file: /image plan.png what is this?")),
    ),
    ("/title", "/title A trip", None),
    ("/search", "/search train", Some(("/search", "/search needs a text: /search TEXT"))),
    (
        "/export",
        "/export notes.md",
        Some(("/export", "/export needs a file: /export notes.md, .html or .jsonl")),
    ),
    ("/copy", "/copy", Some(("/copy 2", "/copy takes no argument"))),
    ("/context", "/context", Some(("/context all", "/context takes no argument"))),
    ("/cost", "/cost", Some(("/cost today", "/cost takes no argument"))),
    ("/memory", "/memory search train", None),
    ("/skills", "/skills", None),
    ("/config", "/config", Some(("/config edit", "/config takes no argument"))),
    ("/later", "/later tidy up", Some(("/later  ", "/later needs a text: /later TEXT"))),
    ("/stop", "/later stop", Some(("/stop", "/stop has nothing to stop: no turn runs"))),
    ("/model", "/model ollama/qwen3:8b", None),
    ("/thinking", "/thinking high", None),
    ("/mode", "/mode plan", None),
    ("/plan", "/plan", Some(("/plan b", "/plan takes no argument"))),
    ("/todos", "/todos", Some(("/todos 2", "/todos takes no argument"))),
    ("/sessions", "/sessions trip", None),
    ("/resume", "/resume", Some(("/resume trip", "/resume takes no argument"))),
    ("/compact", "/compact the costs", None),
    ("/goal", "/goal three lines", None),
    ("/btw", "/btw why?", Some(("/btw", "/btw needs a question: /btw QUESTION"))),
    ("/diff", "/diff", Some(("/diff main", "/diff takes no argument"))),
    ("/questions", "/questions", Some(("/questions 1", "/questions takes no argument"))),
    (
        "/undo",
        "/undo",
        Some((
            "/undo 2",
            "/undo takes no argument; `myclaw sessions undo NAME --turn N` undoes a certain turn",
        )),
    ),
    (
        "/redo",
        "/redo",
        Some((
            "/redo all",
            "/redo takes no argument; `myclaw sessions undo NAME --turn N` undoes a certain turn",
        )),
    ),
    ("/skill", "/skill trip now", None),
    ("/agents", "/agents", Some(("/agents x", "/agents takes no argument"))),
    (
        "/queue",
        "/queue drop 2",
        Some((
            "/queue drop two",
            "/queue lists the waiting messages; /queue drop NUMBER takes one back",
        )),
    ),
    (
        "/jobs",
        "/jobs kill j1",
        Some(("/jobs stop", "/jobs lists the background jobs; /jobs kill ID ends one")),
    ),
    (
        "/mcp",
        "/mcp approve files 0a1b2c3d4e",
        Some((
            "/mcp start files",
            "/mcp lists the MCP servers; /mcp tools NAME shows tools; /mcp approve NAME approves them",
        )),
    ),
    ("/theme", "/theme dark", None),
    ("/continue", "/continue", Some(("/continue please", "/continue takes no argument"))),
    ("/usage", "/usage", Some(("/usage month", "/usage takes no argument"))),
    ("/quit", "/quit", Some(("/quit now", "/quit takes no argument"))),
    ("/exit", "/exit", Some(("/exit 1", "/exit takes no argument"))),
];

#[test]
fn every_command_takes_a_good_line_and_says_what_is_wrong_with_a_bad_one() {
    assert_eq!(TABLE.map(|(name, ..)| name), NAMES);
    for (name, good, bad) in TABLE {
        let parsed = parse(good);
        assert!(!matches!(parsed, Parsed::Unknown(_)), "{good}: {parsed:?}");
        // Only what is sent later is a message.
        assert_eq!(matches!(parsed, Parsed::Message(_)), good.starts_with("/later"), "{good}");
        match bad {
            Some((bad, message)) => {
                assert!(bad.starts_with(name), "{bad}");
                assert_eq!(parse(bad), Parsed::Unknown(message.to_owned()), "{bad}");
            }
            None => assert!(matches!(parse(name), Parsed::Command(_)), "{name}"),
        }
    }
}

#[test]
fn commands_of_other_agents_are_answered_with_and_without_an_argument() {
    for (line, here) in [
        ("/editor vim", "Ctrl-G opens the message in your editor"),
        (
            "/vim on",
            "`myclaw config set terminal.keys vi` edits lines with the keys of vi, from the next chat on",
        ),
        ("/effort high", "`/thinking LEVEL` sets how much the model thinks"),
        ("/status", "`/usage`, `/context` and `/config` show the state of the session"),
    ] {
        let name = line.split(' ').next().unwrap_or_default();
        let expected = format!("there is no command `{name}` here: {here}");
        assert_eq!(parse(line), Parsed::Unknown(expected), "{line}");
    }
    // Each of them has one answer.
    let names: Vec<&str> =
        super::elsewhere::COMMANDS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
    let distinct: std::collections::HashSet<&&str> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}
