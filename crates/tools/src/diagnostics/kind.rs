//! The language servers that are known: their programs, and what keeps them from running programs of a project.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use myclaw_files::canonical;
use serde_json::{Value, json};

/// Most bytes of a file of a project that is looked at.
const MAX_LOOKED_AT: u64 = 64 << 10;

/// A language server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Rust,
    Python,
    Go,
    TypeScript,
}

/// What a server may do with the programs that a project names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProjectPrograms {
    /// It runs them: build scripts, macros, a compiler or a library of the project.
    Run,
    /// It runs none. It is not started where only that would prevent it.
    Refused,
}

impl Kind {
    /// The server for a file, and the name that the protocol gives the language.
    pub(super) fn of(path: &Path) -> Option<(Self, &'static str)> {
        Some(match path.extension()?.to_str()? {
            "rs" => (Self::Rust, "rust"),
            "py" | "pyi" => (Self::Python, "python"),
            "go" => (Self::Go, "go"),
            "ts" | "mts" | "cts" => (Self::TypeScript, "typescript"),
            "tsx" => (Self::TypeScript, "typescriptreact"),
            "js" | "mjs" | "cjs" => (Self::TypeScript, "javascript"),
            "jsx" => (Self::TypeScript, "javascriptreact"),
            _ => return None,
        })
    }

    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Rust => "rust-analyzer",
            Self::Python => "pyright-langserver",
            Self::Go => "gopls",
            Self::TypeScript => "typescript-language-server",
        }
    }

    pub(super) fn arguments(self) -> Vec<OsString> {
        match self {
            Self::Rust | Self::Go => Vec::new(),
            Self::Python | Self::TypeScript => vec!["--stdio".into()],
        }
    }

    /// The directory that the server works in: the outermost one below `limit` that is a project of its language.
    pub(super) fn root(self, file: &Path, limit: &Path) -> PathBuf {
        let markers: &[&str] = match self {
            Self::Rust => &["Cargo.toml"],
            Self::Go => &["go.work", "go.mod"],
            Self::Python | Self::TypeScript => &[],
        };
        let marked = |at: &&Path| markers.iter().any(|name| at.join(name).is_file());
        let above = file.ancestors().skip(1).take_while(|at| at.starts_with(limit));
        above.filter(marked).last().unwrap_or(limit).to_owned()
    }

    /// Whether it says when it has read the project; until then it knows only a part of the errors.
    pub(super) fn says_when_ready(self) -> bool {
        self == Self::Rust
    }

    /// Variables under which it starts no program of a project and loads nothing from the network.
    pub(super) fn variables(
        self,
        programs: ProjectPrograms,
    ) -> &'static [(&'static str, &'static str)] {
        match (self, programs) {
            (_, ProjectPrograms::Run) | (Self::Python | Self::TypeScript, _) => &[],
            (Self::Rust, _) => &[("CARGO_NET_OFFLINE", "true"), ("RUSTUP_AUTO_INSTALL", "0")],
            // Its C compiler takes flags from the sources, and git programs from the repository.
            (Self::Go, _) => &[
                ("GOTOOLCHAIN", "local"),
                ("GOFLAGS", "-buildvcs=false"),
                ("GOPROXY", "off"),
                ("CGO_ENABLED", "0"),
                ("GOPACKAGESDRIVER", "off"),
            ],
        }
    }

    /// The options of the request that begins the work. `None` if the server would run a part of the project.
    pub(super) fn options(self, programs: ProjectPrograms, server: Option<&Path>) -> Option<Value> {
        let runs = programs == ProjectPrograms::Run;
        Some(match self {
            Self::Rust => json!({
                "cargo": {"buildScripts": {"enable": runs}},
                "procMacro": {"enable": runs},
                "checkOnSave": false,
                "cachePriming": {"enable": false},
            }),
            Self::Go | Self::Python => json!({}),
            Self::TypeScript => {
                // It would take the compiler of the project before its own.
                let own = server.and_then(compiler_next_to);
                let own = match (runs, own) {
                    (true, _) => Value::Null,
                    (false, Some(own)) => json!({"path": own}),
                    (false, None) => return None,
                };
                json!({"disableAutomaticTypingAcquisition": !runs, "tsserver": own})
            }
        })
    }

    /// Why the server would run programs that the project names, whatever its options are. Looks at files.
    pub(super) fn obstacle(self, file: &Path, limit: &Path) -> Option<PathBuf> {
        if self != Self::Rust {
            return None;
        }
        let above = file.ancestors().skip(1).take_while(|at| at.starts_with(limit));
        above.map(names_programs).find_map(|found| found)
    }
}

/// The file of a directory by which cargo, rustup or rust-analyzer would start programs of the project.
fn names_programs(directory: &Path) -> Option<PathBuf> {
    let always =
        [".cargo/config.toml", ".cargo/config", "rust-analyzer.toml", ".rust-analyzer.toml"];
    let with_paths = ["rust-toolchain.toml", "rust-toolchain"];
    let always = always.map(|name| (name, &[""][..]));
    let with_paths = with_paths.map(|name| (name, &["path", "/"][..]));
    // A package can say that another directory is the root, which is not looked at then.
    let elsewhere =
        ("Cargo.toml", &["workspace = \"", "workspace = '", "workspace=\"", "workspace='"][..]);
    always.into_iter().chain(with_paths).chain([elsewhere]).find_map(|(name, words)| {
        let path = directory.join(name);
        let metadata = path.symlink_metadata().ok()?;
        let is_small_file = metadata.is_file() && metadata.len() <= MAX_LOOKED_AT;
        let text = if is_small_file { fs::read_to_string(&path).ok() } else { None };
        let speaks = text.is_none_or(|text| words.iter().any(|word| text.contains(word)));
        speaks.then_some(path)
    })
}

/// The library of TypeScript that is installed together with the server.
fn compiler_next_to(server: &Path) -> Option<PathBuf> {
    let real = canonical(server).ok()?;
    let libraries =
        real.ancestors().filter(|at| at.file_name().is_some_and(|name| name == "node_modules"));
    libraries.map(|at| at.join("typescript/lib/tsserver.js")).find(|path| path.is_file())
}

#[cfg(test)]
mod tests;
