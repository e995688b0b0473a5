//! `/btw`: a question whose answer is shown and not kept, at the prompt and while the agent works.

use std::sync::Arc;

use myclaw_agent::{AgentError, Foreground, Session};
use myclaw_engine::{EventCallback, RunResult};
use myclaw_llm::ContentBlock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Chat;
use super::facts::Facts;
use myclaw_front::exit::CliError;
use myclaw_front::report::first_line;

/// What a turn is for.
pub(super) enum TurnWork {
    /// A message of the user, or what waits in the session.
    Session(Option<String>),
    /// A question aside.
    Aside(String),
}

/// The same with the content of the message.
pub(super) enum PreparedWork {
    Session(Option<Vec<ContentBlock>>),
    Aside(String),
}

impl PreparedWork {
    /// Runs the turn.
    pub(super) async fn run(
        self,
        session: &Session,
        foreground: Foreground,
    ) -> Result<RunResult, AgentError> {
        match self {
            // Boxed: the state of a turn is large, and this one would be held inside that of the chat twice.
            Self::Session(message) => Box::pin(session.run(message, foreground)).await,
            Self::Aside(question) => Box::pin(session.ask_aside(&question, foreground)).await,
        }
    }
}

/// The question that was asked while the agent works, if it has no answer yet.
#[derive(Debug, Default)]
pub(super) struct OpenAside(Option<AbortOnDropHandle<String>>);

impl OpenAside {
    /// Asks a question, unless one is open; returns what there is to say.
    pub(super) fn ask(&mut self, facts: &Facts<'_>, question: String) -> String {
        if self.0.is_some() {
            return "the last question aside is not answered yet; wait for its answer".to_owned();
        }
        let (session, common) = (Arc::clone(facts.session), Arc::clone(facts.common));
        let on_event: EventCallback = Arc::new(move |event| common.heed_usage(&event.kind));
        self.0 = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let foreground = Foreground { cancel: CancellationToken::new(), on_event };
            let answer = match session.ask_aside(&question, foreground).await {
                Ok(result) => result.reply.trim().to_owned(),
                Err(error) => error.message,
            };
            format!("aside: {}\n{answer}", first_line(&question))
        })));
        "asked aside; the answer comes here".to_owned()
    }

    /// The question and its answer; waits for ever if none is open. May be dropped and called again.
    pub(super) async fn answer(&mut self) -> String {
        let Some(asked) = &mut self.0 else { return std::future::pending().await };
        let answer = asked.await.unwrap_or_else(|error| error.to_string());
        self.0 = None;
        answer
    }
}

impl Chat {
    /// Reads what a message names.
    pub(super) async fn prepared(&mut self, work: TurnWork) -> Result<PreparedWork, CliError> {
        Ok(match work {
            TurnWork::Session(Some(text)) => PreparedWork::Session(Some(self.content(text).await?)),
            TurnWork::Session(None) => PreparedWork::Session(None),
            TurnWork::Aside(question) => PreparedWork::Aside(question),
        })
    }

    /// Shows the answer to a question that the end of the turn has overtaken. Ctrl-C drops it.
    pub(super) async fn finish_aside(&mut self) -> Result<(), CliError> {
        let mut aside = std::mem::take(&mut self.leftover.aside);
        if aside.0.is_none() {
            return Ok(());
        }
        let cancel = CancellationToken::new();
        let _armed = self.interrupts.arm(cancel.clone());
        tokio::select! {
            answer = aside.answer() => self.say(&answer),
            () = cancel.cancelled() => Ok(()),
        }
    }
}
