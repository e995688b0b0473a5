//! Questions about tool calls in chats: where they are posted, and how they end there.
//!
//! A question in a chat has a code, which is drawn anew each time that it is asked. So an answer that comes
//! late, or again, names a question that is over. What was posted is in the store until the question is over; what an earlier
//! process left there counts as no, because nobody can know which answer its readers gave meanwhile.

mod answer;
mod page;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use myclaw_agent::workspace::Party;
use myclaw_engine::{Approval, ApprovalRequest, Approver};
use myclaw_session::SessionKey;
use myclaw_store::{Place, Records, Stored};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::Delivery;
use super::media::Saying;
use crate::DeliveryError;
use crate::ledger::{OVER, now_ms};
use crate::questions::{Answer, Question, Questions, denied};
use crate::route::Route;
use crate::rows::{Act, ActOn, Outgoing, PartId, PartKind, PartState, hash};
pub(crate) use answer::ChatAnswer;

/// The questions that were posted in chats, by code.
const ASKED: Records<AskedRecord> = Records::new("chat-question");
/// Queue of those that are not over.
const ASKED_QUEUE: &str = "chat-question";
/// The codes of questions that are over, by the message that asked.
const MESSAGES: Records<String> = Records::new("chat-question-message");
/// The letters of codes, without those that look like others.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Letters of a code. Each stands for five random bits.
const CODE_LETTERS: usize = 8;
/// What the model reads after a restart.
const CUT: &str = "the program was restarted while the question waited for the user, so it counts as no; ask the user \
                   before you try again";
/// What people read then.
const CUT_FOR_PEOPLE: &str =
    "the gateway was restarted while it waited, so it counts as no. Nothing was done.";

/// The questions that were posted in chats and are not over, by code.
#[derive(Default)]
pub(super) struct Asked {
    open: Mutex<HashMap<String, AskedQuestion>>,
    /// The calls about which an earlier process asked.
    cut: Mutex<HashSet<String>>,
}

/// A question that was posted in chats.
struct AskedQuestion {
    /// The id of the question, which is a digest of all that it shows.
    id: String,
    places: Vec<AskedPlace>,
    /// The chat in which it was answered.
    answered_in: Option<Route>,
}

/// A chat in which a question was posted.
struct AskedPlace {
    route: Route,
    /// The messages of the question, in groups that are sent at once.
    pages: Vec<Vec<String>>,
    /// How many of these groups were sent.
    shown: usize,
    sent: Vec<SentMessage>,
}

/// A message of a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SentMessage {
    part: PartId,
    /// What it says, if it has buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What is kept of a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedRecord {
    /// Names the call; see [`call_key`].
    call: String,
    /// The session that asks. Earlier versions did not store it.
    #[serde(default)]
    session: String,
    tool: String,
    places: Vec<(Route, Vec<SentMessage>)>,
    /// How it ended, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
}

/// Asks the clients of the gateway, and the chats of a session.
pub(super) struct Asking {
    questions: Arc<Questions>,
    delivery: Weak<Delivery>,
}

impl Asking {
    pub(super) fn new(questions: Arc<Questions>, delivery: Weak<Delivery>) -> Self {
        Self { questions, delivery }
    }
}

impl Approver for Asking {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let call = call_key(request.session.as_str(), &request.call.tool_call_id);
            if let Some(delivery) = self.delivery.upgrade()
                && delivery.approvals.asked.cut.lock().remove(&call)
            {
                return denied(CUT);
            }
            let mut waiting = match self.questions.open(request) {
                Ok(waiting) => waiting,
                Err(full) => return full,
            };
            let mut posted = Posted::begin(self.delivery.clone(), call, waiting.question());
            let decided = waiting.decide(request).await;
            posted.decided = Some(match &decided {
                Approval::Once => Answer::Once,
                Approval::Always(_) => Answer::Always,
                Approval::Said { .. } => Answer::Words,
                Approval::Cancelled => Answer::Cancel,
                Approval::Instead { .. } => Answer::Instead,
                _ => Answer::No,
            });
            decided
        })
    }
}

/// A question while it waits. Dropping it posts its end in the chats.
struct Posted {
    delivery: Weak<Delivery>,
    code: String,
    posting: Option<JoinHandle<()>>,
    /// When no answer counts as no, and how long that is, in milliseconds.
    limit: (u64, u64),
    decided: Option<Answer>,
}

impl Posted {
    fn begin(delivery: Weak<Delivery>, call: String, question: &Question) -> Self {
        let (code, question) = (new_code(), question.clone());
        let limit = question.limit();
        let posting = delivery.upgrade().map(|this| {
            let (code, delivery) = (code.clone(), Arc::clone(&this));
            // A task: a run that ends now does not leave half of it.
            this.process.tasks.spawn(async move {
                if let Err(error) = delivery.post_question(&code, call, question).await {
                    tracing::error!(%error, "a question is not posted in its chat");
                }
            })
        });
        Self { delivery, code, posting, limit, decided: None }
    }

