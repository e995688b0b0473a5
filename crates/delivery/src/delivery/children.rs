//! Sub-agents: how they begin, and how their results reach their parents.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::subagents::{Ending, child_session, label_of, result_text, task_text};
use myclaw_agent::{SessionConfig, SessionOptions};
use myclaw_config::{AgentId, Subagents};
use myclaw_llm::ThinkingLevel;
use myclaw_store::{Batch, Version, Write};
use serde_json::{Value, json};

use super::Delivery;
use super::desk::Source;
use crate::DeliveryError;
use crate::choice::Choice;
use crate::ledger::{Ledger, OpenMessage, now_ms};
use crate::message::MAX_TEXT_BYTES;
use crate::route::Route;
use crate::rows::{Incoming, MessageId, MessageState, Occasion, hash};
use crate::subagents::{Child, ChildEnd, ChildState, is_of_child};

/// Pause between two attempts to stop a sub-agent whose time is over.
const STOP_PAUSE: Duration = Duration::from_millis(500);
/// How often one call of a parent may have begun a sub-agent that has ended.
const MOST_ATTEMPTS: usize = 1_000;

/// What a sub-agent is to do.
pub struct ChildOrder {
    /// The first message of its session.
    pub task: String,
    /// Its name, if it has one.
    pub label: Option<String>,
    /// Another agent than that of its parent.
    pub agent: Option<String>,
    /// `provider/model`, if not that of the config.
    pub model: Option<String>,
    /// The thinking level, if not that of the config.
    pub thinking: Option<String>,
    /// When it is stopped, if not after the time of the config.
    pub timeout_seconds: Option<u64>,
}

/// The end of a sub-agent, and the message with which its parent gets the result.
pub(super) struct ChildResult {
    end: ChildEnd,
    message: MessageId,
    row: Incoming,
}

impl ChildResult {
    /// What has to be stored together.
    pub(super) fn writes(&self, ledger: &Ledger) -> Result<Vec<Write>, DeliveryError> {
        let mut writes = ledger.insert_open(&self.message, &self.row)?;
        writes.push(self.end.write.clone());
        Ok(writes)
    }
}

impl Delivery {
    /// Begins a sub-agent. The same call again finds the same one, and so does the same order while it runs: after a
    /// crash, a model that does not know whether its call succeeded repeats it.
    pub async fn begin_child(
        self: &Arc<Self>,
        parent: &SessionConfig,
        call: &str,
        order: ChildOrder,
    ) -> Result<Value, DeliveryError> {
        let key = parent.session_key.as_str();
        let rules = self.config().subagents(&parent.agent.id);
        let depth = self.depth(key).await? + 1;
        if depth > rules.max_depth {
            return Err(unusable(format!(
                "a sub-agent may be nested {} deep (subagents.maxSpawnDepth); do the task yourself",
                rules.max_depth
            )));
        }
        let (id, running) = self.free_id(key, call, &order.digest()).await?;
        if let Some(child) = running {
            return Ok(described(&child));
        }
        let child = self.new_child(parent, &rules, id, depth, &order).await?;
        let row = Incoming {
            occasion: Some(Occasion::Task),
            ..Incoming::new(
                Route::nowhere(),
                child.id.clone(),
                child.session.clone(),
                task_text(&child.named(), &child.parent, &order.task),
                child.started_at,
            )
        };
        let write = self.children.reserve(&child, rules.max_children)?;
        let message = MessageId::of(&Route::internal("subagent-task"), &child.id);
        let begun = self.begin(message, row, Batch::of(write)).await;
        if !matches!(begun, Ok(Some(_))) {
            self.children.forget(&child.session);
        }
        if begun?.is_none() {
            return Err(unusable(
                "the same sub-agent was begun at the same moment; see `subagents`",
            ));
        }
        Ok(described(&child))
    }

    /// The id of a new sub-agent, or the one that this call, or the same order, has begun.
    async fn free_id(
        &self,
        parent: &str,
        call: &str,
        order: &str,
    ) -> Result<(String, Option<Child>), DeliveryError> {
        let same = self.children.running(|child| child.parent == parent && child.order == order);
        if let Some(child) = same.into_iter().next() {
            return Ok((child.id.clone(), Some(child)));
        }
        for attempt in 0..MOST_ATTEMPTS {
            let id = Child::id_of(parent, call, attempt);
            match self.children.record(&id).await? {
                None => return Ok((id, None)),
                Some(child) if child.is_running() => return Ok((id, Some(child))),
                Some(_) => {}
            }
        }
        Err(unusable("the model gave all its calls the same id; begin another session"))
    }

