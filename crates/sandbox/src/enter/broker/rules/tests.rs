use super::*;

fn rules(writable: &[&str], protected: &[&str]) -> Rules {
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    Rules {
        writable: paths(writable),
        readable: paths(&["/usr"]),
        brokered: paths(&["/w"]),
        protected: paths(protected),
        names: vec![".envrc".to_owned()],
    }
}

#[test]
fn a_protected_name_has_no_other_spelling() {
    let rules = rules(&["/w"], &["/w/AGENTS.md", "/w/.git", "/w/skills", "/w/.github/workflows"]);
    let spelled = [
        "/w/AGENTS.md",
        "/w/agents.md",
        "/w/Agents.MD/below",
        "/w/.GIT/config",
        "/w/.g\u{200d}it",
        "/w/.git.",
        "/w/.git ",
        "/w/\u{17f}kills/x",
        "/w/s\u{212a}ills",
        "/w/.GitHub/Workflows/x",
        // In every directory.
        "/w/.envrc",
        "/w/sub/.envrc",
        "/w/sub/deep/.ENVRC",
        "/w/sub/.envrc./below",
    ];
    for path in spelled {
        assert_eq!(rules.standing(Path::new(path)), Standing::Protected, "{path}");
    }
    for path in ["/w", "/w/.github", "/w/.GITHUB"] {
        assert_eq!(rules.standing(Path::new(path)), Standing::Above, "{path}");
    }
    for path in [
        "/w/AGENTS.md.bak",
        "/w/sub/.envrc2",
        "/w/.gitignore",
        "/w/sub/AGENTS.md",
        "/w/.github/other",
        "/w/skill",
    ] {
        assert_eq!(rules.standing(Path::new(path)), Standing::Free, "{path}");
    }
    for path in ["/", "/ws", "/W/AGENTS.md", "/tmp/x"] {
        assert_eq!(rules.standing(Path::new(path)), Standing::Elsewhere, "{path}");
    }
}

#[test]
fn only_what_is_below_a_writable_path_may_be_changed() {
    let rules = rules(&["/w", "/tmp/of-session"], &["/w/.git"]);
    let may = ["/w", "/w/file", "/w/.gitignore", "/tmp/of-session", "/tmp/of-session/x"];
    let may_not = [
        "/",
        "/tmp",
        "/tmp/of-session2",
        "/w/.git",
        "/w/.git/config",
        "/usr/bin/x",
        "/w2/x",
        "pipe:[1]",
    ];
    for path in may {
        assert!(rules.may_change(Path::new(path)), "{path}");
    }
    for path in may_not {
        assert!(!rules.may_change(Path::new(path)), "{path}");
    }
}

#[test]
fn a_star_in_a_name_stands_for_any_characters() {
    let protected = |name: &str| {
        ["*.code-workspace", ".lintstagedrc.*"].iter().any(|one| is_named(name.as_ref(), one))
    };
    for name in ["a.code-workspace", "A.Code-Workspace ", ".code-workspace", ".LINTSTAGEDRC.js"] {
        assert!(protected(name), "{name}");
    }
    for name in ["code-workspace", "a.code-workspace.txt", ".lintstagedrc", "x.lintstagedrc.js"] {
        assert!(!protected(name), "{name}");
    }
}
