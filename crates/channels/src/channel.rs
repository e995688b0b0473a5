//! The trait [`Channel`], and what a channel says about itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::send_failure::SendFailure;
use crate::{HookAnswer, HookRequest, Intake, PartFile, Target};

/// A way to reach people and programs: one account of it.
pub trait Channel: Send + Sync + 'static {
    /// Its account, with the present state.
    fn account(&self) -> &Account;

    /// The kind of channel, such as `telegram`.
    fn name(&self) -> &'static str {
        self.account().channel
    }

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Cuts a text into parts that it can send.
    fn split(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    /// Receives messages until it is dropped, which it can be at any moment. A channel that cannot continue says so in its
    /// [`State`] and returns.
    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        drop(intake);
        Box::pin(async {})
    }

    /// Closes connections that are open besides [`Channel::run`]: the config does not have this channel any more.
    fn retire(&self) {}

    /// Looks at a request of its vendor before its body is read, which is empty here. A channel that takes requests has its
    /// own.
    ///
    /// # Errors
    /// The answer, if the body makes no difference.
    fn admit(&self, head: &HookRequest) -> Result<(), HookAnswer> {
        let _ = head;
        Err(HookAnswer::error(404, "this channel takes no requests"))
    }

    /// Answers an HTTP request of its vendor, which nothing has checked yet.
    fn receive<'a>(
        &'a self,
        request: HookRequest,
        intake: &'a dyn Intake,
    ) -> BoxFuture<'a, HookAnswer> {
        drop(request);
        let _ = intake;
        Box::pin(async { HookAnswer::error(404, "this channel takes no requests") })
    }

    /// Sends a part; returns the channel's own id of the message.
    ///
    /// # Errors
    /// It was not delivered, or this is uncertain.
    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>>;

    /// Looks for a part that may have been sent before; for channels with [`AfterInterruption::Look`].
    ///
    /// # Errors
    /// The channel cannot be asked.
    fn find<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        let _ = part;
        Box::pin(async { Ok(None) })
    }

    /// Changes `message`.
    ///
    /// # Errors
    /// As for [`Channel::send`]. A repetition does no harm.
    fn change<'a>(
        &'a self,
        change: Change,
        part: &'a Part,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendFailure>> {
        let _ = (change, part, message);
        Box::pin(std::future::ready(Err(SendFailure::unsupported())))
    }

    /// Asks the people of a chat to choose; returns the channel's own id of the message. An interrupted call is treated
    /// as one of [`Channel::send`].
    ///
    /// # Errors
    /// As for [`Channel::send`].
    fn poll<'a>(
        &'a self,
        part: &'a Part,
        poll: &'a Poll,
    ) -> BoxFuture<'a, Result<String, SendFailure>> {
        let _ = (part, poll);
        Box::pin(std::future::ready(Err(SendFailure::unsupported())))
    }

    /// Whether it shows the [`Part::buttons`] of a text.
    fn has_buttons(&self) -> bool {
        false
    }

    /// How it shows work in progress, if it can.
    fn live(&self) -> Option<&dyn Live> {
        None
    }

    /// Asks the vendor who this account is. Returns one line for people.
    ///
    /// # Errors
    /// The vendor refuses or does not answer.
    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async { Ok("nothing to ask: this channel has no vendor".to_owned()) })
    }

    /// The address that begins a chat with this account on a phone, as its app reads it from a QR code. By default there is
    /// none.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }
}

/// Between two calls of [`Live::begin`] for a chat where it shows nothing.
const NO_EDITS: Duration = Duration::from_secs(60 * 60);

/// Shows work in progress. What is shown here is never the only copy of a reply, and failures do no harm.
pub trait Live: Send + Sync {
    /// Shows for some seconds that an answer is being made.
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()>;

    /// How often [`Live::typing`] must be repeated.
    fn typing_pause(&self) -> Duration;

    /// Shows the beginning of a reply; returns the channel's id of the message, or `None` if it is not a good moment. By
    /// default there is none: where each edit is shown or kept as a message of its own, growing replies are noise.
    ///
    /// # Errors
    /// It was not shown, or this is uncertain.
    fn begin<'a>(
        &'a self,
        target: &'a Target,
        reply_to: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        let _ = (target, reply_to, text);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Shows more of a reply in the message `id`. A failure is not reported: the next edit, or the reply, replaces the text.
    fn edit<'a>(&'a self, target: &'a Target, id: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        let _ = (target, id, text);
        Box::pin(std::future::ready(()))
    }

    /// Shortest time between two calls of [`Live::edit`] for one chat.
    fn edit_pause(&self) -> Duration {
        NO_EDITS
    }
}

/// What a channel can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What happens to a part whose sending was interrupted.
    pub after_interruption: AfterInterruption,
    /// Largest file that it can send, in bytes; `None` if it cannot send files.
    pub most_file_bytes: Option<u64>,
    /// What it can do besides sending.
    pub actions: &'static [Action],
}

/// What a channel may be able to do besides sending text and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// [`Change::React`].
    React,
    /// [`Change::Edit`].
    Edit,
    /// [`Change::Unsend`].
    Unsend,
    /// [`Channel::poll`].
    Poll,
}

impl Action {
    /// The name for programs and models.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::React => "react",
            Self::Edit => "edit",
            Self::Unsend => "unsend",
            Self::Poll => "poll",
        }
    }
}

