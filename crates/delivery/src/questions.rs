//! Questions about tool calls that need an approval: an event asks, and a client answers.
//!
//! A question's id is a digest of the call that would run and of what the owner is shown. So an answer holds for exactly
//! that call, and an answer that was meant for another one finds no question.

use myclaw_agent::approvals::{self, WrittenAnswer, run_instead};
use myclaw_engine::{Approval, ApprovalRequest, ScopeKind};
use myclaw_files::hex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

use crate::front::Front;
use crate::ledger::now_ms;

/// Most questions at the same time. A further one is answered with no.
const MOST_OPEN: usize = 1_000;
/// Most sessions of sub-agents that are known.
const MOST_FAMILIES: usize = 10_000;
/// Bytes of the digest in an id.
const ID_BYTES: usize = 16;

/// An answer of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// This call runs.
    Once,
    /// This call runs, and what it covers is not asked about again.
    Always,
    /// It does not run.
    No,
    /// The words that the question wants.
    Words,
    /// The question is closed without an answer.
    Cancel,
    /// Of a plan: these steps are the plan. Of a command: no, and the agent reads which one it should ask about.
    Instead,
}

impl Answer {
    /// Whether it is one to a question, which wants words or not.
    fn fits(self, wants_words: bool) -> bool {
        match self {
            Self::Once | Self::Always | Self::Instead => !wants_words,
            Self::Words => wants_words,
            Self::No | Self::Cancel => true,
        }
    }
}

/// An answer with what it says in addition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullAnswer {
    /// The answer itself.
    pub answer: Answer,
    /// How much "always" covers; the least if it is left out.
    #[serde(default)]
    pub scope: Option<ScopeKind>,
    /// Why not, for the model.
    #[serde(default)]
    pub reason: Option<String>,
    /// The words that the question wants, or what stands in the place of a plan or command; none if they are left out.
    #[serde(default)]
    pub words: Option<String>,
}

impl From<WrittenAnswer> for FullAnswer {
    fn from(written: WrittenAnswer) -> Self {
        let (mut scope, mut reason, mut words) = (None, None, None);
        let answer = match written {
            WrittenAnswer::Once => Answer::Once,
            WrittenAnswer::Always(wanted) => {
                scope = wanted;
                Answer::Always
            }
            WrittenAnswer::No(why) => {
                reason = why;
                Answer::No
            }
            WrittenAnswer::Said(said) => {
                words = Some(said);
                Answer::Words
            }
            WrittenAnswer::Cancel => Answer::Cancel,
            WrittenAnswer::Instead(other) => {
                words = Some(other);
                Answer::Instead
            }
        };
        Self { answer, scope, reason, words }
    }
}

impl FullAnswer {
    /// What it means for a question.
    pub(crate) fn to(self, question: &approvals::Question) -> Self {
        if self.answer != Answer::Instead || question.is_plan() {
            return self;
        }
        // Who may answer questions may not run what they like: the agent asks about that command.
        let reason = self.words.as_deref().map(run_instead);
        Self { answer: Answer::No, scope: None, reason, words: None }
    }

    /// Whether it says what it has to say.
    fn is_whole(&self) -> bool {
        let has_words = self.words.as_ref().is_some_and(|words| !words.trim().is_empty());
        self.answer != Answer::Instead || has_words
    }
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerError {
    /// No question with this id waits.
    NoQuestion,
    /// The question does not offer this answer, and stays open.
    NotOffered,
}

/// A question, as clients read it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    id: String,
    #[serde(flatten)]
    shown: approvals::Question,
    /// Milliseconds since the Unix epoch.
    asked_at: u64,
    /// After this time a missing answer counts as no.
    expires_at: u64,
    /// The sessions on whose behalf this one works, whose clients are asked too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on_behalf_of: Vec<String>,
}

impl Question {
    /// Whether it is a question of the session with this key, or of one that works on its behalf.
    pub fn is_of(&self, session: &str) -> bool {
        self.sessions().any(|key| key == session)
    }

    /// Its id, session and tool.
    pub fn names(&self) -> (String, String, String) {
        (self.id.clone(), self.shown.session.clone(), self.shown.tool_name.clone())
    }

    /// What is shown.
    pub fn shown(&self) -> &approvals::Question {
        &self.shown
    }

    /// When no answer counts as no, and how long it waits in all, in milliseconds.
    pub(crate) fn limit(&self) -> (u64, u64) {
        (self.expires_at, self.expires_at.saturating_sub(self.asked_at))
    }

    /// The sessions that are asked: those on whose behalf this one works, then itself.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &str> {
        self.on_behalf_of.iter().map(String::as_str).chain([self.shown.session.as_str()])
    }
}

struct Open {
    question: Question,
    /// With the answer goes who gave it.
    answered: oneshot::Sender<(FullAnswer, String)>,
}

/// The questions that wait for an answer.
pub struct Questions {
    front: Arc<dyn Front>,
    /// How long the agent waits for an answer, in milliseconds.
    limit: AtomicU64,
    open: Mutex<BTreeMap<String, Open>>,
    /// By the session of a sub-agent: those above it.
    above: Mutex<HashMap<String, Vec<String>>>,
}

