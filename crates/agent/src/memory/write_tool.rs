//! The tool `memory_write`: remembers a fact, corrects one, or forgets one.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, KnownSecrets, Power, Powers, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolGroup, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::ToolSchema;
use myclaw_memory::{Added, FactId, NewFact, Notebook, NotebookError};
use myclaw_tools::run_blocking;
use serde::Deserialize;
use serde_json::json;

use super::origin::Origins;

/// Name of the tool.
pub(super) const NAME: &str = "memory_write";

/// What the tool is.
pub(crate) const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Remember a fact",
    kind: ToolKind::Other,
    about: About::Argument { verb: "Remember", name: "fact" },
    group: Some(ToolGroup::Memory),
    powers: Powers::of(&[Power::ChangesState]),
    place: WorkPlace::Here,
};

static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: NAME.to_owned(),
    description: "Remember, correct or forget a fact.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "fact": {"type": "string", "description": "One short sentence; none to forget"},
            "replaces": {"type": "string", "description": "Id of the older fact"},
        },
    }),
});

/// Writes facts.
pub(super) struct MemoryWriteTool {
    origins: Origins,
    notebook: Notebook,
    known_secrets: Arc<KnownSecrets>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    fact: String,
    #[serde(default)]
    replaces: Option<String>,
}

impl MemoryWriteTool {
    pub(super) fn new(
        origins: Origins,
        notebook: Notebook,
        known_secrets: Arc<KnownSecrets>,
    ) -> Self {
        Self { origins, notebook, known_secrets }
    }
}

impl Tool for MemoryWriteTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn aliases(&self) -> ToolAliases {
        ToolAliases {
            names: &["remember", "save_memory", "memory_save"],
            arguments: &[("text", "fact"), ("content", "fact"), ("id", "replaces")],
            unlisted: &[],
        }
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        // It writes the facts and nothing else.
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut arguments: Arguments = invocation.call.arguments.parse()?;
            // Facts are in the prompts of later sessions.
            arguments.fact = self.known_secrets.without(&arguments.fact).into_owned();
            let (origins, notebook) = (self.origins.clone(), self.notebook.clone());
            run_blocking(move || write(&origins, &notebook, &arguments)).await
        })
    }
}

fn write(
    origins: &Origins,
    notebook: &Notebook,
    arguments: &Arguments,
) -> Result<ToolOutput, ToolError> {
    let named = arguments.replaces.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let replaces = named.map(read_id).transpose()?;
    if let (true, Some(id)) = (arguments.fact.trim().is_empty(), &replaces) {
        let removed = notebook.remove(id).map_err(failed)?;
        return Ok(ToolOutput::text(format!(
            "forgot {id}: {}\nIt still stands in earlier messages; `myclaw memory forget --redact` removes it there",
            removed.text
        )));
    }
    let new = NewFact { text: &arguments.fact, origin: origins.now(), replaces: replaces.as_ref() };
    let said = match notebook.add(new).map_err(failed)? {
        Added::Known(fact) => format!("known already ({}): {}", fact.id, fact.text),
        Added::New(fact, None) => format!("remembered ({}): {}", fact.id, fact.text),
        Added::New(fact, Some(old)) => {
            format!(
                "remembered ({}): {}\nno longer holds ({}): {}",
                fact.id, fact.text, old.id, old.text
            )
        }
    };
    Ok(ToolOutput::text(said))
}

fn read_id(text: &str) -> Result<FactId, ToolError> {
    let text = text.trim_matches(['(', ')', '`', '#']);
    FactId::read(text).ok_or_else(|| {
        ToolError::Failed(format!(
            "`{text}` is not the id of a fact, which is five letters and digits such as k3f9q; memory_search shows them"
        ))
    })
}

fn failed(error: NotebookError) -> ToolError {
    match error {
        NotebookError::Unknown(_) => {
            ToolError::Failed(format!("{error}; memory_search shows the ids of facts"))
        }
        error => ToolError::Failed(error.to_string()),
    }
}
