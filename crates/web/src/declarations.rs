//! What the tools of this crate are.

use myclaw_engine::{About, Power, Powers, ToolDeclaration, ToolGroup, ToolKind, WorkPlace};

const fn of_web(
    title: &'static str,
    kind: ToolKind,
    verb: &'static str,
    name: &'static str,
) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind,
        about: About::Argument { verb, name },
        group: Some(ToolGroup::Web),
        powers: Powers::of(&[Power::ReachesNetwork]),
        place: WorkPlace::Here,
    }
}

pub(crate) const WEB_SEARCH: ToolDeclaration =
    of_web("Search the web", ToolKind::Search, "Search the web for", "query");
pub(crate) const WEB_FETCH: ToolDeclaration =
    of_web("Fetch a page", ToolKind::Fetch, "Fetch", "url");
pub(crate) const IMAGE: ToolDeclaration = ToolDeclaration {
    group: None,
    powers: Powers::of(&[Power::ReachesNetwork, Power::ReadsFiles]),
    ..of_web("Look at a picture", ToolKind::Look, "Look at", "image")
};

/// What the tools of this crate are, by their names.
pub const DECLARATIONS: [(&str, ToolDeclaration); 3] =
    [("web_search", WEB_SEARCH), ("web_fetch", WEB_FETCH), ("image", IMAGE)];
