//! Control of the agent by another program, over standard input and output.
//!
//! Two protocols share this module: `rpc`, MyClaw's own, for programs that embed it, and `acp`, the Agent Client
//! Protocol of editors. A protocol translates requests into calls of [`Session`](myclaw_agent::Session), and the
//! session's events into messages.

mod acp;
mod content;
mod lines;
mod rpc;

use tokio_util::sync::CancellationToken;

use crate::exit::CliError;
use crate::interrupt::Interrupts;
use crate::runtime;
use crate::terminal::Output;

pub(crate) use acp::run as run_acp;
pub(crate) use rpc::run as run_rpc;

/// Serves the client program until `served` is over, and writes all of `output`. The first signal fires `stop`, the
/// second quits.
fn serve_until_over(
    output: &Output,
    stop: CancellationToken,
    served: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    let interrupts = Interrupts::install()?;
    let armed = interrupts.arm(stop);
    let outcome = runtime::block_on(armed.unless_quit(output.flushing(served)))?;
    output.flush();
    match output.take_failure() {
        Some(error) => Err(CliError::output(&error)),
        None => outcome,
    }
}
