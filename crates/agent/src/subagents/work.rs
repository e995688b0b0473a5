//! How a sub-agent works, and how its result reaches its parent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myclaw_engine::{AgentRunEvent, EventCallback, TakenState};
use myclaw_files::now_ms;
use myclaw_llm::Usage;
use myclaw_llm::outside::plain_name;
use myclaw_session::{SessionError, SessionKey, Sessions};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::record::Child;
use super::words::{Ending, result_text, task_text};
use super::{Running, SubagentTools};
use crate::blocking::blocking;
use crate::declarations::declaration_of;
use crate::once::{SearchOfOne, message, put_once};
use crate::session::{Foreground, Handover, Session};
use crate::worktrees::{RemoveUnused, Repository};
use crate::{AgentError, Driver, SessionConfig, SessionOptions};

/// Most characters of a line about what a sub-agent does.
const MOST_LINE_CHARS: usize = 160;

/// The end of a sub-agent.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) how: Ending,
    /// Its answer, or what went wrong.
    pub(super) said: String,
    pub(super) seconds: u64,
    pub(super) usage: Usage,
}

impl SubagentTools {
    /// Begins a sub-agent that is recorded, or finds it if it runs here.
    pub(super) fn begin(
        &self,
        parent: &SessionConfig,
        child: Child,
    ) -> Result<Arc<Running>, AgentError> {
        let driver = self.driver()?;
        let this = self.this.upgrade().ok_or_else(AgentError::aborted)?;
        let instructions = match &child.file {
            None => None,
            Some(name) => match parent.agent_files().get(name) {
                Some(file) => Some(file.note()),
                None => {
                    return Err(AgentError::usage(format!(
                        "the file of the agent `{name}` is gone or cannot be used; `myclaw agents` says why"
                    )));
                }
            },
        };
        let (sender, outcome) = watch::channel(None);
        let running = Arc::new(Running {
            parent: parent.session_key.clone(),
            instructions,
            cancel: driver.stop().child_token(),
            shown: Mutex::default(),
            last: Mutex::new("begins".to_owned()),
            outcome,
            child,
        });
        {
            let mut known = self.running.lock();
            if let Some(known) = known.get(&running.child.session) {
                return Ok(Arc::clone(known));
            }
            known.insert(running.child.session.clone(), Arc::clone(&running));
        }
        let (own, parent, on) = (Arc::clone(&running), parent.clone(), Arc::clone(&driver));
        driver.spawn(async move {
            let outcome = Arc::new(work(&own, &parent, Arc::clone(&on)).await);
            // A program that ends leaves it to the next one.
            let is_over = !on.stop().is_cancelled();
            if own.child.background && is_over {
                this.deliver(&parent, &own.child, &outcome).await;
            }
            this.running.lock().remove(&own.child.session);
            if let Some(then) = this.awaits.get().filter(|_| own.child.background) {
                then(&parent.session_key);
            }
            let _nobody_waits = sender.send(Some(outcome));
        });
        Ok(running)
    }

    /// Lets one that a killed process has left work again; where it may not work, it is looked whether it has answered.
    pub(super) fn go_on_with(&self, parent: &SessionConfig, child: Child, works: bool) {
        if works {
            let (name, known) = (child.id.clone(), child.clone());
            if let Err(error) = self.begin(parent, known) {
                tracing::warn!(subagent = name, "{error}");
                self.deliver_soon(parent, child, Ending::Failed, error.message);
            }
            return;
        }
        let sessions = parent.home.sessions();
        if let Ok(Some(said)) = answer_of(&**sessions, &child) {
            self.deliver_soon(parent, child, Ending::Completed, said);
        }
    }

    fn deliver_soon(&self, parent: &SessionConfig, child: Child, how: Ending, said: String) {
        let (Ok(driver), Some(this)) = (self.driver(), self.this.upgrade()) else { return };
        let parent = parent.clone();
        driver.spawn(async move {
            let outcome = Outcome { how, said, seconds: since(&child), usage: Usage::default() };
            this.deliver(&parent, &child, &outcome).await;
        });
    }

