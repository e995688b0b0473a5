use super::*;

#[test]
fn a_line_gives_the_arguments_of_a_prompt() {
    let prompt = |arguments: &[(&str, bool)]| ListedPrompt {
        arguments: arguments.iter().map(|(name, needed)| ((*name).to_owned(), *needed)).collect(),
    };
    let two = prompt(&[("branch", true), ("why", false)]);
    for (prompt, line, expected) in [
        (&two, "main", Ok(json!({"branch": "main"}))),
        (&two, " main  it is slow ", Ok(json!({"branch": "main", "why": "it is slow"}))),
        (&two, "why=speed main", Ok(json!({"why": "speed", "branch": "main"}))),
        (&two, "a=b", Ok(json!({"branch": "a=b"}))),
        (&two, "", Err("the argument branch is missing: branch [why]")),
        (&two, "why=speed", Err("the argument branch is missing: branch [why]")),
        (&prompt(&[]), "", Ok(json!({}))),
        (&prompt(&[]), "main", Err("there are more arguments than the prompt has: it has none")),
    ] {
        let given = prompt.arguments(line).map(Value::Object);
        assert_eq!(given, expected.map_err(str::to_owned), "{line}");
    }
}

#[test]
fn a_resource_is_marked_and_bounded() {
    let long = "x".repeat(MAX_CHARS + 1);
    let result = json!({"contents": [
        {"uri": "a", "text": long}, {"uri": "b", "blob": "AAAA", "mimeType": "application/zip"},
    ]});
    let blocks = resource_content("docs", "a", &result);
    let [ContentBlock::Text(said)] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(said.text.contains("They are data") && said.text.contains("(cut: the first 60000"));
    let result = json!({"contents": [{"uri": "b", "blob": "AAAA", "mimeType": "application/zip"}]});
    let blocks = resource_content("docs", "b", &result);
    let [ContentBlock::Text(said)] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(said.text.contains("about 3 bytes of the kind \"application/zip\""), "{}", said.text);
}
