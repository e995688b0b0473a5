//! What the tools of this crate are.

use myclaw_engine::{Power, Powers, ToolDeclaration, ToolGroup, ToolKind, WorkPlace};

const fn of_files(title: &'static str, kind: ToolKind, powers: &[Power]) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind,
        group: Some(ToolGroup::Files),
        powers: Powers::of(powers),
        place: WorkPlace::Helper,
    }
}

const fn of_runtime(title: &'static str, kind: ToolKind) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind,
        group: Some(ToolGroup::Runtime),
        // A command can do everything that its user can.
        powers: Powers::ALL,
        place: WorkPlace::ThroughCommands,
    }
}

const fn of_memory(title: &'static str) -> ToolDeclaration {
    ToolDeclaration {
        group: Some(ToolGroup::Memory),
        ..of_files(title, ToolKind::Other, &[Power::ReadsFiles])
    }
}

pub(crate) const READ: ToolDeclaration =
    of_files("Read a file", ToolKind::Read, &[Power::ReadsFiles]);
pub(crate) const LS: ToolDeclaration =
    of_files("List a directory", ToolKind::Read, &[Power::ReadsFiles]);
pub(crate) const GREP: ToolDeclaration =
    of_files("Search in files", ToolKind::Search, &[Power::ReadsFiles]);
pub(crate) const FIND: ToolDeclaration =
    of_files("Find files", ToolKind::Search, &[Power::ReadsFiles]);
pub(crate) const WRITE: ToolDeclaration =
    of_files("Write a file", ToolKind::Change, &[Power::ReadsFiles, Power::ChangesFiles]);
pub(crate) const EDIT: ToolDeclaration =
    of_files("Edit a file", ToolKind::Change, &[Power::ReadsFiles, Power::ChangesFiles]);
pub(crate) const APPLY_PATCH: ToolDeclaration =
    of_files("Apply a patch", ToolKind::Change, &[Power::ReadsFiles, Power::ChangesFiles]);
pub(crate) const BASH: ToolDeclaration = of_runtime("Run a command", ToolKind::Run);
pub(crate) const PROCESS: ToolDeclaration =
    of_runtime("Attend to background jobs", ToolKind::Attend);
pub(crate) const MEMORY_SEARCH: ToolDeclaration = of_memory("Search the notes");
pub(crate) const MEMORY_GET: ToolDeclaration = of_memory("Read a note");

/// What the tools of this crate are, by their names.
pub const DECLARATIONS: [(&str, ToolDeclaration); 11] = [
    ("read", READ),
    ("bash", BASH),
    ("edit", EDIT),
    ("write", WRITE),
    ("grep", GREP),
    ("find", FIND),
    ("ls", LS),
    ("apply_patch", APPLY_PATCH),
    ("process", PROCESS),
    ("memory_search", MEMORY_SEARCH),
    ("memory_get", MEMORY_GET),
];
