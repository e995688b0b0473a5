//! What a question about a call shows, what an answer is bound to, and what "always" can cover.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use myclaw_engine::{
    AlwaysScope, ApprovalTerms, BoundFact, CallEffect, CommandLine, PreparedCall, ScopeKind,
    ShownFact, Target, TargetAccess, ToolKind,
};
use myclaw_files::canonical_or_same;
use myclaw_policy::{ApprovalDigest, SandboxScope};
use serde_json::Value;

use super::bound::{Bound, bound};
use super::{POLICY, Permissions, Verdict};

/// What an approval is about, by name.
struct Fields<'a> {
    tool: &'a str,
    fields: Vec<(&'a str, Vec<u8>)>,
}

impl Fields<'_> {
    fn add(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        self.fields.push((name, value.as_ref().to_vec()));
    }

    fn path(&mut self, name: &'static str, path: &Path) {
        self.add(name, path.as_os_str().as_encoded_bytes());
    }

    fn scope(&self, kind: ScopeKind, covers: String) -> AlwaysScope {
        AlwaysScope::new(kind, covers, self.digest())
    }

    fn digest(&self) -> String {
        let fields: Vec<(&str, &[u8])> =
            self.fields.iter().map(|(name, value)| (*name, value.as_slice())).collect();
        ApprovalDigest::of(self.tool, &fields).to_string()
    }
}

impl Permissions {
    /// The terms of a question about `call`, which is asked because of `reason`. `change` is the change that it would make
    /// to files, as a diff. Reads the files of a command.
    pub(crate) fn terms(
        &self,
        call: &PreparedCall,
        reason: &str,
        change: Option<String>,
    ) -> ApprovalTerms {
        let mut fields = Fields { tool: &call.tool_name, fields: Vec::new() };
        fields.add("confinement", &self.confined.bound);
        let is_policys = match self.check(call) {
            Verdict::NeedsApproval(rules) => reason == format!("{POLICY}: {rules}"),
            Verdict::Allowed | Verdict::Denied(_) => false,
        };
        let mut shown = call.subject.facts.clone();
        shown.push(ShownFact::text("confinement", self.confined.words.clone()));
        shown.extend(change.map(|diff| ShownFact::diff("change", diff)));
        let mut terms = ApprovalTerms { shown, ..ApprovalTerms::default() };
        if !is_policys {
            // A hook asks about this very call.
            fields.add("reason", reason);
        }
        match call.subject.effects.as_slice() {
            [CallEffect::Run(command)] => self.command_terms(command, fields, &mut terms),
            [CallEffect::Input(input)] => {
                fields.add("input", &input.input);
                if let Some(job) = &input.job {
                    fields.add("command", &job.command);
                    fields.path("directory", &job.directory);
                }
                let covers = self.confined("exactly this input for a job with this command");
                terms.always = vec![fields.scope(ScopeKind::Call, covers)];
            }
            effects if is_policys && !effects.is_empty() && effects.iter().all(is_touch) => {
                let targets: Vec<&Target> = call.subject.targets().collect();
                terms.always = self.file_scopes(fields, &targets);
            }
            // The next plan is another one.
            _ if call.declaration.kind == ToolKind::Plan => {}
            effects => {
                if !effects.iter().any(CallEffect::is_the_owners) {
                    terms.always = vec![self.call_scope(call, fields)];
                }
            }
        }
        terms.checked()
    }

    /// The same call of any tool.
    fn call_scope(&self, call: &PreparedCall, mut fields: Fields<'_>) -> AlwaysScope {
        let arguments: BTreeMap<&String, &Value> = call.arguments.as_map().iter().collect();
        fields.add("arguments", serde_json::to_vec(&arguments).unwrap_or_default());
        fields.path("directory", &self.directory);
        for target in call.subject.targets() {
            fields.path("target", &target.path);
        }
        let covers = format!("this call of {} with the same arguments", call.tool_name);
        let covers = self.confined(&covers);
        fields.scope(ScopeKind::Call, covers)
    }

    /// A command: what it says, where it runs, and the programs and files that it may run.
    fn command_terms(
        &self,
        command: &CommandLine,
        mut fields: Fields<'_>,
        terms: &mut ApprovalTerms,
    ) {
        let environment = self.environment_of(command);
        let texts = match self.scope {
            SandboxScope::Unsandboxed => Path::new("/").to_owned(),
            SandboxScope::Sandboxed => self.root(),
        };
        let Bound { facts, gap } = bound(command, &environment, &texts);
        fields.add("command", &command.command);
        fields.path("directory", &command.directory);
        for (name, value) in &environment {
            fields.add("variable", format!("{name}={value}"));
        }
        fields.add("terminal", [u8::from(command.terminal)]);
        fields.add("background", [u8::from(command.background)]);
        terms.command_id = Some(fields.digest());
        for BoundFact { label, state, .. } in &facts {
            fields.add("bound", label);
            fields.add("state", state);
        }
        terms.bound = facts;
        match gap {
            Some(gap) => {
                let text = format!("{gap}, so every run of it is asked about");
                terms.shown.push(ShownFact::text("only once", text));
            }
            None => {
                let directory = command.directory.display();
                let covers = self.confined(&format!("exactly this command in {directory}"));
                terms.always = vec![fields.scope(ScopeKind::Call, covers)];
            }
        }
    }

    /// What an answer covers, with the confinement under which it holds.
    fn confined(&self, covers: &str) -> String {
        format!("{covers}, {}", self.scope)
    }

    /// The session's directory, with links followed.
    pub(super) fn root(&self) -> PathBuf {
        canonical_or_same(&self.directory)
    }

    /// A call that touches nothing but files: the same files, or all files of their directory.
    fn file_scopes(&self, mut fields: Fields<'_>, targets: &[&Target]) -> Vec<AlwaysScope> {
        let tool = fields.tool.to_owned();
        let mut in_directory = Fields { tool: fields.tool, fields: fields.fields.clone() };
        let targets: BTreeSet<(TargetAccess, &Path)> =
            targets.iter().map(|target| (target.access, target.path.as_path())).collect();
        for (access, path) in &targets {
            fields.add("access", format!("{access:?}"));
            fields.path("target", path);
        }
        let named = match targets.first() {
            Some((_, path)) if targets.len() == 1 => path.display().to_string(),
            _ => format!("these {} files", targets.len()),
        };
        let covers = self.confined(&format!("{tool} on {named}"));
        let mut scopes = vec![fields.scope(ScopeKind::Path, covers)];
        let root = self.root();
        let parents: BTreeSet<Option<&Path>> =
            targets.iter().map(|(_, path)| path.parent()).collect();
        let is_ordinary = |(access, path): &(TargetAccess, &Path)| {
            *access != TargetAccess::Search
                && path.starts_with(&root)
                && *path != root
                && !path.is_dir()
                && !is_obeyed(path)
                && self.start_place(path).is_none()
        };
        if let [Some(parent)] = parents.into_iter().collect::<Vec<_>>().as_slice()
            && targets.iter().all(is_ordinary)
        {
            in_directory.path("in", parent);
            let covers = self.confined(&format!("{tool} on every file in {}", parent.display()));
            scopes.push(in_directory.scope(ScopeKind::Directory, covers));
        }
        scopes
    }
}

/// Whether agents obey what a file says. Such files are written in capitals, as AGENTS.md is, or belong to a skill.
fn is_obeyed(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".md").is_some_and(|stem| stem == stem.to_uppercase())
        || path.iter().any(|part| part.eq_ignore_ascii_case("skills"))
}

fn is_touch(effect: &CallEffect) -> bool {
    matches!(effect, CallEffect::Touch(_))
}
