use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    let patterns = PathPatterns::new(pattern, Path::new("/home/ada/project")).unwrap();
    patterns.match_file(Path::new(path), Path::new(path))
}

fn directory_matches(pattern: &str, path: &str) -> bool {
    let patterns = PathPatterns::new(pattern, Path::new("/home/ada/project")).unwrap();
    patterns.match_directory(Path::new(path), Path::new(path))
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
fn a_slash_at_the_end_means_directories() {
    assert!(directory_matches("src/", "a/src"));
    assert!(!matches("src/", "a/src"));
    assert!(directory_matches("src", "a/src"));
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
fn a_bad_glob_is_named() {
    for (pattern, needle) in [
        ("a{b", "\"a{b\" is not a valid glob: unclosed alternate group"),
        ("*.rs,[z-a]", "\"[z-a]\" is not a valid glob: invalid range"),
        ("", "the glob is empty"),
        (" , ", "the glob is empty"),
        (&"a".repeat(5000), "is too long (5000 bytes"),
        (&nested(20_000), "is too long"),
        (&nested(1_000), "has braces within braces more than 8 deep"),
        (&nested(9), "has braces within braces more than 8 deep"),
        (&format!("{{{}}}", "a,".repeat(1_500)), "has more than 1000 commas"),
    ] {
        let text = PathPatterns::new(pattern, Path::new("/")).unwrap_err().to_string();
        assert!(text.contains(needle), "{pattern}: {text}");
    }
}

fn nested(depth: usize) -> String {
    format!("{}a{}", "{".repeat(depth), "}".repeat(depth))
}

#[test]
fn braces_of_a_reasonable_depth_are_taken() {
    let patterns = PathPatterns::new(&nested(8), Path::new("/")).unwrap();
    assert!(patterns.match_file(Path::new("a"), Path::new("a")));
}

/// One character of a name is what a person counts as one, whatever its bytes are, and however it is composed.
#[test]
fn a_question_mark_and_a_class_are_about_characters() {
    for (pattern, path) in [
        ("caf?.txt", "café.txt"),
        ("caf?.txt", "cafe\u{301}.txt"),
        ("?.md", "日.md"),
        ("?.md", "x\u{302}\u{332}.md"),
        ("m?d??.md", "mädög.md"),
        ("caf[éè].txt", "café.txt"),
        ("caf[éè].txt", "cafe\u{301}.txt"),
        ("caf[e\u{301}x].txt", "café.txt"),
        ("[а-я]*.md", "щука.md"),
        ("[!a-z].md", "é.md"),
        ("[!a-w].md", "x\u{302}.md"),
        ("src/?/{ü,[αβ]}.rs", "src/ß/β.rs"),
        ("a?b", "a\u{2026}b"),
        ("[xé]a", "xa"),
        ("naïv?", "naïve"),
        ("a\\?é", "a?é"),
    ] {
        assert!(matches(pattern, path), "{pattern} {path}");
        assert!(!matches(&format!("*,!{pattern}"), path), "!{pattern} {path}");
    }
    for (pattern, path) in [
        ("caf??.txt", "café.txt"),
        ("??.md", "日.md"),
        ("[а-я].md", "q.md"),
        ("[!é].md", "é.md"),
        ("caf[éè].txt", "cafe.txt"),
        ("é?b", "é/b"),
    ] {
        assert!(!matches(pattern, path), "{pattern} {path}");
        assert!(matches(&format!("*,!{pattern}"), path), "!{pattern} {path}");
    }
}

#[test]
fn a_long_pattern_is_taken_as_well() {
    let name = "é".repeat(200);
    assert!(matches(&"?".repeat(200), &name) && !matches(&"?".repeat(201), &name));
}
