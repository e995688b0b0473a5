use super::*;

fn said(event: ClaudeEvent, code: i32, output: &str, errors: &str) -> Said {
    let (output, errors) = (output.to_owned(), errors.to_owned());
    Said::of(event, &Finished { code, output, errors })
}

#[test]
fn exit_codes_and_answers_are_read_as_their_authors_mean_them() {
    use ClaudeEvent::{PreToolUse, SessionStart, UserPromptSubmit};
    let refusal = |code, output: &str, errors: &str| said(PreToolUse, code, output, errors).refusal;
    assert_eq!(refusal(2, "", " no rm \n").as_deref(), Some("no rm"));
    assert_eq!(refusal(2, "", "").as_deref(), Some("it gave no reason"));
    // A failure that is no refusal stops nothing.
    assert_eq!(refusal(1, "", "Traceback"), None);
    assert_eq!(refusal(0, "plain words", ""), None);
    let deny = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "not here"}}"#;
    assert_eq!(refusal(0, deny, "").as_deref(), Some("not here"));
    assert_eq!(refusal(0, r#"{"decision": "block", "reason": "old"}"#, "").as_deref(), Some("old"));
    let stop = r#"{"continue": false, "stopReason": "enough"}"#;
    assert_eq!(refusal(0, stop, "").as_deref(), Some("enough"));
    assert_eq!(refusal(0, r#"{"decision": "approve", "reason": "fine"}"#, ""), None);
    let ask = r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}"#;
    assert_eq!(said(PreToolUse, 0, ask, "").question.as_deref(), Some("sure?"));
    for event in [SessionStart, UserPromptSubmit] {
        assert_eq!(said(event, 0, "a rule\n", "").context.as_deref(), Some("a rule"));
        let more = r#"{"hookSpecificOutput": {"additionalContext": "a fact"}}"#;
        assert_eq!(said(event, 0, more, "").context.as_deref(), Some("a fact"));
    }
    assert_eq!(said(PreToolUse, 0, "a rule", "").context, None);
}

#[test]
fn matchers_are_patterns_of_whole_names() {
    let fits = |matcher: &str, name: &str| whole(matcher).is_none_or(|it| it.is_match(name));
    for (matcher, name, expected) in [
        ("Bash", "Bash", true),
        ("Bash", "BashOutput", false),
        ("Edit|Write", "Write", true),
        ("mcp__memory__.*", "mcp__memory__add", true),
        ("*", "Read", true),
        ("", "Read", true),
        ("(", "Read", false),
    ] {
        assert_eq!(fits(matcher, name), expected, "{matcher} {name}");
    }
}

#[test]
fn calls_are_told_in_the_words_of_claude_code_and_back() {
    let arguments = |value: Value| value.as_object().cloned().expect("an object");
    for (name, there, here, told) in [
        ("bash", "Bash", json!({"command": "ls"}), json!({"command": "ls"})),
        (
            "edit",
            "Edit",
            json!({"path": "/w/a", "oldText": "x", "newText": "y", "all": true}),
            json!({"file_path": "/w/a", "old_string": "x", "new_string": "y", "replace_all": true}),
        ),
        (
            "read",
            "Read",
            json!({"path": "/w/a", "startLine": 3}),
            json!({"file_path": "/w/a", "offset": 3}),
        ),
        ("files__echo", "mcp__files__echo", json!({"path": "a"}), json!({"path": "a"})),
        ("memory_search", "memory_search", json!({"query": "q"}), json!({"query": "q"})),
    ] {
        assert_eq!(name_there(name), there);
        let here = arguments(here);
        assert_eq!(arguments_there(name, &here, Path::new("/w")), told);
        assert_eq!(arguments_here(name, arguments(told)), here);
    }
    let relative = arguments(json!({"path": "a"}));
    assert_eq!(arguments_there("write", &relative, Path::new("/w")), json!({"file_path": "/w/a"}));
}
