use std::fs;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

use super::{Mode, Status, StatusPart, git_branch, short_count};

#[test]
fn what_matters_least_is_left_out_first() {
    let status = Status {
        directory: "~/src/project".to_owned(),
        short_directory: "project".to_owned(),
        branch: Some("main".to_owned()),
        model: "anthropic/claude-sonnet-4-6".to_owned(),
        short_model: "claude-sonnet-4-6".to_owned(),
        thinking: Some("thinking low".to_owned()),
        goal: None,
        mode: None,
        is_sandboxed: false,
        window: 200_000,
        used: 24_100,
        cost: 0.0123,
        cost_today: 1.2,
        session: "main".to_owned(),
        parts: None,
        printed: None,
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
fn the_parts_of_the_config_stand_in_its_order_and_what_the_agent_may_do_before_them() {
    let mut status = Status {
        short_model: "m".to_owned(),
        model: "p/m".to_owned(),
        session: "main".to_owned(),
        mode: Some("plan".to_owned()),
        cost: 0.5,
        parts: Some(vec![
            StatusPart::Session,
            StatusPart::Model,
            StatusPart::Context,
            StatusPart::Cost,
        ]),
        ..Status::default()
    };
    assert_eq!(status.line(80), "plan · main · p/m · $0.5000");
    assert_eq!(status.line(17), "plan · main · p/m");
    assert_eq!(status.line(8), "plan · …");
    status.parts = Some(Vec::new());
    assert_eq!(status.line(80), "plan");
    status.printed = Some("mine \u{1b}[31m".to_owned());
    let line = status.line(80);
    assert!(line.starts_with("plan · mine ") && !line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn counts_are_short() {
    assert_eq!([850, 128_000, 1_048_576].map(short_count), ["850", "128k", "1M"]);
}

/// Writes a file and makes its directories.
fn write_below(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, text).expect("a file");
}

#[test]
fn the_branch_is_found_from_a_directory_below_and_in_a_linked_work_tree() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let write = |path: &str, text: &str| write_below(root, path, text);
    write("a/.git/HEAD", "ref: refs/heads/feature/x\n");
    write("a/src/lib.rs", "");
    write("b/.git", "gitdir: ../store/worktrees/b\n");
    write("store/worktrees/b/HEAD", "0123456789abcdef\n");
    write("store/worktrees/b/gitdir", &format!("{}\n", root.join("b/.git").display()));
    write("a/sub/.git", "gitdir: ../.git/modules/sub\n");
    write("a/.git/modules/sub/HEAD", "ref: refs/heads/of-the-module\n");
    write("c/.git", "gitdir: kept\n");
    write("c/kept/HEAD", "ref: refs/heads/of-the-directory\n");
    assert_eq!(git_branch(&root.join("a/src")).as_deref(), Some("feature/x"));
    assert_eq!(git_branch(&root.join("b")).as_deref(), Some("01234567"));
    assert_eq!(git_branch(&root.join("a/sub")).as_deref(), Some("of-the-module"));
    assert_eq!(git_branch(&root.join("c")).as_deref(), Some("of-the-directory"));
}

#[test]
fn the_branch_of_another_repository_is_not_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let write = |path: &str, text: &str| write_below(root, path, text);
    write("private/.git/HEAD", "ref: refs/heads/secret-plan\n");
    write("private/.git/worktrees/w/HEAD", "ref: refs/heads/secret-plan\n");
    write("private/.git/worktrees/w/gitdir", "/elsewhere/.git\n");
    let absolute = root.join("private/.git");
    let named = [
        "../private/.git".to_owned(),
        "../private/.git/worktrees/w".to_owned(),
        absolute.display().to_string(),
        "link".to_owned(),
        "gitdir-is-a-link".to_owned(),
    ];
    for (number, named) in named.iter().enumerate() {
        write(&format!("{number}/.git"), &format!("gitdir: {named}\n"));
        std::os::unix::fs::symlink(&absolute, root.join(format!("{number}/link"))).expect("a link");
        assert_eq!(git_branch(&root.join(number.to_string())), None, "{named}");
    }
    fs::create_dir(root.join("linked")).expect("a directory");
    std::os::unix::fs::symlink(&absolute, root.join("linked/.git")).expect("a link");
    assert_eq!(git_branch(&root.join("linked")), None);
}

#[test]
fn what_a_project_puts_in_the_place_of_its_head_is_neither_followed_nor_waited_for() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path();
    std::fs::write(root.join("private"), "ref: refs/heads/private").expect("a file");
    let fifo = |path: &std::path::Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(made.success());
    };
    fifo(&root.join("fifo"));
    let link = |target: &'static str| {
        move |path: &std::path::Path| std::os::unix::fs::symlink(target, path).expect("a link")
    };
    let long = |path: &std::path::Path| {
        let file = std::fs::File::create(path).expect("a file");
        file.set_len(1 << 40).expect("a length");
    };
    let directory = |path: &std::path::Path| std::fs::create_dir(path).expect("a directory");
    let traps: [&dyn Fn(&std::path::Path); 8] = [
        &fifo,
        &link("/dev/zero"),
        &link("/proc/self/environ"),
        &link("../../private"),
        &link("../../fifo"),
        &link("HEAD"),
        &long,
        &directory,
    ];
    for (number, trap) in traps.iter().enumerate() {
        // In the place of HEAD, of `.git`, and of the directory that a work tree names.
        let project = root.join(number.to_string());
        std::fs::create_dir_all(project.join(".git")).expect("a directory");
        trap(&project.join(".git/HEAD"));
        assert_eq!(git_branch(&project), None, "{number}");
        let project = root.join(format!("{number}-git"));
        std::fs::create_dir(&project).expect("a directory");
        trap(&project.join(".git"));
        assert_eq!(git_branch(&project), None, "{number}");
        let project = root.join(format!("{number}-tree"));
        std::fs::create_dir(&project).expect("a directory");
        trap(&project.join("store"));
        std::fs::write(project.join(".git"), "gitdir: store").expect("a file");
        assert_eq!(git_branch(&project), None, "{number}");
    }
}

#[test]
fn what_limits_the_agent_stands_first_and_is_never_left_out() {
    let mut status = Status {
        model: "m".to_owned(),
        short_model: "m".to_owned(),
        is_sandboxed: true,
        ..Status::default()
    };
    status.show_mode(Mode::Auto);
    assert_eq!(status.line(80), "sandboxed · m");
    status.show_mode(Mode::Sandbox);
    assert_eq!(status.line(80), "sandboxed · m");
    status.show_mode(Mode::ReadOnly);
    status.goal = Some("goal paused".to_owned());
    assert_eq!(status.line(80), "read-only, sandboxed · goal paused · m");
    assert!(status.line(20).starts_with("read-only"));
    let mut status = Status::default();
    status.show_mode(Mode::Auto);
    assert_eq!(status.mode, None);
}
