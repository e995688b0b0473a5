//! Step 5: stores what is said to the senders of messages, and tells everybody who waits.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use myclaw_store::{Place, Records, StoreError, Write};

use super::media::Saying;
use super::{Delivery, GroupMessage, Report, occasion};
use crate::DeliveryError;
use crate::ledger::{Acceptance, Again, OVER, OpenMessage, Stored, now_ms};
use crate::route::{Route, WEB};
use crate::rows::{
    Incoming, MessageId, MessageState, Outgoing, PartId, PartKind, PartState, Refers, SentFile,
};

/// How often an answer is made anew because something that it is made of has changed meanwhile.
const MOST_RACES: usize = 20;

/// What is said to the senders of messages.
#[derive(Clone, Copy)]
pub(super) struct Texts<'t> {
    /// To clients of the server.
    pub(super) text: &'t str,
    /// To all others.
    pub(super) for_people: &'t str,
    /// Paths of pictures that the session has made for it.
    pub(super) pictures: &'t [String],
}

impl Delivery {
    pub(super) async fn report(
        &self,
        messages: Vec<OpenMessage>,
        report: &Report,
    ) -> Result<(), DeliveryError> {
        let first = messages.first().map(|message| message.id.to_string()).unwrap_or_default();
        let (text, for_people) = (report.message.as_str(), report.for_people());
        let texts = Texts { text, for_people, pictures: &[] };
        self.answer(&messages, PartKind::Report, &first, texts, &|parts| MessageState::Reported {
            class: report.class.clone(),
            message: report.message.clone(),
            parts,
        })
        .await
    }

    /// Stores what is said to the senders of `messages`, once per route, and sends it. Messages that another process has settled
    /// meanwhile are left to it.
    pub(super) async fn answer(
        &self,
        messages: &[OpenMessage],
        kind: PartKind,
        said: &str,
        texts: Texts<'_>,
        state: &(dyn Fn(Vec<PartId>) -> MessageState + Sync),
    ) -> Result<(), DeliveryError> {
        let mut open = messages.to_vec();
        for _ in 0..MOST_RACES {
            if self.try_to_answer(&open, kind, said, texts, state).await? {
                return Ok(());
            }
            let (still_open, over) = self.ledger().still_open(open).await?;
            self.are_over(&over);
            if still_open.is_empty() {
                return Ok(());
            }
            open = still_open;
        }
        Err(StoreError::Contended("an answer".to_owned()).into())
    }

    /// Notes messages that others have settled.
    pub(super) fn are_over(&self, messages: &[OpenMessage]) {
        self.leave_all(messages);
        for message in messages {
            self.announce_end(message, &message.row.state);
        }
    }

    /// Gives the places of messages back. After that they do not count as open any more.
    pub(super) fn leave_all(&self, messages: &[OpenMessage]) {
        let bytes = messages.iter().map(|message| picture_bytes(&message.row)).sum();
        self.desks.pictures.fetch_sub(bytes, Ordering::SeqCst);
        self.desks.open.fetch_sub(messages.len(), Ordering::SeqCst);
    }

    /// False, and nothing is stored, if something that is read for it has changed meanwhile.
    async fn try_to_answer(
        &self,
        messages: &[OpenMessage],
        kind: PartKind,
        said: &str,
        Texts { text, for_people, pictures }: Texts<'_>,
        state: &(dyn Fn(Vec<PartId>) -> MessageState + Sync),
    ) -> Result<bool, DeliveryError> {
        let mut routes: Vec<&Route> = messages.iter().map(|message| &message.row.route).collect();
        let mut seen = HashSet::new();
        routes.retain(|route| seen.insert(*route));
        let (mut parts, mut more): (Vec<(PartId, Outgoing)>, Vec<_>) = (Vec::new(), Vec::new());
        let session = messages.first().map_or("", |message| message.row.session.as_str());
        let unsure = self.watchers.live.end(session).await;
        for route in routes {
            let of_route = || messages.iter().filter(|message| message.row.route == *route);
            let preview = self.watchers.live.take(session, route).await?;
            let text = if route.channel == WEB { text } else { for_people };
            let text = occasion::spoken(of_route(), kind, text);
            let mut saying = match (kind, &text) {
                (_, None) => Saying::default(),
                (PartKind::Reply, Some(text)) => {
                    self.saying(route, session, said, (text, pictures)).await
                }
                (PartKind::Report, Some(text)) => Saying::of(text),
            };
            if kind == PartKind::Reply {
                self.put_prefix(route, session, &mut saying);
            }
            if preview.is_some() {
                // Something has to take its place.
                saying.name_files_without_text();
            }
            let mut of_text = self.parts_of(route, session, said, kind, saying);
            if kind == PartKind::Reply {
                self.put_pauses(route, session, &mut of_text);
            }
            for (_, part) in &mut of_text {
                part.answers = of_route().map(|message| message.id.clone()).collect();
            }
            if let Some((_, first)) = of_text.first_mut() {
                first.refers.reply_to =
                    of_route().next_back().and_then(|message| message.row.origin.reply_id.clone());
                more.extend(preview.map(|preview| replace(first, preview, &unsure)));
            }
            parts.extend(of_text);
        }
        let of_message = |message: &OpenMessage| {
            let mine = parts.iter().filter(|(_, part)| part.route == message.row.route);
            state(mine.map(|(id, _)| id.clone()).collect())
        };
        let messages = &occasion::with_result(messages, kind, text);
        let results = self.results(messages, text, &of_message).await?;
        for result in &results {
            more.extend(result.writes(self.ledger())?);
        }
        let settled = self.ledger().settle(messages, &of_message, parts.clone(), more).await?;
        let Some((stored, version)) = settled else { return Ok(false) };
        self.hand_in_results(results, version);
        let now = now_ms();
        let times = messages.iter().map(|message| now.saturating_sub(message.row.accepted_at));
        self.watchers.counters.ended(&times.collect::<Vec<_>>(), kind);
        // After the metrics, so that a message that is not open any more is counted there.
        self.leave_all(messages);
        for message in messages {
            self.announce_end(message, &of_message(message));
        }
        self.outbox.push(stored);
        Ok(true)
    }

