//! What is in a message besides the text of its sender: what others wrote, and things that are neither text nor file.

use std::iter;

use crate::Sender;

/// Longest text that is shown of an earlier message of a thread, in characters.
const MOST_EARLIER_CHARS: usize = 1_000;
/// Longest value of a [`note`], in characters.
const MOST_NOTE_CHARS: usize = 1_000;

/// Something in a message that is no text of its sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passage {
    /// What it is.
    pub kind: PassageKind,
    /// Who wrote it, for people, if the channel says so.
    pub author: Option<String>,
    /// What it says; empty if there are only files.
    pub text: String,
    /// The message of the same chat that it is, if it came before this one.
    pub earlier: Option<Earlier>,
}

/// What a [`Passage`] is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PassageKind {
    /// A message of somebody else that the sender passes on.
    #[default]
    Forward,
    /// The same, if many people have passed it on.
    ForwardOfMany,
    /// A mail that is passed on.
    ForwardedMail,
    /// A message of another chat that the sender shows.
    Share,
    /// What a program added to the message.
    Attachment,
    /// The preview of a link, or what a bot shows.
    Embed,
    /// The preview of a link.
    LinkPreview,
    /// Buttons, lists and texts of a bot.
    Components,
    /// A question with its answers.
    Poll,
    /// A list of tasks.
    Checklist,
    /// Pictures and videos that one has to pay for.
    PaidMedia,
    /// An event of a calendar.
    CalendarEvent,
    /// A product of a shop.
    Product,
    /// The advertisement from which the sender came.
    Advertisement,
    /// An earlier message of the same thread.
    OfThread,
}

impl PassageKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Forward,
        Self::ForwardOfMany,
        Self::ForwardedMail,
        Self::Share,
        Self::Attachment,
        Self::Embed,
        Self::LinkPreview,
        Self::Components,
        Self::Poll,
        Self::Checklist,
        Self::PaidMedia,
        Self::CalendarEvent,
        Self::Product,
        Self::Advertisement,
        Self::OfThread,
    ];

    /// What it is, for the model.
    pub fn words(self) -> &'static str {
        match self {
            Self::Forward => "Forwarded message",
            Self::ForwardOfMany => "Message forwarded many times",
            Self::ForwardedMail => "Forwarded mail",
            Self::Share => "Shared message",
            Self::Attachment => "Attachment",
            Self::Embed => "Embed",
            Self::LinkPreview => "Preview of a link",
            Self::Components => "Components",
            Self::Poll => "Poll",
            Self::Checklist => "Checklist",
            Self::PaidMedia => "Media for money",
            Self::CalendarEvent => "Calendar event",
            Self::Product => "Product",
            Self::Advertisement => "Advertisement",
            Self::OfThread => "Earlier message of the thread",
        }
    }
}

/// By what an earlier message of a chat is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Its [`crate::Arrival::source_id`].
    pub source_id: String,
    /// Who sent it.
    pub sender: Sender,
}

impl Passage {
    /// A passage of this kind.
    pub fn new(kind: PassageKind, author: Option<String>, text: String) -> Self {
        Self { kind, author, text, earlier: None }
    }

    /// A poll with its answers.
    pub(crate) fn poll(question: String, answers: impl Iterator<Item = String>) -> Self {
        let answers = answers.map(|answer| format!("- {answer}"));
        let lines: Vec<String> = iter::once(question).chain(answers).collect();
        Self::new(PassageKind::Poll, None, lines.join("\n"))
    }

    /// An earlier message of the same thread, which says `texts` and has files with these names; `None` if it holds
    /// nothing that can be shown.
    pub(crate) fn of_thread(
        author: Option<String>,
        texts: impl Iterator<Item = String>,
        files: impl Iterator<Item = String>,
        earlier: Earlier,
    ) -> Option<Self> {
        let files = files.map(|name| note("a file, which is not here:", [name.as_str()]));
        let said: Vec<String> = texts.chain(files).filter(|text| !text.is_empty()).collect();
        let text: String = said.join("\n").trim().chars().take(MOST_EARLIER_CHARS).collect();
        let kind = PassageKind::OfThread;
        (!text.is_empty()).then_some(Self { kind, author, text, earlier: Some(earlier) })
    }

    /// Whether it is an earlier message of the chat.
    pub fn is_earlier(&self) -> bool {
        self.earlier.is_some()
    }
}

/// One line about something in a message that is neither text nor file, such as `[contact "Ben", "+1"]`. The values come
/// from others, so each is on one line in quotation marks and has no brackets; empty ones are left out.
pub(crate) fn note<'v>(what: &str, values: impl IntoIterator<Item = &'v str>) -> String {
    let shown = values.into_iter().map(plain).filter(|value| !value.is_empty());
    let shown: Vec<String> = shown.map(|value| format!("\"{value}\"")).collect();
    match shown.is_empty() {
        true => format!("[{}]", what.trim_end_matches(':')),
        false => format!("[{what} {}]", shown.join(", ")),
    }
}

/// A mention of somebody by a name that they chose: one word or more on one line, which cannot pose as a line of the
/// program.
pub(crate) fn mention(name: &str) -> String {
    let name = plain(name);
    format!("@{}", if name.is_empty() { "somebody" } else { &name })
}

/// A value from others on one line, without brackets, double quotation marks and control characters.
pub(crate) fn plain(value: &str) -> String {
    let is_plain = |character: &char| {
        !character.is_control()
            && !matches!(character, '\u{2028}' | '\u{2029}' | '[' | ']' | '［' | '］' | '【' | '】')
    };
    let value = value.replace(char::is_whitespace, " ").replace('"', "'");
    let value: String = value.chars().filter(is_plain).take(MOST_NOTE_CHARS).collect();
    value.trim().to_owned()
}
