//! Sub-agents of the sessions of a terminal, a program or an editor, without a gateway.
//!
//! | step | durable in |
//! |---|---|
//! | the sub-agent is recorded | the document of its parent |
//! | its task is a message of its session | its inbox, under an id that follows from the sub-agent's |
//! | it works, and answers | its log |
//! | its parent has the result: of the call, or as a message under an id that follows too | the parent's log, or inbox |
//! | the record goes | the document |
//!
//! Each step can be repeated. What a killed process leaves is found when its parent is opened again: a result that no call
//! has given becomes a message then.

mod attend;
pub(crate) mod declared;
mod record;
mod spawn;
mod words;
mod work;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use myclaw_engine::{Approval, ApprovalRequest, Approver, Engine, ProgramRequest, Tool};
use myclaw_session::{Role, SessionKey, Sessions};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::driver::{Driver, FrontEndTools};
use crate::session::SessionCallback;
use crate::session_config::SUBAGENT_CHANNEL;
use crate::{AgentError, FailureClass, SessionConfig};
use attend::AttendTool;
pub use record::child_session;
use record::{Child, ChildRecords};
use spawn::SpawnTool;
pub use words::{Ending, Named, label_of, result_text, task_text};
use work::Outcome;

/// The sub-agents of a front-end's sessions. It passes on what the front-end offers besides.
pub struct SubagentTools {
    front_end: Option<Arc<dyn FrontEndTools>>,
    this: Weak<Self>,
    driver: OnceLock<Weak<Driver>>,
    /// Those that run in this process, by their sessions.
    running: Mutex<HashMap<SessionKey, Arc<Running>>>,
    /// Called with the parent when one in the background has ended, by a front-end that waits for them.
    awaits: OnceLock<OnResult>,
}

/// Called with the key of a session when one of its sub-agents in the background has ended, and its result waits.
pub type OnResult = Arc<dyn Fn(&SessionKey) + Send + Sync>;

/// A sub-agent that runs.
pub(crate) struct Running {
    child: Child,
    parent: SessionKey,
    /// What its file tells it.
    instructions: Option<String>,
    cancel: CancellationToken,
    /// Who shows what it does: the call that waits for it.
    shown: Mutex<Option<mpsc::Sender<String>>>,
    /// What it did last.
    last: Mutex<String>,
    outcome: watch::Receiver<Option<Arc<Outcome>>>,
}

impl SubagentTools {
    /// A driver as [`Driver::with_tools`] makes it, whose sessions have sub-agents besides. `approver` is asked about the
    /// calls of sub-agents as about those of the session above.
    pub fn drive(
        engine: Engine,
        stop: CancellationToken,
        on_event: SessionCallback,
        approver: Option<Arc<dyn Approver>>,
        front_end: Option<Arc<dyn FrontEndTools>>,
    ) -> (Arc<Driver>, Arc<Self>) {
        let subagents = Arc::new_cyclic(|this| Self {
            front_end,
            this: this.clone(),
            driver: OnceLock::new(),
            running: Mutex::default(),
            awaits: OnceLock::new(),
        });
        let asking = |front_end| -> Arc<dyn Approver> {
            Arc::new(FamilyApprover { front_end, subagents: Arc::clone(&subagents) })
        };
        let approver = approver.map(asking);
        let tools = Some(Arc::clone(&subagents) as Arc<dyn FrontEndTools>);
        let driver = Driver::with_tools(engine, stop, on_event, approver, tools);
        // It is the first one.
        let _ = subagents.driver.set(Arc::downgrade(&driver));
        (driver, subagents)
    }

    /// Lets sessions that do not stay open have sub-agents in the background too: the front-end waits for them before a session
    /// ends. It has their results answered. To be called once, before the first run.
    pub fn await_results(&self, then: OnResult) {
        let _ = self.awaits.set(then);
    }

    /// How many sub-agents of a session work in the background.
    pub fn in_background(&self, parent: &SessionKey) -> usize {
        self.of(parent).iter().filter(|one| one.child.background).count()
    }

    /// Waits until no sub-agent of a session works in the background. False if none did.
    pub async fn background_ended(&self, parent: &SessionKey) -> bool {
        let mut has_waited = false;
        while let Some(one) = self.of(parent).into_iter().find(|one| one.child.background) {
            let mut outcome = one.outcome.clone();
            // It fails if the task is gone, and what it left is recorded.
            if outcome.wait_for(Option::is_some).await.is_err() {
                break;
            }
            has_waited = true;
        }
        has_waited
    }

    /// Stops the sub-agents of a session that work in the background. Each reports that.
    pub fn stop_background(&self, parent: &SessionKey) {
        let of = self.of(parent);
        of.iter().filter(|one| one.child.background).for_each(|one| one.cancel.cancel());
    }

    /// Whether those in the background of this session get their results answered.
    fn has_background(&self, parent: &SessionConfig) -> bool {
        parent.background.sessions_stay_open() || self.awaits.get().is_some()
    }

    /// Takes up what a killed process has left of the sub-agents of a session. Those that have answered become messages;
    /// the others work again, where somebody waits for them.
    pub fn take_up(&self, parent: &SessionConfig) {
        match self.left(parent) {
            Ok(children) => {
                let works = self.has_background(parent);
                for child in children {
                    self.go_on_with(parent, child, works);
                }
            }
            Err(error) => tracing::warn!(session = parent.session_key.as_str(), "{error}"),
        }
    }

