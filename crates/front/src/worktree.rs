//! `--worktree`: a chat or a run in a git worktree of its own.

use myclaw_agent::worktrees::{Prepared, RemoveUnused, Repository};

use crate::args::{SessionArgs, WorktreeArgs};
use crate::exit::CliError;
use crate::print::note;
use crate::runtime;
use crate::start::Wanted;
use crate::terminal::escaped;

/// The worktree of a program.
pub struct UsedWorktree {
    repository: Repository,
    name: String,
    unused: RemoveUnused,
}

/// Where a program works.
pub struct Entered {
    /// The worktree, if it was asked for.
    pub worktree: Option<UsedWorktree>,
    /// The options of the session, with the directory.
    pub session: SessionArgs,
    /// The session, if none is named.
    pub wanted: Wanted,
}

/// Makes the worktree that is asked for, or takes it up, and says so. To be called before a runtime begins.
///
/// # Errors
/// There is no repository, or git refuses.
pub fn enter(
    args: &WorktreeArgs,
    session: &SessionArgs,
    wanted: Wanted,
) -> Result<Entered, CliError> {
    let mut session = session.clone();
    let Some(name) = &args.worktree else {
        return Ok(Entered { worktree: None, session, wanted });
    };
    let name = Some(name.as_str()).filter(|name| !name.is_empty());
    let directory = match &session.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir()
            .map_err(|error| CliError::failure(format!("no current directory: {error}")))?,
    };
    let (repository, prepared) = runtime::block_on(async {
        let repository = Repository::of(&directory).await?;
        let prepared = repository.prepare(name).await?;
        Ok::<_, CliError>((repository, prepared))
    })??;
    let Prepared { worktree, directory, is_new, notes } = prepared;
    let begins = if is_new { "new worktree" } else { "worktree" };
    note(format_args!(
        "myclaw: {begins} {}: {}, branch {}",
        worktree.name,
        escaped(&worktree.path.display().to_string()),
        worktree.branch
    ));
    for line in notes {
        note(format_args!("myclaw: {}", escaped(&line)));
    }
    session.directory = Some(directory);
    // What was begun in it continues.
    let wanted = if is_new { wanted } else { Wanted::Last };
    // One with a name is for more than this time.
    let unused = if name.is_some() { RemoveUnused::No } else { RemoveUnused::Yes };
    let worktree = Some(UsedWorktree { repository, name: worktree.name, unused });
    Ok(Entered { worktree, session, wanted })
}

impl UsedWorktree {
    /// Says what is in the worktree at the end, and removes it if nothing was done in it.
    pub async fn finish(&self) {
        match self.repository.finish(&self.name, self.unused).await {
            Ok(line) => note(format_args!("myclaw: {}", escaped(&line))),
            Err(error) => note(format_args!("myclaw: {}", escaped(&error.message))),
        }
    }
}
