//! The paths of a call: named by its subject, which is judged, and held to when the call is made.

use std::path::Path;

use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, PreparedCall, ShownFact, Target, TargetAccess,
    ToolContext, ToolError,
};

use super::{Access, ResolvedPath, resolve_path};

/// The subject of a call that touches the path `given`, which is the argument `path` if there is one.
///
/// # Errors
/// As for [`resolve_path`].
pub(crate) fn touching(
    arguments: &CallArguments,
    context: &ToolContext,
    given: &str,
    access: TargetAccess,
) -> Result<CallSubject, ToolError> {
    let wanted = match access {
        TargetAccess::Read | TargetAccess::Search => Access::Read,
        TargetAccess::Write | TargetAccess::Delete => Access::Write,
    };
    let path = resolve_path(context, given, wanted)?.real;
    let shown = ShownFact::text("path", path.to_string_lossy());
    let subject = CallSubject::of(arguments).first(&["path"], vec![shown]);
    Ok(subject.with(CallEffect::Touch(Target { access, path })))
}

/// The paths that a call may touch, because its subject names them.
#[derive(Debug, Clone)]
pub(crate) struct Judged(Vec<Target>);

impl Judged {
    /// The paths of the subject of `call`.
    pub(crate) fn of(call: &PreparedCall) -> Self {
        Self(call.subject.targets().cloned().collect())
    }

    /// [`resolve_path`], for a path of the subject. Between the judgement and the call a link may have been changed.
    ///
    /// # Errors
    /// As for [`resolve_path`], or the path leads somewhere else by now.
    pub(crate) fn resolve(
        &self,
        context: &ToolContext,
        given: &str,
        access: Access,
    ) -> Result<ResolvedPath, ToolError> {
        let path = resolve_path(context, given, access)?;
        self.check(&path.real, access)?;
        Ok(path)
    }

    /// # Errors
    /// The subject does not name this real path.
    pub(crate) fn check(&self, real: &Path, access: Access) -> Result<(), ToolError> {
        let changes =
            |target: &Target| matches!(target.access, TargetAccess::Write | TargetAccess::Delete);
        let is_it =
            |target: &Target| target.path == real && (access == Access::Read || changes(target));
        if self.0.iter().any(is_it) {
            return Ok(());
        }
        Err(ToolError::Failed(format!(
            "the path leads to {} now, and led somewhere else when the call was checked. Nothing was done; call again",
            real.display()
        )))
    }
}

#[cfg(test)]
mod tests;