    /// Gives a result to the parent as a message, exactly once.
    async fn deliver(&self, parent: &SessionConfig, child: &Child, outcome: &Outcome) {
        let text = result_text(&child.named(), outcome.how, outcome.seconds, &outcome.said);
        let records = self.records(parent);
        let (home, key, own) = (parent.home.clone(), parent.session_key.clone(), child.clone());
        let stored = blocking(move || {
            let (mut is_new, mut failure) = (false, None);
            records.change(&key, &mut |children| {
                // A call may have taken it over.
                let is_it = |other: &Child| other.id == own.id && other.background;
                let Some(at) = children.iter().position(is_it) else { return };
                // A message would create a deleted session again.
                let put = match home.catalog().exists(&key) {
                    true => put(&**home.sessions(), &key, &own, &text),
                    false => Ok(()),
                };
                match put {
                    Ok(()) => drop(children.remove(at)),
                    Err(error) => failure = Some(error),
                }
                is_new = failure.is_none();
            })?;
            failure.map_or(Ok(is_new), |error| Err(AgentError::from(error)))
        });
        match stored.await.flatten() {
            // Who waits for it is told when nothing of it runs any more.
            Ok(is_new) if is_new && self.awaits.get().is_none() => {
                parent.background.arrived(&parent.session_key);
            }
            Ok(_) => {}
            // It stays recorded, and is tried again when the session is opened.
            Err(error) => tracing::warn!(subagent = child.id, "{error}"),
        }
    }

    /// Removes the record of one whose result is known to its parent.
    pub(super) async fn forget(&self, parent: &SessionConfig, child: &Child) {
        let records = self.records(parent);
        let (key, id) = (parent.session_key.clone(), child.id.clone());
        let removed = blocking(move || {
            records.change(&key, &mut |children| children.retain(|other| other.id != id))
        });
        if let Err(error) = removed.await.flatten() {
            tracing::warn!(subagent = child.id, "{error}");
        }
    }
}

fn since(child: &Child) -> u64 {
    now_ms().saturating_sub(child.started_at) / 1_000
}

/// Does the task, or continues it.
async fn work(running: &Arc<Running>, parent: &SessionConfig, driver: Arc<Driver>) -> Outcome {
    let usage = Arc::new(Mutex::new(Usage::default()));
    let (how, mut said) = match attempt(running, parent, driver, Arc::clone(&usage)).await {
        Ok(done) => done,
        Err(error) => (Ending::Failed, error.message),
    };
    if let Some(sentence) = finished_worktree(&running.child, parent).await {
        said.push_str(&format!("\n\n{sentence}"));
    }
    let usage = *usage.lock();
    Outcome { how, said, seconds: since(&running.child), usage }
}

/// What became of the worktree of a sub-agent, if it had one.
async fn finished_worktree(child: &Child, parent: &SessionConfig) -> Option<String> {
    let name = child.worktree.as_deref()?;
    let finished = async {
        let repository = Repository::of(parent.working_directory()).await?;
        repository.finish(name, RemoveUnused::Yes).await
    };
    Some(match finished.await {
        Ok(sentence) => sentence,
        Err(error) => format!("the worktree {name} stays: {}", error.message),
    })
}

