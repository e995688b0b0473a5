//! A session on the server, which can outlive a connection (XEP-0198): what was sent and is not acknowledged, and what came
//! and is not on disk.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::xml::Element;
use super::{Refused, SendFailure};

/// Most stanzas that wait for an acknowledgement.
const MOST_UNACKNOWLEDGED: usize = 200;

/// Where in an archive a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The address of the archive.
    pub(super) archive: String,
    /// The archive's id of the message.
    pub(super) id: String,
    /// Whether it came from the archive, and not when it was said.
    pub(super) is_past: bool,
}

/// Stanzas that came, in their order. They count as handled in this order too.
#[derive(Debug, Default)]
pub(super) struct ReceivedStanzas {
    handled: u32,
    /// The number of the first open one.
    first: u64,
    open: VecDeque<(bool, Option<Mark>)>,
}

impl ReceivedStanzas {
    /// Enters a stanza; gives its number.
    pub(super) fn begin(&mut self, mark: Option<Mark>) -> u64 {
        self.open.push_back((false, mark));
        self.first + self.open.len() as u64 - 1
    }

    /// Notes that a stanza is handled. Gives the marks of all that are handled now, with everything before them.
    pub(super) fn end(&mut self, number: u64) -> Vec<Mark> {
        let place = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(slot) = place.and_then(|at| self.open.get_mut(at)) {
            slot.0 = true;
        }
        let mut marks = Vec::new();
        while let Some((true, _)) = self.open.front() {
            let ended = self.open.pop_front();
            marks.extend(ended.and_then(|(_, mark)| mark));
            self.first += 1;
            self.handled = self.handled.wrapping_add(1);
        }
        marks
    }

    /// How many are handled, as the protocol counts.
    pub(super) fn handled(&self) -> u32 {
        self.handled
    }

    /// Forgets what is not handled: the server sends it again.
    pub(super) fn forget_open(&mut self) {
        self.first += self.open.len() as u64;
        self.open.clear();
    }
}

/// A stanza that the server has not acknowledged.
pub(super) struct Sent {
    pub(super) xml: String,
    id: Option<String>,
    waiting: Option<oneshot::Sender<Result<(), SendFailure>>>,
}

/// A session.
pub(super) struct StanzaSession {
    /// Under which it can be resumed.
    pub(super) id: Option<String>,
    pub(super) has_acknowledgements: bool,
    pub(super) received: ReceivedStanzas,
    /// How many handled stanzas have been acknowledged to the server.
    pub(super) told: u32,
    sent: u32,
    acknowledged: u32,
    unacknowledged: VecDeque<Sent>,
    /// Questions without an answer, by id.
    asked: HashMap<String, oneshot::Sender<Result<Element, Refused>>>,
}

impl StanzaSession {
    pub(super) fn new(id: Option<String>, has_acknowledgements: bool) -> Self {
        Self {
            id,
            has_acknowledgements,
            received: ReceivedStanzas::default(),
            told: 0,
            sent: 0,
            acknowledged: 0,
            unacknowledged: VecDeque::new(),
            asked: HashMap::new(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.unacknowledged.len() < MOST_UNACKNOWLEDGED
    }

    /// Notes a stanza that is about to be sent. Gives its number.
    pub(super) fn send(
        &mut self,
        stanza: &Element,
        xml: String,
        waiting: Option<oneshot::Sender<Result<(), SendFailure>>>,
    ) -> u32 {
        // Without acknowledgements nobody would ever take away what nobody waits for.
        if self.has_acknowledgements || waiting.is_some() {
            self.sent = self.sent.wrapping_add(1);
            let id = stanza.attribute("id").map(str::to_owned);
            self.unacknowledged.push_back(Sent { xml, id, waiting });
        }
        self.sent
    }

    /// Notes that the server has the first `count` stanzas.
    ///
    /// # Errors
    /// There were not so many.
    pub(super) fn acknowledge(&mut self, count: u32) -> Result<(), String> {
        let new = count.wrapping_sub(self.acknowledged);
        if usize::try_from(new).map_or(true, |new| new > self.unacknowledged.len()) {
            return Err("acknowledges more than was sent".to_owned());
        }
        for _ in 0..new {
            let sent = self.unacknowledged.pop_front();
            if let Some(waiting) = sent.and_then(|sent| sent.waiting) {
                let _ = waiting.send(Ok(()));
            }
        }
        self.acknowledged = count;
        Ok(())
    }

    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = &Sent> {
        self.unacknowledged.iter()
    }

    /// Reports a refused message `id` to its waiting sender. Returns the failure if nobody waits.
    pub(super) fn refuse(&mut self, id: &str, failure: SendFailure) -> Option<SendFailure> {
        let mut with_id =
            self.unacknowledged.iter_mut().filter(|sent| sent.id.as_deref() == Some(id));
        match with_id.find_map(|sent| sent.waiting.take()) {
            Some(waiting) => waiting.send(Err(failure)).err().and_then(Result::err),
            None => Some(failure),
        }
    }

    pub(super) fn ask(&mut self, id: &str, waiting: oneshot::Sender<Result<Element, Refused>>) {
        self.asked.retain(|_, waiting| !waiting.is_closed());
        self.asked.insert(id.to_owned(), waiting);
    }

    pub(super) fn answer(&mut self, id: &str, answer: Result<Element, Refused>) {
        if let Some(waiting) = self.asked.remove(id) {
            let _ = waiting.send(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_count_as_handled_in_their_order() {
        let mark =
            |id: &str| Some(Mark { archive: "a".to_owned(), id: id.to_owned(), is_past: false });
        let mut ledger = ReceivedStanzas::default();
        let numbers = [ledger.begin(mark("1")), ledger.begin(None), ledger.begin(mark("3"))];
        assert_eq!((ledger.end(numbers[2]), ledger.handled()), (Vec::new(), 0));
        assert_eq!((ledger.end(numbers[0]), ledger.handled()), (vec![mark("1").unwrap()], 1));
        // The connection breaks; the server sends the other two again.
        ledger.forget_open();
        assert_eq!((ledger.end(numbers[1]), ledger.handled()), (Vec::new(), 1));
        let again = [ledger.begin(None), ledger.begin(mark("3"))];
        assert_eq!((ledger.end(again[0]), ledger.handled()), (Vec::new(), 2));
        assert_eq!((ledger.end(again[1]), ledger.handled()), (vec![mark("3").unwrap()], 3));
    }

    #[test]
    fn what_is_acknowledged_is_delivered() {
        let mut session = StanzaSession::new(None, true);
        let send = |session: &mut StanzaSession, id: &str| {
            let (sender, receiver) = oneshot::channel();
            let stanza = Element::new("message", "c").with("id", id);
            session.send(&stanza, id.to_owned(), Some(sender));
            receiver
        };
        let mut first = send(&mut session, "a");
        let mut second = send(&mut session, "b");
        let mut third = send(&mut session, "c");
        let refusal = SendFailure::Never { reason: "no".to_owned() };
        assert_eq!(session.refuse("b", refusal.clone()), None);
        assert_eq!(session.refuse("x", refusal.clone()), Some(refusal.clone()));
        session.acknowledge(2).unwrap();
        assert_eq!(first.try_recv().unwrap(), Ok(()));
        assert_eq!(second.try_recv().unwrap(), Err(refusal));
        assert!(third.try_recv().is_err());
        assert!(session.acknowledge(4).is_err() && session.acknowledge(1).is_err());
        assert_eq!(
            session.unacknowledged().map(|sent| sent.xml.as_str()).collect::<Vec<_>>(),
            ["c"]
        );
    }
}