    async fn new_child(
        &self,
        parent: &SessionConfig,
        rules: &Subagents,
        id: String,
        depth: u32,
        order: &ChildOrder,
    ) -> Result<Child, DeliveryError> {
        let own = &parent.agent.id;
        let agent = order.agent.as_deref().map_or_else(|| own.clone(), AgentId::new);
        if !rules.allows_agent(own, &agent) || !self.config().agent_ids().contains(&agent) {
            return Err(unusable(format!(
                "the agent {own} may not start the agent {agent}; the tool `agents_list` says which it may \
                 (subagents.allowAgents)"
            )));
        }
        if order.task.trim().is_empty() || order.task.len() > MAX_TEXT_BYTES / 2 {
            let most = MAX_TEXT_BYTES / 2;
            return Err(unusable(format!("`task` has 1 to {most} bytes; say what is to be done")));
        }
        if let Some(model) = &order.model
            && !rules.allows_model(model)
        {
            return Err(unusable(format!(
                "{model} may not be chosen for a sub-agent (subagents.models); leave `model` out"
            )));
        }
        let thinking =
            order.thinking.clone().or(rules.thinking.map(|level| level.as_str().to_owned()));
        if let Some(word) = &thinking {
            level_of(word)?;
        }
        let model = order.model.clone().or_else(|| rules.model.clone());
        let session = child_session(agent.as_str(), &id);
        // A mistake is said now, not in a result.
        let config = self.session_config(session.as_str())?.on_behalf_of(parent.principals())?;
        config.select_model(model.as_deref()).await?;
        let longest = rules.run_timeout.as_secs();
        let seconds = order.timeout_seconds.map_or(longest, |seconds| seconds.clamp(1, longest));
        let started_at = now_ms();
        Ok(Child {
            id,
            session: session.to_string(),
            parent: parent.session_key.to_string(),
            depth,
            label: order.label.as_deref().and_then(label_of),
            order: order.digest(),
            model,
            thinking,
            route: self.current_route(parent.session_key.as_str()).await?,
            principals: parent.principals(),
            started_at,
            deadline: started_at.saturating_add(seconds.saturating_mul(1_000)),
            state: ChildState::Running,
        })
    }

    /// How many sub-agents are above a session, with itself.
    pub async fn depth(&self, session: &str) -> Result<u32, DeliveryError> {
        Ok(self.children.know(session).await?.map_or(0, |child| child.depth))
    }

    /// The chat in which a session is talking at this moment: where the messages came from that it answers, else where
    /// somebody wrote last.
    pub(crate) async fn current_route(&self, session: &str) -> Result<Route, DeliveryError> {
        let desk = self.desks().get(session).cloned();
        let running = desk.map(|desk| desk.running_routes()).unwrap_or_default();
        let last = self.schedule.routes.last(session).await?;
        let is_last = |(route, _): &&(Route, Option<String>)| Some(route) == last.as_ref();
        let found = running.iter().find(is_last).or(running.first());
        Ok(found.map(|(route, _)| route.clone()).or(last).unwrap_or_else(Route::nowhere))
    }

    /// What a session needs to be opened. A sub-agent's follows the rules of those on whose behalf it works.
    pub(super) fn opening(
        &self,
        session: &str,
    ) -> Result<(SessionConfig, SessionOptions), DeliveryError> {
        let config = self.session_config(session)?;
        let mut options = SessionOptions::default();
        if !is_of_child(session) {
            let catalog = config.home.catalog();
            // No session depends on the list.
            let chosen = Choice::stored(&**catalog, &config.session_key).unwrap_or_else(|error| {
                tracing::warn!(%error, session, "the session has the model of the config");
                Choice::default()
            });
            options.thinking = chosen.thinking;
            options.model = chosen.model();
            return Ok((config, options));
        }
        let child = self.children.get(session).ok_or_else(|| {
            unusable(format!(
                "nothing is known any more about the sub-agent of {session}; start another one"
            ))
        })?;
        options.model.clone_from(&child.model);
        options.thinking = child.thinking.as_deref().map(level_of).transpose()?;
        let sessions = child.principals.iter().map(|one| one.session.to_string()).collect();
        self.approvals.questions.ask_also(session, sessions);
        Ok((config.on_behalf_of(child.principals)?, options))
    }

