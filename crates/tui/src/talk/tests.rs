use super::*;
use crate::command;

fn parsed(text: &str, key: SendKey) -> Talk {
    parse(SentLine { text: text.to_owned(), key }, |text| command::parse(text, Vec::new))
}

#[test]
fn lines_while_the_agent_works() {
    let say = |kind, text: &str| Talk::Say(kind, text.to_owned());
    for (line, expected) in [
        ("not that", say(QueuedKind::Steer, "not that")),
        (" /etc is wrong", say(QueuedKind::Steer, " /etc is wrong")),
        ("/etc/hosts is wrong", say(QueuedKind::Steer, "/etc/hosts is wrong")),
        ("!ls", Talk::TooEarly("!ls".to_owned())),
        ("/later  and this ", say(QueuedKind::FollowUp, "and this")),
        ("/later", Talk::Help),
        ("/queue", Talk::ShowQueue),
        ("/queue drop 2", Talk::Drop(2)),
        ("/queue drop", Talk::Help),
        ("/stop", Talk::Stop),
        ("/quit", Talk::Leave),
        (" exit", Talk::Leave),
        ("/help", Talk::Help),
        ("/model x/y", Talk::Model("x/y".to_owned())),
        ("/thinking low", Talk::Thinking("low".to_owned())),
        ("/model", Talk::Read(Command::Model(None))),
        ("/cost", Talk::Read(Command::Usage)),
        ("/context", Talk::Read(Command::Context)),
        ("/title new", Talk::TooEarly("/title".to_owned())),
        ("/new", Talk::TooEarly("/new".to_owned())),
    ] {
        assert_eq!(parsed(line, SendKey::Enter), expected, "{line}");
    }
    for line in ["/cots", "/cost now"] {
        assert!(matches!(parsed(line, SendKey::Enter), Talk::Said(_)), "{line}");
    }
    assert_eq!(parsed("then this", SendKey::AltEnter), say(QueuedKind::FollowUp, "then this"));
}
