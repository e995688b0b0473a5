use super::*;

fn is_tool(name: &str) -> bool {
    ["bash", "read", "web_fetch"].contains(&name)
}

#[test]
fn a_name_loses_the_remains_of_a_template() {
    for (name, tool) in [
        ("functions.bash", Some("bash")),
        ("functions.bash:0", Some("bash")),
        ("bash<|channel|>commentary", Some("bash")),
        ("bash<|channel|>json", Some("bash")),
        ("<|channel|>bash", Some("bash")),
        ("to=functions.read", Some("read")),
        ("assistant<|channel|>commentary to=functions.bash", Some("bash")),
        ("<|start|>assistant<|channel|>commentary to=bash<|constrain|>json", Some("bash")),
        ("commentary to=functions.read json", Some("read")),
        ("assistant<|channel|>analysis", None),
        ("default_api.web_fetch", Some("web_fetch")),
        ("default_api:bash", Some("bash")),
        ("tools/bash", Some("bash")),
        ("function_bash", Some("bash")),
        ("bash</tool_call>", Some("bash")),
        ("bash\n", Some("bash")),
        ("\"bash\"", Some("bash")),
        ("bash()", Some("bash")),
        ("bash:12", Some("bash")),
        ("web_fetch", Some("web_fetch")),
        ("bashful", None),
        ("server.other", None),
        ("", None),
        ("<|", None),
        ("…", None),
    ] {
        assert_eq!(cleaned_name(name, is_tool), tool, "{name}");
    }
}

