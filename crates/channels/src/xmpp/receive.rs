//! The loop that serves a connection.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::connection::{Connection, XmppError, count_of};
use super::event::{Heard, Reading};
use super::rooms::Step;
use super::session::{Mark, StanzaSession};
use super::xml::{Element, Event, ns};
use super::{Done, Memory, Outgoing, QUEUE, Refused, Xmpp, advice};
use crate::arrival::take_for_sure;
use crate::lanes::Lanes;
use crate::pause::{LONGEST, Pause, until_stored};
use crate::taking::hand_over;
use crate::wire::WireError;
use crate::{Intake, Refusal, SendFailure, State};

/// How long a server may say nothing before it is asked whether it is there, and how long it may take to answer.
const QUIET: Duration = Duration::from_secs(60);
const LAST_CHANCE: Duration = Duration::from_secs(30);
/// Pause after a refused login, which only the owner can mend. Servers lock accounts that try often.
const OWNER_PAUSE: Duration = Duration::from_secs(10 * 60);
/// Most messages that are being stored; no more are read until some are.
const MOST_OPEN: usize = 200;
/// Time between two checks of the rooms.
const ROOMS: Duration = Duration::from_secs(60);
/// Names the questions that stand for acknowledgements where the server has none.
const CONFIRM: &str = "confirm-";