    fn outcome(&self) -> String {
        match self.decided {
            Some(Answer::Once) => "the owner approved it once.".to_owned(),
            Some(Answer::Always) => "the owner approved it, also from now on.".to_owned(),
            Some(Answer::No) => "the owner said no. Nothing was done.".to_owned(),
            Some(Answer::Words) => "the owner answered it.".to_owned(),
            Some(Answer::Instead) => "the owner changed the plan.".to_owned(),
            Some(Answer::Cancel) => "the owner closed it. Nothing was done.".to_owned(),
            None if now_ms() >= self.limit.0.saturating_sub(SLACK_MS) => {
                let seconds = self.limit.1 / 1_000;
                format!("nobody answered within {seconds} s, so it counts as no. Nothing was done.")
            }
            None => "the work was stopped, so it counts as no. Nothing was done.".to_owned(),
        }
    }
}

/// The clock of the run and that of the question may differ by so much.
const SLACK_MS: u64 = 250;

impl Drop for Posted {
    fn drop(&mut self) {
        let (Some(this), Some(posting)) = (self.delivery.upgrade(), self.posting.take()) else {
            return;
        };
        // A run that is dropped at the end of the process is continued by the next one, which posts the end.
        if self.decided.is_none() && this.process.closing.is_cancelled() {
            return;
        }
        let (code, outcome, delivery) = (self.code.clone(), self.outcome(), Arc::clone(&this));
        this.process.tasks.spawn(async move {
            // It never panics; if it did, there would be nothing to end.
            drop(posting.await);
            if let Err(error) = delivery.end_question(&code, &outcome).await {
                tracing::error!(%error, "the end of a question is not posted in its chat");
            }
        });
    }
}

impl Delivery {
    /// Posts a question in the chats of its session.
    async fn post_question(
        &self,
        code: &str,
        call: String,
        question: Question,
    ) -> Result<(), DeliveryError> {
        let routes = self.routes_of_question(&question).await?;
        if routes.is_empty() {
            return Ok(());
        }
        let mut places = Vec::with_capacity(routes.len());
        let mut parts = Vec::new();
        for route in routes {
            let pages = self.pages(code, &question, &route);
            let mut place = AskedPlace { route, pages, shown: 0, sent: Vec::new() };
            parts.extend(self.next_page(code, &question, &mut place, &format!("asked {code}")));
            places.push(place);
        }
        let (id, session, _) = question.names();
        let record = AskedRecord {
            call,
            session,
            tool: question.shown().tool_name.clone(),
            places: places.iter().map(|it| (it.route.clone(), it.sent.clone())).collect(),
            outcome: None,
        };
        let place = Place::new(ASKED_QUEUE, now_ms());
        let writes = ASKED.put_any_size(code, None, &record, place)?;
        let asked = AskedQuestion { id, places, answered_in: None };
        // Before anybody can read it.
        self.approvals.asked.open.lock().insert(code.to_owned(), asked);
        let stored = self.ledger().say_with(parts, writes).await?;
        self.outbox.push(stored.unwrap_or_default());
        Ok(())
    }

    /// The chats in which a question is posted: those of the session or of the sessions for which it works, and the owner's.
    async fn routes_of_question(&self, question: &Question) -> Result<Vec<Route>, DeliveryError> {
        let mut routes: Vec<Route> = Vec::new();
        for session in question.sessions() {
            let desk = self.desks().get(session).cloned();
            let running = desk.map(|desk| desk.running_routes()).unwrap_or_default();
            let running: Vec<Route> = running.into_iter().map(|(route, _)| route).collect();
            let found = match running.iter().any(Route::leads_somewhere) {
                true => running,
                // A job, or a session that waits for a sub-agent.
                false => vec![self.current_route(session).await?],
            };
            let is_chat = |route: &Route| route.is_chat() && self.outbox.channel(route).is_some();
            for route in found.into_iter().filter(is_chat) {
                if !routes.contains(&route) {
                    routes.push(route);
                }
            }
        }
        if let Some(owners) = self.owners_chat(question).await?
            && !routes.contains(&owners)
        {
            routes.push(owners);
        }
        Ok(routes)
    }

    /// The chat of the owner that is asked too, if the session is of others.
    async fn owners_chat(&self, question: &Question) -> Result<Option<Route>, DeliveryError> {
        let config = self.config();
        let approvals = &config.tools.approvals;
        let Some((channel, chat)) = approvals.chat() else { return Ok(None) };
        let is_of_others = |session: &str| {
            let desk = self.desks().get(session).cloned();
            let parts = SessionKey::parse_for_agent("main", session).map(|key| key.parts());
            desk.is_some_and(|desk| desk.session.config().party() == Party::Others)
                && parts.is_ok_and(|parts| !approvals.is_owner(&parts.channel, [parts.peer()]))
        };
        if !is_of_others(&question.shown().session) {
            return Ok(None);
        }
        let is_it = |route: &Route| route.channel == channel && route.chat == chat;
        if let Some(known) = self.schedule.routes.known().await?.into_iter().rev().find(is_it) {
            return Ok(Some(known));
        }
        let channels = self.outbox.channels();
        let found = channels.iter().find(|it| it.name() == channel);
        if found.is_none() {
            tracing::warn!(channel, "tools.approvals.sendTo names a channel that is not set up");
        }
        Ok(found.map(|found| Route {
            channel: channel.to_owned(),
            account: found.account().name().to_owned(),
            chat: chat.to_owned(),
        }))
    }

