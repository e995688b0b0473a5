use super::*;

#[test]
fn command_lines_are_split_as_a_shell_would() {
    for (line, words) in [
        ("  tool  --flag value ", &["tool", "--flag", "value"][..]),
        (r#""/opt/my tool" 'a "b"' c"d e"f"#, &["/opt/my tool", r#"a "b""#, "cd ef"]),
        (r"tool a\ b '\n' \$HOME", &["tool", "a b", r"\n", "$HOME"]),
        (r#"tool "" '' "say \"hi\"""#, &["tool", "", "", r#"say "hi""#]),
        ("", &[]),
    ] {
        assert_eq!(split(line).unwrap(), words, "{line}");
    }
    assert_eq!(split("tool 'open"), None);
}

#[test]
fn only_what_such_a_program_needs_is_passed_on() {
    for name in ["PATH", "HOME", "AWS_PROFILE", "XDG_CONFIG_HOME", "LC_ALL"] {
        assert!(is_passed_on(name), "{name}");
    }
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "MYCLAW_HOME"] {
        assert!(!is_passed_on(name), "{name}");
    }
}