/// Work that a connection is served with.
struct Work<'a> {
    /// What is being stored; each gives the number of its stanza.
    lanes: Lanes<'a, u64>,
    /// Other work of the connection, such as the set-up and joining rooms.
    chores: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl Xmpp {
    /// Receives messages forever.
    pub(super) async fn receive_stanzas(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        let mut session: Option<StanzaSession> = None;
        loop {
            let begun = Instant::now();
            let Err(error) = self.attempt(&mut session, intake).await;
            // Stanzas of the ended session are uncertain; the tasks that wait for them get that result.
            session = session.filter(|session| session.id.is_some());
            self.account.set(State::Waiting(advice(&error)));
            if begun.elapsed() >= LONGEST {
                pause = Pause::new();
            }
            match &error {
                XmppError::Login(_) => tokio::time::sleep(OWNER_PAUSE).await,
                XmppError::Ended { condition, .. } if condition == "conflict" => {
                    tokio::time::sleep(LONGEST).await;
                }
                _ => pause.wait().await,
            }
        }
    }

    async fn attempt(
        &self,
        session: &mut Option<StanzaSession>,
        intake: &dyn Intake,
    ) -> Result<std::convert::Infallible, XmppError> {
        let mut connection = Connection::log_in(&self.options).await?;
        self.begin(&mut connection, session).await?;
        let Some(session) = session else {
            return Err(XmppError::Unusable("gives no session".to_owned()));
        };
        let (sender, mut outgoing) = mpsc::channel(QUEUE);
        self.memory.lock().outgoing = Some(sender);
        let ended = self.serve(&mut connection, session, &mut outgoing, intake).await;
        self.memory.lock().outgoing = None;
        outgoing.close();
        // These were never sent.
        while let Some(Outgoing { stanza, done }) = outgoing.recv().await {
            if stanza.name == "presence" {
                self.memory.lock().is_present = false;
            }
            if let Done::Delivered(waiting) = done {
                let reason = "the connection broke before it was sent".to_owned();
                let _ = waiting.send(Err(SendFailure::Later { after: None, reason }));
            }
        }
        ended
    }

    /// Continues the session, or begins another one.
    async fn begin(
        &self,
        connection: &mut Connection,
        session: &mut Option<StanzaSession>,
    ) -> Result<(), XmppError> {
        if let Some(session) = session
            && let Some(id) = &session.id
            && connection.has_acknowledgements()
            && let Some(count) = connection.resume(id, session.received.handled()).await?
        {
            tracing::debug!("the session goes on");
            session.acknowledge(count).map_err(XmppError::Unusable)?;
            session.received.forget_open();
            session.told = session.received.handled();
            for sent in session.unacknowledged() {
                connection.write_text(&sent.xml).await?;
            }
            return connection.write(&Element::new("r", ns::SM)).await;
        }
        *session = None;
        let (address, id) = connection.bind().await?;
        tracing::debug!(address, is_kept = id.is_some(), "a session begins");
        let mut memory = self.memory.lock();
        *memory = Memory { said: std::mem::take(&mut memory.said), ..Memory::default() };
        *session = Some(StanzaSession::new(id, connection.has_acknowledgements()));
        Ok(())
    }

    async fn serve(
        &self,
        connection: &mut Connection,
        session: &mut StanzaSession,
        outgoing: &mut mpsc::Receiver<Outgoing>,
        intake: &dyn Intake,
    ) -> Result<std::convert::Infallible, XmppError> {
        let mut work = Work { lanes: Lanes::new(), chores: FuturesUnordered::new() };
        work.chores.push(Box::pin(self.set_up(intake)));
        let mut rooms = tokio::time::interval(ROOMS);
        rooms.set_missed_tick_behavior(MissedTickBehavior::Delay);
        rooms.tick().await;
        let mut deadline = Instant::now() + QUIET;
        let mut is_asked = false;
        loop {
            let reads = work.lanes.len() < MOST_OPEN;
            tokio::select! {
                event = connection.next(2 * QUIET), if reads => {
                    let event = event?;
                    (deadline, is_asked) = (Instant::now() + QUIET, false);
                    let Event::Stanza(stanza) = event else {
                        let ended = WireError::Broken("it ended the stream".to_owned());
                        return Err(connection.failed(ended));
                    };
                    self.handle(connection, session, stanza, &mut work, intake).await?;
                }
                Some(line) = outgoing.recv(), if session.has_room() => {
                    write_out(connection, session, line).await?;
                }
                Some(number) = work.lanes.next() => {
                    self.handled(session, number, intake).await;
                    if work.lanes.len() == 0 && session.received.handled() != session.told {
                        tell(connection, session).await?;
                    }
                }
                Some(()) = work.chores.next() => {}
                () = tokio::time::sleep_until(deadline), if reads => {
                    if is_asked {
                        return Err(connection.failed(WireError::Silent(LAST_CHANCE)));
                    }
                    (deadline, is_asked) = (Instant::now() + LAST_CHANCE, true);
                    let ping = super::question("get", None, Element::new("ping", ns::PING));
                    write_out(connection, session, Outgoing { stanza: ping, done: Done::Nobody }).await?;
                }
                _ = rooms.tick() => work.chores.push(Box::pin(self.look_after_rooms(intake))),
            }
        }
    }

    async fn handle<'a>(
        &'a self,
        connection: &mut Connection,
        session: &mut StanzaSession,
        stanza: Element,
        work: &mut Work<'a>,
        intake: &'a dyn Intake,
    ) -> Result<(), XmppError> {
        if stanza.is("r", ns::SM) {
            return tell(connection, session).await;
        }
        if stanza.is("a", ns::SM) {
            let count = count_of(&stanza).unwrap_or_default();
            return session.acknowledge(count).map_err(XmppError::Unusable);
        }
        if stanza.namespace != ns::CLIENT {
            return Ok(());
        }
        let from = stanza.attribute("from").unwrap_or_default().to_owned();
        match stanza.name.as_str() {
            "message" => {
                let reading = self.read_message(&stanza);
                if let Reading::Message(heard) = reading {
                    let number = session.received.begin(heard.mark.clone());
                    let chat = heard.arrival.chat.id.clone();
                    let storing = self.store(*heard, number, intake);
                    work.lanes.push(chat, Box::pin(storing));
                    return Ok(());
                }
                let number = session.received.begin(None);
                if let Reading::Bounce { id, refused } = reading {
                    let reason = format!("it was refused: {}", refused.reason);
                    let failure = match refused.is_for_now {
                        true => SendFailure::Later { after: None, reason: reason.clone() },
                        false => SendFailure::Never { reason: reason.clone() },
                    };
                    if session.refuse(&id, failure).is_some() {
                        // The server had acknowledged it.
                        work.lanes.push(id.clone(), Box::pin(report(id, reason, number, intake)));
                        return Ok(());
                    }
                }
                self.handled(session, number, intake).await;
            }
            "presence" => {
                let number = session.received.begin(None);
                for step in self.read_presence(&from, &stanza) {
                    match step {
                        Step::Send(stanza) => {
                            let line = Outgoing { stanza, done: Done::Nobody };
                            write_out(connection, session, line).await?;
                        }
                        Step::Enter(room) => {
                            work.chores.push(Box::pin(self.enter(room, intake)));
                        }
                    }
                }
                self.handled(session, number, intake).await;
            }
            _ => {
                let number = session.received.begin(None);
                if let Some(answer) = self.read_question(session, &from, stanza)? {
                    let line = Outgoing { stanza: answer, done: Done::Nobody };
                    write_out(connection, session, line).await?;
                }
                self.handled(session, number, intake).await;
            }
        }
        Ok(())
    }

    /// Reads a question or an answer; gives the answer to a question.
    fn read_question(
        &self,
        session: &mut StanzaSession,
        from: &str,
        stanza: Element,
    ) -> Result<Option<Element>, XmppError> {
        let id = stanza.attribute("id").unwrap_or_default().to_owned();
        match stanza.attribute("type") {
            Some(kind @ ("result" | "error")) => {
                if let Some(number) = id.strip_prefix(CONFIRM) {
                    let number = number.parse().unwrap_or_default();
                    session.acknowledge(number).map_err(XmppError::Unusable)?;
                } else {
                    let is_error = kind == "error";
                    let answer = if is_error { Err(Refused::of(&stanza)) } else { Ok(stanza) };
                    session.answer(&id, answer);
                }
                Ok(None)
            }
            _ => {
                let answer = Element::new("iq", ns::CLIENT).with("id", &id);
                let answer = if from.is_empty() { answer } else { answer.with("to", from) };
                Ok(Some(self.answer_to(&stanza, answer)))
            }
        }
    }

    fn answer_to(&self, stanza: &Element, answer: Element) -> Element {
        let asked = stanza.children.first();
        if asked.is_some_and(|asked| asked.is("ping", ns::PING)) {
            return answer.with("type", "result");
        }
        if asked
            .is_some_and(|asked| asked.is("query", ns::INFO) && asked.attribute("node").is_none())
        {
            let identity = Element::new("identity", ns::INFO)
                .with("category", "client")
                .with("type", "bot")
                .with("name", "MyClaw");
            let features = [ns::INFO, ns::PING, ns::CHAT_STATES, ns::CORRECT, ns::REPLY, ns::OOB];
            let info = features
                .iter()
                .fold(Element::new("query", ns::INFO).child(identity), |info, feature| {
                    info.child(Element::new("feature", ns::INFO).with("var", feature))
                });
            return answer.with("type", "result").child(info);
        }
        let condition = Element::new("service-unavailable", ns::STANZA_ERROR);
        let error = Element::new("error", ns::CLIENT).with("type", "cancel").child(condition);
        answer.with("type", "error").child(error)
    }

    /// Hands a message over, with its files, until it is on disk. Gives back `number`.
    async fn store(&self, heard: Heard, number: u64, intake: &dyn Intake) -> u64 {
        let Heard { arrival, files, refused, .. } = heard;
        // Until it is on disk, the server keeps it; nothing else of its chat is handed over meanwhile.
        match refused {
            Some(_) => take_for_sure(intake, arrival, refused).await,
            None => {
                let take = || {
                    let files = self.load_files(&files);
                    hand_over(intake, arrival.clone(), &self.with_files, files)
                };
                until_stored(async || take().await.map(drop)).await;
            }
        }
        number
    }

    /// Notes that a stanza is handled, and keeps how far the archives are read.
    async fn handled(&self, session: &mut StanzaSession, number: u64, intake: &dyn Intake) {
        let mut newest: Vec<Mark> = Vec::new();
        for mark in session.received.end(number) {
            let counts = mark.is_past || self.memory.lock().read_archives.contains(&mark.archive);
            if counts {
                newest.retain(|other| other.archive != mark.archive);
                newest.push(mark);
            }
        }
        for mark in newest {
            // If it is not kept, the messages are read again, and known by their ids.
            if let Err(refusal) = self.keep(&mark.archive, &mark.id, intake).await {
                tracing::warn!(%refusal, "how far an archive is read is not kept");
            }
        }
    }
}

