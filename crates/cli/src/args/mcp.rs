//! The command line of `myclaw mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use myclaw_agent::mcp::ImportSource;
use myclaw_protocols::McpServeArgs;

use super::help;

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// What can be done with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to the config file, show its tools and approve them
    #[command(long_about = help::MCP_ADD, after_long_help = help::MCP_ADD_EXAMPLES)]
    Add(AddServerArgs),
    /// Show how the tools of a server differ from those that were approved, and approve them
    #[command(long_about = help::MCP_APPROVE, after_long_help = help::MCP_APPROVE_EXAMPLES)]
    Approve {
        /// Name of the server; the file `.mcp.json` of the current project without it
        name: Option<String>,
        /// Approve without a question
        #[arg(short, long)]
        yes: bool,
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
    },
    /// List the servers, and what was approved of them; none is started
    #[command(after_long_help = help::MCP_LIST_EXAMPLES)]
    List {
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
        /// Print JSON, one server per line
        #[arg(long)]
        json: bool,
    },
    /// Start a server, or all, and ask for the tools; the exit code is 1 if one fails
    #[command(after_long_help = help::MCP_TEST_EXAMPLES)]
    Test {
        /// Name of the server; all that are enabled without it
        name: Option<String>,
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Show the approved tools of a server
    #[command(after_long_help = help::MCP_TOOLS_EXAMPLES)]
    Tools {
        /// Name of the server
        name: String,
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
        /// Print JSON, one tool per line
        #[arg(long)]
        json: bool,
    },
    /// Log in at a server with an address
    #[command(long_about = help::MCP_LOGIN, after_long_help = help::MCP_LOGIN_EXAMPLES)]
    Login {
        /// Name of the server
        name: String,
        /// What the login should permit, in place of what the server asks for
        #[arg(long)]
        scope: Option<String>,
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Forget the login at a server
    #[command(after_long_help = help::MCP_LOGOUT_EXAMPLES)]
    Logout {
        /// Name of the server
        name: String,
        /// Agent whose servers are meant, by its id in the config file
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Show what a server has printed to its errors
    #[command(after_long_help = help::MCP_LOGS_EXAMPLES)]
    Logs {
        /// Name of the server
        name: String,
        /// Lines to show, from the end
        #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
        lines: usize,
    },
    /// Remove a server from the config file, with what was approved of it
    #[command(after_long_help = help::MCP_REMOVE_EXAMPLES)]
    Remove {
        /// Name of the server
        name: String,
    },
    /// Add the servers of other programs
    #[command(long_about = help::MCP_IMPORT, after_long_help = help::MCP_IMPORT_EXAMPLES)]
    Import(ImportServersArgs),
    /// Call a tool from a script of code mode, in which the agent runs this
    #[command(long_about = help::MCP_CALL, after_long_help = help::MCP_CALL_EXAMPLES)]
    Call {
        /// Name of the server
        server: String,
        /// Name of its tool
        tool: String,
        /// The arguments, as a JSON object
        #[arg(default_value = "{}", value_name = "JSON")]
        arguments: String,
    },
    /// Be a server: other agents ask this one, and read its sessions and memory, over standard input and output
    #[command(long_about = help::MCP_SERVE, after_long_help = help::MCP_SERVE_EXAMPLES)]
    Serve(McpServeArgs),
}

/// Arguments of `mcp add`.
#[derive(Debug, Args)]
pub(crate) struct AddServerArgs {
    /// Name of the server: letters a to z, digits, `-` and `_`
    pub(crate) name: String,
    /// Its address, in place of a program
    #[arg(long, conflicts_with_all = ["env", "cwd", "network", "allow_host", "read", "write", "no_sandbox", "command"])]
    pub(crate) url: Option<String>,
    /// Header of each request to its address, as "NAME: VALUE"; may be repeated
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Variable for the server, as NAME=VALUE, or NAME for one that is passed on; may be repeated
    #[arg(short, long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Directory in which it starts, which it may change; the default is one of its own
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// What it may reach over the network
    #[arg(long, value_enum)]
    pub(crate) network: Option<ServerNetwork>,
    /// Host that it may reach; may be repeated
    #[arg(long, value_name = "HOST", conflicts_with = "network")]
    pub(crate) allow_host: Vec<String>,
    /// Path that it may read; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<String>,
    /// Path that it may change; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<String>,
    /// Run it without a sandbox, with all your rights
    #[arg(long, conflicts_with_all = ["network", "allow_host", "read", "write"])]
    pub(crate) no_sandbox: bool,
    /// Approve its tools without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What a server may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerNetwork {
    /// Nothing
    None,
    /// Every host
    Open,
}

/// Arguments of `mcp import`.
#[derive(Debug, Args)]
pub(crate) struct ImportServersArgs {
    /// Program whose servers are added; all that are found without it
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) from: Option<ServerSource>,
    /// File of that program, if it is not in its usual place
    #[arg(requires = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Only show what would be added
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A program whose servers can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerSource {
    /// Claude Code, and `.mcp.json` of the project
    ClaudeCode,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// goose
    Goose,
    /// OpenClaw
    Openclaw,
}

impl ServerSource {
    /// The same in the words of the agent crate.
    pub(crate) fn source(self) -> ImportSource {
        match self {
            Self::ClaudeCode => ImportSource::ClaudeCode,
            Self::Codex => ImportSource::Codex,
            Self::Cursor => ImportSource::Cursor,
            Self::Vscode => ImportSource::VsCode,
            Self::Goose => ImportSource::Goose,
            Self::Openclaw => ImportSource::OpenClaw,
        }
    }
}
