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
        "/home/ann/project/.travis.yml",
        "/home/ann/project/Jenkinsfile",
        "/home/ann/project/jenkinsFILE",
        "/home/ann/project/azure-pipelines.yml",
        "/home/ann/project/.drone.yml",
        "/home/ann/project/.forgejo/workflows/x.yml",
        "/home/ann/project/.Gitea/workflows/x.yml",
        "/home/ann/project/.buildkite/pipeline.yml",
        "/home/ann/project/sub/.nvim.lua",
        "/home/ann/project/a.code-workspace",
        "/home/ann/project/A.Code-Workspace",
        "/home/ann/project/.run/x.xml",
        "/home/ann/project/.vs/x.json",
        "/home/ann/project/.gemini/settings.json",
        "/home/ann/project/.cursorrules",
        "/home/ann/project/.clinerules",
        "/home/ann/project/opencode.json",
        "/home/ann/project/.aider.conf.yml",
        "/home/ann/project/.envrc.local",
        "/home/ann/project/.justfile",
        "/home/ann/project/mise.toml",
        "/home/ann/project/docker-compose.dev.yml",
        "/home/ann/project/x.csproj",
        "/home/ann/project/tools/deploy",
        "/home/ann/.agent/workspace/.git/config",
        "/usr/local/bin/git",
        "/etc/cron.d/job",
        "/etc/profile",
        "/var/spool/cron/crontabs/ann",
        "/srv/repository/.hg/hgrc",
        "/root/.profile",
        "/home/ann/project/WORKSPACE",
        "/home/ann/.agent/workspace/WORKSPACE",
        "/home/ann/project/sub/workspace.bazel",
        "/home/ann/project/MODULE.bazel",
        "/home/ann/project/module.BAZEL",
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
        "/home/ann/project/GEMINI.md",
        "/home/ann/project/AGENTS.md",
        "/home/ann/project/code-workspace",
        "/home/ann/workspace/notes.txt",
        "/home/ann/.agent/workspace",
        "/home/ann/.agent/workspace/a.tar",
        "/home/ann/project/workspace",
        "/home/ann/project/Workspace/b.zip",
        "/dev/null",
        "/dev/zero",
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

/// Names that programs obey as soon as a directory is opened.
#[rustfmt::skip]
const BY_PROGRAMS: &[&str] = &[
    ".git", ".github", ".gitlab-ci.yml", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", ".drone.yml",
    ".forgejo", ".gitea", ".buildkite", ".circleci", ".nvim.lua", ".exrc", ".lvimrc", ".dir-locals.el",
    "*.code-workspace", ".vscode", ".idea", ".run", ".vs", ".zed", ".fleet", "justfile", ".justfile", "mise.toml",
    ".mise.toml", ".tool-versions", ".envrc", ".envrc.local", ".env", ".gdbinit", ".lldbinit", "lefthook.yml",
    ".pre-commit-config.yaml", ".husky", "Cargo.toml", "build.rs", ".cargo", "conftest.py", "flake.nix", "shell.nix",
    "default.nix", "CMakeLists.txt", "Makefile", "package.json", ".npmrc", "Gemfile",
];

/// Names that agents obey.
#[rustfmt::skip]
const BY_AGENTS: &[&str] = &[
    "GEMINI.md", "CLAUDE.md", ".gemini", ".cursorrules", ".cursor", ".windsurfrules", ".windsurf", ".clinerules",
    "opencode.json", ".opencode", ".aider.conf.yml", ".roo", ".junie", ".mcp.json",
];

/// The names that are read-only in a shared workspace are those that need a question, and those of instructions.
#[test]
fn one_list_serves_both_boundaries() {
    let programs: Vec<&str> = names_obeyed_by_programs().collect();
    let agents: Vec<&str> = names_obeyed_by_agents().collect();
    for name in programs.iter().chain(&agents).filter(|name| !name.ends_with(".md")) {
        let path = Path::new("/srv").join(name.replace('*', "x").to_uppercase());
        let is_text = [".goosehints", ".roorules", ".rules", ".augment-guidelines"].contains(name);
        assert_eq!(starts_programs(&path, &PlaceFacts::default()).is_some(), !is_text, "{name}");
    }
    for name in BY_PROGRAMS {
        assert!(programs.contains(name), "{name}");
    }
    for name in BY_AGENTS {
        assert!(agents.contains(name), "{name}");
    }
    for name in
        ["Dockerfile", "compose.yaml", "tox.ini", "Vagrantfile", "Procfile", "Rakefile", "setup.py"]
    {
        assert!(!programs.contains(&name), "{name}");
    }
    let mut all: Vec<String> = programs.iter().chain(&agents).map(|it| it.to_string()).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}
