use std::collections::{BTreeMap, BTreeSet};

use myclaw_agent::declaration_of;
use myclaw_agent::permissions::{canonical_tool_name, group_members, group_names, known_tools};
use myclaw_engine::{ToolDeclaration, ToolGroup};

use myclaw_gateway_client::GatewayToolKind;

/// Names of tools that the rules know and that no session of a gateway has.
const ABSENT: [&str; 4] = ["canvas", "session_status", "ask_boss", "run_workflow"];

/// The name of a group in the rules.
fn name_of(group: ToolGroup) -> &'static str {
    match group {
        ToolGroup::Files => "group:fs",
        ToolGroup::Runtime => "group:runtime",
        ToolGroup::Web => "group:web",
        ToolGroup::Ui => "group:ui",
        ToolGroup::Sessions => "group:sessions",
        ToolGroup::Memory => "group:memory",
        ToolGroup::Automation => "group:automation",
        ToolGroup::Messaging => "group:messaging",
        ToolGroup::Nodes => "group:nodes",
    }
}

/// What each tool of a session says of itself.
fn declared() -> BTreeMap<String, ToolDeclaration> {
    let mut declared: BTreeMap<String, ToolDeclaration> = GatewayToolKind::ALL
        .into_iter()
        .map(|kind| (canonical_tool_name(&kind.schema().name), kind.declaration()))
        .collect();
    declared.insert("nodes".to_owned(), super::nodes::DECLARATION);
    for name in known_tools().iter().chain(&["bash"]) {
        let known = declaration_of(name);
        if known != ToolDeclaration::UNKNOWN {
            // Tools of a gateway are what they say, also where a session without one has another of that name.
            declared.entry(canonical_tool_name(name)).or_insert(known);
        }
    }
    declared
}

#[test]
fn every_tool_that_the_rules_know_declares_what_it_is() {
    let declared: BTreeSet<String> = declared().into_keys().collect();
    let known: BTreeSet<String> = known_tools()
        .iter()
        .filter(|name| !ABSENT.contains(name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(declared, known);
}

#[test]
fn the_groups_of_the_rules_are_those_that_the_tools_declare() {
    let declared = declared();
    for group in group_names().filter(|group| *group != "group:myclaw") {
        let members: BTreeSet<&str> = group_members(group)
            .unwrap()
            .iter()
            .copied()
            .filter(|name| !ABSENT.contains(name))
            .collect();
        let derived: BTreeSet<&str> = declared
            .iter()
            .filter(|(_, tool)| tool.group.map(name_of) == Some(group))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(derived, members, "{group}");
    }
}

#[test]
fn a_tool_that_declares_nothing_can_do_everything() {
    let unknown = declaration_of("of another program");
    assert!(!unknown.is_read_only());
    assert_eq!(unknown, ToolDeclaration::UNKNOWN);
    let read_only: Vec<String> = declared()
        .into_iter()
        .filter(|(_, tool)| tool.is_read_only())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        read_only,
        [
            "agents_list",
            "find",
            "grep",
            "image",
            "image_generate",
            "ls",
            "memory_get",
            "memory_search",
            "read",
            "sessions_history",
            "sessions_list",
            "web_fetch",
            "web_search",
        ]
    );
}
