//! Answers requests: the same for the command line, programs and the tool.

use myclaw_config::Config;
use serde::Serialize;
use serde_json::{Value, json};

use super::book::{Book, KEPT_RUNS, Replan};
use super::job::{Destination, Job, JobWork};
use super::request::{CronAction, CronRequest, JobFields, WakeMode, unusable};
use super::routes::Routes;
use crate::DeliveryError;
use crate::route::Route;

/// Most notes that wait for a heartbeat, and most bytes of one.
const MOST_NOTES: usize = 20;
const MAX_NOTE_BYTES: usize = 4_096;
/// Entries of `runs`, unless the caller wants another number.
const RUNS: usize = 20;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// The owner, who may do everything.
    Owner,
    /// An agent, which sees its own jobs only, and whose answers go only to where people have written from.
    Agent(AskingSession),
}

/// A session in which an agent asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingSession {
    /// The agent.
    pub agent: String,
    /// The way into the session, if what is asked for there appears there.
    pub appears_in: Option<Route>,
}

/// What a request is answered from.
pub struct Service<'a> {
    /// The jobs.
    pub book: &'a Book,
    /// Where people write from.
    pub routes: &'a Routes,
    /// The config in force.
    pub config: &'a Config,
    /// Who asks.
    pub asker: Asker,
    /// Milliseconds since the Unix epoch.
    pub now: u64,
}

/// What the caller still has to do.
pub enum CronAnswer {
    /// Nothing.
    Done(Value),
    /// This message has to be sent to the main session of the agent.
    Tell {
        /// The agent.
        agent: String,
        /// The message.
        text: String,
    },
}

