//! A home directory of its own for each test.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{ModelServer, WireFormat};

/// Variables that a child may inherit: what programs need to start at all, and what coverage tools need to write.
const INHERITED: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE", "TMPDIR"];

/// How the names of temporary homes begin.
const PREFIX: &str = "myclaw-home-";

/// Where Linux has a file system in memory.
const MEMORY: &str = "/dev/shm";

/// The lowest number of a user that a test makes up. The number of its process is added, since test programs run at once.
const FIRST_TEST_USER: u32 = 200_000;

/// A temporary home directory, removed when dropped.
#[derive(Debug)]
pub struct TempHome {
    directory: TempDir,
    path: PathBuf,
}

impl Default for TempHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TempHome {
    /// An empty home.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    pub fn new() -> Self {
        Self::at(TempDir::with_prefix(PREFIX))
    }

    /// An empty home in memory, if the system has such a file system: for tests of thousands of runs, which would
    /// otherwise mostly wait for the disk.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    pub fn in_memory() -> Self {
        Self::at(TempDir::with_prefix_in(PREFIX, MEMORY).or_else(|_| TempDir::with_prefix(PREFIX)))
    }

    fn at(directory: io::Result<TempDir>) -> Self {
        let directory = directory.expect("a temporary directory");
        // Tests compare paths with what the program prints, which has its symlinks resolved.
        let path = directory.path().canonicalize().expect("the path of a temporary directory");
        Self { directory, path }
    }

    /// The home itself, with no symlink in its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `<home>/.myclaw`.
    pub fn state_directory(&self) -> PathBuf {
        self.path.join(".myclaw")
    }

    /// `<home>/.myclaw/myclaw.json`.
    pub fn config_path(&self) -> PathBuf {
        self.state_directory().join("myclaw.json")
    }

    /// `<home>/.myclaw/workspace`.
    pub fn workspace(&self) -> PathBuf {
        self.state_directory().join("workspace")
    }

    /// `<home>/.myclaw/sessions`.
    pub fn sessions_directory(&self) -> PathBuf {
        self.state_directory().join("sessions")
    }

    /// Writes the config file with exactly this content.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_config_text(&self, text: &str) {
        self.write(self.config_path(), text);
    }

    /// Writes the config file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_config(&self, config: &Value) {
        self.write_config_text(&format!("{config:#}\n"));
    }

    /// Writes a config with `server` as the only provider.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn use_server(&self, server: &ModelServer, format: WireFormat) {
        self.write_config(&Self::config_for(server.url(), format));
    }

    /// A config whose provider is the server at `url` (scheme, host and port).
    pub fn config_for(url: &str, format: WireFormat) -> Value {
        let (name, model, base_url) = match format {
            WireFormat::AnthropicMessages => {
                ("anthropic", "claude-sonnet-4-20250514", url.to_owned())
            }
            WireFormat::OpenAiCompletions => ("openai", "gpt-4o", format!("{url}/v1")),
            WireFormat::OpenAiResponses => ("responses", "gpt-5", format!("{url}/v1")),
            WireFormat::GoogleGenerativeAi => {
                ("google", "gemini-2.5-flash", format!("{url}/v1beta"))
            }
            WireFormat::BedrockConverse => {
                ("amazon-bedrock", "us.anthropic.claude-sonnet-4-6", url.to_owned())
            }
        };
        let profiles = json!([{"id": "primary", "apiKey": "test-key"}]);
        let mut config = json!({
            "provider": {"name": name, "model": model, "baseUrl": base_url, "authProfiles": profiles},
            // A scripted server expects the calls of the test and no others.
            "memory": {"learn": false},
        });
        if format == WireFormat::OpenAiResponses {
            config["models"]["providers"][name] =
                json!({"baseUrl": base_url, "api": "openai-responses"});
        }
        config
    }

    /// Writes a file (parents included) and returns its path; a relative `path` starts at the home.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(path);
        let parent = path.parent().expect("a file in a directory");
        fs::create_dir_all(parent)
            .unwrap_or_else(|error| panic!("making {}: {error}", parent.display()));
        fs::write(&path, content)
            .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        path
    }

    /// Writes a file into the workspace and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_in_workspace(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        self.write(self.workspace().join(path), content)
    }

    /// A command with this home and nothing from the caller's environment: no keys, no proxies, no model server of this
    /// machine. Its directory is the home.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", &self.path)
            .env("MYCLAW_HOME", &self.path)
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            // No search for model servers that happen to listen on this machine.
            .env("MYCLAW_LOCAL_SERVERS", "none")
            .current_dir(&self.path);
        command
    }

    /// The same command under a limit of one process, which then starts no thread. The limit does not count for the
    /// superuser, so the command gets a user of its own, who gets this home: another process of that user would count.
    pub fn without_further_threads(&self, command: &Command) -> Command {
        let mut limited = self.command("prlimit");
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.arg("--nproc=1");
        if rustix::process::getuid().is_root() {
            let user = (FIRST_TEST_USER + std::process::id()).to_string();
            let status = Command::new("chown").args(["-R", &user]).arg(&self.path).status();
            assert!(status.expect("chown").success());
            limited.args(["setpriv", "--reuid", &user, "--clear-groups"]);
        }
        limited.arg(command.get_program()).args(command.get_args());
        limited
    }

    /// The transcript of the terminal session with this name.
    pub fn transcript_path(&self, name: &str) -> PathBuf {
        let key = format!("agent:main:channel:cli:account:default:peer:direct:{name}");
        self.sessions_directory().join(format!("{}.jsonl", key.replace(':', "__")))
    }

    /// Every transcript, sorted by path.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.sessions_directory()) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension() == Some(OsStr::new("jsonl")))
            .collect();
        paths.sort();
        paths
    }

    /// The lines of the only transcript, the header first.
    ///
    /// # Panics
    /// When there is not exactly one, or a line is no JSON.
    pub fn only_transcript(&self) -> Vec<Value> {
        match self.transcripts().as_slice() {
            [path] => Self::read_lines(path),
            paths => panic!("expected one transcript, found {paths:?}"),
        }
    }

    /// The lines of a file of JSON lines.
    ///
    /// # Panics
    /// When it cannot be read or a line is no JSON.
    pub fn read_lines(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        text.lines()
            .enumerate()
            .map(|(number, line)| {
                serde_json::from_str(line).unwrap_or_else(|error| {
                    panic!("{}:{}: {error}: {line}", path.display(), number + 1)
                })
            })
            .collect()
    }

    /// Keeps the directory and returns its path, to examine it after a failure.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}
