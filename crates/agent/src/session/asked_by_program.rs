//! What a program that sends messages adds to their run.

use std::sync::Arc;

use myclaw_engine::{ProgramRequest, ProgramTool, RunParams, Tool};

use crate::driver::Driver;
use crate::selection::Selection;
use crate::{AgentError, SessionConfig};

/// Adds what a program asks to a run. Its tools are not the policy's: the program makes their calls, wherever it is.
pub(super) fn with(mut params: RunParams, asked: ProgramRequest) -> RunParams {
    let ProgramRequest { options, tools, has_only_these, model: _ } = asked;
    params.options = options;
    params.tools.retain(|tool| {
        !has_only_these && tools.iter().all(|other| other.name != tool.schema().name)
    });
    params.tools.extend(tools.into_iter().map(|tool| Arc::new(ProgramTool(tool)) as Arc<dyn Tool>));
    params
}

/// What a program asks of the next run, and the models of the run: those of the session, unless it names another one.
pub(super) async fn models(
    driver: &Driver,
    config: &SessionConfig,
    of_session: Arc<Selection>,
) -> Result<(ProgramRequest, Arc<Selection>), AgentError> {
    let asked = driver.asked_in(config);
    let selection = match &asked.model {
        Some(model) => Arc::new(config.select_model(Some(model)).await?),
        None => of_session,
    };
    Ok((asked, selection))
}
