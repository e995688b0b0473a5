use super::*;

#[test]
fn releases_of_one_model_are_a_family() {
    for (a, b, same) in [
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219", true),
        ("anthropic/claude-opus-4:beta", "claude-opus-4", true),
        ("claude-sonnet-4@20250514", "claude-sonnet-4-20250514", true),
        ("claude-opus-4-1", "claude-opus-4", false),
        ("gpt-5", "gpt-5-mini", false),
    ] {
        assert_eq!(family(a) == family(b), same, "{a} {b}");
    }
}

#[test]
fn names_are_made_acceptable() {
    assert_eq!(tool_name("read_file-2"), "read_file-2");
    assert_eq!(tool_name("functions.read é"), "functions_read__");
    assert_eq!(tool_name(""), "unnamed");
    assert_eq!(tool_name(&"x".repeat(100)).len(), 64);
}

#[test]
fn a_date_is_no_part_of_a_name() {
    for (id, name) in [
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4", "claude-sonnet-4"),
        ("gpt-4", "gpt-4"),
        ("model-12345678", "model-12345678"),
        ("20250514", "20250514"),
        ("", ""),
    ] {
        assert_eq!(without_date(id), name, "{id}");
    }
}