impl Service<'_> {
    /// Answers a request.
    pub async fn answer(&self, request: CronRequest) -> Result<CronAnswer, DeliveryError> {
        let value = match request.action {
            CronAction::Status => self.status().await?,
            CronAction::List => json!({"jobs": self.visible().await?}),
            CronAction::Add => self.add(request.job.unwrap_or_default()).await?,
            CronAction::Update => {
                let patch = request.patch.or(request.job).ok_or_else(|| {
                    unusable("nothing to change; give the fields of the job that change in `patch`")
                })?;
                self.update(request.id.as_deref(), patch).await?
            }
            CronAction::Remove => {
                let job = self.find_own(request.id.as_deref()).await?;
                self.book.remove(&job.id).await?;
                json!({"removed": job.id})
            }
            CronAction::Run => {
                let job = self.find(request.id.as_deref()).await?;
                let occurrence = self.book.run_now(&job.id, self.now).await?.ok_or_else(|| {
                    unusable(format!("a run of {} waits already; see `runs`", job.id))
                })?;
                json!({"run": occurrence})
            }
            CronAction::Runs => {
                let job = self.find(request.id.as_deref()).await?;
                let most = request.limit.unwrap_or(RUNS).clamp(1, KEPT_RUNS);
                json!({"job": job.id, "runs": self.book.runs(&job.id, most).await?})
            }
            CronAction::Wake => return self.wake(request).await,
        };
        Ok(CronAnswer::Done(value))
    }

    async fn status(&self) -> Result<Value, DeliveryError> {
        let jobs = self.visible().await?;
        Ok(json!({
            "enabled": self.config.cron.enabled,
            "jobs": jobs.len(),
            "active": jobs.iter().filter(|job| job.enabled).count(),
            "next": jobs.iter().filter_map(|job| job.next).min(),
            "running": self.book.running().await?,
        }))
    }

    async fn add(&self, mut fields: JobFields) -> Result<Value, DeliveryError> {
        if let Asker::Agent(asking) = &self.asker {
            fields.agent.get_or_insert_with(|| asking.agent.clone());
            if let Some(route) = &asking.appears_in
                && fields.target.is_none()
            {
                fields.delivery.get_or_insert_with(|| json!(route));
            }
        }
        let tz = fields.schedule.clone().unwrap_or_default().tz(self.config);
        let job = fields.job(self.config, self.now)?;
        self.check(&job).await?;
        let jobs = self.book.jobs().await?;
        let most = self.config.cron.max_jobs;
        if jobs.iter().filter(|job| !job.is_heartbeat()).count() >= most {
            return Err(unusable(format!(
                "there are {most} jobs already, which is the limit (cron.maxJobs); remove one, or raise it"
            )));
        }
        planned(&self.book.add(job, self.now).await?, &tz)
    }

    async fn update(&self, id: Option<&str>, patch: JobFields) -> Result<Value, DeliveryError> {
        let job = self.find_own(id).await?;
        let mut after = job.clone();
        patch.apply(&mut after, self.config, self.now)?;
        self.check(&after).await?;
        let change = |job: &mut Job| {
            let before = (job.schedule.clone(), job.enabled);
            patch.apply(job, self.config, self.now)?;
            let is_same = before == (job.schedule.clone(), job.enabled);
            Ok(if is_same { Replan::No } else { Replan::Yes })
        };
        match self.book.change(&job.id, self.now, change).await? {
            Some(job) => planned(&job, &patch.schedule.clone().unwrap_or_default().tz(self.config)),
            None => Err(unknown(&job.id)),
        }
    }

    /// Refuses what the asker may not set.
    async fn check(&self, job: &Job) -> Result<(), DeliveryError> {
        let Asker::Agent(AskingSession { agent, appears_in }) = &self.asker else {
            return Ok(());
        };
        if job.agent != *agent {
            return Err(unusable(format!(
                "the agent {agent} has only jobs of its own; leave `agent` out"
            )));
        }
        if let JobWork::Message { delivery: Destination::Chat(route), .. } = &job.work
            && appears_in.as_ref() != Some(route)
            && !self.routes.known().await?.contains(route)
        {
            return Err(unusable(
                "nobody has written from this chat, so nothing is sent there; use \"last\", or the name of a channel",
            ));
        }
        Ok(())
    }

    async fn wake(&self, request: CronRequest) -> Result<CronAnswer, DeliveryError> {
        let text = request.text.unwrap_or_default().trim().to_owned();
        if text.is_empty() || text.len() > MAX_NOTE_BYTES {
            return Err(unusable(format!(
                "`text` has 1 to {MAX_NOTE_BYTES} bytes; say what the agent is told"
            )));
        }
        let agent = match &self.asker {
            Asker::Owner => self.config.default_agent_id().to_string(),
            Asker::Agent(asking) => asking.agent.clone(),
        };
        if request.mode.unwrap_or_default() == WakeMode::Now {
            return Ok(CronAnswer::Tell { agent, text });
        }
        let change = |job: &mut Job| {
            if job.notes.len() >= MOST_NOTES {
                return Err(unusable(format!(
                    "{MOST_NOTES} texts wait for the next heartbeat already"
                )));
            }
            job.notes.push(text.clone());
            Ok(Replan::No)
        };
        let job = self.book.change(&Job::heartbeat_id(&agent), self.now, change).await?;
        let job = job.ok_or_else(|| {
            unusable(format!("the agent {agent} has no heartbeat; use the mode \"now\""))
        })?;
        Ok(CronAnswer::Done(json!({"next": job.next})))
    }

    /// The jobs that the asker may see.
    async fn visible(&self) -> Result<Vec<Job>, DeliveryError> {
        let mut jobs = self.book.jobs().await?;
        if let Asker::Agent(asking) = &self.asker {
            jobs.retain(|job| job.agent == asking.agent);
        }
        Ok(jobs)
    }

    /// The job with this id, or the only one with this name.
    async fn find(&self, id: Option<&str>) -> Result<Job, DeliveryError> {
        let id = id
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .ok_or_else(|| unusable("which job? give its `id`; `list` shows them"))?;
        let mut jobs = self.visible().await?;
        if let Some(at) = jobs.iter().position(|job| job.id == id) {
            return Ok(jobs.swap_remove(at));
        }
        let mut named: Vec<Job> = jobs.into_iter().filter(|job| job.name == id).collect();
        match (named.pop(), named.len()) {
            (Some(job), 0) => Ok(job),
            (Some(_), more) => {
                Err(unusable(format!("{} jobs have the name {id}; give the id of one", more + 1)))
            }
            (None, _) => Err(unknown(id)),
        }
    }

    /// The same for a job that people may change.
    async fn find_own(&self, id: Option<&str>) -> Result<Job, DeliveryError> {
        let job = self.find(id).await?;
        if job.is_heartbeat() {
            let message = "a heartbeat is set in the config file (agents.defaults.heartbeat); change it there";
            return Err(unusable(message));
        }
        Ok(job)
    }
}

/// The job, and what is understood of its schedule.
fn planned(job: &Job, tz: &str) -> Result<Value, DeliveryError> {
    let mut value = found(job)?;
    value["understood"] = json!(job.schedule.understood(job.next, tz));
    if job.is_in_shown_session() {
        value["appears"] = json!("in this session, when it is due");
    } else if job.session().is_some() {
        value["appears"] =
            json!("in this session: at once where it is open, else when it is opened");
    }
    Ok(value)
}

fn found(job: &impl Serialize) -> Result<Value, DeliveryError> {
    let job =
        serde_json::to_value(job).map_err(|error| DeliveryError::Internal(error.to_string()))?;
    Ok(json!({"job": job}))
}

fn unknown(id: &str) -> DeliveryError {
    unusable(format!("there is no job {id}; `list` shows the jobs"))
}
