//! Archives (XEP-0313): the server's of the account, and those of rooms.

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use uuid::Uuid;

use super::xml::{Element, ns};
use super::{AskError, Done, Purpose, Query, XMPP, Xmpp, question};
use crate::pause::Pause;
use crate::{Intake, Part, Refusal, SendFailure, State};

/// Messages of a page.
const PAGE: usize = 50;
/// Pages of a look. No part waits while its chat gets more messages than these hold.
const MOST_PAGES: usize = 100;
/// How much earlier than the part a look begins, because clocks differ.
const CLOCK_MARGIN: i64 = 5 * 60;

/// A page of an archive.
struct Page {
    /// What a look found.
    found: Vec<String>,
    /// The id of its last message.
    last: Option<String>,
    is_last: bool,
}

impl Xmpp {
    /// Whether an archive is there.
    pub(super) fn has_archive(&self, archive: &str) -> bool {
        let memory = self.memory.lock();
        match memory.rooms.get(archive) {
            Some(room) => room.has_archive,
            None => archive == self.me() && memory.has_archive == Some(true),
        }
    }

    /// What a new connection begins with. What is done already stays as it is.
    pub(super) async fn set_up(&self, intake: &dyn Intake) {
        if !self.until_done(|| self.appear(intake)).await {
            return;
        }
        self.account.set(State::Working);
        let me = self.me();
        let own = self.until_done(|| self.catch_up(&me, intake));
        let rooms: FuturesUnordered<_> = {
            let memory = self.memory.lock();
            let is_done = |place: &&String| {
                memory.rooms.get(*place).is_some_and(|room| room.is_joined)
                    && memory.read_archives.contains(*place)
            };
            let rooms = self.options.rooms.iter().filter(|place| !is_done(place));
            rooms.map(|place| self.enter(place.clone(), intake)).collect()
        };
        join(own, rooms.collect::<()>()).await;
    }

    /// Tries a step until it succeeds; false if the connection broke.
    async fn until_done<W>(&self, step: impl Fn() -> W) -> bool
    where
        W: Future<Output = Result<(), AskError>>,
    {
        let mut pause = Pause::new();
        loop {
            match step().await {
                Ok(()) => return true,
                Err(AskError::NotConnected) => return false,
                Err(error) => tracing::warn!(%error, "the archive cannot be read; trying again"),
            }
            pause.wait().await;
        }
    }

    /// Learns whether there is an archive, and where it ends, before the first messages arrive.
    async fn appear(&self, intake: &dyn Intake) -> Result<(), AskError> {
        if self.memory.lock().is_present {
            return Ok(());
        }
        let me = self.me();
        let about = Element::new("query", ns::INFO);
        let has_archive = match self.ask(question("get", Some(&me), about)).await {
            Ok(info) => super::has_feature(&info, ns::MAM),
            Err(AskError::Refused(_)) => false,
            Err(error) => return Err(error),
        };
        self.memory.lock().has_archive = Some(has_archive);
        if has_archive {
            // All messages are kept, so that none is lost and none is sent twice.
            let keep = Element::new("prefs", ns::MAM)
                .with("default", "always")
                .child(Element::new("always", ns::MAM))
                .child(Element::new("never", ns::MAM));
            if let Err(error) = self.ask(question("set", None, keep)).await {
                tracing::debug!(%error, "the archive keeps what it kept");
            }
            self.find_end(&me, intake).await?;
        }
        if !self.put(Element::new("presence", ns::CLIENT), Done::Nobody).await {
            return Err(AskError::NotConnected);
        }
        self.memory.lock().is_present = true;
        Ok(())
    }

    fn key(&self, archive: &str) -> String {
        format!("{XMPP} {} {archive}", self.options.account)
    }

    /// Keeps how far an archive is read.
    pub(super) async fn keep(
        &self,
        archive: &str,
        id: &str,
        intake: &dyn Intake,
    ) -> Result<(), Refusal> {
        intake.remember(&self.key(archive), id).await
    }

    async fn kept(&self, archive: &str, intake: &dyn Intake) -> Result<Option<String>, AskError> {
        intake.recall(&self.key(archive)).await.map_err(AskError::Intake)
    }

    /// Keeps where an archive ends, if it was never read: what was said before is not answered.
    pub(super) async fn find_end(
        &self,
        archive: &str,
        intake: &dyn Intake,
    ) -> Result<(), AskError> {
        if self.kept(archive, intake).await?.is_some() {
            return Ok(());
        }
        let paging = Element::new("set", ns::RSM)
            .child(Element::new("max", ns::RSM).say("1"))
            .child(Element::new("before", ns::RSM));
        let page = self.page(archive, Purpose::End, Vec::new(), paging).await?;
        // Nothing stands for the start of an archive that is empty.
        let end = page.last.unwrap_or_default();
        self.keep(archive, &end, intake).await.map_err(AskError::Intake)
    }

