//! `--goal`: turns until a condition holds, within the bounds that `/goal` has in the chat.

use myclaw_agent::{Goal, GoalStep, Pursuit};
use myclaw_front::attachments::{self, Attachment};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::terminal::escaped;
use myclaw_llm::ContentBlock;

use super::Turns;

/// The work on the goal of the command line.
pub(super) fn pursuit(text: &str) -> Result<Pursuit, CliError> {
    match Goal::new(text) {
        Ok(goal) => Ok(Pursuit::begin(goal, 0.0)),
        Err(error) => Err(CliError::usage(format!("--goal: {}", error.message))),
    }
}

impl Turns<'_> {
    /// Runs turns until the goal is reached or a bound is.
    pub(super) async fn pursue(
        &self,
        mut pursuit: Pursuit,
        pictures: Vec<Attachment>,
        message: String,
    ) -> Result<(), CliError> {
        let first = format!("{message}\n\n{}", pursuit.goal().first_message()).trim().to_owned();
        let mut content = self.with_texts(attachments::content(pictures, first)).await?;
        let mut cost = 0.0;
        loop {
            pursuit.turn_begins(self.config)?;
            let result = self.run(content).await?;
            cost += result.usage.cost.total;
            let goal = pursuit.goal();
            let missing = goal.missing_after(&result.reply, self.config, &self.cancel).await?;
            match pursuit.after_turn(missing, cost, self.config)? {
                GoalStep::Reached => {
                    if self.verbosity == Verbosity::Normal {
                        let condition = escaped(&goal.condition);
                        note(format_args!("myclaw: the goal is reached: {condition}"));
                    }
                    return Ok(());
                }
                // What a command printed names nothing.
                GoalStep::GoesOn(message) => content = vec![ContentBlock::text(message)],
                GoalStep::Paused(why) => {
                    return Err(CliError::failure(format!(
                        "the goal is not reached: {why}; `/goal resume` in the chat of this session goes on"
                    )));
                }
            }
        }
    }
}
