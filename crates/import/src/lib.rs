//! `myclaw sessions import`: sessions from files of this and of other programs.
//!
//! Files are read a line or a message at a time, so their length does not matter. Content that a session here cannot
//! hold is counted and reported.

mod claude;
mod codex;
mod detect;
mod files;
mod left_out;
mod lines;
mod message;
mod messages;
mod native;
mod pairing;
mod pi;
mod target;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use myclaw_agent::export::{redact_about, redact_entry, redacted_note};
use myclaw_llm::Redactor;
use myclaw_session::{
    About, AboutEntry, CreateSession, Entry, FIRST_WORDS, LockWait, MetaPatch, Role, SessionKey,
    UpdatedAt, first_words,
};

use clap::ValueEnum;
use detect::Format;
use left_out::LeftOut;
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, note};
use myclaw_front::sessions::{Keys, Sessions, millis};

/// Class of the failure of a file without messages.
const EMPTY: &str = "empty";

/// A session that is being imported.
struct Import {
    session: Box<dyn CreateSession>,
    /// Rows so far.
    messages: usize,
    /// Those of the user and of the model.
    said: u64,
    /// Token usage that the answers report.
    tokens: u64,
    /// Model of the last answer, as `provider/model`.
    model: Option<String>,
    about: About,
    left_out: LeftOut,
    /// Calls that were given a result, as the file has none.
    repaired: usize,
    /// Removes keys, unless they are to stay.
    redactor: Option<Redactor>,
    /// Time of the last row, if the session is to be listed by it, in milliseconds since the Unix epoch.
    last_ts: Option<u64>,
    /// The beginning of the first message of the user.
    first_words: Option<String>,
}

/// What became of a file.
enum Imported {
    /// A new session.
    New(SessionKey),
    /// It was imported before.
    Before(SessionKey),
}

/// Makes sessions of files.
pub struct Importer<'a> {
    /// Where the sessions are stored.
    pub sessions: &'a Sessions,
    /// The format of the files.
    pub format: ImportFormat,
    /// The agent of a session, if its file names none; `None` for the default agent.
    pub agent: Option<&'a str>,
    /// Whether keys in the files are stored.
    pub keys: Keys,
}

