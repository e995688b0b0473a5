//! What a client can do, as it says with each request or at the beginning of its session.

use serde_json::{Map, Value, json};

use super::refusal::SUPPORTED;
use super::{Refusal, Request};
use crate::connection::{META_CAPABILITIES, META_SERVER, META_VERSION, WITH_SESSIONS};

/// The extension for long calls.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The letters of what a client can do, in the id of its session.
const CAN_BE_ASKED: char = 'e';
const NO_ABILITIES: &str = "n";
/// Between the parts of that id.
const SEPARATOR: char = '-';

/// What a client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Client {
    /// Whether it says all about itself in each request (2026-07-28), instead of once (until 2025-11-25).
    pub is_stateless: bool,
    /// Whether it shows forms to its user.
    pub can_be_asked: bool,
    /// Whether it follows tasks that the server begins.
    pub has_tasks: bool,
}

impl Client {
    /// What the client of the revision without sessions says in a request.
    ///
    /// # Errors
    /// Something is missing, or the revision is another one.
    pub fn of_request(request: &Request) -> Result<Self, Refusal> {
        let lacks =
            |name: &str| Refusal::invalid(format!("{}: `_meta` needs `{name}`", request.method));
        let meta = request.meta().ok_or_else(|| lacks(META_VERSION))?;
        let version = meta.get(META_VERSION).ok_or_else(|| lacks(META_VERSION))?;
        let version = version.as_str().ok_or_else(|| {
            Refusal::invalid(format!("{}: `{META_VERSION}` is not a text", request.method))
        })?;
        let abilities = meta.get(META_CAPABILITIES).and_then(Value::as_object);
        let abilities = abilities.ok_or_else(|| lacks(META_CAPABILITIES))?;
        if !SUPPORTED.contains(&version) {
            return Err(Refusal::version(version));
        }
        let extensions = abilities.get("extensions");
        let has_tasks = extensions.is_some_and(|extensions| extensions.get(TASKS).is_some());
        Ok(Self { is_stateless: true, can_be_asked: can_be_asked(abilities), has_tasks })
    }

    /// Whether a request belongs to the revision without sessions.
    pub fn is_stateless_request(request: &Request) -> bool {
        request.meta().is_some_and(|meta| meta.contains_key(META_VERSION))
    }

    /// The revision that a request of it names.
    pub fn version_in(request: &Request) -> Option<&str> {
        request.meta()?.get(META_VERSION)?.as_str()
    }

    /// Whether a revision is one with sessions that is known here.
    pub fn has_sessions(revision: &str) -> bool {
        WITH_SESSIONS.contains(&revision)
    }

    /// What a client says at the beginning of its session.
    pub fn of_initialize(request: &Request) -> Self {
        let abilities = request.params.get("capabilities").and_then(Value::as_object);
        let can_be_asked = abilities.is_some_and(can_be_asked);
        Self { is_stateless: false, can_be_asked, has_tasks: false }
    }

    /// The id of a session that says what its client can do, so that nobody has to remember it.
    pub fn session_id(self) -> String {
        let abilities = match self.can_be_asked {
            true => CAN_BE_ASKED.to_string(),
            false => NO_ABILITIES.to_owned(),
        };
        format!("{abilities}{SEPARATOR}{}", uuid::Uuid::new_v4().simple())
    }

    /// The client with the session of this id; `None` if the id was not made by [`Client::session_id`].
    pub fn of_session(id: &str) -> Option<Self> {
        let (abilities, rest) = id.split_once(SEPARATOR)?;
        uuid::Uuid::try_parse(rest).ok()?;
        let can_be_asked = abilities.contains(CAN_BE_ASKED);
        (can_be_asked || abilities == NO_ABILITIES).then_some(Self {
            is_stateless: false,
            can_be_asked,
            has_tasks: false,
        })
    }

    /// A result in the form of the client's revision.
    pub(super) fn result(self, mut result: Value) -> Value {
        if self.is_stateless {
            if result.get("resultType").is_none() {
                result["resultType"] = json!("complete");
            }
            result["_meta"][META_SERVER] = server_info();
        }
        result
    }
}

/// An empty object stands for forms, which came first.
fn can_be_asked(abilities: &Map<String, Value>) -> bool {
    let elicitation = abilities.get("elicitation").and_then(Value::as_object);
    elicitation.is_some_and(|forms| forms.is_empty() || forms.contains_key("form"))
}

/// What the server calls itself.
pub(super) fn server_info() -> Value {
    json!({"name": "myclaw", "title": "MyClaw", "version": env!("CARGO_PKG_VERSION")})
}

/// The revision that a session gets whose client wants `wanted`.
pub(super) fn revision_for(wanted: &str) -> &'static str {
    let known = WITH_SESSIONS.into_iter().find(|known| *known == wanted);
    known.unwrap_or(WITH_SESSIONS[0])
}
