//! The command line of `myclaw sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use myclaw_front::args::{Age, CompactArgs, ExportFormat, UndoArgs, WhichSessions};
use myclaw_import::ImportFormat;

use super::bounds::most_shown;
use super::help;

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// The commands for sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the latest first
    #[command(after_long_help = help::SESSIONS_LIST_EXAMPLES)]
    List {
        /// Which.
        #[command(flatten)]
        which: WhichSessions,
        /// Only those with this text in a message
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only the N latest
        #[arg(long, value_name = "N", value_parser = most_shown)]
        limit: Option<usize>,
        /// Print JSON, one session per line
        #[arg(long)]
        json: bool,
    },
    /// Watch the sessions that work on this machine, answer what they ask, and stop them
    #[command(long_about = help::SESSIONS_WATCH, after_long_help = help::SESSIONS_WATCH_EXAMPLES)]
    Watch {
        /// Print JSON, one object for each change
        #[arg(long)]
        json: bool,
        /// Print what works now, and end
        #[arg(long)]
        once: bool,
    },
    /// Stop what a session does, in whichever program of this machine that is
    #[command(after_long_help = help::SESSIONS_STOP_EXAMPLES)]
    Stop {
        /// Name or key, as `sessions list` prints it
        name: String,
    },
    /// Answer what a session asks, in whichever program of this machine that is
    #[command(after_long_help = help::SESSIONS_ANSWER_EXAMPLES)]
    Answer {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// The answer to its oldest question: yes, always, no, or no with a reason
        #[arg(required = true, value_name = "ANSWER")]
        answer: Vec<String>,
    },
    /// Find messages by their text, the newest first
    #[command(after_long_help = help::SESSIONS_SEARCH_EXAMPLES)]
    Search {
        /// Text to find
        text: String,
        /// TEXT is a regular expression
        #[arg(long)]
        regex: bool,
        /// Ignore upper and lower case
        #[arg(short, long)]
        ignore_case: bool,
        /// Which.
        #[command(flatten)]
        which: WhichSessions,
        /// Print at most N messages
        #[arg(long, value_name = "N", default_value = "50", value_parser = most_shown)]
        limit: usize,
        /// Print JSON, one message per line
        #[arg(long)]
        json: bool,
    },
    /// Print the messages of a session
    #[command(after_long_help = help::SESSIONS_SHOW_EXAMPLES)]
    Show {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// Also messages that a summary has replaced for the model
        #[arg(long)]
        all: bool,
        /// Print JSON, one message per line
        #[arg(long)]
        json: bool,
        /// Only the last N messages
        #[arg(long, value_name = "N", value_parser = most_shown)]
        last: Option<usize>,
    },
    /// Begin a session that continues another one after a given message
    #[command(after_long_help = help::SESSIONS_FORK_EXAMPLES)]
    Fork {
        /// Name or key of the session to branch off
        name: String,
        /// Name of the new session
        new_name: String,
        /// Id of the last message that both have, as `sessions show` prints it; the default is the latest message
        #[arg(long, value_name = "ID")]
        at: Option<String>,
    },
    /// Give a session a title
    #[command(visible_alias = "name")]
    #[command(after_long_help = help::SESSIONS_TITLE_EXAMPLES)]
    Title {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// The title; without one, the title is removed
        title: Option<String>,
    },
    /// Give a session labels to find it by
    #[command(after_long_help = help::SESSIONS_LABEL_EXAMPLES)]
    Label {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// Labels
        #[arg(required = true)]
        labels: Vec<String>,
        /// Remove these labels instead
        #[arg(long)]
        remove: bool,
    },
    /// Replace the older messages with a summary in what the model is sent
    #[command(long_about = help::SESSIONS_COMPACT, after_long_help = help::SESSIONS_COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Undo the file changes of a turn
    #[command(long_about = help::SESSIONS_UNDO, after_long_help = help::SESSIONS_UNDO_EXAMPLES)]
    Undo(UndoArgs),
    /// Write a session to a file or to standard output
    #[command(after_long_help = help::SESSIONS_EXPORT_EXAMPLES)]
    Export {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// Format to write; without it, the end of the file's name says it (.md, .html), else it is jsonl
        #[arg(short, long, value_enum)]
        format: Option<ExportFormat>,
        /// File to write; it must not exist yet. Without it, or with `-`, standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Keep keys in the document, for your own use; without this, what the log leaves out is left out
        #[arg(long)]
        no_redact: bool,
    },
    /// Import sessions from files of this and of other programs
    #[command(after_long_help = help::SESSIONS_IMPORT_EXAMPLES)]
    Import {
        /// Files to read, each a session, or directories in which all such files are read
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Their format
        #[arg(short, long, value_enum, default_value_t = ImportFormat::Auto)]
        format: ImportFormat,
        /// Name of the session, for one file; the default comes from the file
        #[arg(short, long, value_name = "NAME")]
        session: Option<String>,
        /// Agent of the imported sessions, if the file does not name one
        #[arg(short, long, value_name = "ID")]
        agent: Option<String>,
        /// Keep keys that stand in the files; without this, what the log leaves out is left out
        #[arg(long)]
        no_redact: bool,
    },
    /// Delete a session with its transcript
    #[command(after_long_help = help::SESSIONS_DELETE_EXAMPLES)]
    Delete {
        /// Name or key, as `sessions list` prints it
        name: String,
        /// Confirm; without this nothing is deleted
        #[arg(long)]
        yes: bool,
    },
    /// Remove sessions that were not used for some time
    #[command(after_long_help = help::SESSIONS_PRUNE_EXAMPLES)]
    Prune {
        /// Age from which on a session is removed, such as 12h, 30d or 8w
        #[arg(long, value_name = "AGE")]
        older_than: Age,
        /// Delete their transcripts too, not only their entries in the index
        #[arg(long)]
        with_transcripts: bool,
        /// Only list the sessions that would be removed
        #[arg(long)]
        dry_run: bool,
    },
}
