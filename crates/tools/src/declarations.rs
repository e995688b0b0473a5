//! What the tools of this crate are.

use myclaw_engine::{About, Power, Powers, ToolDeclaration, ToolGroup, ToolKind, WorkPlace};

const fn of_files(
    title: &'static str,
    kind: ToolKind,
    about: About,
    powers: &[Power],
) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind,
        about,
        group: Some(ToolGroup::Files),
        powers: Powers::of(powers),
        place: WorkPlace::Helper,
    }
}

const fn of_runtime(title: &'static str, kind: ToolKind, about: About) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind,
        about,
        group: Some(ToolGroup::Runtime),
        // A command can do everything that its user can.
        powers: Powers::ALL,
        place: WorkPlace::ThroughCommands,
    }
}

const fn of_memory(title: &'static str) -> ToolDeclaration {
    ToolDeclaration {
        group: Some(ToolGroup::Memory),
        // Notes and sessions are outside of the sandbox, and so is the model that compares meanings.
        place: WorkPlace::Here,
        ..of_files(title, ToolKind::Other, About::Nothing, &[Power::ReadsFiles])
    }
}

const fn argument(verb: &'static str, name: &'static str) -> About {
    About::Argument { verb, name }
}

const READING: &[Power] = &[Power::ReadsFiles];
const CHANGING: &[Power] = &[Power::ReadsFiles, Power::ChangesFiles];
/// The lines of a patch that name its files, in either of the forms that the tool takes.
const PATCHED: About = About::Lines {
    verb: "Patch",
    name: "patch",
    marks: &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "+++ b/", "+++ "],
};

pub(crate) const READ: ToolDeclaration =
    of_files("Read a file", ToolKind::Read, argument("Read", "path"), READING);
pub(crate) const LS: ToolDeclaration =
    of_files("List a directory", ToolKind::Look, argument("List", "path"), READING);
pub(crate) const GREP: ToolDeclaration =
    of_files("Search in files", ToolKind::Search, argument("Search", "pattern"), READING);
pub(crate) const FIND: ToolDeclaration =
    of_files("Find files", ToolKind::Search, argument("Find", "pattern"), READING);
pub(crate) const WRITE: ToolDeclaration =
    of_files("Write a file", ToolKind::Change, argument("Write", "path"), CHANGING);
pub(crate) const EDIT: ToolDeclaration =
    of_files("Edit a file", ToolKind::Change, argument("Edit", "path"), CHANGING);
pub(crate) const APPLY_PATCH: ToolDeclaration =
    of_files("Apply a patch", ToolKind::Change, PATCHED, CHANGING);
pub(crate) const BASH: ToolDeclaration =
    of_runtime("Run a command", ToolKind::Run, argument("", "command"));
pub(crate) const PROCESS: ToolDeclaration =
    of_runtime("Attend to background jobs", ToolKind::Attend, About::Nothing);
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
