//! Finds, lists and deletes stored sessions.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Error, ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo,
};
use jiff::Timestamp;
use myclaw_agent::Home;
use myclaw_session::{Catalog, IndexedSession, MetaPatch, SessionError, SessionKey, UpdatedAt};
use serde_json::Map;

use super::failure::{internal, invalid, of, unknown_session};
use myclaw_front::sessions::session_title;
use myclaw_front::time::new_session_name;

/// The key in the index for the directory in which the tools of a session worked last.
const DIRECTORY_FIELD: &str = "workingDirectory";
/// Sessions per page.
const PAGE: usize = 50;

/// The sessions of one agent.
#[derive(Debug, Clone)]
pub(super) struct StoredSessions {
    pub(super) catalog: Arc<dyn Catalog>,
    pub(super) home: Home,
    pub(super) agent_id: String,
    /// The directory of sessions whose directory is not known.
    pub(super) workspace: PathBuf,
}

impl StoredSessions {
    /// A new, unused key. `is_taken` knows the sessions that are not on disk yet.
    pub(super) fn new_key(
        &self,
        is_taken: impl Fn(&SessionKey) -> bool,
    ) -> Result<SessionKey, Error> {
        // Another process may begin a session within the same second.
        let process = std::process::id();
        let key =
            |name: &str| SessionKey::parse_for_agent(&self.agent_id, &format!("{name}-{process}"));
        let name = new_session_name(|name| {
            key(name).is_ok_and(|key| self.catalog.exists(&key) || is_taken(&key))
        });
        key(&name).map_err(internal)
    }

    /// The key of a stored session.
    pub(super) fn find(&self, id: &SessionId) -> Result<SessionKey, Error> {
        let key = SessionKey::parse_for_agent(&self.agent_id, &id.0)
            .map_err(|error| unknown_session(format!("there is no session `{id}`: {error}")))?;
        if !self.catalog.exists(&key) && !self.was_never_prompted(&key) {
            return Err(unknown_session(format!(
                "there is no session `{id}`; session/list lists them"
            )));
        }
        Ok(key)
    }

    /// Whether the key is one of [`StoredSessions::new_key`]: a client may load the session that it has begun in an earlier
    /// process and never prompted. Such a session has no file yet.
    fn was_never_prompted(&self, key: &SessionKey) -> bool {
        let name = key.parts().peer_id;
        let is_own = SessionKey::for_cli(&self.agent_id, &name) == *key;
        let lengths: Vec<usize> = name.split('-').map(str::len).collect();
        let has_form = matches!(lengths.as_slice(), [4, 2, 2, 6, _] | [4, 2, 2, 6, _, _]);
        is_own && has_form && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    }

    /// Records the directory of a session's tools. Only the list uses it.
    pub(super) async fn remember_directory(&self, key: &SessionKey, directory: &Path) {
        let (catalog, key) = (Arc::clone(&self.catalog), key.clone());
        let directory = directory.to_string_lossy().into_owned();
        let change = move || {
            let extra = Map::from_iter([(DIRECTORY_FIELD.to_owned(), directory.into())]);
            let patch = MetaPatch {
                extra: Some(extra),
                updated_at: UpdatedAt::Keep,
                ..MetaPatch::default()
            };
            // A failure here only leaves a wrong directory in the list.
            drop(catalog.update(&key, patch));
        };
        drop(tokio::task::spawn_blocking(change).await);
    }

    /// The sessions that a client asks for, the latest first.
    pub(super) async fn list(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let from = match request.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| {
                invalid(format!("session/list: `{cursor}` is not a cursor of an earlier answer"))
            })?,
        };
        let stored_sessions = self.clone();
        tokio::task::spawn_blocking(move || stored_sessions.page(from, request.cwd.as_deref()))
            .await
            .map_err(internal)?
    }

    fn page(&self, from: usize, cwd: Option<&Path>) -> Result<ListSessionsResponse, Error> {
        let agent = SessionKey::for_cli(&self.agent_id, "any").parts().agent_id;
        let next = from.saturating_add(PAGE);
        let (mut position, mut infos, mut cursor) = (0, Vec::new(), None);
        let listed: Result<(), SessionError> = self.catalog.each(|session| {
            let is_wanted = session.key.parts().agent_id == agent
                && cwd.is_none_or(|cwd| self.directory_of(&session) == cwd);
            if !is_wanted {
                return Ok(ControlFlow::Continue(()));
            }
            if position == next {
                cursor = Some(next.to_string());
                return Ok(ControlFlow::Break(()));
            }
            if position >= from {
                infos.push(self.info(&session));
            }
            position += 1;
            Ok(ControlFlow::Continue(()))
        });
        listed.map_err(|error| of(&error.into()))?;
        Ok(ListSessionsResponse::new(infos).next_cursor(cursor))
    }

    fn info(&self, session: &IndexedSession) -> SessionInfo {
        let updated_at = i64::try_from(session.entry.updated_at)
            .ok()
            .and_then(|time| Timestamp::from_millisecond(time).ok());
        SessionInfo::new(SessionId::new(session.key.as_str()), self.directory_of(session))
            .title(session_title(&*self.catalog, &session.key, Some(&session.entry)))
            .updated_at(updated_at.map(|time| time.to_string()))
    }

    fn directory_of(&self, session: &IndexedSession) -> PathBuf {
        let extra = session.entry.extra.as_ref();
        let directory = extra.and_then(|extra| extra.get(DIRECTORY_FIELD)?.as_str());
        directory.map_or_else(|| self.workspace.clone(), PathBuf::from)
    }

    /// Deletes a session with its transcript.
    pub(super) async fn delete(&self, key: SessionKey) -> Result<(), Error> {
        let catalog = Arc::clone(&self.catalog);
        let deleted = tokio::task::spawn_blocking(move || catalog.delete(&key));
        deleted.await.map_err(internal)?.map_err(|error| of(&error.into()))?;
        Ok(())
    }
}
