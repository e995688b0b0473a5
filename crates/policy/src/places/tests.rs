use super::*;

fn reason(path: &str) -> Option<String> {
    let facts = PlaceFacts {
        home: Some(Path::new("/home/ann")),
        working: &[Path::new("/home/ann/.agent/workspace"), Path::new("/home/ann/project")],
        programs: &[Path::new("/usr/local/bin"), Path::new("/home/ann/project/tools")],
        is_executable: false,
    };
    starts_programs(Path::new(path), &facts)
}

#[test]
fn places_from_which_programs_are_started_have_a_reason() {
    for path in [
        "/home/ann/.bashrc",
        "/home/ann/.config/autostart/x.desktop",
        "/home/ann/.local/bin/ls",
        "/home/ann/.unheard-of",
        "/home/ann/.agent/config",
        "/home/ann/bin/tool",
        "/home/ann/go/bin/tool",
        "/home/ann/project/.git/config",
        "/home/ann/project/.git/hooks/pre-commit",
        "/home/ann/project/.git",
        "/home/ann/project/sub/.GIT/config",
        "/home/ann/project/sub/Makefile",
        "/home/ann/project/package.json",
        "/home/ann/project/.envrc",
        "/home/ann/project/.VSCode/tasks.json",
        "/home/ann/project/node_modules/.bin/eslint",
        "/home/ann/project/compose.yaml",
        "/home/ann/project/Gemfile",
        "/home/ann/project/tox.ini",
        "/home/ann/project/rust-toolchain.toml",
        "/home/ann/project/vite.config.ts",
        "/home/ann/project/Jest.config.mjs",
        "/home/ann/project/.eslintrc.cjs",
        "/home/ann/project/tools/deploy",
        "/home/ann/.agent/workspace/.git/config",
        "/usr/local/bin/git",
        "/etc/cron.d/job",
        "/etc/profile",
        "/var/spool/cron/crontabs/ann",
        "/srv/repository/.hg/hgrc",
        "/root/.profile",
    ] {
        assert!(reason(path).is_some(), "{path}");
    }
}

#[test]
fn other_places_have_none() {
    for path in [
        "/home/ann/project/src/main.rs",
        "/home/ann/project/src/vite.ts",
        "/home/ann/project/src/app.config.json",
        "/home/ann/project/.gitignore",
        "/home/ann/project/git/config",
        "/home/ann/.agent/workspace/notes.md",
        "/home/ann/.agent/workspace/memory/today.md",
        "/home/ann/.cache/pip/wheel",
        "/home/ann/Documents/letter.txt",
        "/home/ann/binary",
        "/tmp/scratch.txt",
        "/srv/data/table.csv",
        "/",
    ] {
        assert_eq!(reason(path), None, "{path}");
    }
}

#[test]
fn a_program_counts_wherever_it_is() {
    let facts = PlaceFacts { is_executable: true, ..PlaceFacts::default() };
    let path = Path::new("/srv/data/run");
    assert_eq!(starts_programs(path, &facts), Some("it is a program".to_owned()));
    assert_eq!(starts_programs(path, &PlaceFacts::default()), None);
}
