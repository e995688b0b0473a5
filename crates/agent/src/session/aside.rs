//! A question aside: the model answers it with all that the session holds, and the session stays as it is.
//!
//! The turn runs in a copy of the log that only this process has, so the request begins with the same bytes as those of the
//! session. The tools stay in the request for the same reason, and no call of one is made.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::IterationCap;
use myclaw_engine::{
    Hook, HookError, Lanes, ModelSwitch, PendingToolCall, QuietMessages, RunResult, ToolCallVerdict,
};
use myclaw_llm::{ContentBlock, ToolUse};
use myclaw_session::{Entry, LockWait, MemorySessions, SessionKey, Sessions as _};

use super::{Foreground, Running, Session, SessionWork};
use crate::blocking::blocking;
use crate::{AgentError, Home};

/// Calls of the model: the answer, and one more for a model that calls a tool although it may not.
const MOST_CALLS: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// What stands before the question.
const INTRODUCTION: &str = include_str!("aside.md");

impl Session {
    /// Answers a question with what the session holds, without tools. Neither the question nor the answer is added to the
    /// session, which may be at work meanwhile. What it costs is in the totals of the day.
    ///
    /// # Errors
    /// The question is empty, or there is no answer.
    pub async fn ask_aside(
        &self,
        question: &str,
        foreground: Foreground,
    ) -> Result<RunResult, AgentError> {
        if question.trim().is_empty() {
            return Err(AgentError::usage("the question is empty; say what you want to know"));
        }
        let (config, selection) = self.prepared().await?;
        let (home, key) = (config.home.clone(), self.key().clone());
        let copied = blocking(move || copy(&home, &key)).await??;
        let Foreground { cancel, on_event } = foreground;
        let running = Running { work: SessionWork::Turn, cancel, switch: ModelSwitch::default() };
        let mut params = self.params((&config, &selection), running, on_event).await?;
        params.stores.sessions = Arc::new(copied);
        // The turn of the session holds its lane, and what waits belongs to that turn.
        params.enqueue = Some(Arc::new(Lanes::default()));
        params.quiet = QuietMessages::default();
        params.rules.max_iterations = IterationCap::Limited(MOST_CALLS);
        params.tool_use = ToolUse::Forbidden;
        params.hooks.insert(0, Arc::new(NoCalls));
        let asked = format!("{}\n\n{question}", INTRODUCTION.trim_end());
        params.user_message = vec![ContentBlock::text(asked)];
        self.driver.run(params, &selection).await
    }
}

/// The session in the memory of this process.
fn copy(home: &Home, key: &SessionKey) -> Result<MemorySessions, AgentError> {
    let copied = MemorySessions::new(PathBuf::new());
    if let Some(reader) = home.catalog().read(key)? {
        let entries = reader.entries().collect::<Result<Vec<Entry>, _>>()?;
        let mut log = copied.open(key, LockWait::Fail)?;
        let end = log.end();
        log.append(end, &entries)?;
    }
    Ok(copied)
}

/// Refuses every call.
struct NoCalls;

impl Hook for NoCalls {
    fn name(&self) -> &str {
        "aside"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn tool_call<'a>(
        &'a self,
        _call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        let reason =
            "a question aside is answered without tools; answer with what you know".to_owned();
        Box::pin(async { Ok(ToolCallVerdict::Block { reason }) })
    }
}
