use super::*;

fn message(text: &str) -> Report {
    Report::Message(text.to_owned())
}

#[test]
fn the_agreed_word_counts_at_both_ends_with_at_most_300_other_characters() {
    for nothing in [
        "HEARTBEAT_OK",
        " \n HEARTBEAT_OK\n",
        "HEARTBEAT_OK.",
        "**HEARTBEAT_OK**",
        "`HEARTBEAT_OK`",
        "All is well.\n\nHEARTBEAT_OK",
        "HEARTBEAT_OK All is well.",
        "HEARTBEAT_OK nothing HEARTBEAT_OK",
        "",
        "  ",
    ] {
        assert_eq!(report(nothing), Report::Nothing, "{nothing:?}");
    }
    let (fits, longer) = ("é".repeat(300), "é".repeat(301));
    assert_eq!(report(&format!("HEARTBEAT_OK {fits}")), Report::Nothing);
    assert_eq!(report(&format!("HEARTBEAT_OK {longer}")), message(&longer));
    assert_eq!(report(&format!("{longer}\nHEARTBEAT_OK")), message(&longer));
    for text in
        ["The word HEARTBEAT_OK is in the middle.", "HEARTBEAT_OKAY", "Rain.", "NOT_HEARTBEAT_OK"]
    {
        assert_eq!(report(text), message(text), "{text:?}");
    }
}

#[test]
fn a_file_of_blank_lines_and_headings_has_nothing_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(FILE);
    let of_none = has_nothing_to_do(directory.path());
    assert_eq!(of_none, Some("the workspace has no HEARTBEAT.md"));
    for (text, expected) in [
        ("", true),
        ("\n \r\n\t\n", true),
        ("# Tasks\n\n## Later\n##\n", true),
        ("\u{feff}# Tasks\n", true),
        ("# Tasks\n- look\n", false),
        ("#hashtag\n", false),
        ("<!-- nothing -->\n", false),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(has_nothing_to_do(directory.path()).is_some(), expected, "{text:?}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(has_nothing_to_do(directory.path()), None);
}