    /// The sub-agents of a session that no process works on, each as one in the background: the calls that began them have
    /// ended. A short list is read, and the end of the log if it is not empty.
    fn left(&self, parent: &SessionConfig) -> Result<Vec<Child>, AgentError> {
        let (records, key) = (self.records(parent), &parent.session_key);
        let sessions = parent.home.sessions();
        // While a run of another process has the session, its calls may still give the results.
        if records.of(key)?.is_empty() || sessions.is_in_use(key)? {
            return Ok(Vec::new());
        }
        let running: HashSet<String> =
            self.running.lock().values().map(|running| running.child.id.clone()).collect();
        let mut left = Vec::new();
        records.change(key, &mut |children| {
            let given = |child: &Child| !child.background && is_given(&**sessions, key, child);
            children.retain(|child| running.contains(&child.id) || !given(child));
            let mine = children.iter_mut().filter(|child| !running.contains(&child.id));
            left = mine
                .map(|child| {
                    child.background = true;
                    child.clone()
                })
                .collect();
        })?;
        Ok(left)
    }

    fn records(&self, config: &SessionConfig) -> ChildRecords {
        ChildRecords(Arc::clone(&config.home.stores().subagents))
    }

    /// The running sub-agents of a session, the oldest first.
    fn of(&self, parent: &SessionKey) -> Vec<Arc<Running>> {
        let running = self.running.lock();
        let mut found: Vec<Arc<Running>> =
            running.values().filter(|one| one.parent == *parent).cloned().collect();
        found.sort_by_key(|one| one.child.started_at);
        found
    }

    fn driver(&self) -> Result<Arc<Driver>, AgentError> {
        self.driver.get().and_then(Weak::upgrade).ok_or_else(|| {
            AgentError::new(FailureClass::NotRunning, "this program ends, so no sub-agent begins")
        })
    }

    /// How many sub-agents are above a session, with itself; `None` if nothing is known about them.
    fn depth(config: &SessionConfig) -> Option<u32> {
        let is_child = config.session_key.parts().channel == SUBAGENT_CHANNEL;
        let depth = u32::try_from(config.principals.len()).unwrap_or(u32::MAX);
        (!is_child || depth > 0).then_some(depth)
    }
}

/// Whether the log of the parent has the result of the call that began a sub-agent.
fn is_given(sessions: &dyn Sessions, parent: &SessionKey, child: &Child) -> bool {
    let mut found = false;
    let read = sessions.visit_newest(parent, &mut |row| {
        let is_older = row.ts != 0 && row.ts < child.started_at;
        found |= row.role == Role::Tool
            && row.meta.is_some_and(|meta| meta.as_str().contains(&child.id));
        match found || is_older {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    // What cannot be read has to be told again.
    read.is_ok() && found
}

impl FrontEndTools for SubagentTools {
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.front_end.as_ref().map(|own| own.tools(session)).unwrap_or_default();
        let rules = session.config.subagents(&session.agent.id);
        let depth = Self::depth(session).filter(|depth| *depth < rules.max_depth);
        if let (Some(depth), Some(this)) = (depth, self.this.upgrade()) {
            self.take_up(session);
            let has_background = depth == 0 && self.has_background(session);
            tools.push(Arc::new(SpawnTool::new(
                Arc::clone(&this),
                session.clone(),
                has_background,
            )));
            // Who waits for all of them has no other turn in which to look after them.
            if has_background && session.background.sessions_stay_open() {
                tools.push(Arc::new(AttendTool::new(this, session.clone())));
            }
        }
        tools
    }

    fn adapt(&self, session: &SessionConfig, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        match &self.front_end {
            Some(own) => own.adapt(session, tools),
            None => tools,
        }
    }

    fn asked(&self, session: &SessionConfig) -> ProgramRequest {
        self.front_end.as_ref().map(|own| own.asked(session)).unwrap_or_default()
    }

    fn note(&self, session: &SessionConfig) -> Option<String> {
        if let Some(running) = self.running.lock().get(&session.session_key) {
            return running.instructions.clone();
        }
        self.front_end.as_ref().and_then(|own| own.note(session))
    }
}

/// Asks about the calls of sub-agents in the session that people look at.
struct FamilyApprover {
    front_end: Arc<dyn Approver>,
    subagents: Arc<SubagentTools>,
}

impl FamilyApprover {
    /// The question as the session at the top asks it; `None` if it is its own.
    fn asked_above(&self, request: &ApprovalRequest) -> Option<ApprovalRequest> {
        let running = self.subagents.running.lock();
        let asking = running.get(&*request.session)?;
        let mut top = asking.parent.clone();
        while let Some(above) = running.get(&top) {
            top = above.parent.clone();
        }
        let mut asked = request.clone();
        asked.session = Arc::new(top);
        asked.reason =
            format!("asked by the sub-agent \"{}\"; {}", asking.child.named().name, request.reason);
        // Several sub-agents may give their calls the same id.
        asked.call.tool_call_id = format!("{}.{}", asking.child.id, request.call.tool_call_id);
        Some(asked)
    }
}

impl Approver for FamilyApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            match self.asked_above(request) {
                Some(asked) => self.front_end.decide(&asked).await,
                None => self.front_end.decide(request).await,
            }
        })
    }
}
