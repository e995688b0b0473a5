//! Runs commands from which paths are hidden.

use myclaw_files::portable::process::geteuid;
use tokio_util::sync::CancellationToken;

use super::way::Way;
use super::{HiddenPaths, HidingProgram, IfImpossible};
use crate::run::{Place, run_in};
use crate::{ChildSpec, ExecError, Link, OutputPiece, Runner, Running};

/// What programs print that do not work in a user namespace: sudo, su, newuidmap, ssh with files of the system.
const SIGNS_OF_A_USER_NAMESPACE: [&str; 6] = [
    "must be owned by uid 0",
    "effective uid is not 0",
    "effective user ID is not 0",
    "must be setuid",
    "newuidmap",
    "Bad owner or permissions on /etc",
];

/// Runs commands as children of this process, as [`Here`](crate::Here) does, without the hidden paths.
#[derive(Debug)]
pub struct HidingRunner {
    hidden: HiddenPaths,
    if_impossible: IfImpossible,
    way: Way,
}

impl HidingRunner {
    /// A runner. Nothing is set up before the first command.
    pub fn new(hidden: HiddenPaths, program: HidingProgram, if_impossible: IfImpossible) -> Self {
        Self { hidden, if_impossible, way: Way::new(program) }
    }

    /// Whether this process is root, which hides paths without a second start of this program.
    pub fn is_root() -> bool {
        geteuid().is_root()
    }

    /// What it hides.
    pub fn hidden(&self) -> &HiddenPaths {
        &self.hidden
    }

    /// Tries whether the system permits it. Blocks for some milliseconds.
    ///
    /// # Errors
    /// What is in the way.
    pub fn check(&self) -> Result<(), String> {
        self.way.try_out(&self.hidden).map_err(|error| error.to_string())
    }

    /// Where a command runs, which may change the command itself.
    fn place(&self, spec: &mut ChildSpec) -> Result<Place, ExecError> {
        self.way.place(&self.hidden, self.if_impossible, spec, |why| self.without(why))
    }

    /// What happens where nothing can be hidden.
    fn without(&self, why: &str) -> Result<Place, ExecError> {
        match self.if_impossible {
            IfImpossible::RunOpenly => Ok(Place::Here),
            IfImpossible::Refuse => Err(ExecError::Elsewhere {
                reason: format!(
                    "the state directory cannot be hidden from commands here ({why}), so the command did not run. The user \
                     can set tools.bash.stateDirectory to \"open\""
                ),
            }),
        }
    }
}

impl Runner for HidingRunner {
    fn run<'a>(
        &'a self,
        mut spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(OutputPiece<'_>) + Send),
    ) -> Running<'a> {
        Box::pin(async move {
            let place = self.place(&mut spec)?;
            let mut pass_on =
                |bytes: &[u8]| on_output(OutputPiece { skipped_bytes: 0, skipped_lines: 0, bytes });
            run_in(place, spec, link, cancel, &mut pass_on).await
        })
    }

    fn remark(&self, printed: &str) -> Option<&'static str> {
        if Self::is_root() || !SIGNS_OF_A_USER_NAMESPACE.iter().any(|sign| printed.contains(sign)) {
            return None;
        }
        Some(
            "the state directory is hidden from commands by a user namespace, in which sudo, su and the like do not work; the \
             user can set tools.bash.stateDirectory to \"open\"",
        )
    }
}
