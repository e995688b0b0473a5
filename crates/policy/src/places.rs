//! Places from which programs are started later: who may write there can run what he likes, whatever commands are allowed.
//!
//! The tables name harmless places instead of dangerous ones where that is possible: of a home directory every hidden file
//! counts, and of the system's directories everything.

use std::path::{Component, Path};

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

/// Hidden directories of a home directory from which nothing is started.
const HARMLESS_IN_HOME: [&str; 2] = [".cache", ".thumbnails"];

/// Directories of a home directory that are not hidden, and from which programs are started.
const PROGRAMS_IN_HOME: [&str; 2] = ["bin", "go/bin"];

/// Directories that mean the same wherever they are, and why.
const DIRECTORIES: [(&str, &str); 24] = [
    (".git", "git starts programs that its config and its hooks name"),
    (".hg", "Mercurial starts programs that its config names"),
    (".svn", "Subversion starts the hooks in it"),
    (".githooks", "git starts hooks from it"),
    (".husky", "git starts hooks from it"),
    (".vscode", "an editor starts tasks from it"),
    (".idea", "an editor starts tasks from it"),
    (".fleet", "an editor starts tasks from it"),
    (".zed", "an editor starts tasks from it"),
    (".cursor", "an editor starts programs that it names"),
    (".claude", "an agent starts hooks from it"),
    (".codex", "an agent starts programs that it names"),
    (".gemini", "an agent starts programs that it names"),
    (".devcontainer", "an editor starts programs that it names"),
    (".github", "a build server starts programs that it names"),
    (".gitlab", "a build server starts programs that it names"),
    (".circleci", "a build server starts programs that it names"),
    (".cargo", "cargo starts programs that its config names"),
    (".mvn", "Maven starts programs that it names"),
    (".bundle", "bundler loads plugins from it"),
    (".yarn", "yarn starts its releases and plugins from it"),
    (".direnv", "direnv loads environments from it"),
    (".ssh", "ssh starts programs that its config names, and lets in whom it names"),
    (".bin", "programs are started from it"),
];

