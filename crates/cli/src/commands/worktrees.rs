//! `myclaw worktrees`: the git worktrees in which sessions work.

use std::ops::ControlFlow;
use std::path::Path;

use myclaw_agent::worktrees::{Repository, Worktree};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, columns};
use myclaw_front::runtime;
use myclaw_front::sessions::Sessions;
use serde_json::json;

use crate::args::{WhichRepository, WorktreesArgs, WorktreesCommand};

/// Runs one of the commands.
pub(crate) fn run(args: &WorktreesArgs) -> Result<(), CliError> {
    match &args.command {
        WorktreesCommand::List { whose, json } => list(whose, *json),
        WorktreesCommand::Merge { name, whose } => tell(runtime::block_on(async {
            let repository = free(whose, name).await?;
            Ok::<_, CliError>(repository.merge(name).await?)
        })??),
        WorktreesCommand::Drop { name, whose } => tell(runtime::block_on(async {
            let repository = free(whose, name).await?;
            Ok::<_, CliError>(repository.drop_worktree(name).await?)
        })??),
    }
}

fn list(whose: &WhichRepository, as_json: bool) -> Result<(), CliError> {
    let found =
        runtime::block_on(async { Ok::<_, CliError>(repository(whose).await?.list().await?) })??;
    let mut printer = Printer::stdout();
    if as_json {
        for one in &found {
            printer.json(&json!({
                "name": one.name, "path": one.path, "branch": one.branch, "changed": one.changed,
                "ahead": one.ahead, "obstacle": one.obstacle,
            }))?;
        }
        return printer.finish();
    }
    if found.is_empty() {
        printer.line("no worktrees; `myclaw --worktree` works in one")?;
    }
    let row = |one: &Worktree| {
        let state = match &one.obstacle {
            Some(obstacle) => obstacle.clone(),
            None => {
                let commits = if one.ahead == 1 { "commit" } else { "commits" };
                format!("{} changed, {} {commits}", one.changed, one.ahead)
            }
        };
        vec![one.name.clone(), state, one.path.display().to_string()]
    };
    printer.safe_lines(columns(&found.iter().map(row).collect::<Vec<_>>()))?;
    printer.finish()
}

async fn repository(whose: &WhichRepository) -> Result<Repository, CliError> {
    let directory = match &whose.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir()
            .map_err(|error| CliError::failure(format!("no current directory: {error}")))?,
    };
    Ok(Repository::of(&directory).await?)
}

/// The repository, if no session works in the worktree at this moment.
async fn free(whose: &WhichRepository, name: &str) -> Result<Repository, CliError> {
    let repository = repository(whose).await?;
    let all = repository.list().await?;
    let Some(worktree) = all.iter().find(|one| one.name == name) else { return Ok(repository) };
    let home = find_home()?;
    let sessions = Sessions::of(home.clone());
    let mut working = None;
    sessions.each(|session| {
        let directory = session.entry.directory.as_deref().map(Path::new);
        let is_there = directory.is_some_and(|directory| directory.starts_with(&worktree.path));
        if is_there && home.sessions().is_in_use(&session.key)? {
            working = Some(sessions.name_of(&session.key));
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    match working {
        None => Ok(repository),
        Some(session) => Err(CliError::failure_of_class(
            "busy",
            format!("the session `{session}` works in the worktree {name}; stop it first"),
        )),
    }
}

fn tell(lines: Vec<String>) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.safe_lines(lines)?;
    printer.finish()
}
