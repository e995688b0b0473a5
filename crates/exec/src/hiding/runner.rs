//! Runs commands from which paths are hidden.

use std::ffi::OsString;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::{Arc, OnceLock};

use myclaw_files::portable::process::geteuid;
#[cfg(target_os = "linux")]
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::HiddenPaths;
#[cfg(target_os = "linux")]
use super::Namespace;
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

/// This program, which can be started again to become a command. Its `main` calls `enter_hiding` with the arguments that
/// follow `arguments`.
#[derive(Debug, Clone)]
pub struct HidingProgram {
    /// Its path.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// What happens to commands where the system does not permit to hide paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfImpossible {
    /// They run, and find everything.
    RunOpenly,
    /// They do not run.
    Refuse,
}

/// Runs commands as children of this process, as [`Here`](crate::Here) does, without the hidden paths.
#[derive(Debug)]
pub struct HidingRunner {
    hidden: HiddenPaths,
    program: HidingProgram,
    if_impossible: IfImpossible,
    #[cfg(target_os = "linux")]
    namespace: Mutex<Option<Arc<Namespace>>>,
    /// Whether a user who is not root can hide anything here.
    #[cfg(target_os = "linux")]
    is_possible: OnceLock<bool>,
}

impl HidingRunner {
    /// A runner. Nothing is set up before the first command.
    pub fn new(hidden: HiddenPaths, program: HidingProgram, if_impossible: IfImpossible) -> Self {
        Self {
            hidden,
            program,
            if_impossible,
            #[cfg(target_os = "linux")]
            namespace: Mutex::default(),
            #[cfg(target_os = "linux")]
            is_possible: OnceLock::new(),
        }
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
        self.try_out().map_err(|error| error.to_string())
    }

    #[cfg(target_os = "linux")]
    fn try_out(&self) -> std::io::Result<()> {
        if Self::is_root() {
            return self.namespace().map(drop);
        }
        let mut command = std::process::Command::new(&self.program.program);
        let arguments = self.arguments(&PathBuf::from("/bin/true"), &OsString::from("true"));
        let tried = command.args(arguments).stdin(std::process::Stdio::null()).output()?;
        if tried.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        Err(std::io::Error::other(said))
    }

    #[cfg(not(target_os = "linux"))]
    fn try_out(&self) -> std::io::Result<()> {
        Err(std::io::Error::other("only Linux can hide directories from commands"))
    }

    /// The namespace as the places are now.
    #[cfg(target_os = "linux")]
    fn namespace(&self) -> std::io::Result<Arc<Namespace>> {
        let mut newest = self.namespace.lock();
        if let Some(namespace) = newest.as_ref().filter(|made| made.is_of(&self.hidden)) {
            return Ok(Arc::clone(namespace));
        }
        Ok(Arc::clone(newest.insert(Arc::new(Namespace::new(&self.hidden)?))))
    }

    #[cfg(target_os = "linux")]
    fn arguments(&self, program: &std::path::Path, name: &OsString) -> Vec<OsString> {
        let places = self.hidden.to_arguments();
        let end = [super::enter::END_OF_PLACES.into(), program.into(), name.clone()];
        self.program.arguments.iter().cloned().chain(places).chain(end).collect()
    }

    /// Where a command runs, which may change the command itself.
    #[cfg(target_os = "linux")]
    fn place(&self, spec: &mut ChildSpec) -> Result<Place, ExecError> {
        if Self::is_root() {
            return match self.namespace() {
                Ok(namespace) => Ok(Place::Namespace(namespace)),
                Err(error) => self.without(&error.to_string()),
            };
        }
        let is_possible = || *self.is_possible.get_or_init(|| self.check().is_ok());
        if self.if_impossible == IfImpossible::RunOpenly && !is_possible() {
            return Ok(Place::Here);
        }
        // The program is looked for here, so a missing one is reported as such.
        let program = spec.resolve_program()?;
        let own = std::mem::replace(&mut spec.program, self.program.program.clone().into());
        let arguments = self.arguments(&program, &own);
        let of_command = std::mem::replace(&mut spec.args, arguments);
        spec.args.extend(of_command);
        Ok(Place::Here)
    }

    #[cfg(not(target_os = "linux"))]
    fn place(&self, _spec: &mut ChildSpec) -> Result<Place, ExecError> {
        self.without("only Linux can hide directories from commands")
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