impl Importer<'_> {
    /// Makes a session of each file, and prints the names of the sessions. `session` is the name for a single file.
    ///
    /// # Errors
    /// A file is not imported; the others are.
    pub fn import(&self, files: &[PathBuf], session: Option<&str>) -> Result<(), CliError> {
        if let (Some(name), [_, _, ..]) = (session, files) {
            return Err(CliError::usage(format!(
                "--session {name} names one session, and there are {} files; import them one by one, or let \
                 the files tell their names",
                files.len()
            )));
        }
        let (files, is_search) = files::expanded(files)?;
        let named = session.map(|name| self.key(name)).transpose()?;
        let mut printer = Printer::stdout();
        let mut failures = Vec::new();
        for path in &files {
            match self.import_file(path, named.clone()) {
                Ok(Imported::New(key)) => printer.line(self.sessions.name_of(&key))?,
                Ok(Imported::Before(key)) => {
                    let name = self.sessions.name_of(&key);
                    let path = path.display();
                    note(format_args!("`{name}`: {path} was imported before; nothing was added"));
                }
                // A directory may hold files of sessions in which nothing was said.
                Err(error) if is_search && error.class == EMPTY => note(error),
                Err(error) => failures.push(error),
            }
        }
        printer.finish()?;
        match failures.pop() {
            None => Ok(()),
            Some(only) if files.len() == 1 => Err(only),
            Some(last) => {
                for failure in &failures {
                    note(format_args!("myclaw: {failure}"));
                }
                Err(CliError::failure(format!(
                    "{last}\n{} of {} files were not imported",
                    failures.len() + 1,
                    files.len()
                )))
            }
        }
    }

    /// The key of the session that `name` means.
    ///
    /// # Errors
    /// The name cannot be that of a session.
    pub fn key(&self, name: &str) -> Result<SessionKey, CliError> {
        SessionKey::parse_for_agent(self.agent_id(), name)
            .map_err(|error| CliError::usage(error.to_string()))
    }

    fn agent_id(&self) -> &str {
        self.agent.unwrap_or(&self.sessions.agent_id)
    }

    /// Makes a session of one file. Returns its key.
    fn import_file(&self, path: &Path, named: Option<SessionKey>) -> Result<Imported, CliError> {
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        let metadata = file.metadata().map_err(|error| cannot_read(path, &error))?;
        if !metadata.is_file() {
            return Err(CliError::failure(format!("{} is not a file", path.display())));
        }
        let format = match self.format {
            ImportFormat::Auto => detect::detect(&file, path)?,
            ImportFormat::Myclaw => Format::Native,
            ImportFormat::Pi => Format::Pi,
            ImportFormat::Claude => Format::Claude,
            ImportFormat::Codex => Format::Codex,
            ImportFormat::Messages => detect::messages(&file, path)?,
        };
        let key = match named {
            Some(key) => key,
            None => {
                let key = target::key_of(path, format, self.agent_id())?;
                if matches!(format, Format::Claude | Format::Codex)
                    && self.sessions.catalog.exists(&key)
                {
                    return Ok(Imported::Before(key));
                }
                key
            }
        };
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, millis);
        let created_at = match format {
            Format::Native => native::created_at(path)?.unwrap_or(modified),
            _ => modified,
        };
        // A directory that is gone could not be worked in.
        let directory = files::directory_of(&file, path, format)?.filter(|path| path.is_dir());
        let mut import = Import {
            session: self.sessions.catalog.create(&key, created_at, directory.as_deref())?,
            messages: 0,
            said: 0,
            tokens: 0,
            model: None,
            about: About::default(),
            left_out: LeftOut::default(),
            repaired: 0,
            redactor: self.sessions.redactor(self.keys),
            last_ts: None,
            first_words: None,
        };
        match format {
            Format::Native => native::import(path, &mut import)?,
            Format::Pi => pi::import(&file, path, &mut import)?,
            Format::Claude => claude::import(&file, path, &mut import)?,
            Format::Codex => codex::import(&file, path, &mut import)?,
            Format::MessageDocument => messages::document(&file, path, modified, &mut import)?,
            Format::MessageLines => messages::lines(&file, path, modified, &mut import)?,
        }
        self.finish(import, path)?;
        Ok(Imported::New(key))
    }

    fn finish(&self, mut import: Import, path: &Path) -> Result<(), CliError> {
        if import.messages == 0 {
            let message = format!(
                "{} holds no messages{}; nothing was imported",
                path.display(),
                import.left_out
            );
            return Err(CliError::failure_of_class(EMPTY, message));
        }
        if let Some(redactor) = &mut import.redactor {
            redact_about(&mut import.about, redactor);
        }
        if import.about != About::default() {
            import.session.append(&AboutEntry::new(import.about.clone()).into())?;
        }
        let key = import.session.key().clone();
        import.session.finish()?;
        let parts = key.parts();
        let patch = MetaPatch {
            last_channel: Some(parts.channel),
            chat_type: Some(parts.peer_kind),
            model: import.model,
            add_tokens: import.tokens,
            add_messages: import.said,
            updated_at: import.last_ts.map_or(UpdatedAt::Now, UpdatedAt::At),
            extra: import
                .first_words
                .map(|words| serde_json::Map::from_iter([(FIRST_WORDS.to_owned(), words.into())])),
            ..MetaPatch::default()
        };
        self.sessions.catalog.update(&key, patch)?;
        if import.about != About::default() {
            let about = import.about;
            self.sessions
                .catalog
                .change_about(&key, LockWait::Fail, &mut |known| known.clone_from(&about))?;
        }
        let messages = match import.messages {
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        };
        let name = self.sessions.name_of(&key);
        let repaired = match import.repaired {
            0 => String::new(),
            count => format!("; calls without a result in the file: {count}"),
        };
        let redacted = match import.redactor.as_ref().map_or(0, Redactor::removed) {
            0 => String::new(),
            places => format!("; {} `--no-redact` keeps them.", redacted_note(places)),
        };
        let (path, left_out) = (path.display(), import.left_out);
        note(format_args!("`{name}`: {messages} of {path}{left_out}{repaired}{redacted}"));
        Ok(())
    }
}

impl Import {
    /// Adds rows of a message.
    fn rows(&mut self, rows: impl IntoIterator<Item = message::Row>) -> Result<(), CliError> {
        for row in rows {
            if let Some(answer) = row.answer {
                self.tokens = self.tokens.saturating_add(answer.tokens);
                self.model = answer.model.or(self.model.take());
            }
            self.entry(Entry::Message(row.row))?;
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry) -> Result<(), CliError> {
        if let Some(redactor) = &mut self.redactor {
            redact_entry(&mut entry, redactor);
        }
        if let Entry::Message(row) = &entry {
            self.messages += 1;
            self.said += u64::from(matches!(row.role, Role::User | Role::Assistant));
            if row.role == Role::User && self.first_words.is_none() {
                self.first_words = Some(first_words(&row.content));
            }
        }
        Ok(self.session.append(&entry)?)
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failure(format!("cannot read {}: {error}", path.display()))
}

/// What `sessions import` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Detected from the file's beginning.
    Auto,
    /// A transcript of this program.
    Myclaw,
    /// JSON lines of Claude Code.
    Claude,
    /// JSON lines of Codex.
    Codex,
    /// JSON lines of Pi, Clawdbot, Moltbot or OpenClaw.
    Pi,
    /// A JSON document with a list of messages, or one message per line.
    Messages,
}
