use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    let patterns = PathPatterns::new(pattern, Path::new("/home/ada/project")).unwrap();
    patterns.match_file(Path::new(path), Path::new(path))
}

fn folder_matches(pattern: &str, path: &str) -> bool {
    let patterns = PathPatterns::new(pattern, Path::new("/home/ada/project")).unwrap();
    patterns.match_folder(Path::new(path), Path::new(path))
}

#[test]
fn a_glob_without_a_slash_is_about_names() {
    for path in ["main.rs", "src/main.rs", "a/b/c.rs"] {
        assert!(matches("*.rs", path), "{path}");
    }
    assert!(!matches("*.rs", "main.rs.bak"));
    assert!(matches("main.?s", "src/main.ts"));
    assert!(matches("*.{ts,tsx}", "a/b.tsx"));
    assert!(matches("[mn]ain", "nain"));
}

#[test]
fn a_glob_with_a_slash_is_about_paths() {
    assert!(matches("src/*.rs", "src/main.rs"));
    assert!(!matches("src/*.rs", "src/deep/main.rs"));
    assert!(!matches("src/*.rs", "other/src/main.rs"));
    assert!(matches("src/**/*.rs", "src/main.rs"));
    assert!(matches("src/**/*.rs", "src/a/b/main.rs"));
    assert!(matches("**/src/*.rs", "other/src/main.rs"));
    assert!(matches("./src/*.rs", "src/main.rs"));
    assert!(matches("/main.rs", "main.rs"));
    assert!(!matches("/main.rs", "src/main.rs"));
    assert!(matches("./main.rs", "main.rs"));
    assert!(!matches("./main.rs", "src/main.rs"));
    assert!(matches("/home/ada/project/src/*.rs", "src/main.rs"));
    assert!(matches("src/**", "src/a/b"));
}

#[test]
fn a_glob_may_be_written_from_the_working_directory() {
    let patterns = PathPatterns::new("src/*.rs", Path::new("/home/ada/project/src")).unwrap();
    assert!(patterns.match_file(Path::new("main.rs"), Path::new("src/main.rs")));
    assert!(!patterns.match_file(Path::new("main.rs"), Path::new("lib/main.rs")));
}

#[test]
fn a_slash_at_the_end_means_folders() {
    assert!(folder_matches("src/", "a/src"));
    assert!(!matches("src/", "a/src"));
    assert!(folder_matches("src", "a/src"));
}

#[test]
fn several_globs_quotes_and_exclusion() {
    assert!(matches("*.ts, *.tsx", "a.tsx"));
    assert!(matches("\"*.rs\"", "a.rs"));
    assert!(matches("'*.rs'", "a.rs"));
    assert!(matches("!*.md", "a.rs"));
    assert!(!matches("!*.md", "a.md"));
    assert!(!matches("*.rs,!target", "target/debug/build.rs"));
    assert!(!matches("*.rs,!gen_*.rs", "src/gen_a.rs"));
    assert!(matches("*.rs,!gen_*.rs", "src/a.rs"));
}

#[test]
fn names_with_a_dot_are_noticed() {
    for (pattern, expected) in [
        (".env*", true),
        ("**/.github/**", true),
        ("*.rs", false),
        ("./src/*", false),
        ("../x", false),
        ("a.b", false),
    ] {
        let patterns = PathPatterns::new(pattern, Path::new("/home/ada/project")).unwrap();
        assert_eq!(patterns.names_hidden(), expected, "{pattern}");
    }
}

#[test]
fn a_bad_glob_is_named() {
    for (pattern, needle) in [
        ("a{b", "\"a{b\" is not a valid glob: unclosed alternate group"),
        ("*.rs,[z-a]", "\"[z-a]\" is not a valid glob: invalid range"),
        ("", "the glob is empty"),
        (" , ", "the glob is empty"),
    ] {
        let text = PathPatterns::new(pattern, Path::new("/")).unwrap_err().to_string();
        assert!(text.contains(needle), "{pattern}: {text}");
    }
}