async fn attempt(
    running: &Arc<Running>,
    parent: &SessionConfig,
    driver: Arc<Driver>,
    usage: Arc<Mutex<Usage>>,
) -> Result<(Ending, String), AgentError> {
    let child = &running.child;
    let (of, own) = (parent.clone(), child.clone());
    let config = blocking(move || config_of(&of, &own)).await??;
    let jobs = config.clone();
    let options = SessionOptions {
        model: child.model.clone(),
        thinking: child.thinking.as_deref().and_then(|word| word.parse().ok()),
        ..SessionOptions::default()
    };
    let session = Session::open(driver, config, &options);
    let id = child.task_id();
    match session.whereabouts(vec![id]).await?.remove(&id) {
        Some(Handover::Taken(TakenState::Answered { text, .. })) => {
            return Ok((Ending::Completed, text));
        }
        Some(Handover::Waiting | Handover::Taken(_)) => {}
        Some(Handover::Missing) | None => {
            let text = task_text(&child.named(), parent.session_key.as_str(), &child.task);
            let message = message(id, text);
            let inbox = jobs.home.sessions().inbox(&child.session);
            blocking(move || inbox.push(&message)).await??;
        }
    }
    let is_timed_out = AtomicBool::new(false);
    let until = Duration::from_millis(child.deadline.saturating_sub(now_ms()));
    let foreground =
        Foreground { cancel: running.cancel.clone(), on_event: watched(running, usage) };
    let run = session.run(None, foreground);
    tokio::pin!(run);
    let ended = loop {
        tokio::select! {
            ended = &mut run => break ended,
            () = tokio::time::sleep(until), if !is_timed_out.load(Ordering::Relaxed) => {
                is_timed_out.store(true, Ordering::Relaxed);
                running.cancel.cancel();
            }
        }
    };
    jobs.close_own_jobs(&|_| {}).await;
    Ok(match ended {
        Ok(result) => (Ending::Completed, result.reply),
        Err(error) if is_timed_out.into_inner() => (Ending::TimedOut, error.message),
        Err(error) if running.cancel.is_cancelled() => (Ending::Stopped, error.message),
        Err(error) => return Err(error),
    })
}

/// The config of a sub-agent's session. It may do no more than its parent, and works where that does.
pub(super) fn config_of(
    parent: &SessionConfig,
    child: &Child,
) -> Result<SessionConfig, AgentError> {
    let mut config = match child.agent == parent.agent.id.as_str() {
        true => parent.for_session(child.session.clone()),
        false => {
            let options = SessionOptions {
                session: Some(child.session.to_string()),
                ..SessionOptions::default()
            };
            let new =
                SessionConfig::new(parent.home.clone(), Arc::clone(&parent.config), &options)?;
            SessionConfig {
                background: Arc::clone(&parent.background),
                options: parent.options.clone(),
                ..new
            }
        }
    };
    config.directory = child.directory.clone().or_else(|| parent.directory.clone());
    config.narrowed.clone_from(&child.narrowed);
    if let Some(mode) = child.mode {
        config.mode.set(mode);
    }
    config.on_behalf_of(child.principals.clone())
}

/// Notes what a sub-agent does, in lines for those who look on.
fn watched(running: &Arc<Running>, usage: Arc<Mutex<Usage>>) -> EventCallback {
    let running = Arc::clone(running);
    Arc::new(move |event| match &event.kind {
        AgentRunEvent::ToolStart { tool_name, arguments, .. } => {
            let (verb, about) = declaration_of(tool_name).about.of(arguments);
            let verb = if verb.is_empty() { tool_name } else { verb };
            let line = plain_name(&format!("{verb} {}", about.join(", ")), MOST_LINE_CHARS);
            running.last.lock().clone_from(&line);
            if let Some(shown) = &*running.shown.lock() {
                // Who does not keep up misses a line.
                let _ = shown.try_send(format!("{line}\n"));
            }
        }
        AgentRunEvent::LlmUsage { usage: call, .. } => usage.lock().add_call(call),
        _ => {}
    })
}

/// Puts the result into the parent's inbox, unless it is there, or in the log. Blocks.
fn put(
    sessions: &dyn Sessions,
    parent: &SessionKey,
    child: &Child,
    text: &str,
) -> Result<(), SessionError> {
    put_once(sessions, parent, &message(child.result_id(), text.to_owned()), child.started_at)
}

/// The answer to the task, if the sub-agent has given it. Blocks.
fn answer_of(sessions: &dyn Sessions, child: &Child) -> Result<Option<String>, SessionError> {
    let mut search = SearchOfOne::new(child.task_id(), child.started_at);
    sessions.whereabouts(&child.session, &mut search)?;
    Ok(match search.answers.into_found().remove(&child.task_id()) {
        Some(TakenState::Answered { text, .. }) => Some(text),
        _ => None,
    })
}
