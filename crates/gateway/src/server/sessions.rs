//! The stored sessions: list, search, fork, title, deletion, and export.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use myclaw_agent::export::{ExportFormat, ExportedSession, export_session};
use myclaw_agent::{AgentError, plan::Plan};
use myclaw_session::{
    About, Case, Catalog, IndexedSession, LockWait, SearchQuery, SessionError, SessionKey,
    indexed_title,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Server;
use super::request::Params;
use crate::GatewayError;

/// Labels of sessions that the page sets.
const PINNED: &str = "pinned";
const ARCHIVED: &str = "archived";
/// Label of all sessions in folders, and how the label begins that names the folder.
const IN_FOLDER: &str = "folder";
const FOLDER: &str = "folder:";
/// Characters of the name of a folder.
const MOST_FOLDER_CHARS: usize = 60;
/// Sessions of a list, unless the client wants fewer.
const USUAL: usize = 100;
/// Most sessions of a list.
const MOST: usize = 500;
/// Most messages that a search finds.
const MOST_HITS: usize = 200;
/// Longest text that is searched for, in bytes.
const MOST_SEARCHED: usize = 1_024;
/// Characters of a title: a line of a list.
const MOST_TITLE_CHARS: usize = 200;
/// Longest wait for a turn that is running in the session.
const WAIT: LockWait = LockWait::Until(Duration::from_secs(5));
/// Pieces of an export that wait for the client.
const MOST_PIECES: usize = 8;
/// Bytes of a piece.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ListRange {
    pub(super) search: Option<String>,
    pub(super) limit: Option<usize>,
    /// Whether the archived sessions are meant, else the others. A search looks in both.
    pub(super) archived: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExportQuery {
    #[serde(default)]
    format: Option<String>,
}

/// How the owner sorts a session. What is missing stays as it is.
pub(super) struct Marks {
    pub(super) pinned: Option<bool>,
    pub(super) archived: Option<bool>,
    /// Empty for none.
    pub(super) folder: Option<String>,
}

impl Server {
    /// The latest sessions, with `search` in their name, their title or a message.
    pub(super) async fn sessions(&self, range: ListRange) -> Result<Value, GatewayError> {
        let limit = range.limit.unwrap_or(USUAL).min(MOST);
        let search = range.search.map(|text| text.trim().to_owned());
        let search = search.filter(|text| !text.is_empty());
        if search.as_ref().is_some_and(|text| text.len() > MOST_SEARCHED) {
            let why = format!("the text to look for has more than {MOST_SEARCHED} bytes");
            return Err(GatewayError::Unusable(why));
        }
        let query = search.map(|text| SearchQuery::text(&text, Case::Ignored)).transpose();
        let query = query.map_err(|error| GatewayError::Unusable(error.to_string()))?;
        if query.is_none() {
            self.prepare_search();
        }
        let working = self.delivery.all_working().await;
        let questions = self.delivery.open_questions(None).await;
        let agent = self.delivery.config().default_agent_id().to_string();
        self.with_sessions(move |catalog| {
            let (found, total) = match &query {
                None => {
                    let (sessions, total) = latest(catalog, limit, range.archived)?;
                    (sessions.into_iter().map(|session| (session, None)).collect(), total)
                }
                Some(query) => search_sessions(catalog, query, limit)?,
            };
            let rows = found.into_iter().map(|(session, snippet)| {
                let key = session.key.as_str();
                let asks = questions.iter().filter(|question| is_of(question, key)).count();
                let extra = session.entry.extra.as_ref();
                let about = About::from_extra(extra);
                let automatic = if about.title.is_some() { None } else { indexed_title(extra) };
                json!({
                    "key": key,
                    "name": name_of(&agent, &session.key),
                    "title": about.title,
                    "automaticTitle": automatic,
                    "labels": about.labels,
                    "forkedFrom": session.entry.extra.as_ref().and_then(|extra| extra.get("forkedFrom")),
                    "updatedAt": session.entry.updated_at,
                    "model": session.entry.model,
                    "totalTokens": session.entry.total_tokens,
                    "busy": working.contains(key),
                    "approvals": asks,
                    "snippet": snippet,
                })
            });
            Ok(json!({"sessions": rows.collect::<Vec<_>>(), "total": total}))
        })
        .await
    }

    /// Prepares once for searches: who looks at the list may search next.
    fn prepare_search(&self) {
        if self.is_search_prepared.swap(true, Ordering::Relaxed) {
            return;
        }
        let home = self.delivery.home();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = home.catalog().prepare_search() {
                tracing::debug!(%error, "the sessions are not prepared for searches");
            }
        });
    }

    /// Sets or removes the title of a session.
    pub(super) async fn title(
        &self,
        session: &str,
        title: Option<String>,
    ) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        let is_bad = |title: &String| {
            title.chars().any(char::is_control) || title.chars().count() > MOST_TITLE_CHARS
        };
        if title.as_ref().is_some_and(is_bad) {
            let why = format!("a title is one line of at most {MOST_TITLE_CHARS} characters");
            return Err(GatewayError::Unusable(why));
        }
        self.with_sessions(move |catalog| {
            let mut set = |about: &mut About| about.title.clone_from(&title);
            let about = catalog.change_about(&key, WAIT, &mut set)?;
            Ok(json!({"key": key.as_str(), "title": about.title}))
        })
        .await
    }

    /// Pins a session, archives it or puts it into a folder, or ends that. All are labels of the session.
    pub(super) async fn mark(
        &self,
        session: &str,
        Marks { pinned, archived, folder }: Marks,
    ) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        let folder = folder.map(|name| name.trim().to_owned());
        let is_bad = |name: &String| {
            name.chars().any(char::is_control) || name.chars().count() > MOST_FOLDER_CHARS
        };
        if folder.as_ref().is_some_and(is_bad) {
            let why = format!(
                "the name of a folder is one line of at most {MOST_FOLDER_CHARS} characters; empty takes out of it"
            );
            return Err(GatewayError::Unusable(why));
        }
        self.with_sessions(move |catalog| {
            let mut set = |about: &mut About| {
                for (label, wanted) in [(PINNED, pinned), (ARCHIVED, archived)] {
                    let Some(wanted) = wanted else { continue };
                    about.labels.retain(|own| own != label);
                    about.labels.extend(wanted.then(|| label.to_owned()));
                }
                if let Some(folder) = &folder {
                    about.labels.retain(|own| own != IN_FOLDER && !own.starts_with(FOLDER));
                    if !folder.is_empty() {
                        let named = format!("{FOLDER}{folder}");
                        about.labels.extend([IN_FOLDER.to_owned(), named]);
                    }
                }
            };
            let about = catalog.change_about(&key, WAIT, &mut set)?;
            Ok(json!({"key": key.as_str(), "labels": about.labels}))
        })
        .await
    }

    /// The plan that the agent has shown last in a session.
    pub(super) async fn plan(&self, session: &str) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        self.with_sessions(move |catalog| {
            let reader = catalog.read(&key)?;
            let plan = reader.map(|reader| Plan::last_of(&*reader)).transpose()?.flatten();
            Ok(json!({"plan": plan}))
        })
        .await
    }

    /// What the tools have changed in a session and is different now.
    pub(super) async fn changes(&self, session: &str) -> Result<Value, GatewayError> {
        let config = self.delivery.session_config(session)?;
        let comparing = tokio::task::spawn_blocking(move || {
            let mut files = config.differences()?;
            let mut redactor = config.home.redactor();
            let texts = files.iter_mut().filter_map(|file| file.diff.as_mut());
            texts.for_each(|diff| redactor.clean_in_place(diff));
            Ok::<_, AgentError>(files)
        });
        let compared =
            comparing.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        let files = compared.map_err(GatewayError::Agent)?;
        Ok(json!({"files": files}))
    }

    /// Deletes a session with its transcript.
    pub(super) async fn delete(&self, session: &str) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        if self.delivery.is_in_use(&key).await {
            let why =
                "the session works, or a background job or a sub-agent of it runs; stop it first";
            return Err(GatewayError::InUse(why.to_owned()));
        }
        self.with_sessions(move |catalog| {
            if !catalog.delete(&key)? {
                return Err(SessionError::NoSuchSession { key });
            }
            Ok(json!({"deleted": key.as_str()}))
        })
        .await
    }

    pub(super) async fn with_sessions<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Catalog) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let home = self.delivery.home();
        let working = tokio::task::spawn_blocking(move || work(&**home.catalog()));
        let worked = working.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        worked.map_err(failed)
    }
}

