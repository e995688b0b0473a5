//! `--goal`: turns until a condition holds, within the bounds that `/goal` has in the chat.

use myclaw_agent::{Goal, GoalWork, Judge};
use myclaw_engine::ToolError;
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::terminal::escaped;
use myclaw_llm::{ContentBlock, joined_text};
use serde_json::{Map, json};

use super::Turns;

impl Turns<'_> {
    /// Runs turns until the goal is reached or a bound is.
    pub(super) async fn pursue(
        &self,
        mut goal: Goal,
        pictures: Vec<Attachment>,
        message: String,
        verbosity: Verbosity,
    ) -> Result<(), CliError> {
        if goal.condition.is_empty() {
            return Err(CliError::usage("--goal needs a condition, or a command behind `!`"));
        }
        let (work, mut cost) = (GoalWork::begin(0.0), 0.0);
        let first = format!("{message}\n\n{}", goal.first_message()).trim().to_owned();
        let mut content = self.with_texts(attachments::content(pictures, first)).await?;
        loop {
            goal.turns_left = goal.turns_left.saturating_sub(1);
            let result = self.run(content).await?;
            cost += result.usage.cost.total;
            // The chat finds it paused, if this process ends.
            Goal::keep(Some(&goal), self.config)?;
            let message = match self.not_reached(&goal, &result.reply).await? {
                Some(message) => message,
                None => {
                    Goal::keep(None, self.config)?;
                    if verbosity == Verbosity::Normal {
                        let condition = escaped(&goal.condition);
                        note(format_args!("myclaw: the goal is reached: {condition}"));
                    }
                    return Ok(());
                }
            };
            let Some(why) = work.bound_reached(&goal, cost) else {
                // What a command printed names nothing.
                content = vec![ContentBlock::text(message)];
                continue;
            };
            return Err(CliError::failure(format!(
                "the goal is not reached: {why}; `/goal resume` in the chat of this session goes on"
            )));
        }
    }

    /// The message for the model if the condition does not hold. A command runs under the rules of the session.
    async fn not_reached(&self, goal: &Goal, answer: &str) -> Result<Option<String>, CliError> {
        if goal.judge == Judge::Model {
            return Ok((!Goal::is_reached_by(answer)).then(|| goal.go_on()));
        }
        let tools = self.config.direct_tools().await?;
        let arguments = Map::from_iter([("command".to_owned(), json!(goal.condition))]);
        match tools.call("bash", arguments, self.cancel.clone()).await {
            Ok(output) if !output.is_error => Ok(None),
            Ok(output) => {
                let code = output.details.as_ref().map(|details| details["exitCode"].to_string());
                let ending = format!("exit {}", code.unwrap_or_default());
                Ok(Some(goal.failed(&ending, &joined_text(&output.content, "\n"))))
            }
            Err(ToolError::Failed(why)) => {
                Err(CliError::failure(format!("--goal: the command cannot be run: {why}")))
            }
            Err(ToolError::Aborted(_)) => Err(CliError::aborted()),
        }
    }
}
