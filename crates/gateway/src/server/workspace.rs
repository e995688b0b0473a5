//! The files of an agent's workspace, for its owner: a list of each directory, and files down and up.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use myclaw_files::{Access, EntryKind, SharedDirectory};
use serde::Deserialize;
use serde_json::{Value, json};

use super::agents::main_session;
use super::request::Params;
use super::{Server, files};
use crate::GatewayError;

/// Most entries of a directory that are listed.
const MOST_ENTRIES: usize = 1_000;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/workspace", get(list))
        .route("/api/workspace/file", get(download).put(upload))
}

/// A path below the workspace of an agent; the default one if it is missing.
#[derive(Deserialize)]
pub(super) struct Place {
    agent: Option<String>,
    #[serde(default)]
    path: PathBuf,
}

impl Place {
    /// The id of the agent, and its workspace.
    fn agent(&self, server: &Server) -> Result<(String, PathBuf), GatewayError> {
        let config = main_session(server, &server.delivery.config(), self.agent.as_deref())?;
        Ok((config.agent.id.to_string(), config.agent.workspace))
    }

    /// The name of the file.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Runs `work` in the workspace, on a thread that may wait for the disk. Links are not followed: what they lead to is not
    /// the workspace's.
    async fn within<T: Send + 'static>(
        &self,
        server: &Server,
        work: impl FnOnce(&SharedDirectory, &Path) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let ((_, workspace), path) = (self.agent(server)?, self.path.clone());
        let shown = workspace.join(&path);
        let working =
            tokio::task::spawn_blocking(move || work(&SharedDirectory::open(&workspace)?, &path));
        let outcome = working.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        outcome.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                GatewayError::NotFound(format!("there is no {} any more", shown.display()))
            }
            ErrorKind::AlreadyExists => GatewayError::InUse(format!(
                "there is a {} already; give the file another name",
                shown.display()
            )),
            _ => GatewayError::Unusable(format!("{} cannot be used: {error}", shown.display())),
        })
    }
}

async fn list(
    State(server): State<Arc<Server>>,
    Params(place): Params<Place>,
) -> Result<Json<Value>, GatewayError> {
    let read = |workspace: &SharedDirectory, path: &Path| {
        let within;
        let directory = match path.as_os_str().is_empty() {
            true => workspace,
            false => {
                within = workspace.directory(path)?;
                &within
            }
        };
        let listed = directory.names(MOST_ENTRIES, |name| name.to_str().is_some())?;
        let entries = listed.names.iter().filter_map(|name| {
            let facts = directory.facts(name).ok()??;
            let is_directory = match facts.kind {
                EntryKind::Directory => true,
                EntryKind::File => false,
                EntryKind::Link | EntryKind::Special => return None,
            };
            Some(json!({
                "name": name.to_str(), "isDirectory": is_directory, "bytes": facts.bytes,
                "changedAt": facts.changed_ns / 1_000_000,
            }))
        });
        Ok((entries.collect::<Vec<_>>(), listed.is_cut))
    };
    let (agent, workspace) = place.agent(&server)?;
    // It is made when an agent first works there.
    let (entries, is_cut) = match place.within(&server, read).await {
        Err(GatewayError::NotFound(_)) if place.path.as_os_str().is_empty() => (Vec::new(), false),
        read => read?,
    };
    Ok(Json(json!({
        "agent": agent, "workspace": workspace, "entries": entries, "isCut": is_cut,
    })))
}

/// Sends a file. What could run as a script is bytes, which no browser opens by itself.
pub(super) async fn download(
    State(server): State<Arc<Server>>,
    Params(place): Params<Place>,
) -> Result<Response, GatewayError> {
    let open = |workspace: &SharedDirectory, path: &Path| {
        let file = workspace.file(path)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    };
    let (file, size) = place.within(&server, open).await?;
    Ok(files::answer(file, size, &place.name()))
}

/// Takes a file, which is the body. One that is there stays.
async fn upload(
    State(server): State<Arc<Server>>,
    Params(place): Params<Place>,
    content: Bytes,
) -> Result<Json<Value>, GatewayError> {
    let bytes = content.len();
    let write = move |workspace: &SharedDirectory, path: &Path| {
        let mut file = workspace.create(path, Access::Owner)?;
        let written = file.write_all(&content).and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a file would look like a whole one.
            let _ = workspace.remove(path);
        }
        written
    };
    place.within(&server, write).await?;
    Ok(Json(json!({"name": place.name(), "bytes": bytes})))
}
