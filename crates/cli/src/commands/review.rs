//! `myclaw review`: findings about changes, for people and for continuous integration.
//!
//! The program collects the changes itself, so the agent needs no commands: it reads files and nothing else.

use std::path::{Path, PathBuf};

use myclaw_agent::worktrees::Repository;
use myclaw_engine::Mode;
use myclaw_front::args::{ContinueArgs, ImageArgs, WorktreeArgs};
use myclaw_front::exit::CliError;
use myclaw_front::gateway::WhichGateway;
use myclaw_front::print::{Printer, note};
use myclaw_front::requests;
use myclaw_front::runtime;
use serde_json::json;

use super::run::{AnswerForm, Asked, Names, run_asked};
use crate::args::{ReviewArgs, RunArgs};

mod pull_request;

use pull_request::pull_request;

/// The form of the findings.
const FINDINGS: &str = include_str!("review/findings.json");
/// Most bytes of the changes that the model reads.
const MOST_CHANGES: usize = 400_000;
/// Branches from which others leave, in the order in which they are looked for.
const MAIN_BRANCHES: [&str; 6] =
    ["origin/HEAD", "main", "master", "trunk", "origin/main", "origin/master"];

/// Reviews changes and prints the findings.
///
/// # Errors
/// The changes cannot be read, or there is no answer.
pub(crate) fn run(args: &ReviewArgs) -> Result<(), CliError> {
    let place = args.session.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let (what, changes) = changes(args, &place)?;
    if changes.trim().is_empty() {
        note(format_args!("myclaw: {what}: there are no changes"));
        if args.json {
            let mut printer = Printer::stdout();
            printer.json(&json!({"summary": "There are no changes.", "findings": []}))?;
            return printer.finish();
        }
        return Ok(());
    }
    let mut session = args.session.clone();
    session.mode.get_or_insert(Mode::ReadOnly);
    session.directory.get_or_insert(place);
    let run = RunArgs {
        goal: None,
        message: vec![message(&what, &args.focus.join(" "), &changes)],
        json: false,
        quiet: args.quiet,
        images: ImageArgs::default(),
        last: ContinueArgs::default(),
        worktree: WorktreeArgs::default(),
        gateway: WhichGateway::default(),
        no_session: session.session.is_none(),
        session,
        bounds: args.bounds.clone(),
        output_schema: None,
    };
    let form = args.json.then(|| AnswerForm::of_text(FINDINGS)).transpose()?;
    run_asked(&run, || Ok(Asked { text: run.message.concat(), form, names: Names::Ignored }))
}

/// The message of the user.
fn message(what: &str, focus: &str, changes: &str) -> String {
    let focus =
        if focus.trim().is_empty() { String::new() } else { format!(". Above all: {focus}") };
    let line = format!(
        "/review the changes at the end of this message ({what}){focus}. You have no commands here; read the files around them"
    );
    let request = requests::expand(&line).unwrap_or(line);
    let end = (0..=changes.len().min(MOST_CHANGES)).rev().find(|at| changes.is_char_boundary(*at));
    let shown = &changes[..end.unwrap_or(0)];
    let rest = match changes.len() - shown.len() {
        0 => String::new(),
        rest => format!(
            "\n[{rest} more bytes of changes are not shown; say in the answer that they were not reviewed.]"
        ),
    };
    format!("{request}\n\nThe changes:\n\n{}{rest}", shown.trim_end())
}

/// What is to be reviewed, in words, and its changes.
fn changes(args: &ReviewArgs, place: &Path) -> Result<(String, String), CliError> {
    if let Some(pull) = &args.pr {
        let is_named =
            pull.starts_with("https://") || pull.bytes().all(|byte| byte.is_ascii_digit());
        if pull.is_empty() || !is_named {
            return Err(CliError::usage(
                "--pr takes the number or the address of a pull request: --pr 17",
            ));
        }
        let diff = pull_request(place, pull)?;
        return Ok((format!("pull request {pull}"), diff));
    }
    let repository = runtime::block_on(Repository::of(place))?.map_err(|_| {
        CliError::usage(
            "this directory is in no git repository, or git is missing; name a repository with -C",
        )
    })?;
    let git = |args: &[&str]| -> Result<String, CliError> {
        Ok(runtime::block_on(repository.read(args))??)
    };
    if let Some(branch) = &args.branch {
        let known = |name: &str| {
            let commit = format!("{name}^{{commit}}");
            !name.starts_with('-') && git(&["rev-parse", "--verify", "--quiet", &commit]).is_ok()
        };
        if !known(branch) {
            let why = format!(
                "--branch {branch}: there is no such branch here; `git branch --all` lists them"
            );
            return Err(CliError::usage(why));
        }
        let base = MAIN_BRANCHES.into_iter().find(|name| name != branch && known(name));
        let base = base.ok_or_else(|| {
            CliError::usage(format!(
                "no branch main, master or trunk is there beside {branch}, with which it could be compared; name a branch that left \
                 one of them"
            ))
        })?;
        let range = format!("{base}...{branch}");
        let diff = git(&["diff", "--no-ext-diff", "--no-textconv", &range, "--"])?;
        return Ok((format!("branch {branch}, compared with where it left {base}"), diff));
    }
    // Before the first commit, everything that is tracked is new.
    let base = match git(&["rev-parse", "--verify", "--quiet", "HEAD"]) {
        Ok(_) => "HEAD".to_owned(),
        Err(_) => git(&["hash-object", "-t", "tree", "/dev/null"])?.trim().to_owned(),
    };
    let mut diff = git(&["diff", "--no-ext-diff", "--no-textconv", &base, "--"])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    if !new.trim().is_empty() {
        diff.push_str(&format!("\nNew files, which are not tracked yet; read them:\n{new}"));
    }
    Ok(("the working tree".to_owned(), diff))
}
