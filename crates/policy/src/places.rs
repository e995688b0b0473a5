//! Places from which programs are started later: who may write there can run what he likes, whatever commands are allowed.
//!
//! The tables name harmless places instead of dangerous ones where that is possible: of a home directory every hidden file
//! counts, and of the system's directories everything.

use std::path::{Component, Path};

use crate::pattern::matches_name;

/// What is known about a path in addition to its name. All paths are absolute and have no links in them.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlaceFacts<'a> {
    /// The user's home directory.
    pub home: Option<&'a Path>,
    /// Directories in which the agent works. The rules for home and system directories do not hold in them.
    pub working: &'a [&'a Path],
    /// The directories of `PATH`.
    pub programs: &'a [&'a Path],
    /// Whether there is a file at the path that may be executed.
    pub is_executable: bool,
}

/// Directories whose contents belong to the system or to all users.
const SYSTEM_DIRECTORIES: [&str; 14] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/sbin",
    "/sys",
    "/usr",
    "/var/spool",
];

/// Files in them that keep nothing.
const HARMLESS_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Hidden directories of a home directory from which nothing is started.
const HARMLESS_IN_HOME: [&str; 2] = [".cache", ".thumbnails"];

/// Directories of a home directory that are not hidden, and from which programs are started.
const PROGRAMS_IN_HOME: [&str; 2] = ["bin", "go/bin"];

/// Who obeys a name, and when. Every name but [`Obeyed::AsInstructions`] needs a question where commands are restricted; every
/// name but [`Obeyed::WhenRun`] is read-only in a workspace that the owner shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obeyed {
    /// By programs of the owner, as soon as a directory is opened or entered, at `git status`, or by a build server.
    WhenOpened,
    /// By a tool that the owner starts for that very purpose.
    WhenRun,
    /// By agents, which start what it names.
    ByAgents,
    /// By agents, as a text.
    AsInstructions,
}

use Obeyed::{AsInstructions, ByAgents, WhenOpened, WhenRun};

