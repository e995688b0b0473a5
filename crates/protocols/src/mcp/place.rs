//! The open sessions, as the requests of the client see them: what is running, what is asked, how the last turn failed.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::SessionEvent;
use myclaw_agent::approvals::{Question, WrittenAnswer, refusal, run_instead};
use myclaw_agent::mcp::serve::{self, Answer};
use myclaw_agent::mcp::{served_answer, served_question};
use myclaw_engine::{AgentRunEvent, Approval, ApprovalRequest, Approver};
use myclaw_session::SessionKey;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

/// All open sessions.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<SessionKey, Arc<Place>>>);

/// One of them.
pub(super) struct Place {
    news: watch::Sender<News>,
    state: Mutex<State>,
}

/// What has changed last.
#[derive(Debug, Clone, Default)]
struct News {
    /// What the session is at, for people; empty if something else has changed.
    at: String,
}

#[derive(Default)]
struct State {
    /// Why the last turn has no reply.
    failure: Option<String>,
    asked: Option<Asked>,
}

struct Asked {
    question: serve::Question,
    answer: oneshot::Sender<Answer>,
}

impl Places {
    /// The place of a session, made if there is none.
    pub(super) fn of(&self, key: &SessionKey) -> Arc<Place> {
        Arc::clone(self.0.lock().entry(key.clone()).or_insert_with(|| {
            Arc::new(Place { news: watch::Sender::default(), state: Mutex::default() })
        }))
    }

    pub(super) fn on_event(&self, key: &SessionKey, event: &SessionEvent<'_>) {
        let place = self.of(key);
        let at = match event {
            SessionEvent::Run(event) => match &event.kind {
                AgentRunEvent::ToolStart { tool_name, .. } => format!("uses {tool_name}"),
                _ => return,
            },
            SessionEvent::Begin(_) => {
                place.state.lock().failure = None;
                String::new()
            }
            SessionEvent::End(outcome, _) => {
                place.state.lock().failure =
                    outcome.as_ref().err().map(|error| error.message.clone());
                String::new()
            }
        };
        place.news.send_replace(News { at });
    }
}

impl Approver for Places {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let place = self.of(&request.session);
            let (answer, answered) = oneshot::channel();
            let question = served_question(&Question::from(request), None);
            let id = question.id.clone();
            place.state.lock().asked = Some(Asked { question, answer });
            place.news.send_replace(News::default());
            let _waiting = Waiting { place: Arc::clone(&place), id };
            let Ok(answer) = answered.await else { return denied("the question was withdrawn") };
            match served_answer(answer, &request.always) {
                WrittenAnswer::Once => Approval::Once,
                WrittenAnswer::Always(scope) => request.always(scope).unwrap_or(Approval::Once),
                WrittenAnswer::No(reason) => denied(&refusal(reason.as_deref())),
                WrittenAnswer::Said(words) => Approval::Said { words },
                WrittenAnswer::Cancel => Approval::Cancelled,
                WrittenAnswer::Instead(command) => denied(&refusal(Some(&run_instead(&command)))),
            }
        })
    }
}

/// Removes a question that does not wait any more.
struct Waiting {
    place: Arc<Place>,
    id: String,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.place.state.lock();
        if state.asked.as_ref().is_some_and(|asked| asked.question.id == self.id) {
            state.asked = None;
        }
        drop(state);
        self.place.news.send_replace(News::default());
    }
}

impl Place {
    /// Why the last turn has no reply.
    pub(super) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Forgets how the last turn failed, before another begins.
    pub(super) fn begin(&self) {
        self.state.lock().failure = None;
    }

    /// What is asked.
    pub(super) fn question(&self) -> Option<serve::Question> {
        self.state.lock().asked.as_ref().map(|asked| asked.question.clone())
    }

    /// Answers a question. False if it does not wait.
    pub(super) fn answer(&self, id: &str, answer: Answer) -> bool {
        let mut state = self.state.lock();
        let asked = state.asked.take_if(|asked| asked.question.id == id);
        asked.is_some_and(|asked| asked.answer.send(answer).is_ok())
    }

    /// What changes from now on.
    pub(super) fn watch(&self) -> Watching {
        Watching(self.news.subscribe())
    }
}

/// The changes of a place.
pub(super) struct Watching(watch::Receiver<News>);

impl serve::Watch for Watching {
    fn changed(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            if self.0.changed().await.is_err() {
                // The place is gone only when the program ends.
                std::future::pending::<()>().await;
            }
            let at = self.0.borrow_and_update().at.clone();
            Some(at).filter(|at| !at.is_empty())
        })
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
