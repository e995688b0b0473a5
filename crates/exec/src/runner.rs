//! Where commands run.

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::{ChildSpec, ExecError, Finished, Link, run_attached};

/// Some output of a running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPiece<'a> {
    /// Bytes that were printed before these and were not passed on, because the program prints faster than they can be.
    pub skipped_bytes: u64,
    /// Line ends among the skipped bytes.
    pub skipped_lines: u64,
    /// The newest bytes.
    pub bytes: &'a [u8],
}

/// How a command continues until it has ended.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Finished, ExecError>> + Send + 'a>>;

/// Runs commands, in the way of [`run_attached`].
pub trait Runner: Send + Sync {
    /// Runs a program to its end. When the future is dropped, the program is killed with everything it started.
    ///
    /// Its environment is that of the place where it runs, changed by `spec.environment`.
    fn run<'a>(
        &'a self,
        spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(OutputPiece<'_>) + Send),
    ) -> Running<'a>;

    /// What a command that failed should know of the place where it ran, to judge by what it printed.
    fn remark(&self, _printed: &str) -> Option<&'static str> {
        None
    }
}

/// Runs commands as children of this process, with exactly the variables of `spec.environment`.
#[derive(Debug, Clone, Copy)]
pub struct Here;

impl Runner for Here {
    fn run<'a>(
        &'a self,
        spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(OutputPiece<'_>) + Send),
    ) -> Running<'a> {
        Box::pin(async move {
            let mut pass_on =
                |bytes: &[u8]| on_output(OutputPiece { skipped_bytes: 0, skipped_lines: 0, bytes });
            run_attached(spec, link, cancel, &mut pass_on).await
        })
    }
}
