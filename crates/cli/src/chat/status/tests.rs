use std::fs;

use unicode_width::UnicodeWidthStr;

use super::{Status, git_branch, short_count};

#[test]
fn what_matters_least_is_left_out_first() {
    let status = Status {
        directory: "~/src/project".to_owned(),
        short_directory: "project".to_owned(),
        branch: Some("main".to_owned()),
        model: "anthropic/claude-sonnet-4-6".to_owned(),
        short_model: "claude-sonnet-4-6".to_owned(),
        thinking: Some("thinking low".to_owned()),
        window: 200_000,
        used: 24_100,
        cost: 0.0123,
        cost_today: 1.2,
    };
    for (columns, expected) in [
        (
            120,
            "~/src/project (main) · anthropic/claude-sonnet-4-6 · thinking low · 12% of 200k · $0.0123 · $1.20 today",
        ),
        (79, "project (main) · claude-sonnet-4-6 · 12% of 200k · $0.0123"),
        (39, "claude-sonnet-4-6 · 12% of 200k"),
        (10, "claude-so…"),
    ] {
        assert_eq!(status.line(columns), expected);
    }
    assert!((1..130).all(|columns| status.line(columns).width() <= columns));
}

#[test]
fn counts_are_short() {
    assert_eq!([850, 128_000, 1_048_576].map(short_count), ["850", "128k", "1M"]);
}

#[test]
fn the_branch_is_found_from_a_directory_below_and_in_a_linked_work_tree() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    write("a/.git/HEAD", "ref: refs/heads/feature/x\n");
    write("a/src/lib.rs", "");
    write("b/.git", "gitdir: ../store\n");
    write("store/HEAD", "0123456789abcdef\n");
    assert_eq!(git_branch(&root.join("a/src")).as_deref(), Some("feature/x"));
    assert_eq!(git_branch(&root.join("b")).as_deref(), Some("01234567"));
}
