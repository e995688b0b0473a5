//! What the tools for sub-agents are, and their names.

use myclaw_engine::{About, Powers, ToolDeclaration, ToolGroup, ToolKind, WorkPlace};

/// Name of the tool that starts one.
pub(crate) const SPAWN: &str = "sessions_spawn";
/// Name of the tool that lists and stops them.
pub(crate) const ATTEND: &str = "subagents";

/// What a sub-agent does is judged when it does it, under the rules and modes of the sessions above it.
pub(crate) const SPAWN_DECLARATION: ToolDeclaration =
    declaration("Start a sub-agent", About::Argument { verb: "Start", name: "label" });
/// It ends only what the session itself has begun.
pub(crate) const ATTEND_DECLARATION: ToolDeclaration =
    declaration("Attend to sub-agents", About::Nothing);

const fn declaration(title: &'static str, about: About) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind: ToolKind::Other,
        about,
        group: Some(ToolGroup::Sessions),
        powers: Powers::of(&[]),
        place: WorkPlace::Here,
    }
}
