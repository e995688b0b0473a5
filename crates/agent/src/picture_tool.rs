//! The tool `image_generate`: a picture made of words, by a model that the config names, as a file of the session.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, ActiveModel, CallArguments, CallEffect, CallSubject, Clock as _, IMAGE_GENERATE, Power,
    Powers, SystemClock, Tool, ToolAliases, ToolContext, ToolDeclaration, ToolError,
    ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_files::{Access, SharedDirectory, create_private_directory};
use myclaw_llm::{Api, Cost, HttpOptions, ToolSchema, Usage};
use myclaw_session::EntryId;
use myclaw_tools::{picture_from_bytes, shown_size};
use myclaw_web::{DownloadOptions, MadePicture, PictureForm, PictureService, PictureShape};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::home::USER_AGENT;
use crate::models::profiles_in_order;
use crate::{SessionConfig, exhausted_today, key_resolver};

/// Longest description of a picture, in characters: the services take more.
const MAX_PROMPT_CHARS: usize = 8_000;
/// How long a picture may take: the slowest models need two minutes.
const LIMIT: Duration = Duration::from_secs(300);
/// The key that names the model.
const KEY: &str = "agents.defaults.imageGenerationModel";

/// What the tool is.
pub(crate) const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Make a picture",
    kind: ToolKind::Other,
    about: About::Argument { verb: "Make a picture of", name: "prompt" },
    group: None,
    powers: Powers::of(&[Power::ReachesNetwork]),
    place: WorkPlace::Here,
};

static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: IMAGE_GENERATE.to_owned(),
    description:
        "Make a picture from a description. Returns the path of the file, which the user is shown."
            .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "what the picture shows, in full"},
            "shape": {"type": "string", "enum": ["square", "landscape", "portrait"]},
        },
        "required": ["prompt"],
    }),
});

/// The tool; see the module.
pub(crate) struct PictureTool(SessionConfig);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    prompt: String,
    #[serde(default)]
    shape: Option<Shape>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Square,
    Landscape,
    Portrait,
}

impl From<Shape> for PictureShape {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Square => Self::Square,
            Shape::Landscape => Self::Landscape,
            Shape::Portrait => Self::Portrait,
        }
    }
}

impl SessionConfig {
    /// The tool, if the config names a model for it.
    pub(crate) fn picture_tool(&self) -> Option<Arc<dyn Tool>> {
        self.config.agents.defaults.image_generation_model.as_ref()?;
        Some(Arc::new(PictureTool(self.clone())))
    }
}

impl Tool for PictureTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn aliases(&self) -> ToolAliases {
        ToolAliases {
            names: &["generate_image", "create_image"],
            arguments: &[("description", "prompt")],
            unlisted: &[],
        }
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let service = CallEffect::Connect("the model that makes pictures".to_owned());
        Ok(CallSubject::of(arguments).with(service))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let given: Arguments = invocation.call.arguments.parse()?;
            let prompt = given.prompt.trim();
            if prompt.is_empty() || prompt.chars().count() > MAX_PROMPT_CHARS {
                return Err(ToolError::Failed(format!(
                    "the prompt must have 1 to {MAX_PROMPT_CHARS} characters; describe the picture"
                )));
            }
            let cancel = &invocation.cancel;
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    Err(ToolError::Aborted("aborted before the picture was made".to_owned()))
                }
                made = self.make(prompt, given.shape.map(Into::into), invocation.context, cancel) => {
                    made.map_err(ToolError::Failed)
                }
            }
        })
    }
}