    /// Ends a question: posts the end where it was not answered, and takes the buttons away.
    async fn end_question(&self, code: &str, outcome: &str) -> Result<(), DeliveryError> {
        let asked = self.approvals.asked.open.lock().remove(code);
        let known = ASKED.get(self.ledger().store(), code).await?;
        let Some(Stored { version, row: mut record, .. }) = known else { return Ok(()) };
        let answered_in = asked.as_ref().and_then(|asked| asked.answered_in.clone());
        if let Some(asked) = asked {
            // Further pages may have been shown.
            record.places = asked.places.into_iter().map(|it| (it.route, it.sent)).collect();
        }
        let (mut parts, mut writes) = (Vec::new(), Vec::new());
        for (route, sent) in &record.places {
            if answered_in.as_ref() != Some(route) {
                let text =
                    format!("The question `{code}` about `{}` is over: {outcome}", record.tool);
                let said = format!("asked {code} over");
                parts.extend(self.parts_of(route, "", &said, PartKind::Report, Saying::of(&text)));
            }
            for message in sent {
                parts.extend(self.without_buttons(route, message, outcome));
                if let Some(id) = self.id_of(&message.part).await? {
                    let key = message_key(route, &id);
                    let known = MESSAGES.get(self.ledger().store(), &key).await?;
                    let (known, place) =
                        (known.map(|known| known.version), Place::new(OVER, now_ms()));
                    writes.push(MESSAGES.put(&key, known, &code.to_owned(), place)?);
                }
            }
        }
        record.outcome = Some(outcome.to_owned());
        let place = Place::new(OVER, now_ms());
        writes.extend(ASKED.put_any_size(code, Some(version), &record, place)?);
        let stored = self.ledger().say_with(parts, writes).await?;
        self.outbox.push(stored.unwrap_or_default());
        Ok(())
    }

    /// The change that takes the buttons of a message away and says how the question ended.
    fn without_buttons(
        &self,
        route: &Route,
        message: &SentMessage,
        outcome: &str,
    ) -> Option<(PartId, Outgoing)> {
        let whole = format!("{}\n\nOver: {outcome}", message.text.as_ref()?);
        let text = match self.outbox.split(route, &whole).len() {
            0 | 1 => whole,
            _ => format!("This question is over: {outcome}"),
        };
        let said = format!("over {}", message.part.as_str());
        let (id, mut part) = self.part_of(route, "", &said, PartKind::Report, (0, 1), (text, None));
        part.act = Some(Act::Edit { on: ActOn::Sent(message.part.clone()) });
        Some((id, part))
    }

    /// The channel's id of a part, once it was sent.
    async fn id_of(&self, part: &PartId) -> Result<Option<String>, DeliveryError> {
        Ok(match self.ledger().part(part).await?.map(|part| part.state) {
            Some(PartState::Sent { id }) => Some(id),
            _ => None,
        })
    }

    /// Ends the questions that waited when an earlier process ended: those of `session`, or all. Before the session continues.
    pub(super) async fn end_cut_questions(
        &self,
        session: Option<&str>,
    ) -> Result<(), DeliveryError> {
        let all = ASKED.all(self.ledger().store(), ASKED_QUEUE).await?;
        let is_of = |asker: &str| session.is_none_or(|session| session == asker);
        for asked in all.into_iter().filter(|asked| is_of(&asked.row.session)) {
            self.approvals.asked.cut.lock().insert(asked.row.call);
            self.end_question(&asked.id, CUT_FOR_PEOPLE).await?;
        }
        Ok(())
    }
}

/// Names a call. A call that is asked about again after a restart has the same name.
fn call_key(session: &str, call: &str) -> String {
    hash("q", &[session, call])
}

/// Names a message of a chat, whichever thread it is in.
fn message_key(route: &Route, id: &str) -> String {
    let chat = myclaw_channels::Target::from_text(&route.chat).chat;
    hash("q", &[&route.channel, &route.account, &chat, id])
}

fn new_code() -> String {
    let random = uuid::Uuid::new_v4();
    // The first bytes of such an id are random.
    let bits =
        random.as_bytes()[..5].iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
    let letter =
        |at: usize| char::from(LETTERS[usize::try_from((bits >> (5 * at)) & 31).unwrap_or(0)]);
    (0..CODE_LETTERS).map(letter).collect()
}
