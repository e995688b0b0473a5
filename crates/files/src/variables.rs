//! Every variable of the environment that this project names itself. `docs/use/environment.md` is made from [`ALL`].

use UsedBy::{Build, Commands, Container, Program, Tests};

/// Replaces the home directory.
pub const HOME: &str = "MYCLAW_HOME";
/// Replaces the state directory.
pub const STATE_DIR: &str = "MYCLAW_STATE_DIR";
/// Replaces the path of the config file.
pub const CONFIG_PATH: &str = "MYCLAW_CONFIG_PATH";
/// Replaces `gateway.port`.
pub const GATEWAY_PORT: &str = "MYCLAW_GATEWAY_PORT";
/// The token for `attach --url`.
pub const GATEWAY_TOKEN: &str = "MYCLAW_GATEWAY_TOKEN";
/// Replaces `gateway.store`.
pub const STORE_URL: &str = "MYCLAW_STORE_URL";
/// What seals the keys of providers in that database.
pub const STORE_KEY: &str = "MYCLAW_STORE_KEY";
/// How long leases in that database are.
pub const STORE_LEASE_MS: &str = "MYCLAW_STORE_LEASE_MS";
/// A further service that passes notifications on to browsers.
pub const PUSH_SERVICE: &str = "MYCLAW_PUSH_SERVICE";
/// Where to look for model servers on this machine.
pub const LOCAL_SERVERS: &str = "MYCLAW_LOCAL_SERVERS";
/// What is logged to standard error.
pub const LOG: &str = "MYCLAW_LOG";
/// Given to the command of `speech`.
pub const VOICE: &str = "MYCLAW_VOICE";
/// Given to the command of `transcription`.
pub const AUDIO_FILE: &str = "MYCLAW_AUDIO_FILE";
/// Given to the command of `transcription`.
pub const LANGUAGE: &str = "MYCLAW_LANGUAGE";
/// Marks the processes of one command.
pub const PROCESS_TREE: &str = "MYCLAW_PROCESS_TREE";
/// Given to scripts of code mode.
pub const SCRIPT_CALLS: &str = "MYCLAW_SCRIPT_CALLS";
/// The secret that `sandbox test` tries to read.
pub const ATTEMPT_API_KEY: &str = "MYCLAW_ATTEMPT_API_KEY";

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedBy {
    /// `myclaw`.
    Program,
    /// Commands that `myclaw` starts and sets the variable for.
    Commands,
    /// `container/compose.yaml`.
    Container,
    /// The build of the binary.
    Build,
    /// The tests and benchmarks.
    Tests,
}

impl UsedBy {
    /// In the order of the page.
    pub const ALL: [Self; 5] = [Program, Commands, Container, Build, Tests];

    /// The heading of the page.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Program => "Read by the program",
            Commands => "Set for the commands that it starts",
            Container => "Read by container/compose.yaml",
            Build => "Read by the build",
            Tests => "Read by the tests and benchmarks",
        }
    }
}

/// One row of the page: a name, who reads it, and what it does, in Markdown.
#[derive(Debug)]
pub struct Variable {
    /// With the prefix.
    pub name: &'static str,
    /// Who reads it.
    pub used_by: UsedBy,
    /// What it does, with its default.
    pub text: &'static str,
}

const fn of(used_by: UsedBy, name: &'static str, text: &'static str) -> Variable {
    Variable { name, used_by, text }
}

