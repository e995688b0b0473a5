//! The command line of `myclaw cron`.

use clap::{Args, Subcommand};
use myclaw_delivery::schedule::{JobFields, Missed, ScheduleFields, Target};
use serde_json::{Value, json};

use super::help;

/// Arguments of `cron`.
#[derive(Debug, Args)]
pub(crate) struct CronArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: CronCommand,
}

/// What can be done with scheduled jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum CronCommand {
    /// Add a job
    #[command(after_long_help = help::CRON_ADD_EXAMPLES)]
    Add(JobArgs),
    /// List the jobs
    #[command(after_long_help = help::CRON_LIST_EXAMPLES)]
    List(FormArgs),
    /// Show how many jobs there are, and when the next one is due
    #[command(after_long_help = help::CRON_STATUS_EXAMPLES)]
    Status(FormArgs),
    /// Run a job now, in addition to its schedule
    #[command(after_long_help = help::CRON_RUN_EXAMPLES)]
    Run(WhichJob),
    /// List what became of a job's due times, the newest first
    #[command(after_long_help = help::CRON_RUNS_EXAMPLES)]
    Runs(RunsArgs),
    /// Change a job; what is not given stays
    #[command(after_long_help = help::CRON_EDIT_EXAMPLES)]
    Edit(EditArgs),
    /// Stop a job from becoming due
    #[command(after_long_help = help::CRON_PAUSE_EXAMPLES)]
    Pause(WhichJob),
    /// Let a paused job become due again
    #[command(after_long_help = help::CRON_RESUME_EXAMPLES)]
    Resume(WhichJob),
    /// Remove a job
    #[command(after_long_help = help::CRON_REMOVE_EXAMPLES)]
    Remove(WhichJob),
    /// Tell the agent something in its main session
    #[command(after_long_help = help::CRON_WAKE_EXAMPLES)]
    Wake(WakeArgs),
}

/// The form of the output.
#[derive(Debug, Args)]
pub(crate) struct FormArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A job.
#[derive(Debug, Args)]
pub(crate) struct WhichJob {
    /// Id or name of the job
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The form of the output.
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Arguments of `cron runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// The job.
    #[command(flatten)]
    pub(crate) which: WhichJob,
    /// Most lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "20", value_parser = super::bounds::most_shown)]
    pub(crate) limit: usize,
}

/// Arguments of `cron edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Id or name of the job
    #[arg(value_name = "JOB")]
    pub(crate) which: String,
    /// What changes.
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// Arguments of `cron wake`.
#[derive(Debug, Args)]
pub(crate) struct WakeArgs {
    /// The message to the agent
    pub(crate) text: String,
    /// Wait for the next heartbeat
    #[arg(long)]
    pub(crate) next_heartbeat: bool,
    /// The form of the output.
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// The fields of a job.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The message to the agent when the job is due
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    /// As you say it: "tomorrow at 9", "in 20 minutes", "every weekday at 8", "on the first Monday of the month"
    #[arg(long, value_name = "WORDS", group = "when_due")]
    pub(crate) when: Option<String>,
    /// Once, at a time such as 2026-12-24T18:00, or a duration from now such as 20m
    #[arg(long, value_name = "TIME", group = "when_due")]
    pub(crate) at: Option<String>,
    /// At an interval such as 30m or 1d, counted from now
    #[arg(long, value_name = "DURATION", group = "when_due")]
    pub(crate) every: Option<String>,
    /// At the local times of a cron expression: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPRESSION", group = "when_due")]
    pub(crate) cron: Option<String>,
    /// Time zone of --when, --at and --cron; the default is agents.defaults.userTimezone, else that of this machine
    #[arg(long, value_name = "ZONE", requires = "when_due")]
    pub(crate) tz: Option<String>,
    /// A name for lists; the default is the beginning of the message
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The agent, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Use a session of the job's own instead of the agent's main session
    #[arg(long, conflicts_with = "main")]
    pub(crate) isolated: bool,
    /// Use the agent's main session (the default)
    #[arg(long)]
    pub(crate) main: bool,
    /// Where the answer goes: last (where you wrote last), none, a channel, or CHANNEL:CHAT
    #[arg(long, value_name = "WHERE")]
    pub(crate) deliver: Option<String>,
    /// What happens with due times that have passed: skip, once (one run stands for all), all
    #[arg(long, value_name = "POLICY", value_parser = missed)]
    pub(crate) missed: Option<Missed>,
    /// Keep a job with a single time when it is done
    #[arg(long)]
    pub(crate) keep: bool,
    /// Add the job paused
    #[arg(long)]
    pub(crate) paused: bool,
    /// The form of the output.
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

impl JobArgs {
    /// The fields in the form of the gateway.
    pub(crate) fn fields(&self) -> JobFields {
        let schedule = ScheduleFields {
            when: self.when.clone(),
            at: self.at.clone().map(Value::String),
            every: self.every.clone(),
            expr: self.cron.clone(),
            tz: self.tz.clone(),
            ..ScheduleFields::default()
        };
        let target = match (self.isolated, self.main) {
            (true, _) => Some(Target::Isolated),
            (_, true) => Some(Target::Main),
            _ => None,
        };
        JobFields {
            name: self.name.clone(),
            agent: self.agent.clone(),
            schedule: (schedule != ScheduleFields::default()).then_some(schedule),
            message: self.message.clone(),
            target,
            delivery: self.deliver.as_deref().map(|place| match place.split_once(':') {
                Some((channel, chat)) => json!({"channel": channel, "chat": chat}),
                None => json!(place),
            }),
            enabled: self.paused.then_some(false),
            delete_after_run: self.keep.then_some(false),
            missed: self.missed,
        }
    }
}

fn missed(text: &str) -> Result<Missed, String> {
    match text {
        "skip" => Ok(Missed::Skip),
        "once" => Ok(Missed::Once),
        "all" => Ok(Missed::All),
        _ => Err("write skip, once or all".to_owned()),
    }
}
