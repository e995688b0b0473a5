//! `myclaw cron`: scheduled jobs, through the gateway that runs, else in its store.

use myclaw_agent::SessionOptions;
use myclaw_delivery::schedule::{
    CronAction, CronRequest, Job, JobFields, JobWork, Occurrence, OccurrenceState, Outcome, Target,
    WakeMode, describe_schedule,
};
use myclaw_gateway::GatewayError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{CronArgs, CronCommand, JobArgs};
use crate::commands::gateway::failure;
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::runtime;
use myclaw_front::time::local_second;

/// Characters of an answer or of a failure in a list.
const SHOWN_CHARS: usize = 80;

/// Runs one of the commands.
pub(crate) fn run(args: &CronArgs) -> Result<(), CliError> {
    let of_job =
        |action, job: &str| CronRequest { id: Some(job.to_owned()), ..CronRequest::of(action) };
    match &args.command {
        CronCommand::Add(job) => {
            let request =
                CronRequest { job: Some(fields_of(job)?), ..CronRequest::of(CronAction::Add) };
            answer(request, job.form.json, |value| one_job("added", value))
        }
        CronCommand::Edit(edit) => {
            let request = CronRequest {
                patch: Some(edit.job.fields()),
                ..of_job(CronAction::Update, &edit.which)
            };
            answer(request, edit.job.form.json, |value| one_job("changed", value))
        }
        CronCommand::Pause(which) => {
            answer(enable(&which.job, Enabled::No), which.form.json, |value| {
                one_job("paused", value)
            })
        }
        CronCommand::Resume(which) => {
            answer(enable(&which.job, Enabled::Yes), which.form.json, |value| {
                one_job("resumed", value)
            })
        }
        CronCommand::List(form) => answer(CronRequest::of(CronAction::List), form.json, list),
        CronCommand::Status(form) => {
            answer(CronRequest::of(CronAction::Status), form.json, |value| Ok(status(value)))
        }
        CronCommand::Run(which) => {
            answer(of_job(CronAction::Run, &which.job), which.form.json, |value| {
                Ok(vec![format!("runs now: {}", text(&value["run"], "job"))])
            })
        }
        CronCommand::Runs(args) => {
            let request = CronRequest {
                limit: Some(args.limit),
                ..of_job(CronAction::Runs, &args.which.job)
            };
            answer(request, args.which.form.json, runs)
        }
        CronCommand::Remove(which) => {
            answer(of_job(CronAction::Remove, &which.job), which.form.json, |value| {
                Ok(vec![format!("removed: {}", text(value, "removed"))])
            })
        }
        CronCommand::Wake(wake) => {
            let mode = if wake.next_heartbeat { WakeMode::NextHeartbeat } else { WakeMode::Now };
            let request = CronRequest {
                text: Some(wake.text.clone()),
                mode: Some(mode),
                ..CronRequest::of(CronAction::Wake)
            };
            answer(request, wake.form.json, |_| Ok(vec!["the agent is told".to_owned()]))
        }
    }
}

/// Sends a request, and prints the answer.
fn answer(
    request: CronRequest,
    as_json: bool,
    lines: impl FnOnce(&Value) -> Result<Vec<String>, CliError>,
) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let needs_gateway =
        matches!(request.action, CronAction::Add | CronAction::Run | CronAction::Update);
    let asking = myclaw_gateway::cron(&session.home, &session.config, request);
    let (value, runs) = runtime::block_on(asking)?.map_err(refused)?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&value)?;
    } else {
        printer.safe_lines(lines(&value)?)?;
    }
    printer.finish()?;
    if needs_gateway && !runs {
        note(format_args!(
            "myclaw: no gateway runs, so nothing becomes due; start one with `myclaw gateway`"
        ));
    }
    Ok(())
}

fn refused(error: GatewayError) -> CliError {
    match error {
        GatewayError::Unusable(_) => CliError::usage(error.to_string()),
        error => failure(error),
    }
}

