use super::*;
use crate::ContentBlock;

/// The answer to one request whose tool returned `text`.
fn answer(request: Request, text: &str) -> String {
    report(&[request], &[&result(text, false)], Ending::Complete)
}

fn result(text: &str, is_error: bool) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: "demo_1".to_owned(),
        tool_name: "tool".to_owned(),
        content: vec![ContentBlock::text(text)],
        is_error,
        details: None,
        timestamp: 0,
    }
}

fn list_of(folder: Option<&str>) -> Request {
    Request::List { folder: folder.map(str::to_owned) }
}

fn search_for(text: &str) -> Request {
    Request::Search { text: text.to_owned(), place: None }
}

fn count_of(text: &str) -> Request {
    Request::CountMatches { text: text.to_owned(), place: Some("src".to_owned()) }
}

fn read_of(file: &str) -> Request {
    Request::Read { file: file.to_owned(), lines: None }
}

fn run_of(command: &str) -> Request {
    Request::Run { command: command.to_owned(), timeout_seconds: None }
}

#[test]
fn a_folder_is_listed_with_its_numbers() {
    assert_eq!(
        answer(list_of(None), "README.md\nsrc/\n[id].tsx\n"),
        "The workspace holds 2 files and 1 folder:\n\n- README.md\n- src/\n- [id].tsx"
    );
    for nothing in ["", "(empty folder)", "docs is empty", "[nothing here]"] {
        let text = answer(list_of(Some("docs")), nothing);
        assert_eq!(text, "There is nothing in `docs`.", "{nothing}");
    }
    let counted = answer(
        Request::CountEntries { folder: Some("docs".to_owned()) },
        "a/\nb\n\n[Only 2 entries shown]",
    );
    assert_eq!(
        counted,
        "`docs` holds at least 1 file and 1 folder, not counting what is inside the folders.\n\n[Only 2 entries shown]"
    );
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    let names: Vec<String> = (1..=50).map(|number| format!("{number}.md")).collect();
    let text = answer(Request::Find { glob: "*.md".to_owned(), folder: None }, &names.join("\n"));
    assert!(
        text.starts_with("I found 50 files named `*.md` in the workspace:\n\n- 1.md\n"),
        "{text}"
    );
    assert!(text.ends_with("- 40.md\n- … and 10 more"), "{text}");
    let none = answer(
        Request::Find { glob: "*.x".to_owned(), folder: None },
        "nothing matches *.x in . (ignored skipped)",
    );
    assert_eq!(
        none,
        "I found no file named `*.x` in the workspace. The tool says: nothing matches *.x in . (ignored skipped)"
    );
    let mixed = answer(
        Request::CountNamed { glob: "a*".to_owned(), folder: None },
        "a/\nab.md\nac/ -> /tmp\nad -> x",
    );
    assert_eq!(
        mixed,
        "I found 2 files and 2 folders named `a*` in the workspace, folders inside included."
    );
    let counted =
        answer(Request::CountNamed { glob: "*.md".to_owned(), folder: None }, "a.md\nb/c.md");
    assert_eq!(counted, "I found 2 files named `*.md` in the workspace, folders inside included.");
}

#[test]
fn matches_are_counted_by_line_and_file() {
    let found = "src/a.rs:1: one\nsrc/a.rs:22:two: 3:\nb c.md:7: three";
    assert_eq!(
        answer(search_for("o"), found),
        format!("In the workspace, `o` is on 3 lines of 2 files:\n\n```\n{found}\n```")
    );
    assert_eq!(answer(count_of("o"), found), "In `src`, `o` is on 3 lines of 2 files.");
    assert_eq!(answer(count_of("o"), "a:1: o\n[100 matches limit reached]").lines().count(), 3);
    assert!(
        answer(count_of("o"), "a:1: o\n[100 matches limit reached]")
            .contains("on at least 1 line of 1 file.")
    );
    assert_eq!(answer(count_of("o"), "some line with o"), "In `src`, `o` is on 1 line of 1 file.");
    assert_eq!(answer(count_of("o"), ""), "I found no line in `src` that holds `o`.");
    assert_eq!(
        answer(
            count_of("o"),
            "no match for \"o\" in src (hidden files are not searched)\n[2 binary file(s) skipped]"
        ),
        "I found no line in `src` that holds `o`. The tool says: no match for \"o\" in src (hidden files are not \
         searched)\n\n[2 binary file(s) skipped]"
    );
    assert_eq!(
        answer(search_for("a`b"), ""),
        "I found no line in the workspace that holds `` a`b ``."
    );
    assert_eq!(
        answer(search_for("C:"), r"C:\a.txt:12: x").lines().next(),
        Some("In the workspace, `C:` is on 1 line of 1 file:")
    );
}