/// All of them.
pub const ALL: &[Variable] = &[
    of(Program, HOME, "the home directory; default: that of the user. An absolute path"),
    of(Program, STATE_DIR, "the state directory; default `<home>/.myclaw`. May begin with `~`"),
    of(
        Program,
        CONFIG_PATH,
        "the config file; default `<state>/myclaw.json`. May begin with `~`; a file that is named must exist",
    ),
    of(
        Program,
        GATEWAY_PORT,
        "the port of the gateway, 1 to 65535, in place of `gateway.port`. Any other value is ignored",
    ),
    of(
        Program,
        GATEWAY_TOKEN,
        "the token of the gateway that `attach --url` connects to; `--token-file` goes first",
    ),
    of(
        Program,
        STORE_URL,
        "the database of a cluster, in place of `gateway.store`; see [cluster.md](../operate/cluster.md)",
    ),
    of(
        Program,
        STORE_KEY,
        "the key that encrypts keys of providers in that database: 64 hexadecimal digits, or `file:` and the path of a file with them. The same on all machines; without it keys are files of each machine",
    ),
    of(
        Program,
        STORE_LEASE_MS,
        "how long what a gateway of a cluster holds stays its own after its death, in milliseconds from 1000 to 600000; default `15000`. The same on all machines",
    ),
    of(
        Program,
        LOCAL_SERVERS,
        "where to look for model servers instead of the usual ports: `none`, or pairs such as `ollama=127.0.0.1:11434,lmstudio=127.0.0.1:1234`",
    ),
    of(
        Program,
        PUSH_SERVICE,
        "a push service that notifications may go to next to those of the known browsers, such as `https://push.example.org`; without a port all of its ports",
    ),
    of(
        Program,
        LOG,
        "what is logged to standard error: `error`, `warn`, `info`, `debug`, `trace`, `off`, or a list of `target=level`; see [logging.md](../operate/logging.md)",
    ),
    of(Commands, VOICE, "the voice, for the command of `speech`; see [speech.md](speech.md)"),
    of(Commands, AUDIO_FILE, "the path of the audio, for the command of `transcription`"),
    of(Commands, LANGUAGE, "the language, for the command of `transcription`"),
    of(
        Commands,
        PROCESS_TREE,
        "marks all processes of one command, so that all of them are found when it ends",
    ),
    of(
        Commands,
        SCRIPT_CALLS,
        "the address at which a script of code mode makes its calls; `myclaw mcp call` reads it",
    ),
    of(Commands, ATTEMPT_API_KEY, "a made-up secret that the attempts of `sandbox test` look for"),
    of(Container, "MYCLAW_PROGRAM", "the absolute path of the program on the machine"),
    of(Container, "MYCLAW_DIRECTORY", "the directory that is the home in the container"),
    of(Build, "MYCLAW_PLAIN_LINK", "set to anything: no options for the linker"),
    of(Build, "MYCLAW_LINK_MAP", "a file for the linker's map; `scripts/build-release` reads it"),
    of(Build, "MYCLAW_LINK_ORDER", "a file that names the functions which come first, one a line"),
    of(
        Tests,
        "MYCLAW_KILLS",
        "kills of each test that kills processes at random; `scripts/test` sets 100",
    ),
    of(Tests, "MYCLAW_KILL_SEED", "the seed of what is random in them; a failure prints it"),
    of(Tests, "MYCLAW_BACKUPS", "backups of a gateway that works, 6 by default"),
    of(Tests, "MYCLAW_BACKUP_KILLS", "kills of a restore, 12 by default"),
    of(Tests, "MYCLAW_GATEWAY_KILLS", "kills of a gateway with channels"),
    of(Tests, "MYCLAW_CLUSTER_FAULTS", "faults of three gateways on one PostgreSQL database"),
    of(Tests, "MYCLAW_HOST_KILLS", "kills of a host"),
    of(Tests, "MYCLAW_MCP_KILLS", "kills of a run that uses an MCP server"),
    of(Tests, "MYCLAW_SUBAGENT_KILLS", "kills of a gateway with sub-agents"),
    of(Tests, "MYCLAW_DISCORD_KILLS", "kills of a gateway with Discord"),
    of(Tests, "MYCLAW_IRC_KILLS", "kills of a gateway with IRC"),
    of(Tests, "MYCLAW_SLACK_KILLS", "kills of a gateway with Slack"),
    of(Tests, "MYCLAW_XMPP_KILLS", "kills of a gateway with XMPP"),
    of(Tests, "MYCLAW_CASES", "random schedules of the engine's test of steering"),
    of(Tests, "MYCLAW_TURNS", "turns of the engine's test of long sessions"),
    of(
        Tests,
        "MYCLAW_SCREENSHOTS",
        "a directory for pictures of the page as the browser tests see it",
    ),
    of(
        Tests,
        "MYCLAW_WRITE_PAGES",
        "set to anything: the tests of made pages write them; `scripts/make-pages` sets it",
    ),
    of(Tests, "MYCLAW_WEIGHTS", "a directory with the embedding model, for its benchmark"),
    of(
        Tests,
        "MYCLAW_AIMOCK",
        "the package `@copilotkit/aimock`. `scripts/test` sets this and the following variables",
    ),
    of(Tests, "MYCLAW_ACP_SDK", "the package `@agentclientprotocol/sdk`"),
    of(Tests, "MYCLAW_ACP_PYTHON", "a Python with `agent-client-protocol`"),
    of(Tests, "MYCLAW_AGENT_BROWSER", "the program `agent-browser`"),
    of(Tests, "MYCLAW_PYRIGHT", "the program `pyright-langserver`"),
    of(Tests, "MYCLAW_AIOSMTPD_PYTHON", "a Python with `aiosmtpd`"),
    of(Tests, "MYCLAW_AJV", "the package `ajv`"),
    of(Tests, "MYCLAW_AXE", "the package `axe-core`"),
    of(Tests, "MYCLAW_INSPIRCD", "a directory with InspIRCd"),
    of(Tests, "MYCLAW_PGBOUNCER", "a directory with PgBouncer and its libraries"),
    of(Tests, "MYCLAW_MCP_PYTHON", "a Python with the SDK `mcp`"),
    of(Tests, "MYCLAW_MCP_GRAFANA", "Grafana's MCP server, made with the SDK for Go"),
    of(Tests, "MYCLAW_MCP_CONFORMANCE", "the package `@modelcontextprotocol/conformance`"),
    of(
        Tests,
        "MYCLAW_MCP_SERVERS",
        "the packages `@modelcontextprotocol/…`, servers and clients for tests",
    ),
    of(Tests, "MYCLAW_MINILM_PYTHON", "a Python with a MiniLM model"),
    of(Tests, "MYCLAW_MOTO_PYTHON", "a Python with `moto`, whose server has the protocol of S3"),
    of(
        Tests,
        "MYCLAW_NIO_PYTHON",
        "a Python with `matrix-nio[e2e]`; `scripts/test-matrix-encryption` sets it",
    ),
    of(Tests, "MYCLAW_OPENAI_NODE", "the package `openai` from npm"),
    of(Tests, "MYCLAW_OPENAI_PYTHON", "a Python with `openai`"),
    of(Tests, "MYCLAW_PLAYWRIGHT", "the package `playwright-core`"),
    of(
        Tests,
        "MYCLAW_POSTGRES",
        "a directory with PostgreSQL: `bin/initdb`, `bin/pg_ctl` and the rest",
    ),
    of(Tests, "MYCLAW_SLIXMPP_PYTHON", "a Python with `slixmpp`"),
    of(Tests, "MYCLAW_SYNAPSE_PYTHON", "a Python with Synapse"),
    of(Tests, "MYCLAW_TELEGRAM_TEST_API", "the package `telegram-test-api`"),
    of(
        Tests,
        "MYCLAW_SESSION_TEST_DIRECTORY",
        "set by the session's tests for the processes that they start",
    ),
    of(
        Tests,
        "MYCLAW_SESSION_TEST_JOB",
        "set by the session's tests for the processes that they start",
    ),
    of(Tests, "MYCLAW_STORE_OF_VICTIM", "set by the store's tests for the process that they kill"),
    of(Tests, "MYCLAW_TEST_ALONE", "set by the library's test for the process that it starts"),
    of(
        Tests,
        "MYCLAW_TEST_PATCHED_DIRECTORY",
        "set by the tools' tests for the process that they kill",
    ),
];
