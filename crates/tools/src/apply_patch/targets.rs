//! Which files a patch touches, before any of them is opened.

use std::path::PathBuf;

use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, ShownFact, Target, TargetAccess, ToolContext,
};

use super::model::{Action, FileName, Section};
use crate::support::{Access, resolve_path};

/// The files of a patch. A name that leads nowhere is left out, and the plan says what is wrong with it.
struct Targets {
    context: ToolContext,
    targets: Vec<Target>,
}

/// What a call with the patch of these `sections` will do.
pub(super) fn subject(
    arguments: &CallArguments,
    context: &ToolContext,
    sections: &[Section],
) -> CallSubject {
    // As the plan.
    let context = ToolContext { workspace_only: true, ..context.clone() };
    let mut targets = Targets { context, targets: Vec::new() };
    for section in sections {
        targets.add(&section.action);
    }
    let line = |target: &Target| {
        let verb = match target.access {
            TargetAccess::Delete => "delete",
            TargetAccess::Write => "write",
            TargetAccess::Read | TargetAccess::Search => "read",
        };
        format!("{verb} {}", target.path.display())
    };
    let lines: Vec<String> = targets.targets.iter().map(line).collect();
    let shown = ShownFact::text("files", lines.join("\n"));
    let subject = CallSubject::of(arguments).first(&[], vec![shown]);
    targets.targets.into_iter().map(CallEffect::Touch).fold(subject, CallSubject::with)
}

impl Targets {
    fn add(&mut self, action: &Action) {
        match action {
            Action::Create(name) => self.touch(name.likeliest(), TargetAccess::Write),
            Action::Update(name) => {
                let name = self.present(name).map_or(name.likeliest(), |(_, name)| name);
                self.touch(name, TargetAccess::Write);
            }
            Action::UpdateOrMove { old, new } => match self.present(new) {
                Some((_, name)) => self.touch(name, TargetAccess::Write),
                None => self.carry(old, new, TargetAccess::Delete),
            },
            Action::Move { from, to } => self.carry(from, to, TargetAccess::Delete),
            Action::Copy { from, to } => self.carry(from, to, TargetAccess::Read),
            Action::Delete { name, .. } => {
                let name = self.present(name).map_or(name.likeliest(), |(_, name)| name);
                self.touch(name, TargetAccess::Delete);
            }
        }
    }

    fn carry(&mut self, from: &FileName, to: &FileName, source: TargetAccess) {
        let (candidate, name) = self.present(from).unwrap_or((0, from.likeliest()));
        // If one name has a prefix, so has the other.
        let to = to.candidates().nth(candidate).unwrap_or(to.likeliest());
        self.touch(name, source);
        self.touch(to, TargetAccess::Write);
    }

    /// The first of a name's candidates that is there, with its number.
    fn present<'n>(&self, name: &'n FileName) -> Option<(usize, &'n str)> {
        name.candidates().enumerate().find(|(_, given)| {
            self.real(given).is_some_and(|path| match self.last(&path) {
                // An earlier part of the patch made it or took it away.
                Some(TargetAccess::Write) => true,
                Some(TargetAccess::Delete) => false,
                _ => path.symlink_metadata().is_ok(),
            })
        })
    }

    /// How an earlier part of the patch touches a file.
    fn last(&self, path: &PathBuf) -> Option<TargetAccess> {
        self.targets.iter().rev().find(|target| target.path == *path).map(|target| target.access)
    }

    fn touch(&mut self, given: &str, access: TargetAccess) {
        let Some(path) = self.real(given) else { return };
        let target = Target { access, path };
        if !self.targets.contains(&target) {
            self.targets.push(target);
        }
    }

    fn real(&self, given: &str) -> Option<PathBuf> {
        resolve_path(&self.context, given, Access::Write).ok().map(|path| path.real)
    }
}
