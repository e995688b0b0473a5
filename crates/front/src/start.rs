//! Where a chat or a run begins: the directory that its tools work in, and the session.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_agent::{Home, MAIN_SESSION, SessionConfig};
use myclaw_config::{Config, ProjectStart};
use myclaw_session::{CLI_CHANNEL, EntryId, SessionKey};

use crate::args::{ContinueArgs, SessionArgs};
use crate::exit::CliError;
use crate::home::{begin_to_write, refuse_shared, session_with};
use crate::resume::shown_directory;
use crate::sessions::Sessions;

/// Letters and digits that tell sessions of a directory apart.
const NAME_DIGITS: usize = 6;

/// The session that is asked for, if none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// What the config says: in a project a new one, else the main session.
    Usual,
    /// The last one of this place.
    Last,
}

impl From<ContinueArgs> for Wanted {
    fn from(args: ContinueArgs) -> Self {
        if args.continue_last { Self::Last } else { Self::Usual }
    }
}

/// A config with its session, and how it came to it.
#[derive(Debug)]
pub struct Start {
    /// The config.
    pub config: SessionConfig,
    /// Whether the session begins now although the user named none.
    is_new: bool,
    /// Whether `--continue` found no session.
    found_none: bool,
}

impl Start {
    /// Decides, and begins to write in the state directory.
    ///
    /// # Errors
    /// An option cannot be used; the sessions cannot be read, or only gateways work on them.
    pub fn find(
        home: Home,
        config: Arc<Config>,
        args: &SessionArgs,
        wanted: Wanted,
    ) -> Result<Self, CliError> {
        let start = Self::find_in(home, config, args, wanted)?;
        refuse_shared(&start.config)?;
        begin_to_write(&start.config.home)?;
        Ok(start)
    }

    /// The same without writing.
    ///
    /// # Errors
    /// An option cannot be used, or the sessions cannot be read.
    pub fn find_in(
        home: Home,
        config: Arc<Config>,
        args: &SessionArgs,
        wanted: Wanted,
    ) -> Result<Self, CliError> {
        let config = session_with(home, config, &args.options())?;
        let Self { config, is_new, found_none } = Self::place(config, args, wanted)?;
        Ok(Self { config: config.in_mode(args.mode)?, is_new, found_none })
    }

    fn place(
        mut config: SessionConfig,
        args: &SessionArgs,
        wanted: Wanted,
    ) -> Result<Self, CliError> {
        let sessions = Sessions::of_agent(&config);
        let exists = sessions.catalog.exists(&config.session_key);
        if let Some(name) = &args.session {
            if args.directory.is_none() && !exists && name != MAIN_SESSION && !config.is_main() {
                config.directory = config.project_here();
            }
            return Ok(Self { config, is_new: false, found_none: false });
        }
        if args.directory.is_none() {
            config.directory = config.project_here();
        }
        let project = config.project_root().and_then(|_| config.directory.clone());
        let start = config.config.project.start;
        let continues =
            wanted == Wanted::Last || project.is_some() && start == ProjectStart::Continue;
        let last = match continues {
            true => last_session(&sessions, project.as_deref())?,
            false => None,
        };
        let found_none = wanted == Wanted::Last && last.is_none();
        let key = match (last, &project) {
            (Some(last), _) => Some(last),
            (None, Some(directory)) => Some(new_session(&sessions, directory)?),
            (None, None) => None,
        };
        let is_new = key.as_ref().is_some_and(|key| !sessions.catalog.exists(key));
        let config = match key {
            Some(key) => {
                let named = config.directory.clone().filter(|_| args.directory.is_some());
                let mut config = config.for_session(key);
                config.directory = named.or(config.directory);
                config
            }
            None => config,
        };
        Ok(Self { config, is_new, found_none })
    }

    /// What the user is told about the place and the session; `None` in the agent's workspace.
    pub fn line(&self) -> Option<String> {
        let Self { config, is_new, found_none } = self;
        let none = if *found_none { "there is no session here yet; " } else { "" };
        if config.project_root().is_none() {
            return found_none.then(|| format!("{none}the main session begins"));
        }
        let directory = config.directory.as_deref()?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let directory = shown_directory(directory, home.as_deref());
        let name = Sessions::of_agent(config).name_of(&config.session_key);
        let session = match is_new {
            true => {
                format!("{none}new session `{name}`; -c continues the last one, --resume lists all")
            }
            false => format!("session `{name}`"),
        };
        Some(format!("project {directory}: {session}"))
    }
}

/// The latest session on the terminal that works in `directory`, or in the agent's workspace.
fn last_session(
    sessions: &Sessions,
    directory: Option<&Path>,
) -> Result<Option<SessionKey>, CliError> {
    let mut last = None;
    sessions.each(|session| {
        let parts = session.key.parts();
        let fits = parts.channel == CLI_CHANNEL
            && parts.agent_id == sessions.agent_id
            && session.entry.directory.as_deref().map(Path::new) == directory
            && sessions.catalog.exists(&session.key);
        Ok(match fits {
            true => {
                last = Some(session.key);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        })
    })?;
    Ok(last)
}

/// A session that does not exist yet, named after the directory.
fn new_session(sessions: &Sessions, directory: &Path) -> Result<SessionKey, CliError> {
    /// Most characters of the directory's name in that of the session.
    const MOST_CHARS: usize = 40;
    let name = directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name: String = name
        .chars()
        .map(|char| if char.is_alphanumeric() { char } else { '-' })
        .take(MOST_CHARS)
        .collect();
    let name = match name.trim_matches('-') {
        "" => "project",
        name => name,
    };
    loop {
        // The end of an id is random.
        let id = EntryId::generate().to_string();
        let end = id.len().saturating_sub(NAME_DIGITS);
        let name = format!("{name}-{}", &id[end..]);
        let key = SessionKey::parse_for_agent(&sessions.agent_id, &name)
            .map_err(|error| CliError::usage(error.to_string()))?;
        if !sessions.catalog.exists(&key) {
            return Ok(key);
        }
    }
}