/// Closes a question however its wait ends: with an answer, when its time is over, or when the run is aborted.
pub(crate) struct Waiting<'a> {
    questions: &'a Questions,
    question: Question,
    answering: oneshot::Receiver<(FullAnswer, String)>,
    answer: Option<(FullAnswer, String)>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let id = self.question.id.as_str();
        self.questions.open.lock().remove(id);
        let (answer, by) = self.answer.take().unzip();
        let answer = answer.map(|given| given.answer);
        let event =
            json!({"type": "approval_closed", "id": id, "answer": answer, "answeredBy": by});
        for session in self.question.sessions() {
            self.questions.front.publish(session, &event);
        }
    }
}

impl Questions {
    /// `limit` is how long the agent waits for an answer.
    pub fn new(front: Arc<dyn Front>, limit: Duration) -> Self {
        let questions = Self {
            front,
            limit: AtomicU64::default(),
            open: Mutex::default(),
            above: Mutex::default(),
        };
        questions.set_limit(limit);
        questions
    }

    /// Changes how long the agent waits for answers to questions from here on.
    pub(crate) fn set_limit(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.limit.store(limit, Ordering::SeqCst);
    }

    /// From now on, questions of `session` are also questions of the sessions `above` it.
    pub(crate) fn ask_also(&self, session: &str, above: Vec<String>) {
        let mut known = self.above.lock();
        if known.len() >= MOST_FAMILIES {
            // An open session with a question keeps its own copy; another one is asked about when it is opened again.
            known.clear();
        }
        known.insert(session.to_owned(), above);
    }

    fn above(&self, session: &str) -> Vec<String> {
        let known = self.above.lock();
        known.get(session).cloned().unwrap_or_default()
    }

    /// The open questions, of one session or of all, the oldest first.
    pub fn list(&self, session: Option<&str>) -> Vec<Question> {
        let open = self.open.lock();
        let all = open.values().map(|open| &open.question);
        let mut wanted: Vec<Question> =
            all.filter(|one| session.is_none_or(|key| one.is_of(key))).cloned().collect();
        wanted.sort_by_key(|question| question.asked_at);
        wanted
    }

    /// The open question with this id.
    pub fn find(&self, id: &str) -> Option<Question> {
        self.open.lock().get(id).map(|open| open.question.clone())
    }

    /// Answers a question, which it gives back with what the answer means. `by` says who answers.
    ///
    /// # Errors
    /// There is no such question, or it does not offer this answer.
    pub fn answer(
        &self,
        id: &str,
        given: FullAnswer,
        by: String,
    ) -> Result<(Question, Answer), AnswerError> {
        let mut open = self.open.lock();
        let question = &open.get(id).ok_or(AnswerError::NoQuestion)?.question;
        let is_offered = given.answer != Answer::Always || question.shown.offers(given.scope);
        let fits = given.answer.fits(question.shown.wants.is_some()) && given.is_whole();
        if !is_offered || !fits {
            return Err(AnswerError::NotOffered);
        }
        let given = given.to(&question.shown);
        let Open { question, answered } = open.remove(id).ok_or(AnswerError::NoQuestion)?;
        let meant = (question, given.answer);
        answered.send((given, by)).map(|()| meant).map_err(|_| AnswerError::NoQuestion)
    }

    fn question(&self, request: &ApprovalRequest) -> Question {
        let asked_at = now_ms();
        let limit = self.limit.load(Ordering::SeqCst);
        let mut question = Question {
            id: String::new(),
            shown: request.into(),
            asked_at: 0,
            expires_at: 0,
            on_behalf_of: self.above(request.session.as_str()),
        };
        // Without the times: the same question after a restart has the same id.
        let bytes = serde_json::to_vec(&question).unwrap_or_default();
        let digest = digest(&SHA256, &bytes);
        question.id = format!("a{}", hex(&digest.as_ref()[..ID_BYTES]));
        (question.asked_at, question.expires_at) = (asked_at, asked_at.saturating_add(limit));
        question
    }
}

impl Questions {
    /// Opens a question about a call, and tells the clients.
    ///
    /// # Errors
    /// Too many questions wait; this is the answer.
    pub(crate) fn open(&self, request: &ApprovalRequest) -> Result<Waiting<'_>, Approval> {
        let question = self.question(request);
        let (answered, answering) = oneshot::channel();
        {
            let mut open = self.open.lock();
            if open.len() >= MOST_OPEN {
                return Err(denied(
                    "too many questions wait for the user already; try again later",
                ));
            }
            open.insert(question.id.clone(), Open { question: question.clone(), answered });
        }
        let mut event = json!(question);
        event["type"] = json!("approval");
        for session in question.sessions() {
            self.front.publish(session, &event);
        }
        Ok(Waiting { questions: self, question, answering, answer: None })
    }
}

impl Waiting<'_> {
    pub(crate) fn question(&self) -> &Question {
        &self.question
    }

    /// Waits for the answer to the question about `request`.
    pub(crate) async fn decide(&mut self, request: &ApprovalRequest) -> Approval {
        self.answer = (&mut self.answering).await.ok();
        let Some((given, _)) = &self.answer else { return denied("the question was withdrawn") };
        match given.answer {
            Answer::Once => Approval::Once,
            Answer::Always => request.always(given.scope).unwrap_or(Approval::Once),
            Answer::No => denied(&approvals::refusal(given.reason.as_deref())),
            Answer::Words => Approval::Said { words: given.words.clone().unwrap_or_default() },
            Answer::Cancel => Approval::Cancelled,
            Answer::Instead => {
                Approval::Instead { command: given.words.clone().unwrap_or_default() }
            }
        }
    }
}

pub(crate) fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
