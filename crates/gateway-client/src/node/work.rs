//! What a node does for its gateway.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use myclaw_agent::{DirectTools, SessionConfig};
use myclaw_config::{CommandLine, NodeConfig, Paths};
use myclaw_engine::{ToolError, ToolOutput, ToolUpdate};
use myclaw_executor::{ArrivedCall, CallService};
use myclaw_files::{create_private_directory, read_regular, remove_if_there};
use myclaw_hooks::run_command;
use serde_json::{Map, Value, json};

use super::state::directory;
use crate::ClientError;
use crate::message::{MAX_FILE_BYTES, NodeFile, bounded, bounded_failure};

/// The capability that is the tool `bash`, under which models know it elsewhere.
const RUN: &str = "run";
const BASH: &str = "bash";
const LOCATION: &str = "location_get";
/// Longest time for a command of the config, in seconds. Clips are recorded within it.
const COMMAND_SECONDS: u64 = 330;

/// What the config of this machine lets a gateway do here.
pub(super) struct Work {
    tools: DirectTools,
    config: NodeConfig,
    paths: Paths,
    /// Where commands are started, and leave their files.
    directory: PathBuf,
}

/// What becomes of a command's result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Makes {
    Text,
    Picture,
    File,
}

impl Work {
    pub(super) async fn new(session: &SessionConfig) -> Result<Self, ClientError> {
        let tools = session.direct_tools().await?;
        let directory = directory(session.home.paths.state_dir());
        let config = session.config.node.clone();
        Ok(Self { tools, config, paths: session.home.paths.clone(), directory })
    }

    /// The names of what is offered.
    pub(super) fn capabilities(&self) -> Vec<String> {
        let tools = self.tools.names().map(|name| if name == BASH { RUN } else { name });
        let commands = self.commands().into_iter().filter(|(_, line, _)| line.is_some());
        let location = self.config.location.as_ref().map(|_| LOCATION);
        let names = tools.chain(commands.map(|(name, ..)| name)).chain(location);
        names.map(str::to_owned).collect()
    }

    fn commands(&self) -> [(&'static str, Option<&CommandLine>, Makes); 6] {
        let commands = &self.config.commands;
        [
            ("notify", commands.notify.as_ref(), Makes::Text),
            ("camera_snap", commands.camera_snap.as_ref(), Makes::Picture),
            ("camera_list", commands.camera_list.as_ref(), Makes::Text),
            ("camera_clip", commands.camera_clip.as_ref(), Makes::File),
            ("screen_record", commands.screen_record.as_ref(), Makes::File),
            ("screenshot", commands.screenshot.as_ref(), Makes::Picture),
        ]
    }

    async fn run(&self, call: ArrivedCall) -> Result<ToolOutput, String> {
        let ArrivedCall { tool: capability, arguments, cancel, .. } = call;
        if !self.capabilities().contains(&capability) {
            return Err(format!("this machine does not offer `{capability}`"));
        }
        if capability == LOCATION {
            return Ok(ToolOutput::text(self.config.location.clone().unwrap_or_default()));
        }
        let command = self.commands().into_iter().find(|(name, ..)| *name == capability);
        let done = match command {
            Some((_, Some(line), makes)) => tokio::select! {
                biased;
                // The command ends when its future is dropped.
                () = cancel.cancelled() => Err("the call was cancelled".to_owned()),
                done = self.command(line, makes, arguments) => done,
            },
            _ => {
                let tool = if capability == RUN { BASH } else { &capability };
                let result = self.tools.call(tool, arguments, cancel).await;
                result.map_err(|error| error.to_string())
            }
        };
        done.and_then(bounded)
    }

    async fn command(
        &self,
        line: &CommandLine,
        makes: Makes,
        arguments: Map<String, Value>,
    ) -> Result<ToolOutput, String> {
        let output = self.directory.join(format!("file-{}", uuid::Uuid::new_v4().simple()));
        let mut input = Value::Object(arguments);
        if makes != Makes::Text {
            input["output"] = json!(output);
        }
        create_private_directory(&self.directory).map_err(|error| error.to_string())?;
        let _removed = RemovedAtEnd(&output);
        let printed = run_command(line, COMMAND_SECONDS, &self.paths, &self.directory, &input)
            .await
            .map_err(|error| error.to_string())?;
        if makes == Makes::Text {
            return Ok(ToolOutput::text(printed));
        }
        let of_task = output.clone();
        let reading =
            tokio::task::spawn_blocking(move || read_regular(&of_task, MAX_FILE_BYTES as u64));
        let bytes = match reading.await.map_err(|error| error.to_string())? {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err("the command of this machine wrote no file to `output`".to_owned());
            }
            Err(error) => return Err(format!("the file of the command cannot be used: {error}")),
        };
        let data = STANDARD.encode(bytes);
        let file = match makes {
            Makes::Picture => NodeFile::Picture(data),
            Makes::Text | Makes::File => NodeFile::File(data),
        };
        Ok(file.output())
    }
}

/// What the gateway asks for, within this machine's own rules.
impl CallService for Work {
    fn call<'a>(
        &'a self,
        call: ArrivedCall,
        _: &'a (dyn Fn(ToolUpdate) + Send + Sync),
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.run(call).await.map_err(|why| ToolError::Failed(bounded_failure(why)))
        })
    }
}

/// A file that a command leaves, also if its call ends early.
struct RemovedAtEnd<'a>(&'a Path);

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in a directory of this user alone.
        let _ = remove_if_there(self.0);
    }
}
