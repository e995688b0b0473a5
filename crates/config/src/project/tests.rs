use std::fs;

use super::*;

#[test]
fn a_project_is_found_from_its_parts_and_never_at_home() {
    let temp = tempfile::tempdir().unwrap();
    let home = temp.path().join("home");
    let at = |path: &str| home.join(path);
    for directory in [".git", "repo/.git", "repo/part/src", "loose/src", "plain", "inner/.jj/x"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    fs::write(at("repo/part/AGENTS.md"), "").unwrap();
    fs::write(at("loose/AGENTS.md"), "").unwrap();
    let root = |path: &str| project_root(&at(path), &PROJECT_MARKERS, Some(&home));
    assert_eq!(root("repo/part/src"), Some(at("repo")));
    assert_eq!(root("loose/src"), Some(at("loose")));
    assert_eq!(root("inner/.jj/x"), Some(at("inner")));
    assert_eq!(root("plain"), None, "the home directory is no project");
    assert_eq!(root(""), None);
    assert_eq!(root("missing"), None);
    let without_git = project_root(&at("repo/part/src"), &["AGENTS.md"], Some(&home));
    assert_eq!(without_git, Some(at("repo/part")));
}
