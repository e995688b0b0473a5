//! `myclaw workflows`: the scripts that the agent of a group finds and runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::ToolError;
use myclaw_llm::joined_text;
use myclaw_runner::{
    EnvironmentPolicy, KeywordRanker, Ranker, Registry, RegistryError, Weights, Workflow,
    WorkflowRun, check_workflows, semantic_ranker,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::host::host_home;
use crate::args::{WhoseWorkflows, WorkflowsArgs, WorkflowsCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::report::first_line;
use myclaw_front::runtime;

/// Runs one of the commands.
pub(crate) fn run(args: WorkflowsArgs) -> Result<(), CliError> {
    match args.command {
        WorkflowsCommand::List { whose, json } => {
            let registry = load(&directory(whose)?)?;
            let nothing = "no workflows; `myclaw workflows check` says more";
            print(registry.workflows.iter().map(|workflow| (workflow, None)), nothing, json)
        }
        WorkflowsCommand::Search { query, whose, weights, json } => {
            let directory = directory(whose)?;
            let registry = load(&directory)?;
            let ranker: Arc<dyn Ranker> = match weights {
                Some(weights) => {
                    let weights = Weights { directory: weights, source: None };
                    // The ranking says the same.
                    semantic_ranker(&directory, weights, Arc::new(|_| ()))
                }
                None => Arc::new(KeywordRanker),
            };
            let ranking = ranker.ranking(&query.join(" "), &registry.workflows);
            let ranking = ranking.map_err(CliError::failure)?;
            if let Some(shortcoming) = &ranking.shortcoming {
                note(format_args!("myclaw: {shortcoming}"));
            }
            let found = ranking.ranked.iter().filter_map(|ranked| {
                Some((registry.workflows.get(ranked.index)?, Some(ranked.score)))
            });
            let nothing = match registry.workflows.is_empty() {
                true => "no workflows; `myclaw workflows check` says more",
                false => "no workflow fits; `myclaw workflows list` shows all",
            };
            print(found, nothing, json)
        }
        WorkflowsCommand::Run { name, arguments, limit, whose } => {
            run_one(&directory(whose)?, &name, &arguments, limit.0)
        }
        WorkflowsCommand::Check { whose } => check(&directory(whose)?),
    }
}

fn directory(whose: WhoseWorkflows) -> Result<PathBuf, CliError> {
    if let Some(path) = whose.path {
        return Ok(path);
    }
    let folder = whose.group.parse().map_err(|problem: String| CliError::usage(problem))?;
    Ok(host_home(whose.directory, &find_home()?)?.group(&folder).join("workflows"))
}

fn load(directory: &std::path::Path) -> Result<Registry, CliError> {
    Registry::load(directory).map_err(|error: RegistryError| CliError::failure(error.to_string()))
}

fn print<'a>(
    workflows: impl Iterator<Item = (&'a Workflow, Option<f64>)>,
    nothing: &str,
    as_json: bool,
) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    let mut rows = Vec::new();
    for (workflow, score) in workflows {
        let Workflow { name, description, run, args } = workflow;
        if as_json {
            let mut value =
                json!({"name": name, "description": description, "run": run, "args": args});
            if let Some(score) = score {
                value["score"] = score.into();
            }
            printer.json(&value)?;
        } else {
            let arguments = if args.is_empty() { "-".to_owned() } else { args.join(", ") };
            rows.push(vec![name.clone(), arguments, first_line(description)]);
        }
    }
    if rows.is_empty() && !as_json {
        printer.line(nothing)?;
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn run_one(
    directory: &std::path::Path,
    name: &str,
    arguments: &[String],
    limit: Duration,
) -> Result<(), CliError> {
    let registry = load(directory)?;
    let workflow = registry.workflows.iter().find(|workflow| workflow.name == name);
    let workflow = workflow.ok_or_else(|| {
        CliError::failure(format!(
            "there is no workflow {name:?}; `myclaw workflows list` shows all"
        ))
    })?;
    let mut values = Map::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            CliError::usage(format!("the argument {argument:?} has no value; write NAME=VALUE"))
        })?;
        values.insert(name.to_owned(), Value::from(value));
    }
    let environment = EnvironmentPolicy::inherited();
    let run =
        WorkflowRun { directory, environment: &environment, limit, workflow, arguments: &values };
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    let running = async { Ok(run.run(&cancel).await) };
    match runtime::block_on(armed.unless_quit(running))?? {
        Ok(output) => {
            let mut printer = Printer::stdout();
            printer.safe_lines(joined_text(&output.content, "\n").lines())?;
            printer.finish()?;
            match output.is_error {
                true => Err(CliError::failure(format!("the workflow {name} failed"))),
                false => Ok(()),
            }
        }
        Err(ToolError::Aborted(_)) => Err(CliError::aborted()),
        Err(error) => Err(CliError::failure(error.to_string())),
    }
}

fn check(directory: &std::path::Path) -> Result<(), CliError> {
    let problems = check_workflows(directory);
    let mut printer = Printer::stdout();
    if problems.is_empty() {
        printer.line("the workflows can be used")?;
        return printer.finish();
    }
    printer.safe_lines(&problems)?;
    printer.finish()?;
    let (count, plural) = (problems.len(), if problems.len() == 1 { "" } else { "s" });
    Err(CliError::failure(format!(
        "{count} problem{plural} in {}",
        directory.join("registry.json").display()
    )))
}
