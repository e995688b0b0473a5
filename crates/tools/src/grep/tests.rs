use serde_json::Value;

use super::*;
use crate::support::testing::{Workspace, text_of};

fn workspace() -> Workspace {
    Workspace::new(&[
        (
            "src/main.rs",
            "fn main() {\n    hello();\n}\n\nfn hello() {\n    println!(\"Hello (world)\");\n}\n",
        ),
        ("src/lib.rs", "pub fn add(a: u8) {}\n"),
        ("README.md", "# Hello\r\nSay hello.\r\n"),
        (".hidden/notes.txt", "hello from a hidden file\n"),
        ("target/out.rs", "fn hello() {}\n"),
        (".gitignore", "target\n"),
    ])
}

async fn text(workspace: &Workspace, arguments: Value) -> String {
    workspace.text(&GrepTool::new(), arguments).await
}

#[tokio::test]
async fn matches_are_listed_by_path_and_line() {
    let workspace = workspace();
    for (arguments, expected) in [
        (
            json!({"pattern": "hello"}),
            ".hidden/notes.txt:1: hello from a hidden file\nREADME.md:2: Say hello.\nsrc/main.rs:2:     hello();\nsrc/main.rs:5: fn hello() {",
        ),
        (
            json!({"pattern": "HELLO", "ignoreCase": true, "path": "README.md"}),
            "README.md:1: # Hello\nREADME.md:2: Say hello.",
        ),
        (
            json!({"pattern": "HELLO", "ignore_case": "true", "glob": "*.md"}),
            "README.md:1: # Hello\nREADME.md:2: Say hello.",
        ),
        (
            json!({"pattern": "(world)", "literal": true}),
            "src/main.rs:6:     println!(\"Hello (world)\");",
        ),
        (json!({"pattern": "^fn \\w+"}), "src/main.rs:1: fn main() {\nsrc/main.rs:5: fn hello() {"),
        (json!({"pattern": "hello\\.$"}), "README.md:2: Say hello."),
        (json!({"pattern": "fn", "glob": "lib.*"}), "src/lib.rs:1: pub fn add(a: u8) {}"),
        (
            json!({"pattern": "fn", "path": "src", "glob": "src/lib.rs"}),
            "src/lib.rs:1: pub fn add(a: u8) {}",
        ),
        (json!({"pattern": "fn add", "glob": "src/"}), "src/lib.rs:1: pub fn add(a: u8) {}"),
        (
            json!({"pattern": "fn add", "glob": "!*.md,!src"}),
            "no match for \"fn add\" in . (ignored and binary files are not searched)",
        ),
        (
            json!({"pattern": "hello", "path": ".hidden"}),
            ".hidden/notes.txt:1: hello from a hidden file",
        ),
        (
            json!({"pattern": "hello", "glob": ".hidden/**"}),
            ".hidden/notes.txt:1: hello from a hidden file",
        ),
        (json!({"pattern": "hello", "path": "target"}), "target/out.rs:1: fn hello() {}"),
    ] {
        assert_eq!(text(&workspace, arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn lines_around_a_match_are_marked() {
    let workspace = workspace();
    let expected = ".hidden/notes.txt:1: hello from a hidden file\n--\nREADME.md-1- # Hello\nREADME.md:2: Say hello.\n--\nsrc/main.rs-1- fn main() {\n\
                    src/main.rs:2:     hello();\nsrc/main.rs-3- }\nsrc/main.rs-4- \nsrc/main.rs:5: fn hello() {\n\
                    src/main.rs-6-     println!(\"Hello (world)\");";
    assert_eq!(text(&workspace, json!({"pattern": "hello", "context": 1})).await, expected);
    let apart = "src/main.rs-1- fn main() {\nsrc/main.rs:2:     hello();\nsrc/main.rs-3- }\n--\n\
                 src/main.rs-5- fn hello() {\nsrc/main.rs:6:     println!(\"Hello (world)\");\nsrc/main.rs-7- }";
    assert_eq!(
        text(&workspace, json!({"pattern": "hello\\(\\);|world", "context": 1})).await,
        apart
    );
}

#[tokio::test]
async fn more_matches_than_the_limit_are_said() {
    let lines: String = (1..=150).map(|number| format!("match {number}\n")).collect();
    let workspace = Workspace::new(&[("a.txt", &lines), ("b.txt", "match\n")]);
    let output = workspace.call(&GrepTool::new(), json!({"pattern": "match"})).await.unwrap();
    let found = text_of(&output);
    assert_eq!(found.lines().count(), 101);
    assert!(found.ends_with("a.txt:100: match 100\n[100 matches shown, there are more; narrow by path or glob, or raise limit]"));
    assert_eq!(output.details, Some(json!({"matches": 100, "files": 1, "truncated": true})));
    let all =
        workspace.call(&GrepTool::new(), json!({"pattern": "match", "limit": 151})).await.unwrap();
    assert_eq!(all.details, Some(json!({"matches": 151, "files": 2, "truncated": false})));
    let one = text(&workspace, json!({"pattern": "match 2$", "context": 1, "limit": 1})).await;
    assert_eq!(one, "a.txt-1- match 1\na.txt:2: match 2\na.txt-3- match 3");
    let cut = text(&workspace, json!({"pattern": "match [26]$", "context": 1, "limit": 1})).await;
    assert!(
        cut.starts_with("a.txt-1- match 1\na.txt:2: match 2\na.txt-3- match 3\n[1 matches shown"),
        "{cut}"
    );
}

#[tokio::test]
async fn long_lines_and_long_results_are_cut() {
    let long = format!("start {}\n", "ä".repeat(1000));
    let mut workspace = Workspace::new(&[("a.txt", &long)]);
    let expected = format!("a.txt:1: start {}… [line of 1006 characters cut]", "ä".repeat(494));
    assert_eq!(text(&workspace, json!({"pattern": "start"})).await, expected);
    workspace.write("b.txt", "start of a line\n".repeat(90));
    workspace.context.max_result_chars = 2000;
    let cut = text(&workspace, json!({"pattern": "start of"})).await;
    assert!(cut.chars().count() <= 2000, "{}", cut.chars().count());
    assert!(cut.ends_with("because the result is full; narrow by path, glob or pattern]"), "{cut}");
}

#[tokio::test]
async fn binary_and_unusual_files() {
    let workspace = Workspace::new(&[("plain.txt", "needle\n")]);
    workspace.write("binary.bin", b"needle\0needle\n");
    workspace.write("latin1.txt", b"needle caf\xe9\n");
    workspace.write(
        "utf16.txt",
        [
            &b"\xff\xfe"[..],
            &"needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
        ]
        .concat(),
    );
    let expected = "latin1.txt:1: needle caf\u{fffd}\nplain.txt:1: needle\nutf16.txt:1: needle";
    assert_eq!(text(&workspace, json!({"pattern": "needle"})).await, expected);
    let only_binary = text(&workspace, json!({"pattern": "needle", "path": "binary.bin"})).await;
    assert!(only_binary.ends_with("[binary files skipped: 1]"), "{only_binary}");
    workspace.write("endless.txt", vec![b'x'; 20 * 1024 * 1024]);
    let endless = text(&workspace, json!({"pattern": "needle", "path": "endless.txt"})).await;
    assert!(endless.ends_with("[files and directories that could not be read: 1]"), "{endless}");
}

#[tokio::test]
async fn a_bad_pattern_names_the_place_and_the_way_out() {
    let workspace = workspace();
    let tool = GrepTool::new();
    let error = workspace.failure(&tool, json!({"pattern": "println!(\"He"})).await;
    let expected = "\"println!(\\\"He\" is not a valid regex at character 9: unclosed group. Escape special characters with \
                    \\, or set literal to true to search for the text itself";
    assert_eq!(error, expected);
    let range = workspace.failure(&tool, json!({"pattern": "a{2,1}"})).await;
    assert!(range.contains("is not a valid regex at character 2: invalid repetition"), "{range}");
    let lines = workspace.failure(&tool, json!({"pattern": "a\nb"})).await;
    assert!(lines.starts_with("the pattern spans lines"), "{lines}");
    let newline = workspace.failure(&tool, json!({"pattern": "a\\nb"})).await;
    assert!(newline.contains("is not a valid regex"), "{newline}");
    let empty = workspace.failure(&tool, json!({"pattern": ""})).await;
    assert!(empty.contains("the pattern is empty"), "{empty}");
    assert_eq!(
        text(&workspace, json!({"pattern": "Say hello.\n"})).await,
        "README.md:2: Say hello."
    );
}

#[tokio::test]
async fn what_cannot_be_searched_says_why() {
    let mut workspace = workspace();
    let tool = GrepTool::new();
    let missing = workspace.failure(&tool, json!({"pattern": "x", "path": "src/mian.rs"})).await;
    assert!(
        missing.starts_with("src/mian.rs does not exist") && missing.ends_with("there is main.rs"),
        "{missing}"
    );
    let device = workspace.failure(&tool, json!({"pattern": "x", "path": "/dev/zero"})).await;
    assert_eq!(device, "/dev/zero is neither a file nor a directory, so it cannot be searched");
    workspace.context.workspace_only = true;
    let outside = workspace.failure(&tool, json!({"pattern": "x", "path": "/etc/passwd"})).await;
    assert!(outside.contains("outside the workspace"), "{outside}");
}

#[tokio::test]
async fn a_cancelled_call_is_aborted() {
    let workspace = workspace();
    workspace.cancel.cancel();
    for path in [".", "README.md"] {
        let error = workspace
            .call(&GrepTool::new(), json!({"pattern": "x", "path": path}))
            .await
            .unwrap_err();
        assert!(matches!(error, ToolError::Aborted(_)), "{error:?}");
    }
}

/// Waits until all of a file was read: its search is then within the one line that it has.
async fn wait_until_read(path: &std::path::Path) {
    let size = std::fs::metadata(path).unwrap().len().to_string();
    loop {
        for descriptor in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let info = || {
                let name = descriptor.file_name();
                std::fs::read_to_string(format!("/proc/self/fdinfo/{}", name.to_str()?)).ok()
            };
            let is_the_file = std::fs::read_link(descriptor.path()).is_ok_and(|file| file == path);
            if is_the_file && info().is_some_and(|info| info.contains(&format!("\t{size}\n"))) {
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// A pattern within the limits that takes hours on a long line without a `b`.
const SLOW: &str = "a{1,4000}b";

#[tokio::test]
async fn an_abort_ends_a_search_within_one_line() {
    let workspace = Workspace::new(&[("a.txt", &"a".repeat(8 * 1024 * 1024))]);
    let tool = GrepTool::new();
    let search = workspace.call(&tool, json!({"pattern": SLOW, "path": "a.txt"}));
    let path = workspace.path("a.txt");
    let abort = async {
        wait_until_read(&path).await;
        workspace.cancel.cancel();
    };
    let (result, ()) = tokio::join!(search, abort);
    assert!(matches!(result, Err(ToolError::Aborted(_))), "{result:?}");
}

#[tokio::test]
async fn few_searches_run_at_once_in_a_process() {
    let workspaces: Vec<Workspace> = (0..MAX_SEARCHES)
        .map(|_| Workspace::new(&[("a.txt", &"a".repeat(8 * 1024 * 1024))]))
        .collect();
    let tool = GrepTool::new();
    let searches = futures_util::future::join_all(
        workspaces
            .iter()
            .map(|workspace| workspace.call(&tool, json!({"pattern": SLOW, "path": "a.txt"}))),
    );
    let one_more = async {
        for workspace in &workspaces {
            wait_until_read(&workspace.path("a.txt")).await;
        }
        let late = workspace();
        let call = late.call(&tool, json!({"pattern": "hello"}));
        let abort = async {
            late.cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, abort);
        workspaces.iter().for_each(|workspace| workspace.cancel.cancel());
        result.unwrap_err().to_string()
    };
    let (results, one_more) = tokio::join!(searches, one_more);
    assert!(one_more.contains("aborted before the search began"), "{one_more}");
    assert!(results.iter().all(Result::is_err));
}

#[tokio::test]
async fn patterns_that_are_too_large_are_refused() {
    let workspace = workspace();
    let tool = GrepTool::new();
    for pattern in ["a{1,50000}b", "(((a{1,100}){1,100}){1,100})b", "(?i)\\w{1000}"] {
        let error = workspace.failure(&tool, json!({"pattern": pattern})).await;
        assert!(error.contains("is too large once it is compiled; use smaller"), "{error}");
    }
    let long = workspace.failure(&tool, json!({"pattern": "a".repeat(9000)})).await;
    assert!(long.starts_with("the pattern has 9000 bytes, and at most 8192"), "{long}");
    let deep =
        workspace.failure(&tool, json!({"pattern": "(".repeat(4000) + &")".repeat(4000)})).await;
    assert!(deep.contains("is not a valid regex"), "{deep}");
}

#[tokio::test]
async fn long_lines_and_large_patterns_give_the_same_matches() {
    let padding = "x ".repeat(100_000);
    let lines = [
        format!("{padding}needle 12\r"),
        "short needle 12".to_owned(),
        format!("{padding}needle"),
        format!("Überzeugung {padding}"),
        String::new(),
        format!("{padding}über needle 12 {padding}"),
    ];
    let workspace = Workspace::new(&[("a.txt", &lines.join("\n"))]);
    for (pattern, expected) in [
        ("needle \\d+$", vec![1, 2]),
        ("(?i)NEEDLE\\s\\d{1,40}", vec![1, 2, 6]),
        ("^\\w{4,40} needle \\pN{1,20}$", vec![2]),
        ("^$", vec![5]),
        ("\\bneedle\\b", vec![1, 2, 3, 6]),
        ("ber\\b", vec![6]),
    ] {
        let found = text(&workspace, json!({"pattern": pattern})).await;
        let numbers: Vec<usize> =
            found.lines().filter_map(|line| line.split(':').nth(1)?.parse().ok()).collect();
        assert_eq!(numbers, expected, "{pattern}: {found}");
    }
    let unsearched = "\\bü\\w{1,20}\\b.*\\w{1,20}nothing";
    let found = text(&workspace, json!({"pattern": unsearched})).await;
    assert!(found.contains("too large for them: 2; shorten the pattern"), "{found}");
}

#[tokio::test]
async fn a_text_is_found_in_every_spelling() {
    let workspace = Workspace::new(&[
        ("nfc.txt", "le caf\u{e9} est ouvert\n"),
        ("nfd.txt", "le cafe\u{301} est ferme\u{301}\n"),
        ("prose.txt", "it\u{2019}s \u{201C}10\u{A0}km\u{201D} \u{2014} wait\u{2026}\n"),
        ("hangul.txt", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}\n"),
    ]);
    let both = "nfc.txt:1: le caf\u{e9} est ouvert\nnfd.txt:1: le cafe\u{301} est ferme\u{301}";
    for pattern in
        ["caf\u{e9}", "cafe\u{301}", "caf[\u{e8}\u{e9}] ", r"caf\u{e9}", "le (caf\u{e9}|x) est"]
    {
        assert_eq!(text(&workspace, json!({"pattern": pattern})).await, both, "{pattern}");
    }
    let upper = json!({"pattern": "CAF\u{c9}", "ignoreCase": true});
    assert_eq!(text(&workspace, upper).await, both);
    let literal = json!({"pattern": "caf\u{e9} est", "literal": true});
    assert_eq!(text(&workspace, literal).await, both);
    let hangul = text(&workspace, json!({"pattern": "\u{d55c}\u{ae00}"})).await;
    assert!(hangul.starts_with("hangul.txt:1: "), "{hangul}");
    // Typographic forms count if nothing is found as it is, and the result says so.
    for pattern in ["it's", "\"10 km\"", "km\" - wait", r"wait\.\.\.$"] {
        let found = text(&workspace, json!({"pattern": pattern})).await;
        assert!(found.starts_with("prose.txt:1: "), "{pattern}: {found}");
        assert!(found.contains("differ from the pattern in typographic"), "{pattern}: {found}");
    }
    let nothing = text(&workspace, json!({"pattern": "it's not"})).await;
    assert!(nothing.starts_with("no match for"), "{nothing}");
}

#[tokio::test]
async fn a_glob_and_a_path_name_files_in_every_spelling() {
    let workspace = Workspace::new(&[
        ("re\u{301}sume\u{301}/cafe\u{301}.txt", "here\n"),
        ("It\u{2019}s 9\u{202F}AM.txt", "here\n"),
    ]);
    let shown = "re\u{301}sume\u{301}/cafe\u{301}.txt:1: here";
    for arguments in [
        json!({"pattern": "here", "glob": "caf\u{e9}.txt"}),
        json!({"pattern": "here", "glob": "caf*.txt"}),
        json!({"pattern": "here", "glob": "r\u{e9}sum\u{e9}/*"}),
        json!({"pattern": "here", "path": "r\u{e9}sum\u{e9}"}),
        json!({"pattern": "here", "path": "r\u{e9}sum\u{e9}/caf\u{e9}.txt"}),
    ] {
        assert_eq!(text(&workspace, arguments.clone()).await, shown, "{arguments}");
    }
    let quoted = text(&workspace, json!({"pattern": "here", "glob": "It's*"})).await;
    assert!(quoted.contains("AM.txt:1: here"), "{quoted}");
    let others = text(&workspace, json!({"pattern": "here", "glob": "!caf\u{e9}.txt"})).await;
    assert!(!others.contains("sum"), "{others}");
}