/// What happens to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It gets the reaction `part.text`, one emoji, in place of an earlier one.
    React,
    /// Its text, which this account has sent, is replaced by `part.text`.
    Edit,
    /// It is removed. This account has sent it.
    Unsend,
}

/// A question with answers to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The question, in plain text.
    pub question: String,
    /// The answers, at least two, in plain text.
    pub options: Vec<String>,
    /// How many answers a person may choose.
    pub choices: Choices,
}

/// How many answers of a [`Poll`] a person may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choices {
    /// One.
    One,
    /// Any number.
    Several,
}

/// What happens to a part that may have been delivered: the process was killed while it was sent, or no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterInterruption {
    /// It is sent again under the same id; the channel shows it once.
    SendAgain,
    /// It is sent again, marked as a possible repetition.
    SendMarked,
    /// The channel is asked first.
    Look,
    /// It is reported as uncertain, and not sent again.
    Report,
}

/// A part of a reply or of a report, to be sent.
#[derive(Debug, Clone)]
pub struct Part {
    /// Names the part. A channel that can sends each id at most once.
    pub id: String,
    /// Where it goes.
    pub target: Target,
    /// What the gateway calls the thing that the part belongs to. A channel may pass it on, and reads nothing from it.
    pub session: String,
    /// The ids of the messages that it answers, as in their receipts.
    pub answers: Vec<String>,
    /// Whether it is what the model said.
    pub kind: PartKind,
    /// When it was stored, in milliseconds since the Unix epoch. It was not sent before.
    pub created_at: u64,
    /// The number of the part, from 0.
    pub number: usize,
    /// How many parts there are.
    pub count: usize,
    /// What it says, in Markdown.
    pub text: String,
    /// What is offered below the text. A channel without buttons leaves them out: the text says all that they do.
    pub buttons: Vec<Button>,
    /// A file that is sent instead of the text.
    pub file: Option<PartFile>,
    /// The channel's id of the message that it answers; see [`crate::Arrival::reply_id`].
    pub reply_to: Option<String>,
    /// The channel's id of a preview that it replaces.
    pub replaces: Option<String>,
    /// Whether it may have been delivered before.
    pub is_repeat: bool,
}

/// A button below a message. Pressing it gives the same [`Arrival`](crate::Arrival) as writing its command, from the person
/// who pressed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// What it says.
    pub text: String,
    /// The command that it stands for, such as `/again`.
    pub command: String,
}

impl Button {
    /// A button with this text, for this command.
    pub fn new(text: impl Into<String>, command: impl Into<String>) -> Self {
        Self { text: text.into(), command: command.into() }
    }
}

/// The author of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The model.
    Reply,
    /// The gateway.
    Report,
}

impl PartKind {
    /// The name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Report => "report",
        }
    }
}

/// Why a probe failed. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProbeFailure(pub String);

/// The state of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum State {
    /// It has not reached its vendor yet.
    #[default]
    Starting,
    /// It receives and sends.
    Working,
    /// It cannot reach its vendor, and tries again.
    Waiting(String),
    /// It has given up, until the config changes or the gateway starts again.
    Stopped(String),
}

impl State {
    /// The name for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Waiting(_) => "waiting",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Why it does not work, for people.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Starting | Self::Working => None,
            Self::Waiting(reason) | Self::Stopped(reason) => Some(reason),
        }
    }
}

/// The account of a channel that has only one.
pub const DEFAULT_ACCOUNT: &str = "default";

/// An account of a channel, with its state. A failure is logged once, when it begins.
#[derive(Debug)]
pub struct Account {
    channel: &'static str,
    name: String,
    state: Mutex<State>,
    /// What does not work as the config says, though the channel works.
    note: Mutex<Option<String>>,
}

impl Account {
    /// The account `name` of `channel`, which has not reached its vendor yet.
    pub fn new(channel: &'static str, name: &str) -> Self {
        Self { channel, name: name.to_owned(), state: Mutex::default(), note: Mutex::default() }
    }

    /// The kind of channel, such as `telegram`.
    pub(crate) fn channel(&self) -> &'static str {
        self.channel
    }

    /// Its name in the config.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state.lock().clone()
    }

    /// What does not work as the config says, though the channel works; for people.
    pub fn note(&self) -> Option<String> {
        self.note.lock().clone()
    }

    /// Says what does not work as the config says; `None` if all of it does.
    pub fn set_note(&self, note: Option<String>) {
        let mut current = self.note.lock();
        if *current == note {
            return;
        }
        let (channel, account) = (self.channel, &self.name);
        match &note {
            Some(note) => {
                tracing::warn!(channel, account, %note, "the channel works, but not as set up")
            }
            None => tracing::info!(channel, account, "the channel works as set up again"),
        }
        *current = note;
    }

    /// Changes its state.
    pub fn set(&self, state: State) {
        let mut current = self.state.lock();
        if *current == state {
            return;
        }
        let (channel, account) = (self.channel, &self.name);
        match &state {
            State::Starting => {}
            State::Working => tracing::info!(channel, account, "the channel works"),
            State::Waiting(reason) => {
                tracing::warn!(channel, account, %reason, "the channel does not work; trying again");
            }
            State::Stopped(reason) => {
                tracing::error!(channel, account, %reason, "the channel is stopped");
            }
        }
        *current = state;
    }
}
