use std::fs;

use super::{complete, find};

#[test]
fn files_are_found_by_path_name_or_part_unless_they_are_ignored() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for path in ["src/main.rs", "src/domain.rs", "main.md", "target/main.o", ".hidden/main"] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, "").expect("a file");
    }
    fs::write(root.join(".gitignore"), "target\n").expect("a file");
    assert_eq!(find(root, "main", 10), ["main.md", "src/main.rs", "src/domain.rs"]);
    assert_eq!(find(root, "src/", 10), ["src/domain.rs", "src/main.rs"]);
    assert_eq!(find(root, "main", 1), ["main.md"]);
    assert_eq!(find(root, "dom", 10), ["src/domain.rs"]);
    assert_eq!(find(root, "ain", 10), ["main.md", "src/domain.rs", "src/main.rs"]);
    for path in ["src/remote.rs", "src/core.rs"] {
        fs::write(root.join(path), "").expect("a file");
    }
    assert_eq!(find(root, "re", 10), ["src/remote.rs"], "it alone begins with it");
    assert_eq!(find(root, "ore", 10), ["src/core.rs"]);
    assert_eq!(complete(root, "s", 10), ["src/"]);
    assert_eq!(complete(root, "src/m", 10), ["src/main.rs"]);
    assert_eq!(complete(root, "target/", 10), ["target/main.o"], "what is typed out is meant");
    assert_eq!(complete(root, "nowhere/x", 10), Vec::<String>::new());
}
