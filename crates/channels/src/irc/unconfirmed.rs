//! Lines that a server has not confirmed, and how long a connection may be silent.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::CONFIRMATION;
use super::message::{Line, folded};
use crate::SendFailure;

/// How long a server may say nothing before it is asked whether it is there.
const QUIET: Duration = Duration::from_secs(120);
/// The word of that question.
pub(super) const STILL_THERE: &str = "still-there";

struct Waiting {
    /// That of its PING.
    word: String,
    target: String,
    since: Instant,
    sent: Option<oneshot::Sender<Result<(), SendFailure>>>,
}

/// What is waited for.
pub(super) struct Unconfirmed {
    /// In the order in which they were sent, which is the order of the answers.
    lines: VecDeque<Waiting>,
    heard: Instant,
    /// When the server was asked whether it is there.
    asked: Option<Instant>,
}

impl Unconfirmed {
    pub(super) fn new(now: Instant) -> Self {
        Self { lines: VecDeque::new(), heard: now, asked: None }
    }

    pub(super) fn push(
        &mut self,
        word: String,
        target: String,
        now: Instant,
        sent: oneshot::Sender<Result<(), SendFailure>>,
    ) {
        self.lines.push_back(Waiting { word, target, since: now, sent: Some(sent) });
    }

    /// Notes that the server said something.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Notes that the server is asked whether it is there.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// When something has to be done: ask, or give up. True if it is to give up, because an answer is missing.
    pub(super) fn deadline(&self) -> (Instant, bool) {
        let first = self.lines.front().map(|line| line.since);
        match first.into_iter().chain(self.asked).min() {
            Some(since) => (since + CONFIRMATION, true),
            None => (self.heard + QUIET, false),
        }
    }

    /// Takes a PONG.
    pub(super) fn confirm(&mut self, word: &str) {
        if word == STILL_THERE {
            self.asked = None;
        }
        let Some(at) = self.lines.iter().position(|line| line.word == word) else { return };
        // The server reads in order.
        for line in self.lines.drain(..=at) {
            if let Some(sent) = line.sent {
                let _ = sent.send(Ok(()));
            }
        }
    }

    /// Takes a refusal: it is of the oldest line to its target, and where it names none, of the oldest.
    pub(super) fn refuse(&mut self, refusal: &Line) {
        let named = |target: &str| {
            let names = refusal.parameters.iter().skip(1);
            names.map(|name| folded(name)).any(|name| name == folded(target))
        };
        let of_target =
            self.lines.iter().position(|line| line.sent.is_some() && named(&line.target));
        let has_target = refusal.command != "FAIL" && refusal.parameters.len() > 2;
        let at = of_target.or_else(|| (!has_target).then_some(0));
        let line = at.and_then(|at| self.lines.get_mut(at));
        if let Some(sent) = line.and_then(|line| line.sent.take()) {
            let reason = format!("the IRC server refused it: {}", refusal.last());
            let _ = sent.send(Err(SendFailure::Never { reason }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn refusals_and_confirmations_find_their_lines() {
        let now = Instant::now();
        let mut unconfirmed = Unconfirmed::new(now);
        let mut push = |word: &str, target: &str| {
            let (sender, receiver) = oneshot::channel();
            unconfirmed.push(word.to_owned(), target.to_owned(), now, sender);
            receiver
        };
        let mut sent = [push("1", "#Team"), push("2", "ann"), push("3", "#team"), push("4", "bob")];
        unconfirmed.refuse(&line(":s 404 claw #team :Cannot send to channel"));
        unconfirmed.refuse(&line(":s 408 claw eve :You cannot use colors"));
        unconfirmed.confirm("2");
        unconfirmed.refuse(&line(":s 412 claw :No text to send"));
        unconfirmed.confirm("3");
        unconfirmed.confirm("nobody's");
        let refused = |reason: &str| {
            let reason = format!("the IRC server refused it: {reason}");
            Ok(Err(SendFailure::Never { reason }))
        };
        let found = sent.each_mut().map(oneshot::Receiver::try_recv);
        assert_eq!(
            found[..3],
            [refused("Cannot send to channel"), Ok(Ok(())), refused("No text to send")]
        );
        assert!(found[3].is_err());
    }

    #[test]
    fn an_answer_that_does_not_come_ends_the_connection() {
        let now = Instant::now();
        let mut unconfirmed = Unconfirmed::new(now);
        assert_eq!(unconfirmed.deadline(), (now + QUIET, false));
        let later = now + QUIET;
        unconfirmed.ask(later);
        // Other lines are no answer.
        unconfirmed.hear(later + Duration::from_secs(1));
        assert_eq!(unconfirmed.deadline(), (later + CONFIRMATION, true));
        unconfirmed.confirm(STILL_THERE);
        assert_eq!(unconfirmed.deadline(), (later + Duration::from_secs(1) + QUIET, false));
        let (sender, _receiver) = oneshot::channel();
        unconfirmed.push("1".to_owned(), "ann".to_owned(), later, sender);
        unconfirmed.hear(later + Duration::from_secs(30));
        assert_eq!(unconfirmed.deadline(), (later + CONFIRMATION, true));
    }
}
