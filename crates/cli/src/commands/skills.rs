//! `myclaw skills`: the skills, and the reasons why some cannot be used.

use std::path::Path;

use myclaw_agent::{
    did_you_mean,
    skills::{FoundSkill, FoundSkills},
};
use myclaw_skills::SkillOrigin;
use serde::Serialize;

use crate::args::{SkillsArgs, SkillsCommand, WhoseSkills};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::report::first_line;

/// Most bytes of a skill's file that are shown.
const MAX_SHOWN_BYTES: u64 = 1024 * 1024;

/// Runs one of the commands.
pub(crate) fn run(args: &SkillsArgs) -> Result<(), CliError> {
    match &args.command {
        SkillsCommand::List { whose, json: true } => list_as_json(&find(whose)?),
        SkillsCommand::List { whose, json: false } => list(&find(whose)?),
        SkillsCommand::Show { name, whose } => show(&find(whose)?, name),
        SkillsCommand::Check { whose } => check(&find(whose)?),
    }
}

fn find(whose: &WhoseSkills) -> Result<FoundSkills, CliError> {
    Ok(load_session(find_home()?, &whose.options())?.find_skills()?)
}

fn list(found: &FoundSkills) -> Result<(), CliError> {
    let row = |found: &FoundSkill| {
        let skill = &found.skill;
        let description = first_line(&skill.description);
        vec![skill.name.clone(), origin(skill.origin).to_owned(), state(found), description]
    };
    let rows: Vec<Vec<String>> = found.skills.iter().map(row).collect();
    let mut printer = Printer::stdout();
    if rows.is_empty() {
        printer.line("no skills yet; `myclaw skills --help` says where they are looked for")?;
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()?;
    let remarked = found.skills.iter().filter(|found| !found.skill.remarks.is_empty()).count();
    if remarked > 0 {
        note(format_args!(
            "myclaw: mistakes in the front matter of {remarked}; `myclaw skills check` names them"
        ));
    }
    if !found.problems.is_empty() {
        note(format_args!(
            "myclaw: {} more cannot be read; `myclaw skills check` says why",
            found.problems.len()
        ));
    }
    Ok(())
}

/// A skill as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillLine<'a> {
    name: &'a str,
    description: &'a str,
    path: &'a Path,
    origin: &'static str,
    enabled: bool,
    usable: bool,
    obstacles: &'a [String],
}

fn list_as_json(found: &FoundSkills) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    for found in &found.skills {
        let skill = &found.skill;
        printer.json(&SkillLine {
            name: &skill.name,
            description: &skill.description,
            path: &skill.file,
            origin: origin(skill.origin),
            enabled: !found.is_disabled,
            usable: found.is_offered(),
            obstacles: &found.obstacles,
        })?;
    }
    printer.finish()
}

fn show(found: &FoundSkills, name: &str) -> Result<(), CliError> {
    let known = || found.skills.iter().map(|found| found.skill.name.as_str());
    let Some(found) = found.skills.iter().find(|found| found.skill.name == name) else {
        let suggestion = did_you_mean(name, known());
        return Err(CliError::usage(format!(
            "there is no skill `{name}`{suggestion} `myclaw skills list` lists them"
        )));
    };
    let file = &found.skill.file;
    let text = found
        .skill
        .beginning(MAX_SHOWN_BYTES)
        .map_err(|error| CliError::failure(format!("cannot read {}: {error}", file.display())))?;
    let mut printer = Printer::stdout();
    printer.safe_lines(columns(&[
        vec!["file".to_owned(), file.display().to_string()],
        vec!["origin".to_owned(), origin(found.skill.origin).to_owned()],
        vec!["state".to_owned(), state(found)],
    ]))?;
    printer.line("")?;
    printer.copied_lines(String::from_utf8_lossy(&text).lines())?;
    printer.finish()
}

/// A skill that the config hides is not a problem, because the owner hid it.
fn check(found: &FoundSkills) -> Result<(), CliError> {
    let unreadable =
        found.problems.iter().map(|problem| (problem.path.as_path(), problem.message.clone()));
    let unusable = found
        .skills
        .iter()
        .filter(|found| !found.is_disabled && !found.obstacles.is_empty())
        .map(|found| (found.skill.file.as_path(), found.obstacles.join(", ")));
    let lines: Vec<String> = unreadable
        .chain(unusable)
        .map(|(path, reason)| format!("{}: {reason}", path.display()))
        .collect();
    let mut printer = Printer::stdout();
    printer.safe_lines(&lines)?;
    let remarked = found.skills.iter().filter(|found| !found.skill.remarks.is_empty());
    printer.safe_lines(
        remarked
            .map(|found| {
                format!("{}: note: {}", found.skill.file.display(), found.skill.remarks.join("; "))
            })
            .collect::<Vec<_>>(),
    )?;
    if lines.is_empty() {
        printer.line(format_args!("{} found: ok", found.skills.len()))?;
        return printer.finish();
    }
    printer.finish()?;
    Err(CliError::failure("not every skill can be used"))
}

fn origin(origin: SkillOrigin) -> &'static str {
    match origin {
        SkillOrigin::Owner => "owner",
        SkillOrigin::Package => "package",
        SkillOrigin::Workspace => "workspace",
    }
}

/// Whether the model is offered it, and if not, why.
fn state(found: &FoundSkill) -> String {
    if found.is_disabled {
        return "disabled".to_owned();
    }
    if found.obstacles.is_empty() { "ready".to_owned() } else { found.obstacles.join(", ") }
}