impl PictureTool {
    async fn make(
        &self,
        prompt: &str,
        shape: Option<PictureShape>,
        context: &ToolContext,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, String> {
        let session = &self.0;
        let name = session.config.agents.defaults.image_generation_model.as_deref();
        let failed = |why: String| format!("no picture was made: {why}");
        let selection = session.select_model(name).await.map_err(|error| failed(error.message))?;
        let Some(active) = selection.models.first() else {
            return Err(failed(format!("the user must check {KEY}")));
        };
        let home = session.home.clone();
        let (agent, model) = (session.agent.clone(), active.model.clone());
        let exhausted = blocking(move || exhausted_today(&home, &agent, &model)).await;
        if let Ok(Ok(Some(bound))) = exhausted {
            let key = session.config.deciding_key(&session.agent.id, bound.config_key());
            return Err(failed(format!("the limit of the day is reached ({key})")));
        }
        let made = self.ask(active, prompt, shape, cancel).await.map_err(failed)?;
        let usage = priced(&made, active);
        session.record(usage).await;
        let bytes = BASE64_STANDARD.decode(made.data.trim_ascii());
        let bytes = bytes.map_err(|_| failed("the answer is not standard base64".to_owned()))?;
        let directory = context.artifact_directory.clone();
        let saved = blocking(move || save(&directory, &bytes)).await;
        let (path, size) = saved.map_err(|error| failed(error.message))?.map_err(failed)?;
        let cost = match usage.cost.unpriced_calls {
            0 => format!("${:.4}", usage.cost.total),
            _ => "of unknown cost".to_owned(),
        };
        let name = active.reference();
        let text =
            format!("A picture of {} by {name}, {cost}: {}", shown_size(size), path.display());
        let details = json!({"path": path, "bytes": size, "model": name, "cost": usage.cost.total});
        Ok(ToolOutput { details: Some(details), ..ToolOutput::text(text) })
    }

    /// Asks the model with the first of its keys that works.
    async fn ask(
        &self,
        active: &ActiveModel,
        prompt: &str,
        shape: Option<PictureShape>,
        cancel: &CancellationToken,
    ) -> Result<MadePicture, String> {
        let (session, model) = (&self.0, &active.model);
        let form = form_of(active)?;
        let base_url = model.base_url.trim().parse();
        let base_url =
            base_url.map_err(|_| format!("the address of {} is no URL", model.provider))?;
        let now_ms = SystemClock.now_ms();
        let stored = session.home.stored_keys(&session.agent);
        let keys = key_resolver(session.home.http_options());
        let mut service = PictureService { form, base_url, model: model.id.clone(), api_key: None };
        let mut problem = "there is no key for it".to_owned();
        for profile in profiles_in_order(active, &stored, now_ms) {
            match keys.resolve(&profile, now_ms, cancel).await {
                Ok(key) => service.api_key = key,
                Err(error) => {
                    problem = error.to_string();
                    continue;
                }
            }
            let extra_ca_files = HttpOptions::default().extra_ca_files;
            let options = DownloadOptions { user_agent: USER_AGENT.to_owned(), extra_ca_files };
            match service.make(prompt, shape, options, LIMIT).await {
                Ok(made) => return Ok(made),
                Err(no) if no.is_about_key => problem = no.why,
                Err(no) => return Err(format!("{}: {}", active.reference(), no.why)),
            }
        }
        Err(format!("{}: {problem}", active.reference()))
    }
}

/// The interface by which a model makes pictures.
fn form_of(active: &ActiveModel) -> Result<PictureForm, String> {
    let model = &active.model;
    let is_openrouter = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
    match model.api {
        Api::OpenaiCompletions | Api::OpenaiResponses if is_openrouter => Ok(PictureForm::Chat),
        Api::OpenaiCompletions | Api::OpenaiResponses => Ok(PictureForm::Images),
        Api::GoogleGenerativeAi => Ok(PictureForm::Google),
        Api::AnthropicMessages | Api::BedrockConverse | Api::Builtin => Err(format!(
            "{} makes no pictures; the user must name a model of OpenAI, Google or OpenRouter as {KEY}",
            active.reference()
        )),
    }
}

/// What the picture cost: as the service says, else by the price of the model.
fn priced(made: &MadePicture, active: &ActiveModel) -> Usage {
    let usage = Usage { input: made.input_tokens, output: made.output_tokens, ..Usage::default() };
    let usage = usage.priced(active.model.price);
    match made.cost {
        Some(total) => Usage { cost: Cost { total, ..Cost::default() }, ..usage },
        // Without counters there is nothing that a price could be applied to.
        None if usage.total_tokens == 0 => {
            Usage { cost: Cost { unpriced_calls: 1, ..Cost::default() }, ..usage }
        }
        None => usage,
    }
}

/// Writes a picture into the directory of the session's files. Blocks.
fn save(directory: &Path, bytes: &[u8]) -> Result<(PathBuf, u64), String> {
    let ending = match bytes {
        [0x89, b'P', b'N', b'G', ..] => "png",
        [0xff, 0xd8, 0xff, ..] => "jpg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        [b'G', b'I', b'F', ..] => "gif",
        _ => return Err("the answer is not a PNG, JPEG, WebP or GIF file".to_owned()),
    };
    let name = format!("picture-{}.{ending}", EntryId::generate());
    let write = || {
        create_private_directory(directory)?;
        // A sandboxed session can change everything in that directory.
        let mut file = SharedDirectory::open(directory)?.create(&name, Access::Owner)?;
        file.write_all(bytes)?;
        Ok::<_, io::Error>(bytes.len() as u64)
    };
    // A damaged one is not shown as a picture.
    picture_from_bytes(bytes.to_vec())
        .map_err(|why| format!("the picture cannot be used: {why}"))?;
    let size = write().map_err(|error| format!("the file cannot be written: {error}"))?;
    Ok((directory.join(name), size))
}

#[cfg(test)]
mod tests;
