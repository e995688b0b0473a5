//! Who answers in a conversation that goes on, and how much it thinks before: what `/model` and `/thinking` change.

use std::sync::Arc;

use myclaw_agent::NextModel;
use myclaw_agent::llm::{Model, ThinkingLevel};

use crate::exit::CliError;
use myclaw_agent::Selection;
use myclaw_agent::SessionConfig;
use crate::turn::next_model;

/// Who answers, and how much it thinks.
#[derive(Debug, Clone)]
pub(crate) struct Answering {
    /// Who.
    pub(crate) model: Arc<Selection>,
    /// How much the user wants it to think, if the user said so.
    pub(crate) thinking: Option<ThinkingLevel>,
}

impl Answering {
    /// What the user wants, as far as the model offers it. Where that differs the user was told when the wish was
    /// uttered, so no turn has to.
    pub(crate) fn level(&self) -> Option<ThinkingLevel> {
        self.thinking.map(|level| self.model.known().thinking_level(level))
    }

    /// For a turn that goes on.
    pub(crate) fn next_model(&self) -> NextModel {
        next_model(&self.model, self.level())
    }

    /// Lets the model answer that the user names; gives what to say.
    ///
    /// # Errors
    /// It cannot answer. Nothing has changed.
    pub(crate) async fn change_model(
        &mut self,
        settings: &SessionConfig,
        name: &str,
    ) -> Result<String, CliError> {
        self.model = Arc::new(settings.choose_model(Some(name)).await?);
        let mut text = format!("{} answers from now on", self.model.reference);
        if let Some(line) = self.difference() {
            text.push('\n');
            text.push_str(&line);
        }
        Ok(text)
    }

    /// Lets the model think as much as the user says; gives what to say.
    ///
    /// # Errors
    /// There is no such level.
    pub(crate) fn change_thinking(&mut self, level: &str) -> Result<String, CliError> {
        let asked = level.parse().map_err(|error| CliError::usage(format!("{error}")))?;
        self.thinking = Some(asked);
        let level = self.model.known().thinking_level(asked);
        Ok(self
            .difference()
            .unwrap_or_else(|| format!("the thinking level is {level} from now on")))
    }

    /// What to say where the model does not think as the user wishes.
    pub(crate) fn difference(&self) -> Option<String> {
        let asked = self.thinking?;
        let model = self.model.known();
        let level = model.thinking_level(asked);
        (level != asked).then(|| {
            format!(
                "{} does not offer the thinking level {asked} but {}; {level} is used",
                self.model.reference,
                offered_levels(&model)
            )
        })
    }

    /// For somebody who asks who answers.
    pub(crate) fn describe_model(&self) -> String {
        format!(
            "{} answers; /model PROVIDER/MODEL changes it, `myclaw models list` shows what there is",
            self.model.reference
        )
    }

    /// For somebody who asks how much it thinks.
    pub(crate) fn describe_thinking(&self, settings: &SessionConfig) -> String {
        let model = self.model.known();
        format!(
            "the thinking level is {}; {} offers {}; /thinking LEVEL changes it",
            model.thinking_level(settings.requested_thinking(self.thinking)),
            self.model.reference,
            offered_levels(&model)
        )
    }
}

/// How much a model can think, such as `off, low, high`.
pub(crate) fn offered_levels(model: &Model) -> String {
    let levels = model.offered_thinking_levels();
    levels.into_iter().map(ThinkingLevel::as_str).collect::<Vec<_>>().join(", ")
}
