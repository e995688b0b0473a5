//! One answer of the server, and what goes wrong while it is sent.

use std::time::Duration;

use crate::delivery::{Delivery, Fault, Pieces};
use crate::{Gate, Reply};

/// One answer. Made from a [`Reply`] (which converts by itself) or by one of the functions below; faults are added
/// by chaining. Byte counts are of the body as the client sees it once chunk framing is undone.
#[derive(Debug, Clone)]
pub struct Step {
    pub(crate) answer: Answer,
    pub(crate) delivery: Delivery,
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A model's message: a stream if the request asks for one, else whole JSON.
    Reply(Box<Reply>),
    /// A whole response.
    Fixed { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// A 200 event stream with this body.
    EventStream(Vec<u8>),
    /// These bytes instead of an HTTP response, then the connection closes.
    Raw(Vec<u8>),
}

impl Step {
    /// A response with this status, these extra headers and this body. The content type is JSON unless a header says
    /// otherwise.
    pub fn status(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::new(Answer::Fixed { status, headers, body: body.into() })
    }

    /// A 200 response with a web page, as captive portals and mistyped base URLs give.
    pub fn html(page: impl Into<Vec<u8>>) -> Self {
        Self::status(200, &[("content-type", "text/html; charset=utf-8")], page)
    }

    /// A 200 event stream with exactly this body.
    pub fn event_stream(body: impl Into<Vec<u8>>) -> Self {
        Self::new(Answer::EventStream(body.into()))
    }

    /// A 200 event stream that ends at once.
    pub fn empty_stream() -> Self {
        Self::event_stream(Vec::new())
    }

    /// Exactly these bytes on the connection instead of an HTTP response, then it closes.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Answer::Raw(bytes.into()))
    }

    fn new(answer: Answer) -> Self {
        Self { answer, delivery: Delivery::default() }
    }

    /// Closes the connection after `bytes` of the body, without the end that HTTP asks for.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.delivery.fault = Some((bytes, Fault::Close));
        self
    }

    /// Resets the connection (TCP RST) after `bytes` of the body. What had been sent may be lost on the way.
    #[must_use]
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.delivery.fault = Some((bytes, Fault::Reset));
        self
    }

    /// Sends nothing after `bytes` of the body, until the client disconnects.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.delivery.fault = Some((bytes, Fault::Stall { keep_alive: None }));
        self
    }

    /// Sends only `: keep-alive` comments, one per `interval`, after the event that holds byte number `bytes` of the
    /// body, until the client disconnects.
    #[must_use]
    pub fn stall_with_keep_alives(mut self, bytes: usize, interval: Duration) -> Self {
        self.delivery.fault = Some((bytes, Fault::Stall { keep_alive: Some(interval) }));
        self
    }

    /// Sends the body in pieces of `bytes`, each in a chunk and a write of its own.
    #[must_use]
    pub fn chunked_by(mut self, bytes: usize) -> Self {
        self.delivery.pieces = Pieces::Bytes(bytes.max(1));
        self
    }

    /// Sends each event of a stream in a write of its own. Otherwise each event has its own chunk, but writes carry
    /// as many as there are.
    #[must_use]
    pub fn event_by_event(mut self) -> Self {
        self.delivery.pieces = Pieces::Events;
        self
    }

    /// Waits this long before each piece but the first.
    #[must_use]
    pub fn pause(mut self, between: Duration) -> Self {
        self.delivery.pause = between;
        self
    }

    /// Waits this long before the answer begins.
    #[must_use]
    pub fn delay(mut self, before: Duration) -> Self {
        self.delivery.delay = before;
        self
    }

    /// Sends no more than about `bytes` of the body, in whole pieces, until the gate is open; with 0, not even the head.
    /// Unlike a delay, it holds as long as the test needs on a machine of any speed.
    #[must_use]
    pub fn hold_after(mut self, bytes: usize, gate: &Gate) -> Self {
        self.delivery.hold = Some((bytes, gate.clone()));
        self
    }

    /// Ends the lines of a stream with CRLF.
    #[must_use]
    pub fn crlf(mut self) -> Self {
        self.delivery.crlf = true;
        self
    }

    /// Leaves out the line ends after the last event of a stream.
    #[must_use]
    pub fn no_final_blank_line(mut self) -> Self {
        self.delivery.drop_final_blank_line = true;
        self
    }

    /// Closes the connection after the complete answer, and says so in a header.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        self.delivery.close_afterwards = true;
        self
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::new(Answer::Reply(Box::new(reply)))
    }
}