/// A failure of the session store, by what the client can do.
fn failed(error: SessionError) -> GatewayError {
    match error {
        error @ (SessionError::NoSuchSession { .. } | SessionError::NoSuchEntry { .. }) => {
            GatewayError::NotFound(error.to_string())
        }
        error @ (SessionError::Locked { .. } | SessionError::SessionExists { .. }) => {
            GatewayError::InUse(error.to_string())
        }
        error @ SessionError::EmptySession { .. } => GatewayError::Unusable(error.to_string()),
        error => GatewayError::Agent(AgentError::from(error)),
    }
}

/// The name by which the owner calls a session: one word for a terminal session of the default agent.
pub(super) fn name_of(agent: &str, key: &SessionKey) -> String {
    let parts = key.parts();
    match SessionKey::for_cli(agent, &parts.peer_id) == *key {
        true => parts.peer_id,
        false => key.to_string(),
    }
}

/// The latest sessions of those that are archived, or of the others, the pinned ones first; and the number of all of them.
fn latest(
    catalog: &dyn Catalog,
    limit: usize,
    archived: bool,
) -> Result<(Vec<IndexedSession>, usize), SessionError> {
    let parts = if archived {
        vec![
            catalog.latest_labelled(MOST, &[ARCHIVED, PINNED], &[])?,
            catalog.latest_labelled(limit, &[ARCHIVED], &[PINNED])?,
        ]
    } else {
        vec![
            catalog.latest_labelled(MOST, &[PINNED], &[ARCHIVED])?,
            catalog.latest_labelled(MOST, &[IN_FOLDER], &[PINNED, ARCHIVED])?,
            catalog.latest_labelled(limit, &[], &[IN_FOLDER, PINNED, ARCHIVED])?,
        ]
    };
    let total = parts.iter().map(|(_, count)| count).sum();
    Ok((parts.into_iter().flat_map(|(sessions, _)| sessions).collect(), total))
}