    /// The ends of the sub-agents whose tasks are among `messages`.
    pub(super) async fn results(
        &self,
        messages: &[OpenMessage],
        text: &str,
        state_of: &(dyn Fn(&OpenMessage) -> MessageState + Sync),
    ) -> Result<Vec<ChildResult>, DeliveryError> {
        let mut results = Vec::new();
        for message in messages.iter().filter(|one| one.row.occasion == Some(Occasion::Task)) {
            let session = message.row.session.as_str();
            let how = match state_of(message) {
                MessageState::Reported { class, .. } if class == "aborted" => {
                    match self.children.is_timed_out(session) {
                        true => Ending::TimedOut,
                        false => Ending::Stopped,
                    }
                }
                MessageState::Reported { .. } | MessageState::Dropped { .. } => Ending::Failed,
                MessageState::Answered { .. } | MessageState::Open => Ending::Completed,
            };
            let Some(end) = self.children.end(session, how).await? else { continue };
            let ChildState::Ended { at, message, .. } = end.child.state.clone() else { continue };
            let seconds = at.saturating_sub(end.child.started_at) / 1_000;
            let text = result_text(&end.child.named(), how, seconds, text);
            let child = &end.child;
            let (route, source) = (child.route.clone(), child.id.clone());
            let senders =
                child.principals.last().map(|one| one.senders.clone()).unwrap_or_default();
            let occasion = Some(Occasion::Result { child: child.session.clone(), senders });
            let row = Incoming::new(route, source, child.parent.clone(), text, at);
            results.push(ChildResult { end, message, row: Incoming { occasion, ..row } });
        }
        Ok(results)
    }

    /// Hands stored results to the parents.
    pub(super) fn hand_in_results(&self, results: Vec<ChildResult>, version: Version) {
        for ChildResult { end, message, row } in results {
            self.children.ended(&end.child);
            let Some(this) = self.process.this.upgrade() else { return };
            this.desks.open.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            this.watchers.counters.accepted();
            let message = OpenMessage::new(message, version, row);
            if let Err((error, message)) = this.hand_in(message, Source::New) {
                // It is stored: the next start hands it in, or reports it.
                let session = message.row.session.as_str();
                tracing::error!(session, %error, "the result of a sub-agent is not handed in");
            }
        }
    }

    /// Stops a sub-agent when its time is over.
    pub(super) fn stop_in_time(self: &Arc<Self>, child: &Child) {
        let (this, session) = (Arc::clone(self), child.session.clone());
        let left = Duration::from_millis(child.deadline.saturating_sub(now_ms()));
        self.process.tasks.spawn(async move {
            // Where another gateway has its session, that one stops it.
            let is_running = || {
                this.desks().contains_key(&session)
                    && this.children.get(&session).is_some_and(|child| child.is_running())
            };
            let until = tokio::time::Instant::now() + left;
            // One that ends early need not wait here for its time.
            while is_running() && tokio::time::Instant::now() < until {
                let pause = (until - tokio::time::Instant::now()).min(Duration::from_secs(5));
                tokio::time::sleep(pause).await;
            }
            if is_running() {
                this.children.timed_out(&session);
            }
            // Between two runs there is nothing to stop for a moment.
            while is_running() && !this.process.closing.is_cancelled() {
                this.abort_family(&session);
                tokio::time::sleep(STOP_PAUSE).await;
            }
        });
    }

    /// Aborts what a session does, and what runs on its behalf. False if nothing does.
    pub(super) fn abort_family(&self, session: &str) -> bool {
        let children = self.children.running(|child| child.works_for(session));
        let mut is_aborted = false;
        let all = children.iter().map(|child| child.session.as_str()).chain([session]);
        for session in all {
            let desk = self.desks().get(session).cloned();
            is_aborted |= desk.is_some_and(|desk| desk.abort());
        }
        is_aborted
    }
}

impl ChildOrder {
    /// The same for equal orders.
    fn digest(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let [label, agent, model] = [&self.label, &self.agent, &self.model].map(text);
        hash("t", &[&self.task, &label, &agent, &model])
    }
}

/// A sub-agent, as tools show it.
pub fn described(child: &Child) -> Value {
    let status = match child.state {
        ChildState::Running => json!("running"),
        ChildState::Ended { how, .. } => json!(how),
    };
    json!({
        "status": status,
        "session": child.session,
        "label": child.label,
        "startedAt": child.started_at,
        "stopsAt": child.is_running().then_some(child.deadline),
    })
}

fn level_of(word: &str) -> Result<ThinkingLevel, DeliveryError> {
    word.parse().map_err(|_| {
        unusable(format!(
            "there is no thinking level {word}; there are off, minimal, low, medium, high, xhigh"
        ))
    })
}

fn unusable(message: impl Into<String>) -> DeliveryError {
    DeliveryError::Unusable(message.into())
}
