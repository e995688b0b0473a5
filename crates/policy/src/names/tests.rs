use super::*;

#[test]
fn aliases_name_one_tool() {
    for (name, expected) in [
        ("bash", "exec"),
        (" Bash ", "exec"),
        ("exec", "exec"),
        ("Read", "read"),
        ("WebFetch", "web_fetch"),
        ("apply-patch", "apply_patch"),
        ("agent-browser", "browser"),
        ("send_message", "message"),
        ("something_else", "something_else"),
    ] {
        assert_eq!(canonical_tool_name(name), expected);
    }
}

#[test]
fn groups_and_profiles_hold_only_known_tools() {
    for group in group_names() {
        for member in group_members(group).unwrap_or_default() {
            assert!(known_tools().contains(member), "{group}: {member}");
        }
    }
    for profile in [ToolProfile::Minimal, ToolProfile::Coding, ToolProfile::Messaging] {
        for member in profile_members(profile).unwrap_or_default() {
            assert!(
                known_tools().contains(member) || group_members(member).is_some(),
                "{}: {member}",
                profile.as_str()
            );
        }
    }
    assert_eq!(profile_members(ToolProfile::Full), None);
    assert_eq!(group_members("group:RUNTIME"), Some(["exec", "process"].as_slice()));
    assert_eq!(group_members("group:nothing"), None);
}