/// Sends a stanza, and asks for its acknowledgement if somebody waits for it.
async fn write_out(
    connection: &mut Connection,
    session: &mut StanzaSession,
    line: Outgoing,
) -> Result<(), XmppError> {
    let Outgoing { stanza, done } = line;
    let mut xml = stanza.to_xml(ns::CLIENT);
    let waiting = match done {
        Done::Nobody => None,
        Done::Delivered(waiting) => Some(waiting),
        Done::Answer(waiting) => {
            session.ask(stanza.attribute("id").unwrap_or_default(), waiting);
            None
        }
    };
    let is_awaited = waiting.is_some();
    let number = session.send(&stanza, xml.clone(), waiting);
    if session.has_acknowledgements && (is_awaited || number.is_multiple_of(20)) {
        xml.push_str(&Element::new("r", ns::SM).to_xml(ns::CLIENT));
    } else if is_awaited {
        // The server reads in order, so its answer says that it has read what was before.
        let ping = Element::new("iq", ns::CLIENT)
            .with("type", "get")
            .with("id", &format!("{CONFIRM}{number}"))
            .child(Element::new("ping", ns::PING));
        xml.push_str(&ping.to_xml(ns::CLIENT));
    }
    connection.write_text(&xml).await
}

/// Tells the server how many stanzas are handled.
async fn tell(connection: &mut Connection, session: &mut StanzaSession) -> Result<(), XmppError> {
    let handled = session.received.handled();
    if !session.has_acknowledgements {
        return Ok(());
    }
    session.told = handled;
    connection.write(&Element::new("a", ns::SM).with("h", &handled.to_string())).await
}

/// Reports a message that was refused after it had been acknowledged. Gives back `number`.
async fn report(id: String, reason: String, number: u64, intake: &dyn Intake) -> u64 {
    let mut pause = Pause::new();
    while let Err(Refusal::Later(why)) = intake.undelivered(&id, &reason).await {
        tracing::debug!(why, "a refused message is not reported yet");
        pause.wait().await;
    }
    number
}