/// Whether a question is one of this session, or of one that works on its behalf.
fn is_of(question: &Value, key: &str) -> bool {
    let mut above = question["onBehalfOf"].as_array().into_iter().flatten();
    question["session"] == key || above.any(|session| session == key)
}

type Found = (IndexedSession, Option<Value>);

/// The latest sessions with `text` in their key or title, or in a message, of which the newest is the snippet.
fn search_sessions(
    catalog: &dyn Catalog,
    query: &SearchQuery,
    limit: usize,
) -> Result<(Vec<Found>, usize), SessionError> {
    let report = catalog.search_again(query, MOST_HITS)?;
    let matching: HashSet<&str> = report.matches.keys().map(SessionKey::as_str).collect();
    let (sessions, total) = catalog.find(query, limit, &|key| matching.contains(key))?;
    let found = sessions.into_iter().map(|session| {
        let snippet = report.hits.iter().find(|hit| hit.key == session.key).map(|hit| {
            json!({"before": hit.before, "matched": hit.matched, "after": hit.after, "ts": hit.ts})
        });
        (session, snippet)
    });
    Ok((found.collect(), total))
}

pub(super) async fn export(
    State(server): State<Arc<Server>>,
    Path(session): Path<String>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, GatewayError> {
    let (format, content_type, ending) = match query.format.as_deref() {
        None | Some("jsonl") => (ExportFormat::Jsonl, "application/x-ndjson", "jsonl"),
        Some("markdown") => (ExportFormat::Markdown, "text/markdown; charset=utf-8", "md"),
        Some("html") => (ExportFormat::Html, "text/html; charset=utf-8", "html"),
        Some(other) => {
            let why = format!("there is no format `{other}`; there are jsonl, markdown, html");
            return Err(GatewayError::Unusable(why));
        }
    };
    let (key, _) = server.delivery.session(&session)?;
    let agent = server.delivery.config().default_agent_id().to_string();
    let name = name_of(&agent, &key);
    let (sender, pieces) = mpsc::channel(MOST_PIECES);
    let (of_session, title) = (key.clone(), name);
    let reader = server
        .with_sessions(move |catalog| {
            let reader = catalog.read(&of_session)?.filter(|_| catalog.exists(&of_session));
            reader.ok_or(SessionError::NoSuchSession { key: of_session })
        })
        .await?;
    tokio::task::spawn_blocking(move || {
        let title = reader.about().ok().and_then(|about| about.title).unwrap_or(title);
        let redactor = Some(server.delivery.home().redactor());
        let mut session = ExportedSession { reader: &*reader, title, redactor };
        let mut out = Pieces { sender, piece: Vec::with_capacity(PIECE) };
        if let Err(error) = export_session(&mut session, format, &mut out) {
            tracing::warn!(?error, "an export is incomplete");
            // The client sees that the document does not end.
            let _ = out.sender.blocking_send(Err(io::Error::other("the export failed")));
        }
    });
    let body = stream::unfold(pieces, |mut pieces| async {
        let piece: io::Result<Bytes> = pieces.recv().await?;
        Some((piece, pieces))
    });
    let headers = [
        (CONTENT_TYPE, content_type.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}.{ending}\"", key.slug())),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// Sends what is written in pieces. Fails when the client is gone.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let sent = self.sender.blocking_send(Ok(piece.into()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