/// Names that are obeyed wherever they are, why, and who has them. A `*` stands for any characters. All but [`IN_CAPITALS`] are
/// compared without regard to case, as some file systems do.
type Names = (Obeyed, &'static str, &'static [&'static str]);

/// Names of directories: what is in them counts as well.
#[rustfmt::skip]
const DIRECTORIES: &[Names] = &[
    (WhenOpened, "git starts programs that its config and its hooks name", &[".git"]),
    (WhenOpened, "a program for version control starts what its config names", &[".hg", ".svn", ".jj", ".bzr", "_darcs", ".pijul"]),
    (WhenOpened, "git starts hooks from it", &[".githooks", ".husky", ".lefthook"]),
    (WhenOpened, "an editor starts tasks and programs from it", &[
        ".vscode", ".idea", ".run", ".vs", ".zed", ".fleet", ".nova", ".helix", ".settings", ".theia", ".sublime", ".devcontainer",
    ]),
    (WhenOpened, "a build server starts programs that it names", &[
        ".github", ".gitlab", ".forgejo", ".gitea", ".circleci", ".buildkite", ".woodpecker", ".teamcity", ".semaphore", ".tekton",
        ".azure-pipelines", ".zuul.d", "zuul.d",
    ]),
    (WhenOpened, "cargo starts programs that its config names", &[".cargo"]),
    (WhenOpened, "a tool for builds starts programs that it names", &[".mvn", ".bundle", ".yarn"]),
    (WhenOpened, "direnv loads environments from it", &[".direnv"]),
    (WhenOpened, "a version manager runs the tasks in it", &[".mise"]),
    (WhenRun, "ssh starts programs that its config names, and lets in whom it names", &[".ssh"]),
    (WhenRun, "programs are started from it", &[".bin"]),
    (ByAgents, "an agent starts hooks and programs that it names", &[
        ".claude", ".codex", ".gemini", ".cursor", ".windsurf", ".opencode", ".roo", ".junie", ".clinerules", ".continue", ".kiro",
        ".amazonq", ".augment", ".trae", ".qwen", ".goose", ".crush", ".agents", ".pi", ".kilocode", ".factory", ".openhands", ".amp", ".openclaw",
        ".vibe",
    ]),
];

/// Names of files.
#[rustfmt::skip]
const FILES: &[Names] = &[
    (WhenOpened, "direnv runs it", &[".envrc", ".envrc.local", ".envrc.private"]),
    (WhenOpened, "programs take their environment from it", &[".env", ".env.local", ".env.development", ".env.production", ".env.test", ".autoenv"]),
    (WhenOpened, "npm, yarn, pnpm or bun starts programs that it names", &[
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", "package.json",
    ]),
    (WhenOpened, "git starts filters that it chooses, or fetches what it names", &[".gitattributes", ".gitmodules"]),
    (WhenOpened, "a program for version control starts programs that it names", &[".gitconfig", ".hgrc"]),
    (WhenOpened, "an editor runs it, or starts what it names", &[
        ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", "_vimrc", ".vim", ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".projectile",
        "*.code-workspace", "*.sublime-project", ".editorconfig", ".lazy.lua",
    ]),
    (WhenOpened, "an editor's checker runs the code that it names", &["hie.yaml", ".pylintrc", ".rubocop.yml"]),
    (WhenOpened, "a debugger runs it", &[".gdbinit", ".lldbinit"]),
    (WhenOpened, "a version manager starts what it names", &[
        ".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml", "rust-toolchain", "rust-toolchain.toml",
        ".sdkmanrc",
    ]),
    (WhenOpened, "git starts hooks that it names", &[
        ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
        ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", "lefthook-local.yml", ".overcommit.yml", ".lintstagedrc", ".lintstagedrc.*",
    ]),
    (WhenOpened, "a build server runs the commands in it", &[
        ".gitlab-ci.yml", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "azure-pipelines.yaml", ".drone.yml", ".drone.jsonnet",
        ".cirrus.yml", ".woodpecker.yml", "appveyor.yml", ".appveyor.yml", "bitbucket-pipelines.yml", "buildspec.yml", "cloudbuild.yaml",
        ".builds.yml", ".build.yml", ".zuul.yaml", "zuul.yaml", "codemagic.yaml", "wercker.yml", "netlify.toml", "vercel.json", ".readthedocs.yaml",
    ]),
    (WhenOpened, "cargo and editors for Rust run it, or what it names", &["Cargo.toml", "build.rs"]),
    (WhenOpened, "cmake and editors run it when they open the project", &["CMakeLists.txt", "CMakePresets.json", "CMakeUserPresets.json"]),
    (WhenOpened, "a tool for builds and editors run it when they open the project", &[
        "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "init.gradle", "pom.xml", "build.sbt", "build.sc", "mix.exs",
        "Package.swift", "Gemfile", "Directory.Build.props", "Directory.Build.targets",
    ]),
    (WhenOpened, "Python runs it, or an editor that looks for tests", &["conftest.py", "sitecustomize.py", "usercustomize.py"]),
    (WhenOpened, "nix runs it, also through direnv", &["flake.nix", "shell.nix", "default.nix", "devenv.nix"]),
    (WhenOpened, "make runs the commands in it", &["Makefile", "GNUmakefile", "BSDmakefile"]),
    (WhenOpened, "a runner of tasks runs the commands in it", &[
        "justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml", "Taskfile.dist.yaml", "Tiltfile", "turbo.json",
    ]),
    (WhenOpened, "watchman starts what it names", &[".watchmanconfig"]),
    (WhenRun, "a shell runs it", &[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc"]),
    (WhenRun, "programs send the keys in it", &[".netrc", ".pypirc"]),
    (WhenRun, "pip installs from where it says", &["pip.conf"]),
    (WhenRun, "a program writes where it says", &[".curlrc", ".wgetrc"]),
    (WhenRun, "pip runs it, or what it names", &["setup.py", "setup.cfg", "pyproject.toml"]),
    (WhenRun, "a runner of tests runs the commands in it", &["tox.ini", "noxfile.py", "pytest.ini"]),
    (WhenRun, "rake, guard or composer runs the commands in it", &["Rakefile", "Guardfile", "composer.json"]),
    (WhenRun, "a container tool runs the commands in it", &[
        "Dockerfile", "Dockerfile.*", "*.dockerfile", "Containerfile", "docker-compose.yml", "docker-compose.yaml", "docker-compose.*.yml",
        "docker-compose.*.yaml", "compose.yml", "compose.yaml", "compose.*.yml", "compose.*.yaml",
    ]),
    (WhenRun, "vagrant runs it", &["Vagrantfile"]),
    (WhenRun, "a process manager runs the commands in it", &["Procfile", "Procfile.*"]),
    (WhenRun, "cron runs the commands in it", &["crontab"]),
    (WhenRun, "a tool for builds runs the commands in it", &[
        "meson.build", "SConstruct", "SConscript", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", ".bazelrc", "build.xml", "wscript",
        "configure.ac", "dune-project", "build.zig", "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.sln",
    ]),
    (WhenRun, "deno runs the tasks in it", &["deno.json", "deno.jsonc"]),
    (ByAgents, "an agent starts programs that it names", &[
        "opencode.json", "opencode.jsonc", ".aider.conf.yml", ".mcp.json", ".cursorrules", ".windsurfrules", ".roomodes", "crush.json",
    ]),
    (AsInstructions, "an agent obeys it", &[
        "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "AGENT.md", "AGENTS.md", "QWEN.md", "CRUSH.md", "WARP.md", ".goosehints", ".roorules", ".rules",
        ".augment-guidelines",
    ]),
];

/// A name of [`FILES`] that only counts as it is written there: in small letters it is the usual name of a directory, such as
/// the agent's own.
const IN_CAPITALS: &str = "WORKSPACE";

/// What programs of the owner start or obey in a directory as soon as they look at it.
pub fn names_obeyed_by_programs() -> impl Iterator<Item = &'static str> {
    names(&[WhenOpened])
}

/// What agents take for instructions, and the settings that name what they start.
pub fn names_obeyed_by_agents() -> impl Iterator<Item = &'static str> {
    names(&[ByAgents, AsInstructions])
}

fn names(who: &'static [Obeyed]) -> impl Iterator<Item = &'static str> {
    let rows = DIRECTORIES.iter().chain(FILES).filter(|(obeyed, ..)| who.contains(obeyed));
    rows.flat_map(|(_, _, names)| names.iter().copied())
}

/// Tools that run a config in the form of a script, such as `vite.config.ts`.
const SCRIPT_CONFIGS: [&str; 20] = [
    "astro",
    "babel",
    "commitlint",
    "cypress",
    "eslint",
    "jest",
    "karma",
    "lint-staged",
    "metro",
    "next",
    "nuxt",
    "playwright",
    "postcss",
    "prettier",
    "rollup",
    "svelte",
    "tailwind",
    "vite",
    "vitest",
    "webpack",
];

/// What the name of a script for JavaScript runtimes ends with.
const SCRIPT_ENDINGS: [&str; 6] = ["js", "cjs", "mjs", "ts", "cts", "mts"];

/// Whether a name is that of a config that its tool runs: `vite.config.ts`, `.eslintrc.cjs`.
fn is_script_config(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let tool = stem
        .strip_suffix(".config")
        .or_else(|| stem.strip_prefix('.').and_then(|stem| stem.strip_suffix("rc")));
    SCRIPT_ENDINGS.contains(&ending) && tool.is_some_and(|tool| SCRIPT_CONFIGS.contains(&tool))
}

/// Why a change at `path`, which is absolute and has no links in it, may start a program later; `None` if nothing says so.
pub fn starts_programs(path: &Path, facts: &PlaceFacts<'_>) -> Option<String> {
    if let Some(directory) = facts.programs.iter().find(|directory| path.starts_with(directory)) {
        return Some(format!("programs are started from {} (PATH)", directory.display()));
    }
    if facts.is_executable {
        return Some("it is a program".to_owned());
    }
    named_place(path).or_else(|| place_of_the_user(path, facts))
}

/// A place that means the same wherever it is.
fn named_place(path: &Path) -> Option<String> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let named = |table: &[Names], name: &str| {
        let is_meant = |known: &&&str| match known.contains('*') {
            true => matches_name(&known.to_ascii_lowercase(), &name.to_ascii_lowercase()),
            false if **known == IN_CAPITALS => **known == name,
            false => known.eq_ignore_ascii_case(name),
        };
        let mut rows = table.iter().filter(|(obeyed, ..)| *obeyed != AsInstructions);
        rows.find_map(|(_, why, names)| {
            names.iter().find(is_meant).map(|known| format!("{known}: {why}"))
        })
    };
    let (last, directories) = names.split_last()?;
    directories
        .iter()
        .chain([last])
        .find_map(|name| named(DIRECTORIES, name))
        .or_else(|| named(FILES, last))
        .or_else(|| is_script_config(last).then(|| format!("{last}: its tool runs it")))
}

/// A place that programs of the user or of the system read.
fn place_of_the_user(path: &Path, facts: &PlaceFacts<'_>) -> Option<String> {
    if facts.working.iter().any(|directory| path.starts_with(directory)) {
        return None;
    }
    if let Some(inside) = facts.home.and_then(|home| path.strip_prefix(home).ok()) {
        let first = inside.components().next()?.as_os_str().to_string_lossy();
        let is_harmless = HARMLESS_IN_HOME.iter().any(|name| inside.starts_with(name));
        if first.starts_with('.') && !is_harmless {
            return Some(format!("~/{first} belongs to the settings of programs"));
        }
        let of_programs = PROGRAMS_IN_HOME.iter().find(|name| inside.starts_with(name))?;
        return Some(format!("programs are started from ~/{of_programs}"));
    }
    if HARMLESS_DEVICES.iter().any(|device| path == Path::new(device)) {
        return None;
    }
    let system = SYSTEM_DIRECTORIES.iter().find(|directory| path.starts_with(directory))?;
    Some(format!("{system} belongs to the system"))
}

#[cfg(test)]
mod tests;