#[test]
fn a_file_is_shown_from_its_start_and_cannot_break_out() {
    let text: String = (1..=45).map(|number| format!("line {number}\n")).collect();
    let shown = answer(read_of("a.md"), &text);
    assert!(shown.starts_with("This is `a.md`:\n\n```\nline 1\n"), "{shown}");
    assert!(shown.ends_with("line 40\n```\n\n… and 5 lines more that I do not show."), "{shown}");
    assert_eq!(
        answer(read_of("a.md"), "```rust\n````"),
        "This is `a.md`:\n\n`````\n```rust\n````\n`````"
    );
    assert_eq!(answer(read_of("a.md"), "\n"), "I read `a.md`; the tool returned no text.");
    let some_lines = Request::Read { file: "a.md".to_owned(), lines: Some((2, 3)) };
    assert_eq!(answer(some_lines, "b\nc"), "This is lines 2 to 3 of `a.md`:\n\n```\nb\nc\n```");
}

#[test]
fn a_command_is_shown_by_its_last_lines() {
    let text: String = (1..=45).map(|number| format!("line {number}\n")).collect();
    let shown = answer(run_of("seq 45"), &text);
    assert!(
        shown.starts_with("The command `seq 45` succeeded and printed:\n\nThe last lines (5 lines before them not shown):"),
        "{shown}"
    );
    assert!(shown.contains("```\nline 6\n") && shown.ends_with("line 45\n```"), "{shown}");
    assert_eq!(answer(run_of("true"), "(no output)"), answer(run_of("true"), ""));
    assert_eq!(answer(run_of("true"), ""), "The command `true` succeeded and printed nothing.");
    let long = answer(run_of("x"), &"y".repeat(5_000));
    assert!(long.len() < 500, "a long line is cut");
}

#[test]
fn failures_are_told_as_they_are() {
    let failed =
        |request: Request, error: &str| report(&[request], &[&result(error, true)], Ending::Failed);
    assert_eq!(
        failed(run_of("false"), "Command exited with code 1"),
        "The command `false` failed. The tool says:\n\n```\nCommand exited with code 1\n```"
    );
    assert_eq!(
        failed(list_of(None), " "),
        "I could not list the workspace, and the tool did not say why."
    );
    assert!(failed(read_of("a"), &"e".repeat(100_000)).len() < 2_000);
}

#[test]
fn counts_come_from_the_command() {
    let lines = || Request::CountLines { file: "a.md".to_owned() };
    let words = Request::CountWords { file: "a.md".to_owned() };
    assert_eq!(answer(lines(), "  1\n"), "`a.md` has 1 line.");
    assert_eq!(answer(words, "12"), "`a.md` has 12 words.");
    assert_eq!(
        answer(lines(), "strange"),
        "I asked for the lines of `a.md`, and got this:\n\n```\nstrange\n```"
    );
}

#[test]
fn a_note_is_named_after_its_words() {
    assert_eq!(note_path("Buy milk"), "notes/buy-milk.md");
    assert_eq!(note_path("buy milk"), "notes/buy-milk.md");
    let (long, other) = ("one two three four five six seven", "one two three four five six eight");
    assert!(
        note_path(long).starts_with("notes/one-two-three-four-five-six-"),
        "{}",
        note_path(long)
    );
    assert_ne!(note_path(long), note_path(other));
    assert_ne!(note_path("../../etc"), note_path("etc"), "marks are not lost in silence");
    assert!(note_path("../../etc/passwd").starts_with("notes/etc-passwd-"));
    let marks_only = note_path("!!!");
    assert!(marks_only.len() == "notes/01234567.md".len(), "{marks_only}");
    assert_eq!(
        answer(Request::WriteNote { content: "buy milk\nand tea".to_owned() }, "ok"),
        format!("I wrote `{}` (2 lines).", note_path("buy milk\nand tea"))
    );
}
