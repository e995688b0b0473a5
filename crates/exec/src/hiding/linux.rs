//! How Linux hides paths.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use myclaw_files::portable::process::geteuid;
use parking_lot::Mutex;

use super::enter::END_OF_PLACES;
use super::{HiddenPaths, HidingProgram, IfImpossible, Namespace, Visibility};
use crate::run::Place;
use crate::{ChildSpec, ExecError};

/// What is set up for commands.
#[derive(Debug)]
pub(super) struct Way {
    program: HidingProgram,
    namespace: Mutex<Option<Arc<Namespace>>>,
    /// Whether a user who is not root can hide anything here.
    is_possible: OnceLock<bool>,
}

impl Way {
    pub(super) fn new(program: HidingProgram) -> Self {
        Self { program, namespace: Mutex::default(), is_possible: OnceLock::new() }
    }

    pub(super) fn try_out(&self, hidden: &HiddenPaths) -> io::Result<()> {
        if geteuid().is_root() {
            return self.namespace(hidden).map(drop);
        }
        let mut command = Command::new(&self.program.program);
        let arguments = self.arguments(hidden, Path::new("/bin/true"), &OsString::from("true"));
        let tried = command.args(arguments).stdin(Stdio::null()).output()?;
        if tried.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        Err(io::Error::other(said))
    }

    /// The namespace as the places are now.
    fn namespace(&self, hidden: &HiddenPaths) -> io::Result<Arc<Namespace>> {
        let mut newest = self.namespace.lock();
        if let Some(namespace) = newest.as_ref().filter(|made| made.is_of(hidden)) {
            return Ok(Arc::clone(namespace));
        }
        Ok(Arc::clone(newest.insert(Arc::new(Namespace::new(hidden)?))))
    }

    fn arguments(&self, hidden: &HiddenPaths, program: &Path, name: &OsString) -> Vec<OsString> {
        let places = hidden.places().map(|(path, visibility)| {
            let mut argument = OsString::from(match visibility {
                Visibility::Hidden => "h",
                Visibility::ReadOnly => "r",
                Visibility::Shown => "s",
            });
            argument.push(path);
            argument
        });
        let end = [END_OF_PLACES.into(), program.into(), name.clone()];
        self.program.arguments.iter().cloned().chain(places).chain(end).collect()
    }

    pub(super) fn place(
        &self,
        hidden: &HiddenPaths,
        if_impossible: IfImpossible,
        spec: &mut ChildSpec,
        impossible: impl FnOnce(&str) -> Result<Place, ExecError>,
    ) -> Result<Place, ExecError> {
        if geteuid().is_root() {
            return match self.namespace(hidden) {
                Ok(namespace) => Ok(Place::Namespace(namespace)),
                Err(error) => impossible(&error.to_string()),
            };
        }
        let is_possible = || *self.is_possible.get_or_init(|| self.try_out(hidden).is_ok());
        if if_impossible == IfImpossible::RunOpenly && !is_possible() {
            return Ok(Place::Here);
        }
        // The program is looked for here, so a missing one is reported as such.
        let program = spec.resolve_program()?;
        let own = std::mem::replace(&mut spec.program, self.program.program.clone().into());
        let arguments = self.arguments(hidden, &program, &own);
        let of_command = std::mem::replace(&mut spec.args, arguments);
        spec.args.extend(of_command);
        Ok(Place::Here)
    }
}
