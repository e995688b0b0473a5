//! `--goal`: turns until a condition holds, within the bounds that `/goal` has in the chat.

use myclaw_agent::goal::{Goal, GoalStep, Pursuit};
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::terminal::escaped;
use myclaw_llm::ContentBlock;

use super::Turns;

/// The goal of the command line.
pub(super) fn goal(text: &str) -> Result<Goal, CliError> {
    Goal::new(text).map_err(|error| CliError::usage(format!("--goal: {}", error.message)))
}

impl Turns<'_> {
    /// Runs turns until the goal is reached or a bound is.
    pub(super) async fn pursue(
        &self,
        goal: Goal,
        pictures: Vec<Attachment>,
        message: String,
    ) -> Result<(), CliError> {
        let mut pursuit = Pursuit::begin(goal, self.config);
        let first = format!("{message}\n\n{}", pursuit.goal().first_message()).trim().to_owned();
        let mut content = self.with_texts(attachments::content(pictures, first)).await?;
        loop {
            pursuit.turn_begins(self.config)?;
            let missing = match self.turn_for(pursuit.goal(), content).await {
                Ok(missing) => missing,
                Err(error) => {
                    pursuit.pause(self.config)?;
                    return Err(error);
                }
            };
            match pursuit.after_turn(missing, self.config)? {
                GoalStep::Reached => {
                    if self.verbosity == Verbosity::Normal {
                        let condition = escaped(&pursuit.goal().condition);
                        note(format_args!("myclaw: the goal is reached: {condition}"));
                    }
                    return Ok(());
                }
                // What a command printed names nothing.
                GoalStep::GoesOn(message) => content = vec![ContentBlock::text(message)],
                GoalStep::Paused(why) => {
                    let advice = match self.is_kept {
                        true => "`/goal resume` in the chat of this session goes on",
                        false => "without `--no-session` it could be continued",
                    };
                    return Err(CliError::failure(format!(
                        "the goal is not reached: {why}; {advice}"
                    )));
                }
            }
        }
    }

    /// A turn, and what [`Goal::missing_after`] says of its answer.
    async fn turn_for(
        &self,
        goal: &Goal,
        content: Vec<ContentBlock>,
    ) -> Result<Option<String>, CliError> {
        let reply = self.run(content).await?.reply;
        Ok(goal.missing_after(&reply, self.config, &self.cancel).await?)
    }
}