fn fields_of(job: &JobArgs) -> Result<JobFields, CliError> {
    if job.message.as_deref().is_none_or(|message| message.trim().is_empty()) {
        return Err(CliError::usage("what is the agent told? give the message in quotes"));
    }
    let fields = job.fields();
    if fields.schedule.is_none() {
        let why = "a new job needs a schedule: give --when, --at, --every or --cron";
        return Err(CliError::usage(why));
    }
    Ok(fields)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Enabled {
    Yes,
    No,
}

fn enable(job: &str, enabled: Enabled) -> CronRequest {
    let patch = JobFields { enabled: Some(enabled == Enabled::Yes), ..JobFields::default() };
    CronRequest {
        id: Some(job.to_owned()),
        patch: Some(patch),
        ..CronRequest::of(CronAction::Update)
    }
}

fn one_job(done: &str, value: &Value) -> Result<Vec<String>, CliError> {
    let job: Job = read(&value["job"])?;
    let due = || {
        job.next.map_or_else(|| "never due".to_owned(), |due| format!("due {}", local_second(due)))
    };
    let next = value["understood"].as_str().map_or_else(due, str::to_owned);
    Ok(vec![format!("{done}: {}  {}  {next}", job.id, job.name)])
}

fn list(value: &Value) -> Result<Vec<String>, CliError> {
    let jobs: Vec<Job> = read(&value["jobs"])?;
    if jobs.is_empty() {
        return Ok(vec!["no jobs; add one with `myclaw cron add`".to_owned()]);
    }
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    Ok(columns(&rows))
}

fn row(job: &Job) -> Vec<String> {
    let next = match (job.enabled, job.next) {
        _ if job.is_over() => "over".to_owned(),
        (false, _) => "paused".to_owned(),
        (true, None) => "-".to_owned(),
        (true, Some(due)) => local_second(due),
    };
    let session = match &job.work {
        JobWork::Message { target: Target::Isolated, .. } => "isolated",
        _ => "main",
    };
    let last =
        job.last.as_ref().map_or_else(|| "-".to_owned(), |last| word(&last.outcome).to_owned());
    let schedule = describe_schedule(&job.schedule);
    vec![job.id.clone(), next, schedule, format!("{}/{session}", job.agent), last, job.name.clone()]
}

fn status(value: &Value) -> Vec<String> {
    let number = |name: &str| value[name].as_u64().unwrap_or(0);
    let next = value["next"].as_u64().map_or_else(|| "-".to_owned(), local_second);
    let mut lines = vec![
        format!("jobs      {}, {} of them active", number("jobs"), number("active")),
        format!("next due  {next}"),
        format!("running   {}", number("running")),
    ];
    if value["enabled"] == false {
        lines.push("cron.enabled is false in the config file, so nothing runs".to_owned());
    }
    lines
}

fn runs(value: &Value) -> Result<Vec<String>, CliError> {
    let runs: Vec<Occurrence> = read(&value["runs"])?;
    if runs.is_empty() {
        return Ok(vec!["nothing was due yet".to_owned()]);
    }
    let rows: Vec<Vec<String>> = runs.iter().map(run_row).collect();
    Ok(columns(&rows))
}

fn run_row(run: &Occurrence) -> Vec<String> {
    let (state, detail) = match &run.state {
        OccurrenceState::Planned => ("waits", String::new()),
        OccurrenceState::Running { .. } => ("runs", String::new()),
        OccurrenceState::Ended { outcome, .. } => {
            let detail = match outcome {
                Outcome::Answered { said } => said.clone(),
                Outcome::Quiet => "nothing to report".to_owned(),
                Outcome::Skipped { reason } => reason.clone(),
                Outcome::Missed { until } => format!("up to {}", local_second(*until)),
                Outcome::Failed { class, message } => format!("{class}: {message}"),
            };
            (word(outcome), detail)
        }
    };
    let detail: String = detail.split_whitespace().collect::<Vec<_>>().join(" ");
    let manual = if run.manual { "by hand" } else { "" };
    vec![
        local_second(run.due),
        state.to_owned(),
        manual.to_owned(),
        detail.chars().take(SHOWN_CHARS).collect(),
    ]
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered { .. } => "answered",
        Outcome::Quiet => "quiet",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Missed { .. } => "missed",
        Outcome::Failed { .. } => "failed",
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or("?").to_owned()
}

/// Reads what a gateway of this version answers.
fn read<T: DeserializeOwned>(value: &Value) -> Result<T, CliError> {
    serde_json::from_value(value.clone()).map_err(|_| {
        CliError::failure("the gateway that runs has another version; stop it and start it again")
    })
}
