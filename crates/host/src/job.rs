//! The job for a runner's standard input, and the prompt in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::Group;

/// What a runner needs to reach a model. It is given to runners through their standard input only.
#[derive(Debug, Clone, Default)]
pub struct Secrets(BTreeMap<String, SecretString>);

impl Secrets {
    /// The names that runners know.
    pub const NAMES: [&str; 3] = ["OPENROUTER_API_KEY", "MODEL_NAME", "OPENROUTER_BASE_URL"];

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: SecretString) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// A value, unless it is blank.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(ExposeSecret::expose_secret).filter(|value| !value.trim().is_empty())
    }
}

/// One job.
pub(crate) struct ContainerJob<'a> {
    pub(crate) group: &'a Group,
    pub(crate) assistant: &'a str,
    pub(crate) session_id: Option<&'a str>,
    pub(crate) prompt: &'a str,
    pub(crate) is_scheduled: bool,
    pub(crate) secrets: &'a Secrets,
}

impl ContainerJob<'_> {
    /// The object for standard input. It holds the secrets.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let secrets: BTreeMap<&str, &str> =
            self.secrets.0.iter().map(|(name, value)| (&**name, value.expose_secret())).collect();
        let mut payload = json!({
            "prompt": self.prompt,
            "groupFolder": self.group.folder,
            "chatJid": self.group.jid,
            "isMain": self.group.is_main(),
            "assistantName": self.assistant,
            "secrets": secrets,
        });
        if let Some(id) = self.session_id {
            payload["sessionId"] = id.into();
        }
        if self.is_scheduled {
            payload["isScheduledTask"] = true.into();
        }
        payload.to_string().into_bytes()
    }
}

/// A message as the prompt shows it.
pub(crate) struct Said<'a> {
    pub(crate) sender: &'a str,
    /// Milliseconds since the Unix epoch.
    pub(crate) at_ms: u64,
    pub(crate) text: &'a str,
}

/// The prompt for messages of a chat. What people write cannot end an element.
pub(crate) fn prompt<'a>(messages: impl IntoIterator<Item = Said<'a>>) -> String {
    let mut prompt = String::from("<messages>\n");
    for Said { sender, at_ms, text } in messages {
        let at =
            i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let time = at.map(|at| format!("{at:.3}")).unwrap_or_default();
        // Writing to a text does not fail.
        let _ = writeln!(
            prompt,
            "<message sender=\"{}\" time=\"{time}\">{}</message>",
            escaped(sender),
            escaped(text)
        );
    }
    prompt.push_str("</messages>");
    prompt
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A text of a model without what it said to itself: everything between `<internal>` and `</internal>`.
pub(crate) fn without_internal(text: &str) -> String {
    const OPEN: &str = "<internal>";
    const CLOSE: &str = "</internal>";
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((_, after)) = after.split_once(CLOSE) else { break };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}
