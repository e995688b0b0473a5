//! The `image` tool: looks at a picture in a file or on the web.
//!
//! A model that sees pictures gets the picture itself. For another model a second one looks at it, and answers in words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, PreparedCall, SharedSchemas, Tool, ToolAliases,
    ToolContext, ToolDeclaration, ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::outside::{mark, visible};
use myclaw_llm::{ContentBlock, ImageContent, ToolSchema};
use myclaw_tools::{picture_from_bytes, run_blocking};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::download::without_credentials;
use crate::{Downloader, Wanted, declarations};

/// Largest picture that is downloaded, in bytes.
const MAX_PICTURE_BYTES: usize = 20 * 1024 * 1024;
/// The question if the model asks none.
const DEFAULT_QUESTION: &str =
    "Describe this picture in detail. Write down all text that is in it, word for word.";
/// Longest answer of the model that looks, in characters.
const MAX_ANSWER_CHARS: usize = 10_000;

const ALIASES: ToolAliases = ToolAliases {
    names: &["view_image", "look_at_image", "analyze_image"],
    arguments: &[
        ("path", "image"),
        ("file_path", "image"),
        ("url", "image"),
        ("question", "prompt"),
    ],
    unlisted: &[],
};

/// A model that looks at pictures for one that cannot.
pub trait Viewer: Send + Sync {
    /// Answers `question` about `picture`.
    ///
    /// # Errors
    /// Why there is no answer, and what to do.
    fn look<'a>(
        &'a self,
        picture: ImageContent,
        question: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>>;
}

/// Who looks at pictures.
#[derive(Clone)]
pub enum Sight {
    /// The active model itself.
    Own,
    /// Another model.
    Other(Arc<dyn Viewer>),
    /// Nobody.
    Missing,
}

impl fmt::Debug for Sight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Own => "Own",
            Self::Other(_) => "Other",
            Self::Missing => "Missing",
        })
    }
}

/// The tool; see the module.
pub struct ImageTool {
    schema: Arc<ToolSchema>,
    downloader: Arc<Downloader>,
    time: Duration,
    read: Option<Arc<dyn Tool>>,
    sight: Sight,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    image: String,
    #[serde(default)]
    prompt: Option<String>,
}

impl Arguments {
    /// The path of the picture; `None` if it has a URL.
    fn path(&self) -> Option<&str> {
        let place = self.image.trim();
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            place.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        (!is_url).then_some(place)
    }
}

/// The arguments of the tool for files.
fn path_arguments(path: &str) -> Map<String, Value> {
    Map::from_iter([("path".to_owned(), Value::from(path))])
}

/// A picture, with a line about it.
struct Picture {
    note: String,
    content: ImageContent,
}

fn schema(reads_files: bool) -> ToolSchema {
    let what = if reads_files { "path or URL" } else { "URL" };
    ToolSchema {
        name: "image".to_owned(),
        description: "Look at a picture (PNG, JPEG, GIF, WebP).".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "image": {"type": "string", "description": what},
                "prompt": {"type": "string", "description": "what to look for"}
            },
            "required": ["image"],
        }),
    }
}

impl ImageTool {
    /// The tool. A file is read with `read`, the run's own tool, so that what holds for files holds here as well; without
    /// it the tool takes URLs only. A download may take `time`.
    pub fn new(
        downloader: Arc<Downloader>,
        time: Duration,
        read: Option<Arc<dyn Tool>>,
        sight: Sight,
    ) -> Self {
        static SCHEMAS: SharedSchemas<bool> = SharedSchemas::new();
        let schema = SCHEMAS.get(read.is_some(), |reads_files| schema(*reads_files));
        Self { schema, downloader, time, read, sight }
    }

    /// The tool for files.
    fn reader(&self) -> Result<&dyn Tool, ToolError> {
        self.read.as_deref().ok_or_else(|| {
            ToolError::Failed("files cannot be read here; give the URL of a picture".to_owned())
        })
    }

