//! Other systems than Linux hide no paths.

use std::io;

use super::{HiddenPaths, HidingProgram, IfImpossible};
use crate::run::Place;
use crate::{ChildSpec, ExecError};

const WHY: &str = "only Linux can hide directories from commands";

/// Nothing is set up.
#[derive(Debug)]
pub(super) struct Way;

impl Way {
    pub(super) fn new(_: HidingProgram) -> Self {
        Self
    }

    pub(super) fn try_out(&self, _: &HiddenPaths) -> io::Result<()> {
        Err(io::Error::other(WHY))
    }

    pub(super) fn place(
        &self,
        _: &HiddenPaths,
        _: IfImpossible,
        _: &mut ChildSpec,
        impossible: impl FnOnce(&str) -> Result<Place, ExecError>,
    ) -> Result<Place, ExecError> {
        impossible(WHY)
    }
}
