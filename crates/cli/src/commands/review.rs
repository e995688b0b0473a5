//! `myclaw review`: findings about changes, for people and for continuous integration.
//!
//! The program collects the changes itself, so the agent needs no commands: it reads files and nothing else.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use myclaw_engine::Mode;
use myclaw_front::args::{ContinueArgs, ImageArgs, WorktreeArgs};
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, note};
use myclaw_front::requests;
use serde_json::json;

use super::run::{AnswerForm, Asked, Names, run_asked};
use crate::args::{ReviewArgs, RunArgs};

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
        let diff = printed(place, "gh", &["pr", "diff", pull])?;
        return Ok((format!("pull request {pull}"), diff));
    }
    if git(place, &["rev-parse", "--is-inside-work-tree"]).is_err() {
        let why =
            "this directory is in no git repository, or git is missing; name a repository with -C";
        return Err(CliError::usage(why));
    }
    if let Some(branch) = &args.branch {
        let known = |name: &str| {
            let commit = format!("{name}^{{commit}}");
            !name.starts_with('-')
                && git(place, &["rev-parse", "--verify", "--quiet", &commit]).is_ok()
        };
        if !known(branch) {
            let why = format!(
                "--branch {branch}: there is no such branch here; `git branch --all` lists them"
            );
            return Err(CliError::usage(why));
        }
        let base = MAIN_BRANCHES.into_iter().find(|name| name != branch && known(name));
        let base = base.ok_or_else(|| {
            CliError::usage(
                "there is no branch main, master or trunk that the branch could be compared with",
            )
        })?;
        let diff = git(
            place,
            &["diff", "--no-ext-diff", "--no-textconv", &format!("{base}...{branch}"), "--"],
        )?;
        return Ok((format!("branch {branch}, compared with where it left {base}"), diff));
    }
    let mut diff = git(place, &["diff", "--no-ext-diff", "--no-textconv", "HEAD", "--"])?;
    let new = git(place, &["ls-files", "--others", "--exclude-standard"])?;
    if !new.trim().is_empty() {
        diff.push_str(&format!("\nNew files, which are not tracked yet; read them:\n{new}"));
    }
    Ok(("the working tree".to_owned(), diff))
}

fn git(place: &Path, args: &[&str]) -> Result<String, CliError> {
    let own = ["--no-pager", "-c", "core.fsmonitor=false"];
    let all: Vec<&str> = own.iter().chain(args).copied().collect();
    printed(place, "git", &all)
}

/// What a program prints, up to what the model reads of it and the size of the rest.
fn printed(place: &Path, program: &str, args: &[&str]) -> Result<String, CliError> {
    let failed = |why: &str| CliError::failure(format!("{program} {}: {why}", args.join(" ")));
    let mut child = Command::new(program);
    child.args(args).current_dir(place).stdin(Stdio::null());
    let mut child =
        child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
            CliError::failure(format!("{program} does not start: {error}; install {program}"))
        })?;
    let mut errors = child.stderr.take();
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What is missing of the errors is missing in the message.
        let _ = errors.as_mut().map(|errors| errors.take(4_000).read_to_end(&mut text));
        text
    });
    let mut bytes = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut bytes).map_err(|error| failed(&error.to_string()))?;
    }
    let status = child.wait().map_err(|error| failed(&error.to_string()))?;
    if !status.success() {
        let errors = reading.join().unwrap_or_default();
        return Err(failed(String::from_utf8_lossy(&errors).trim()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