/// Files that mean the same wherever they are, and why. Compared without regard to case.
const FILES: [(&str, &str); 95] = [
    (".envrc", "direnv runs it"),
    (".env", "programs take their environment from it"),
    (".npmrc", "npm starts programs that it names"),
    (".yarnrc", "yarn starts programs that it names"),
    (".yarnrc.yml", "yarn starts programs that it names"),
    (".pnpmfile.cjs", "pnpm runs it"),
    (".gitattributes", "git starts filters that it chooses"),
    (".gitmodules", "git fetches what it names"),
    (".gitconfig", "git starts programs that it names"),
    (".hgrc", "Mercurial starts programs that it names"),
    (".vimrc", "an editor runs it"),
    (".exrc", "an editor runs it"),
    (".nvimrc", "an editor runs it"),
    (".nvim.lua", "an editor runs it"),
    (".lvimrc", "an editor runs it"),
    (".dir-locals.el", "an editor runs it"),
    (".emacs", "an editor runs it"),
    (".gdbinit", "a debugger runs it"),
    (".lldbinit", "a debugger runs it"),
    (".bashrc", "a shell runs it"),
    (".bash_profile", "a shell runs it"),
    (".profile", "a shell runs it"),
    (".zshrc", "a shell runs it"),
    (".zshenv", "a shell runs it"),
    (".netrc", "programs send the keys in it"),
    (".pypirc", "programs send the keys in it"),
    ("pip.conf", "pip installs from where it says"),
    (".curlrc", "curl writes where it says"),
    (".wgetrc", "wget writes where it says"),
    (".tool-versions", "a version manager starts what it names"),
    ("mise.toml", "a version manager runs the tasks in it"),
    (".mise.toml", "a version manager runs the tasks in it"),
    (".pre-commit-config.yaml", "git starts hooks that it names"),
    ("lefthook.yml", "git starts hooks that it names"),
    ("sitecustomize.py", "Python runs it whenever it starts"),
    ("usercustomize.py", "Python runs it whenever it starts"),
    ("conftest.py", "pytest runs it"),
    ("setup.py", "pip runs it"),
    ("build.rs", "cargo runs it"),
    ("makefile", "make runs the commands in it"),
    ("gnumakefile", "make runs the commands in it"),
    ("justfile", "just runs the commands in it"),
    (".justfile", "just runs the commands in it"),
    ("taskfile.yml", "task runs the commands in it"),
    ("taskfile.yaml", "task runs the commands in it"),
    ("rakefile", "rake runs it"),
    ("package.json", "npm runs the scripts in it"),
    ("composer.json", "composer runs the scripts in it"),
    ("build.gradle", "gradle runs it"),
    ("build.gradle.kts", "gradle runs it"),
    ("pom.xml", "Maven starts plugins that it names"),
    ("cmakelists.txt", "cmake runs it"),
    ("dockerfile", "docker runs the commands in it"),
    ("docker-compose.yml", "docker starts what it names"),
    (".gitlab-ci.yml", "a build server runs the commands in it"),
    ("jenkinsfile", "a build server runs it"),
    ("crontab", "cron runs the commands in it"),
    ("docker-compose.yaml", "docker starts what it names"),
    ("compose.yml", "docker starts what it names"),
    ("compose.yaml", "docker starts what it names"),
    ("containerfile", "a container tool runs the commands in it"),
    ("tox.ini", "tox runs the commands in it"),
    ("noxfile.py", "nox runs it"),
    ("gemfile", "bundler runs it"),
    ("guardfile", "guard runs it"),
    ("vagrantfile", "vagrant runs it"),
    ("procfile", "a process manager runs the commands in it"),
    ("flake.nix", "nix runs it"),
    ("shell.nix", "nix runs it"),
    ("default.nix", "nix runs it"),
    ("pyproject.toml", "Python tools start what it names"),
    ("setup.cfg", "Python tools start what it names"),
    ("settings.gradle", "gradle runs it"),
    ("settings.gradle.kts", "gradle runs it"),
    ("meson.build", "meson runs the commands in it"),
    ("sconstruct", "scons runs it"),
    ("sconscript", "scons runs it"),
    ("build.bazel", "bazel runs the commands in it"),
    ("workspace", "bazel runs the commands in it"),
    ("module.bazel", "bazel runs the commands in it"),
    (".bazelrc", "bazel runs the commands in it"),
    ("taskfile.dist.yml", "task runs the commands in it"),
    ("taskfile.dist.yaml", "task runs the commands in it"),
    ("lefthook.yaml", "git starts hooks that it names"),
    ("lefthook.toml", "git starts hooks that it names"),
    ("lefthook.json", "git starts hooks that it names"),
    (".lefthook.yml", "git starts hooks that it names"),
    (".pre-commit-config.yml", "git starts hooks that it names"),
    ("rust-toolchain", "rustup starts the compiler that it names"),
    ("rust-toolchain.toml", "rustup starts the compiler that it names"),
    ("deno.json", "deno runs the tasks in it"),
    ("deno.jsonc", "deno runs the tasks in it"),
    ("bunfig.toml", "bun loads code that it names"),
    (".mise.local.toml", "a version manager runs the tasks in it"),
    ("mise.local.toml", "a version manager runs the tasks in it"),
];

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
    let named = |table: &[(&str, &str)], name: &str| {
        let found = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(format!("{}: {}", found.0, found.1))
    };
    let (last, directories) = names.split_last()?;
    directories
        .iter()
        .find_map(|name| named(&DIRECTORIES, name))
        .or_else(|| named(&DIRECTORIES, last))
        .or_else(|| named(&FILES, last))
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
    let system = SYSTEM_DIRECTORIES.iter().find(|directory| path.starts_with(directory))?;
    Some(format!("{system} belongs to the system"))
}

#[cfg(test)]
mod tests;