#[test]
fn a_call_in_the_text_is_recognised() {
    for text in [
        "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
        "I look first.\n<tool_call>{\"name\": \"bash\", \"arguments\": {}}</tool_call>",
        "<tool_call>bash\n<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>",
        "<function=bash>\n<parameter=command>ls</parameter>\n</function>",
        "<function_calls><invoke name=\"bash\"><parameter name=\"command\">ls</parameter></invoke>",
        "<invoke name=\"read\">",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{}\n```",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"bash\">",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{}",
        "<|python_tag|>{\"name\": \"bash\", \"parameters\": {}}",
        "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{}<|call|>",
        "commentary to=functions.bash json{}",
        "[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {}}]",
        "functools[{\"name\": \"bash\", \"arguments\": {}}]",
        "I look first.\n functools[{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}]",
        "<|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{}",
        "[TOOL_CALLS]bash[ARGS]{\"command\": \"ls\"}",
        "<minimax:tool_call><invoke name=\"bash\">",
        "<seed:tool_call><function=bash>",
        "<longcat_tool_call>bash</longcat_tool_call>",
        "<TOOLCALL>[{\"name\": \"bash\", \"arguments\": {}}]</TOOLCALL>",
        "<|START_ACTION|>[{\"tool_name\": \"bash\", \"parameters\": {}}]<|END_ACTION|>",
        "<start_function_call>call:bash{command:ls}",
        "```tool_code\nprint(bash(command=\"ls\"))\n```",
        "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
        "{\"name\": \"bash\", \"arguments\": \"{}\"}",
        "```json\n{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}\n```",
        "[{\"name\": \"read\", \"arguments\": {}}, {\"name\": \"bash\", \"arguments\": {}}]",
        "{\"name\": \"read\", \"arguments\": {}}\n{\"name\": \"bash\", \"arguments\": {}}",
        "{\"type\": \"function\", \"function\": {\"name\": \"functions.bash\", \"arguments\": \"{}\"}}",
        "{\"tool\": \"bash\", \"tool_input\": {\"command\": \"ls\"}}",
        "{\"tool_calls\": [{\"function\": {\"name\": \"bash\", \"arguments\": \"{}\"}}]}",
        "{\"bash\": {\"command\": \"ls\"}}",
        "[bash(command=\"ls\")]",
        "I need a list.\nAction: bash\nAction Input: {\"command\": \"ls\"}",
    ] {
        assert!(written_call(text, is_tool).is_some(), "{text}");
    }
}

/// Nor is a call of no tool that there is an answer.
#[test]
fn a_call_of_an_unknown_tool_is_recognised_by_its_marks() {
    for text in [
        "<tool_call>{\"name\": \"launch\", \"arguments\": {\"path\": \".\"}}</tool_call>",
        "I look first.\n\n<tool_call>\n{\"arguments\": {}, \"name\": \"launch\"}\n</tool_call>\n",
        "<tool_call>launch\n<arg_key>path</arg_key><arg_value>.</arg_value></tool_call>",
        "<tool_calls>[{\"name\": \"launch\", \"arguments\": {}}]</tool_calls>",
        "<function=launch>\n<parameter=path>.</parameter>\n</function>",
        "<function_calls><invoke name=\"launch\"><parameter name=\"path\">.</parameter></invoke></function_calls>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>launch\n```json\n{}\n```",
        "<|tool_calls_section_begin|><|tool_call_begin|>launch:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<|python_tag|>{\"name\": \"launch\", \"parameters\": {}}",
        "<|channel|>commentary to=launch <|constrain|>json<|message|>{}<|call|>",
        "[TOOL_CALLS][{\"name\": \"launch\", \"arguments\": {}}]",
        "[TOOL_CALLS]launch[ARGS]{\"options\": {\"a\": 1}}",
        "functools[{\"name\": \"launch\", \"arguments\": {}}]",
        "<TOOLCALL>[{\"name\": \"launch\", \"arguments\": {}}]</TOOLCALL>",
        "<|START_ACTION|>[{\"tool_name\": \"launch\", \"parameters\": {}}]<|END_ACTION|>",
        "<start_function_call>call:launch{path:.}",
    ] {
        assert_eq!(written_call(text, is_tool).as_deref(), Some("launch"), "{text}");
    }
}

/// An answer about calls is an answer.
#[test]
fn an_answer_is_left_alone() {
    for text in [
        "",
        "Done.",
        "Use bash to read the file.",
        "Models of Qwen write `<tool_call>{\"name\": \"bash\"}</tool_call>` as text.",
        "An example:\n```xml\n<tool_call>{\"name\": \"bash\", \"arguments\": {}}</tool_call>\n```\nSo it is.",
        "The format is:\n```json\n{\"name\": \"bash\", \"arguments\": {}}\n```\nIt has two fields.",
        "<tool_call>{\"name\": \"launch_rocket\", \"arguments\": {}}</tool_call>\nis how Qwen calls.",
        "A model writes:\n```\n<tool_call>{\"name\": \"launch\", \"arguments\": {}}</tool_call>\n```",
        "[tool_call] is a mark that some models write before a call (of a tool)",
        "<tool_calls>",
        "```json\n{\"name\": \"launch\", \"arguments\": {}}\n```",
        "```json\n{\"name\": \"bash\", \"arguments\": {}}\n```\nand\n```json\n{}\n```",
        "{\"name\": \"Ada\", \"input\": \"5\"}",
        "{\"name\": \"bash\", \"version\": \"5.2\"}",
        "{\"answer\": {\"value\": 42}}",
        "Phi writes `functools[{\"name\": \"bash\"}]`.",
        "functools[0] is an error.",
        "[1, 2, 3]",
        "[read more](https://example.com/(x))",
        "Action: leave the house.",
        "null",
    ] {
        assert_eq!(written_call(text, is_tool), None, "{text}");
    }
}

/// A long answer costs no more than a short one, and an unusual one no panic.
#[test]
fn long_and_wild_answers_are_searched_at_their_ends() {
    let call = "<tool_call>{\"name\": \"bash\", \"arguments\": {}}</tool_call>";
    let long = "ä ".repeat(2_000_000);
    assert_eq!(written_call(&long, is_tool), None);
    assert_eq!(written_call(&format!("{long}\n{call}"), is_tool).as_deref(), Some("bash"));
    assert_eq!(written_call(&format!("<tool_call>{}", "ä".repeat(500)), is_tool), None);
}
