//! What the tools of a session are, by name: for those who have only the name, such as displays of old sessions.

use myclaw_engine::ToolDeclaration;

/// What the tool of that name is. Tools that a front-end or another program adds are not known here.
pub fn declaration_of(name: &str) -> ToolDeclaration {
    let known = myclaw_tools::DECLARATIONS.iter().chain(&myclaw_web::DECLARATIONS);
    known
        .chain(&[
            ("browser", myclaw_browser::DECLARATION),
            ("memory_write", crate::memory::MEMORY_WRITE),
            (myclaw_engine::IMAGE_GENERATE, crate::picture_tool::DECLARATION),
            (crate::plan::NAME, crate::plan::DECLARATION),
            (crate::subagents::declared::SPAWN, crate::subagents::declared::SPAWN_DECLARATION),
            (crate::subagents::declared::ATTEND, crate::subagents::declared::ATTEND_DECLARATION),
        ])
        .find(|(tool, _)| *tool == name)
        .map_or(ToolDeclaration::UNKNOWN, |(_, declaration)| *declaration)
}