    /// Reports the end of a message to all who watch its session or wait for its answer.
    pub(super) fn announce_end(&self, message: &OpenMessage, state: &MessageState) {
        self.watchers.front.ended(&message.id, &message.row, state);
        if let Some(waiter) = self.waiters().get(&message.id) {
            waiter.notify_waiters();
        }
    }

    /// Stores a message that is over at once: dropped for a reason, or answered by the gateway itself. What is said is
    /// stored with it.
    pub(crate) async fn settle_at_once(
        self: &Arc<Self>,
        row: Incoming,
        say: Option<String>,
        dropped: Option<String>,
    ) -> Result<Incoming, DeliveryError> {
        let again = Again { parts: Vec::new(), writes: Vec::new() };
        let settled = self.settle(row, (say, dropped), again).await?;
        settled.ok_or_else(|| DeliveryError::Internal("a message has no conditions".to_owned()))
    }

    /// Stores a message with its answer, in one transaction with `more`. `None`, and nothing is stored, if a condition
    /// of `more` does not hold.
    pub(crate) async fn answer_at_once(
        self: &Arc<Self>,
        row: Incoming,
        answer: String,
        writes: Vec<Write>,
    ) -> Result<Option<Incoming>, DeliveryError> {
        self.settle(row, (Some(answer), None), Again { parts: Vec::new(), writes }).await
    }

    /// Stores a message with copies of parts that may be missing as its answer. `None`, and nothing is stored, if they have
    /// changed meanwhile.
    pub(crate) async fn answer_again(
        self: &Arc<Self>,
        row: Incoming,
        again: Again,
    ) -> Result<Option<Incoming>, DeliveryError> {
        self.settle(row, (None, None), again).await
    }

    /// As for a message that is accepted: a source that goes away does not stop half-way.
    async fn settle(
        self: &Arc<Self>,
        row: Incoming,
        outcome: (Option<String>, Option<String>),
        again: Again,
    ) -> Result<Option<Incoming>, DeliveryError> {
        let this = Arc::clone(self);
        let settling =
            self.process.tasks.spawn(async move { this.settle_now(row, outcome, again).await });
        settling.await.map_err(|error| DeliveryError::Internal(error.to_string()))?
    }

    async fn settle_now(
        &self,
        mut row: Incoming,
        (say, dropped): (Option<String>, Option<String>),
        again: Again,
    ) -> Result<Option<Incoming>, DeliveryError> {
        let id = MessageId::of(&row.route, &row.source_id);
        let saying = say.as_deref().map(Saying::of).unwrap_or_default();
        let mut parts = self.parts_of(&row.route, "", id.as_str(), PartKind::Report, saying);
        for (_, part) in &mut parts {
            part.answers = vec![id.clone()];
            part.refers.reply_to.clone_from(&row.origin.reply_id);
        }
        for (number, part) in again.parts.into_iter().enumerate() {
            let copy_id = PartId::of("", id.as_str(), &row.route, number);
            let (replaces, tells_of) = (None, None);
            let refers = Refers { replaces, tells_of, ..part.refers };
            let (created_at, state) = (now_ms(), PartState::Queued);
            let copy = Outgoing { refers, created_at, state, pause_ms: None, ..part };
            parts.push((copy_id, copy));
        }
        let ids = parts.iter().map(|(id, _)| id.clone()).collect();
        row.state = match dropped {
            Some(reason) => MessageState::Dropped { reason, parts: ids },
            None => MessageState::Answered { parts: ids },
        };
        let accepted = self.ledger().store_with(id, row, Vec::new(), &parts, again.writes).await?;
        if let Some(Acceptance::New(message)) = &accepted {
            let version = message.version;
            let unsent = parts.into_iter().map(|(id, row)| Stored::new(id, version, row));
            self.outbox.push(unsent.collect());
        }
        Ok(accepted.map(Acceptance::into_row))
    }