    /// Reads what arrived since an archive was read last.
    pub(super) async fn catch_up(
        &self,
        archive: &str,
        intake: &dyn Intake,
    ) -> Result<(), AskError> {
        if !self.has_archive(archive) || self.memory.lock().read_archives.contains(archive) {
            return Ok(());
        }
        let mut after = self.kept(archive, intake).await?.unwrap_or_default();
        loop {
            let mut paging = Element::new("set", ns::RSM)
                .child(Element::new("max", ns::RSM).say(&PAGE.to_string()));
            if !after.is_empty() {
                paging = paging.child(Element::new("after", ns::RSM).say(&after));
            }
            match self.page(archive, Purpose::CatchUp, Vec::new(), paging).await {
                Ok(Page { last: Some(last), is_last: false, .. }) if last != after => after = last,
                Ok(_) => break,
                // Archives forget the oldest first, so all that is left is newer.
                Err(AskError::Refused(refused))
                    if refused.condition == "item-not-found" && !after.is_empty() =>
                {
                    tracing::warn!(archive, "the archive has forgotten how far it was read");
                    after.clear();
                }
                Err(error) => return Err(error),
            }
        }
        self.memory.lock().read_archives.insert(archive.to_owned());
        Ok(())
    }

    /// Asks for a page.
    async fn page(
        &self,
        archive: &str,
        purpose: Purpose,
        filters: Vec<(&str, String)>,
        paging: Element,
    ) -> Result<Page, AskError> {
        let name = Uuid::new_v4().simple().to_string();
        let mut form = Element::new("x", ns::DATA)
            .with("type", "submit")
            .child(field("FORM_TYPE", ns::MAM).with("type", "hidden"));
        for (filter, value) in filters {
            form = form.child(field(filter, &value));
        }
        let query = Element::new("query", ns::MAM).with("queryid", &name).child(form).child(paging);
        let is_own = archive == self.me();
        let archive = archive.to_owned();
        let to = Some(archive.as_str()).filter(|_| !is_own).map(str::to_owned);
        self.memory.lock().queries.insert(name.clone(), Query { archive, purpose });
        let answer = self.ask(question("set", to.as_deref(), query)).await;
        let query = self.memory.lock().queries.remove(&name);
        let answer = answer?;
        let fin = answer.get("fin", ns::MAM);
        let last = fin.and_then(|fin| fin.get("set", ns::RSM)?.get("last", ns::RSM));
        let found = match query.map(|query| query.purpose) {
            Some(Purpose::Look(found)) => found,
            _ => Vec::new(),
        };
        Ok(Page {
            found,
            last: last.map(|last| last.text.trim().to_owned()).filter(|last| !last.is_empty()),
            is_last: fin.is_none_or(|fin| fin.attribute("complete") == Some("true")),
        })
    }

    /// Looks whether a part is in the archive of its chat.
    pub(super) async fn find_part(&self, part: &Part) -> Result<Option<String>, SendFailure> {
        let later = |reason: &str| SendFailure::Later { after: None, reason: reason.to_owned() };
        let chat = &part.target.chat;
        let is_room = self.is_room(chat);
        let archive = if is_room { chat.clone() } else { self.me() };
        {
            let memory = self.memory.lock();
            let is_known = match memory.rooms.get(chat) {
                Some(room) => room.is_joined,
                None => !is_room && memory.is_present,
            };
            if memory.outgoing.is_none() || !is_known {
                return Err(later("not connected"));
            }
        }
        if !self.has_archive(&archive) {
            let reason = "the XMPP server keeps no archive".to_owned();
            return Err(SendFailure::Never { reason });
        }
        let start = i64::try_from(part.created_at / 1_000).unwrap_or(i64::MAX) - CLOCK_MARGIN;
        let start = jiff::Timestamp::from_second(start).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let mut filters = vec![("start", start.to_string())];
        if !is_room {
            filters.push(("with", chat.clone()));
        }
        let mut after: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut paging = Element::new("set", ns::RSM)
                .child(Element::new("max", ns::RSM).say(&PAGE.to_string()));
            if let Some(after) = &after {
                paging = paging.child(Element::new("after", ns::RSM).say(after));
            }
            let page =
                self.page(&archive, Purpose::Look(Vec::new()), filters.clone(), paging).await;
            let page = page.map_err(|error| later(&error.to_string()))?;
            if page.found.contains(&part.id) {
                return Ok(Some(part.id.clone()));
            }
            if page.is_last || page.last.is_none() || page.last == after {
                break;
            }
            after = page.last;
        }
        Ok(None)
    }
}

fn field(name: &str, value: &str) -> Element {
    let value = Element::new("value", ns::DATA).say(value);
    Element::new("field", ns::DATA).with("var", name).child(value)
}
