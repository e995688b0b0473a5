//! Control of the agent by another program, over standard input and output.
//!
//! Three protocols share this module: `rpc`, MyClaw's own, for programs that embed it, `acp`, the Agent Client Protocol of
//! editors, and `mcp`, the Model Context Protocol of other agents. A protocol translates requests into calls of [`Session`](myclaw_agent::Session), and the
//! session's events into messages.

mod acp;
mod args;
mod content;
mod lines;
mod mcp;
mod rpc;

use tokio_util::sync::CancellationToken;

use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::runtime;
use myclaw_front::terminal::Output;

pub use acp::run as run_acp;
pub use args::{AcpArgs, McpServeArgs, RpcArgs};
pub use mcp::run as run_mcp;
pub use rpc::run as run_rpc;

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
