use proptest::prelude::*;

use super::*;
use crate::builtin::forms::Variant;
use crate::builtin::pattern::Pattern;

fn only(message: &str) -> Request {
    match understand(message) {
        Understood::Steps(steps) if steps.len() == 1 => steps[0].clone(),
        other => panic!("{message}: {other:?}"),
    }
}

fn all_variants() -> impl Iterator<Item = &'static Variant> {
    QUESTIONS.iter().chain(FORMS.iter().flat_map(|form| form.variants))
}

#[test]
fn every_pattern_can_be_read() {
    for variant in all_variants() {
        assert!(Pattern::read(variant.pattern).is_some(), "{}", variant.pattern);
    }
    for broken in ["a [b", "a] b", "{nothing}", "{file"] {
        assert!(Pattern::read(broken).is_none(), "{broken}");
    }
}

/// The shortest sentence that a pattern describes: first alternatives, no optional parts, an example in each slot.
fn sentence(pattern: &str) -> String {
    let mut depth = 0;
    let mut words = Vec::new();
    for word in pattern.split_whitespace() {
        depth += word.matches('[').count();
        if depth == 0 {
            words.push(match word {
                "{folder}" | "{plain-folder}" => "docs",
                "{said-folder}" => "the folder docs",
                "{file}" | "{file.ext}" => "a.md",
                "{glob}" => "*.md",
                "{name}" | "{word}" => "alpha",
                "{kind}" => "rust",
                "{extension}" => ".rs",
                "{text}" => "alpha beta",
                "{quoted}" => "\"alpha beta\"",
                "{range}" => "2-3",
                "{number}" => "4",
                "{rest}" => "alpha beta gamma",
                plain => plain.split('|').next().unwrap_or_default(),
            });
        }
        depth -= word.matches(']').count();
    }
    words.join(" ")
}

#[test]
fn every_variant_is_reached_by_its_own_sentence() {
    for variant in all_variants() {
        // Two numbers in a row must rise.
        let sentence = sentence(variant.pattern).replacen(" 4", " 3", 1);
        assert!(
            !matches!(understand(&sentence), Understood::Nothing),
            "nothing understood: {sentence} ({})",
            variant.pattern
        );
    }
}

#[test]
fn politeness_changes_nothing() {
    let plain = only("list the files in docs");
    for polite in [
        "Please list the files in docs.",
        "Could you please list the files in docs, please?",
        "hello, can you list the files in docs for me? thanks!",
        "OK now just LIST THE FILES IN docs",
        "I'd like you to list the files in docs",
        "I’d like you to list the files in docs",
    ] {
        assert_eq!(only(polite), plain, "{polite}");
    }
}

#[test]
fn names_keep_their_letters_and_lose_the_sentence() {
    let read = |file: &str| Request::Read { file: file.to_owned(), lines: None };
    assert_eq!(only("Read Notes/My-File.MD."), read("Notes/My-File.MD"));
    assert_eq!(only("read ../a.md?"), read("../a.md"));
    assert_eq!(only("read \"a b.md\"."), read("a b.md"));
    assert_eq!(only("read 'it's.md'"), read("it's.md"));
    assert_eq!(only("read .gitignore"), read(".gitignore"));
    assert_eq!(only("show “Überschrift.md”"), read("Überschrift.md"));
    assert_eq!(only("list ."), Request::List { folder: Some(".".to_owned()) });
    assert_eq!(only("ls ..."), Request::List { folder: Some("...".to_owned()) });
}

#[test]
fn a_command_is_what_stands_between_the_quotes() {
    let run = |command: &str| Request::Run { command: command.to_owned(), timeout_seconds: None };
    assert_eq!(only("run \"echo 'a then b' | wc -c\""), run("echo 'a then b' | wc -c"));
    assert_eq!(only(r#"run "echo \"hi\"""#), run("echo \"hi\""));
    assert_eq!(only("run `printf 'a\nb'`."), run("printf 'a\nb'"));
    assert_eq!(only("execute 'echo it's'"), run("echo it's"));
}

#[test]
fn an_unclosed_quote_is_a_mark_like_any_other() {
    assert_eq!(
        only("note: 5\" disks and \"more"),
        Request::WriteNote { content: "5\" disks and \"more".to_owned() }
    );
    let run = Request::Run { command: "ls".to_owned(), timeout_seconds: None };
    assert_eq!(
        understand("list \"docs then run 'ls'"),
        Understood::Steps(vec![Request::List { folder: Some("\"docs".to_owned()) }, run,])
    );
}

#[test]
fn joiners_split_only_between_requests() {
    let count = |message: &str| match understand(message) {
        Understood::Steps(steps) => steps.len(),
        _ => 0,
    };
    assert_eq!(count("ls then ls and ls, and then ls; afterwards ls. Next ls"), 6);
    assert_eq!(
        count("ls then ls then ls then ls then ls then ls then ls"),
        0,
        "seven are too many"
    );
    assert_eq!(count("search for then in src"), 1);
    assert_eq!(count("write \"a then b\" to c.md"), 1);
    assert_eq!(count("list the files and folders in docs"), 1);
    assert_eq!(count("note: I went there and then list the files"), 1);
    assert_eq!(count("write a note: \"I went there\" then list the files"), 2);
    assert_eq!(count("list the files then fly to the moon"), 0, "half a request is none");
}

#[test]
fn line_numbers_must_make_sense() {
    assert_eq!(understand("read a.md lines 0-3"), Understood::Nothing);
    assert_eq!(understand("read a.md lines 4-3"), Understood::Nothing);
    assert_eq!(understand("read the first 0 lines of a.md"), Understood::Nothing);
    assert_eq!(understand("read a.md lines 99999999999999999999-3"), Understood::Nothing);
    let three = Request::Read { file: "a.md".to_owned(), lines: Some((1, 3)) };
    assert_eq!(only("show the first three lines of a.md"), three);
}

#[test]
fn empty_quotes_say_nothing() {
    for empty in ["run \"\"", "search for ' '", "find \"\"", "write a note: \"\""] {
        assert!(!matches!(understand(empty), Understood::Steps(_)), "{empty}");
    }
    let empty_file = Request::Write { file: "a.md".to_owned(), content: String::new() };
    assert_eq!(only("write \"\" to a.md"), empty_file);
    let no_limit = Request::Run { command: "ls".to_owned(), timeout_seconds: None };
    assert_eq!(only("run 'ls' with a timeout of 0 seconds"), no_limit);
}

#[test]
fn a_long_message_is_not_read() {
    let note = format!("write a note: {}", "x".repeat(MAX_MESSAGE));
    assert_eq!(understand(&note), Understood::Nothing);
}

proptest! {
    #[test]
    fn any_message_is_read_without_a_panic(message in "\\PC{0,200}") {
        understand(&message);
    }

    #[test]
    fn any_mix_of_known_words_is_read_in_no_time(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "list", "the", "files", "in", "docs", "then", "and", "find", "search", "for", "\"", "'a", "b'", "read",
                "a.md", "lines", "1-2", "count", "of", "run", "write", "note:", "to", "how", "many", "`", "what", "is",
            ]),
            0..60,
        )
    ) {
        understand(&words.join(" "));
    }

    #[test]
    fn any_quoted_text_arrives_whole(text in "[^\"\\\\]{1,80}") {
        prop_assume!(!text.trim().is_empty());
        prop_assert_eq!(
            only(&format!("run \"{text}\"")),
            Request::Run { command: text, timeout_seconds: None }
        );
    }
}
