use serde_json::json;

use super::*;

fn prompt(bootstrap: &[BootstrapFile], tools: &[ToolSchema]) -> String {
    build_system_prompt(&PromptParts {
        identity: None,
        bootstrap,
        tools,
        skills: &[],
        working_directory: Path::new("/home/ada/notes"),
        model: "anthropic/claude-x",
        time_zone: Some("Europe/Berlin"),
        note: Some("Files go out too."),
        project: None,
    })
}

#[test]
fn the_five_sections_stand_in_order() {
    let file = BootstrapFile {
        name: "AGENTS.md",
        content: "Be kind.\n".to_owned(),
        is_cut: false,
        file_bytes: 9,
    };
    let tools: Vec<_> = ["read", "bash"]
        .map(|name| ToolSchema {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
        })
        .into();

    let text = prompt(&[file], &tools);

    let sections: Vec<&str> =
        text.split("\n\n<").map(|part| part.split('>').next().unwrap()).collect();
    assert_eq!(sections, ["<identity", "bootstrap-files", "tools", "safety", "runtime"]);
    assert!(text.contains(
        "<bootstrap-files>\n<file path=\"AGENTS.md\">\nBe kind.\n</file>\n</bootstrap-files>"
    ));
    assert!(text.contains("following tools:\n- read\n- bash\n"));
    assert!(text.contains("- Working directory: /home/ada/notes\n- Model: anthropic/claude-x\n"));
    assert!(text.ends_with("Europe/Berlin\n- Files go out too.\n</runtime>"), "{text}");
}

#[test]
fn empty_sections_are_left_out() {
    let text = prompt(&[], &[]);

    assert!(!text.contains("<bootstrap-files>") && !text.contains("<tools>"), "{text}");
}

#[test]
fn skills_stand_behind_the_tools_if_the_model_can_read_them() {
    let skill = SkillSummary {
        name: "notes".to_owned(),
        description: "Writes notes.".to_owned(),
        file: "/s/notes/SKILL.md".into(),
    };
    let with_tool = |name: &str| {
        let tool =
            ToolSchema { name: name.to_owned(), description: String::new(), parameters: json!({}) };
        build_system_prompt(&PromptParts {
            identity: None,
            bootstrap: &[],
            tools: &[tool],
            skills: std::slice::from_ref(&skill),
            working_directory: Path::new("/w"),
            model: "m",
            time_zone: None,
            note: None,
            project: None,
        })
    };
    let line = "\n- notes: Writes notes. (/s/notes/SKILL.md)\n</tools>";
    assert!(with_tool("read").contains(line));
    assert!(!with_tool("bash").contains("notes"));
}

#[test]
fn the_same_parts_give_the_same_bytes() {
    assert_eq!(prompt(&[], &[]), prompt(&[], &[]));
}
