use std::fs::{create_dir_all, write};

use super::*;

/// Makes a file with everything above it.
fn file(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    create_dir_all(path.parent().unwrap()).unwrap();
    write(path, text).unwrap();
}

fn bare(root: &Path, path: &str, config: &str) {
    file(root, &format!("{path}/HEAD"), "ref: refs/heads/main\n");
    file(root, &format!("{path}/config"), config);
    create_dir_all(root.join(path).join("objects")).unwrap();
    create_dir_all(root.join(path).join("refs")).unwrap();
}

const EVIL: &str = "[core]\n\tfsmonitor = ./x\n";
const PLAIN: &str = "[core]\n\tbare = false\n";

fn marks(root: &Path) -> Vec<String> {
    let found = hidden_repositories(root).found.into_iter();
    found.map(|it| it.mark.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn what_git_would_obey_is_found() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    bare(root, "a/bare", EVIL);
    bare(root, "a/harmless bare", PLAIN);
    bare(root, "b/.git", EVIL);
    bare(root, ".git", EVIL);
    bare(root, "c/.GIT", EVIL);
    bare(root, "usual/.git", PLAIN);
    file(root, "usual/HEAD", "no repository\n");
    file(root, "worktree/.git", "gitdir: ../a/bare\n");
    file(root, "strange/.git", "something else\n");
    file(root, "common/HEAD", "ref: refs/heads/main\n");
    file(root, "common/commondir", "../a/bare\n");
    bare(root, "hooked/.git", PLAIN);
    file(root, "hooked/.git/hooks/pre-commit", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(root.join("hooked/.git/hooks/pre-commit"), mode).unwrap();
    std::os::unix::fs::symlink("/", root.join("link")).unwrap();
    // `c/.GIT` is one for git where names have no case, and is not looked into here.
    let wanted = [
        ".git",
        "a/bare/HEAD",
        "a/harmless bare/HEAD",
        "b/.git",
        "common/HEAD",
        "hooked/.git",
        "strange/.git",
        "worktree/.git",
    ];
    assert_eq!(marks(root), wanted);
    let message = hidden_repositories(root).message().unwrap();
    assert!(message.contains("core.fsmonitor") && message.ends_with(" and 5 more"), "{message}");
}

#[test]
fn a_usual_workspace_has_none() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    bare(root, ".git", PLAIN);
    bare(root, "project/.git", PLAIN);
    file(root, "HEAD", "x");
    file(root, "notes/objects/refs", "x");
    let all = hidden_repositories(root);
    assert!(all.found.is_empty() && !all.is_cut && all.message().is_none(), "{all:?}");
    assert!(hidden_repositories(&root.join("missing")).found.is_empty());
}

#[test]
fn a_name_cannot_write_to_the_terminal_and_the_walk_has_an_end() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    bare(root, "a\u{1b}[2J\nb", EVIL);
    let message = hidden_repositories(root).message().unwrap();
    assert!(!message.contains(char::is_control), "{message}");
    for number in 0..=MAX_FOUND {
        bare(root, &format!("r/{number}"), PLAIN);
    }
    let all = hidden_repositories(root);
    assert_eq!((all.found.len(), all.is_cut), (MAX_FOUND, true));
}
