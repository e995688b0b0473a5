use super::*;

fn group(listens: Listens, trigger: Option<&str>) -> Group {
    Group {
        jid: "1@g.us".to_owned(),
        name: "Family".to_owned(),
        folder: "family".parse().unwrap(),
        trigger: trigger.map(str::to_owned),
        listens,
        mounts: Vec::new(),
    }
}

#[test]
fn a_trigger_is_a_whole_word_at_the_beginning_in_any_case() {
    let usual = group(Listens::Trigger, None);
    for text in ["@Andy", "@andy help", "  @ANDY, help", "@Andy: ü"] {
        assert!(usual.is_addressed(text, "Andy"), "{text}");
    }
    for text in ["", "Andy help", "hello @Andy", "@Andys", "@Andy_2", "@Andyü"] {
        assert!(!usual.is_addressed(text, "Andy"), "{text}");
    }
    assert!(group(Listens::Trigger, Some("!bot")).is_addressed("!BOT go", "Andy"));
    assert!(group(Listens::All, None).is_addressed("anything", "Andy"));
}

#[test]
fn a_folder_is_one_plain_name() {
    for name in ["a", "Family-2", "0_x", &"a".repeat(64)] {
        assert!(name.parse::<Folder>().is_ok(), "{name}");
    }
    let long = "a".repeat(65);
    for name in ["", "-a", "_a", ".ssh", "a/b", "..", "a.b", "global", "Global", "é", &long] {
        assert!(name.parse::<Folder>().is_err(), "{name}");
    }
}