    async fn look(
        &self,
        call: &PreparedCall,
        context: &ToolContext,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        if matches!(self.sight, Sight::Missing) {
            return Err(ToolError::Failed(
                "the active model cannot see pictures; the user can name one that can as agents.defaults.imageModel \
                 in the config, or choose another model"
                    .to_owned(),
            ));
        }
        let arguments: Arguments = call.arguments.parse()?;
        let picture = match arguments.path() {
            None => self.download(arguments.image.trim()).await?,
            Some(path) => self.read_file(path, call, context, cancel).await?,
        };
        let Sight::Other(viewer) = &self.sight else {
            let Picture { note, content } = picture;
            let content = vec![ContentBlock::text(note), ContentBlock::Image(content)];
            return Ok(ToolOutput { content, ..ToolOutput::default() });
        };
        let question = arguments.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty());
        let answer =
            viewer.look(picture.content, question.unwrap_or(DEFAULT_QUESTION), cancel).await;
        let answer = answer.map_err(ToolError::Failed)?;
        let answer: String = answer.chars().take(MAX_ANSWER_CHARS).collect();
        // Text in a picture is external content, as text of a page is.
        Ok(ToolOutput::text(format!("{}\n{}", picture.note, mark(&visible(&answer)))))
    }

    async fn download(&self, url: &str) -> Result<Picture, ToolError> {
        let wanted = Wanted {
            url,
            accept: "image/png, image/jpeg, image/gif, image/webp",
            max_bytes: MAX_PICTURE_BYTES,
            limit: self.time,
        };
        let download = self.downloader.get(wanted).await;
        let download = download.map_err(|error| ToolError::Failed(error.for_model()))?;
        let url = without_credentials(url);
        let unusable =
            |why: &str| ToolError::Failed(format!("the picture at {url} cannot be used: {why}"));
        if !download.status.is_success() {
            return Err(unusable(&format!(
                "the server answered {}; check the address",
                download.status
            )));
        }
        if download.is_cut {
            return Err(unusable("it is larger than 20 MB; look for a smaller one"));
        }
        let bytes = download.body.len();
        let body = download.body.clone();
        let content = run_blocking(move || Ok(picture_from_bytes(body))).await?;
        let content = content.map_err(|why| unusable(&format!("{why}; check the address")))?;
        let note = format!("{url}: {} picture, {bytes} bytes", content.mime_type);
        Ok(Picture { note, content })
    }

    async fn read_file(
        &self,
        path: &str,
        call: &PreparedCall,
        context: &ToolContext,
        cancel: &CancellationToken,
    ) -> Result<Picture, ToolError> {
        let read = self.reader()?;
        let arguments = CallArguments::of(read, path_arguments(path))
            .map_err(|problems| ToolError::Failed(problems.join("; ")))?;
        // The same subject, so that the file is the one that was judged.
        let reading = PreparedCall {
            tool_name: read.schema().name.clone(),
            arguments,
            declaration: read.declaration(),
            ..call.clone()
        };
        let invocation =
            ToolInvocation { call: &reading, on_update: &|_| {}, context, cancel: cancel.clone() };
        let output = read.execute(invocation).await?;
        let (mut note, mut content) = (path.to_owned(), None);
        for block in output.content {
            match block {
                ContentBlock::Text(text) => note = text.text,
                ContentBlock::Image(image) => content = Some(image),
                ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => {}
            }
        }
        content.map(|content| Picture { note, content }).ok_or_else(|| {
            ToolError::Failed(format!(
                "{path} is not a PNG, JPEG, GIF or WebP picture; read it with the read tool"
            ))
        })
    }
}

impl Tool for ImageTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::IMAGE
    }

    fn aliases(&self) -> ToolAliases {
        ALIASES
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        let subject = CallSubject::of(arguments);
        let Some(path) = given.path() else {
            return Ok(subject.with(CallEffect::Connect(given.image.trim().to_owned())));
        };
        let reading = PreparedCall::new(self.reader()?, "image", path_arguments(path), context)?;
        Ok(reading.subject.effects.into_iter().fold(subject, CallSubject::with))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let cancel = &invocation.cancel;
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    Err(ToolError::Aborted("aborted before the picture was seen".to_owned()))
                }
                output = self.look(invocation.call, invocation.context, cancel) => output,
            }
        })
    }
}
