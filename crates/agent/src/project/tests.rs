use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// The paths and texts that are read for `AGENTS.md` of the project at `root`.
fn read_all(root: &Path) -> Vec<(String, String)> {
    let shared = SharedDirectory::open(root).unwrap();
    let (mut left, mut known) = (MAX_TOTAL_CHARS, BTreeSet::new());
    let files = read_with_imports(&shared, "AGENTS.md".into(), &mut left, &mut known);
    files.into_iter().map(|file| (file.path, file.content)).collect()
}

fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
    expected.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec()
}

#[test]
fn links_inside_of_the_project_are_followed_and_no_others() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(root.join("docs")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(home.join("private"), "private").unwrap();
    for name in ["docs/rules.md", ".env", ".git/config"] {
        fs::write(root.join(name), name).unwrap();
    }
    for (target, expected) in [
        ("docs/rules.md", pairs([("AGENTS.md", "docs/rules.md")])),
        ("docs/../docs/rules.md", pairs([("AGENTS.md", "docs/rules.md")])),
        ("../private", Vec::new()),
        ("docs/../../private", Vec::new()),
        (".env", Vec::new()),
        (".git/config", Vec::new()),
        ("/dev/zero", Vec::new()),
        ("/proc/self/environ", Vec::new()),
        ("docs", Vec::new()),
        ("AGENTS.md", Vec::new()),
    ] {
        symlink(target, root.join("AGENTS.md")).unwrap();
        assert_eq!(read_all(&root), expected, "{target}");
        fs::remove_file(root.join("AGENTS.md")).unwrap();
    }
    let absolute = [("docs/rules.md", 1), (".env", 0), ("../private", 0)];
    for (target, count) in absolute {
        symlink(root.join(target), root.join("AGENTS.md")).unwrap();
        assert_eq!(read_all(&root).len(), count, "{target}");
        fs::remove_file(root.join("AGENTS.md")).unwrap();
    }
}

#[test]
fn files_that_instructions_name_are_found_without_leaving_the_project() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(root.join("docs/deep")).unwrap();
    fs::write(home.join("private"), "private").unwrap();
    fs::write(root.join(".env"), "secret").unwrap();
    let absolute = root.join("docs/absolute.md");
    fs::write(&absolute, "absolute").unwrap();
    fs::write(root.join("docs/style.md"), "style @deep/more.md").unwrap();
    fs::write(root.join("docs/deep/more.md"), "more @../style.md @../../../private").unwrap();
    symlink("../private", root.join("out")).unwrap();
    symlink("..", root.join("above")).unwrap();
    symlink(".env", root.join("hidden")).unwrap();
    symlink("docs", root.join("linked")).unwrap();
    let text = format!(
        "@linked/style.md. @out @above/private @hidden @.env @docs @none @{}",
        absolute.display()
    );
    fs::write(root.join("AGENTS.md"), &text).unwrap();
    let expected = pairs([
        ("AGENTS.md", &text),
        ("docs/style.md", "style @deep/more.md"),
        ("docs/deep/more.md", "more @../style.md @../../../private"),
        ("docs/absolute.md", "absolute"),
    ]);
    assert_eq!(read_all(&root), expected);
}

/// A sandboxed project exchanges the file for a link, as fast as it can.
#[test]
fn no_read_leaves_the_project_while_names_are_swapped() {
    const READS: usize = 3_000;
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("project");
    fs::create_dir_all(root.join("part")).unwrap();
    fs::create_dir(home.path().join("outside")).unwrap();
    for (path, text) in [
        ("outside/private", "private"),
        ("outside/more.md", "private"),
        ("project/AGENTS.md", "mine @part/more.md"),
        ("project/part/more.md", "mine"),
    ] {
        fs::write(home.path().join(path), text).unwrap();
    }
    symlink("../outside/private", root.join("link")).unwrap();
    symlink("../outside", root.join("other")).unwrap();
    let is_over = AtomicBool::new(false);
    let texts: BTreeSet<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |one: &str, other: &str| {
                let spare = root.join("spare");
                fs::rename(root.join(one), &spare).unwrap();
                fs::rename(root.join(other), root.join(one)).unwrap();
                fs::rename(&spare, root.join(other)).unwrap();
            };
            while !is_over.load(Ordering::Relaxed) {
                swap("AGENTS.md", "link");
                swap("part", "other");
            }
        });
        let texts = (0..READS).flat_map(|_| read_all(&root)).map(|(_, text)| text).collect();
        is_over.store(true, Ordering::Relaxed);
        texts
    });
    let allowed = ["mine".to_owned(), "mine @part/more.md".to_owned()];
    assert!(texts.iter().all(|text| allowed.contains(text)), "{texts:?}");
    assert!(!texts.is_empty(), "no read found the file");
}