    /// Stores a message of a group that is not addressed to the agent, and keeps it for the next one that is.
    pub(crate) async fn keep_at_once(
        self: &Arc<Self>,
        mut row: Incoming,
        reason: String,
        new: GroupMessage,
    ) -> Result<Incoming, DeliveryError> {
        let this = Arc::clone(self);
        row.state = MessageState::Dropped { reason, parts: Vec::new() };
        let id = MessageId::of(&row.route, &row.source_id);
        let keeping = self.process.tasks.spawn(async move { this.keep(&id, &row, &new).await });
        keeping.await.map_err(|error| DeliveryError::Internal(error.to_string()))?
    }

    /// Sends a text that answers no message. `said` is its idempotency key.
    pub async fn say(&self, route: &Route, said: &str, text: &str) -> Result<(), DeliveryError> {
        let parts = self.parts_of(route, "", said, PartKind::Report, Saying::of(text));
        let stored = self.ledger().say(parts).await?;
        self.outbox.push(stored);
        Ok(())
    }

    /// Tells a chat, at a message of it, of what may be missing there, if the notice of that may be missing too.
    pub(crate) async fn remind(&self, route: &Route, at: &MessageId) -> Result<(), DeliveryError> {
        let notice = self.ledger().remind(route, &format!("reminder {at}")).await?;
        self.outbox.push(notice.into_iter().collect());
        Ok(())
    }

    /// Sends the text of the record `key` once, however often this is called. It takes the place of the preview that is
    /// shown under the name `shown`.
    pub async fn say_once(
        &self,
        (record, key): (&'static str, &str),
        (route, shown): (&Route, &str),
        (kind, mut saying): (PartKind, Saying),
    ) -> Result<(), DeliveryError> {
        let said = format!("{record} {key}");
        let unsure = self.watchers.live.end(shown).await;
        let preview = self.watchers.live.take(shown, route).await?;
        if preview.is_some() {
            saying.name_files_without_text();
        }
        let mut parts = self.parts_of(route, "", &said, kind, saying);
        let said_to: Records<Route> = Records::new(record);
        let mut writes = vec![said_to.put(key, None, route, Place::new(OVER, now_ms()))?];
        if let Some((_, first)) = parts.first_mut() {
            writes.extend(preview.map(|preview| replace(first, preview, &unsure)));
        }
        match self.ledger().say_with(parts, writes).await? {
            Some(stored) => self.outbox.push(stored),
            None if said_to.get(self.ledger().store(), key).await?.is_some() => {}
            None => return Err(StoreError::Contended("a preview".to_owned()).into()),
        }
        Ok(())
    }

    /// What is said as parts for a route: the text, then the files.
    pub(super) fn parts_of(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        kind: PartKind,
        saying: Saying,
    ) -> Vec<(PartId, Outgoing)> {
        let Saying { text, files } = saying;
        let texts = if text.is_empty() { Vec::new() } else { self.outbox.split(route, &text) };
        let texts = texts.into_iter().map(|text| (text, None));
        let files = files.into_iter().map(|file| (String::new(), Some(file)));
        let contents: Vec<(String, Option<SentFile>)> = texts.chain(files).collect();
        let count = contents.len();
        let part =
            |(number, content)| self.part_of(route, session, said, kind, (number, count), content);
        contents.into_iter().enumerate().map(part).collect()
    }

    /// A part that waits: the number of it and of all, and its text or file.
    pub(super) fn part_of(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        kind: PartKind,
        (number, count): (usize, usize),
        (text, file): (String, Option<SentFile>),
    ) -> (PartId, Outgoing) {
        let id = PartId::of(session, said, route, number);
        let row = Outgoing {
            route: route.clone(),
            session: session.to_owned(),
            answers: Vec::new(),
            kind,
            part: number,
            parts: count,
            text,
            buttons: Vec::new(),
            act: None,
            refers: Refers { file, ..Refers::default() },
            pause_ms: None,
            created_at: now_ms(),
            state: self.outbox.first_state(route, &id),
        };
        (id, row)
    }
}

/// Lets a part take the place of a preview. The write forgets the preview.
fn replace(first: &mut Outgoing, (preview, forget): (String, Write), unsure: &[Route]) -> Write {
    // An edit that may still be on its way would spoil the reply.
    first.refers.replaces = Some(preview).filter(|_| !unsure.contains(&first.route));
    forget
}

/// Bytes of a message's pictures.
pub(super) fn picture_bytes(row: &Incoming) -> usize {
    row.images.iter().map(|image| image.data.len()).sum()
}
