use super::{FrontMatter, Requirements};

fn parse(text: &str) -> Result<FrontMatter, String> {
    FrontMatter::parse(text)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn the_smallest_skill_has_a_name_and_a_description() {
    let skill = parse("---\nname: pdf-forms\ndescription: Fills PDF forms.\n---\n# Text\n");
    let expected = FrontMatter {
        name: "pdf-forms".to_owned(),
        description: "Fills PDF forms.".to_owned(),
        requirements: Requirements::default(),
    };
    assert_eq!(skill, Ok(expected));
}

#[test]
fn descriptions_in_every_yaml_style_become_one_line() {
    for text in [
        "---\r\nname: a\r\ndescription: \"Uses: colons\"\r\n---\r\n",
        "\u{feff}---\nname: a\ndescription: >\n  Uses:\n  colons\n---\n",
        "---\ndescription: |\n  Uses:\n\n  colons\nname: a\nlicense: MIT\nallowed-tools: Read, Grep\n---",
    ] {
        assert_eq!(
            parse(text).map(|skill| skill.description),
            Ok("Uses: colons".to_owned()),
            "{text:?}"
        );
    }
}

#[test]
fn requirements_are_read_from_the_metadata_of_several_agents() {
    let expected = Requirements {
        systems: strings(&["linux", "darwin"]),
        programs: strings(&["uv"]),
        any_program: strings(&["rg", "grep"]),
        variables: strings(&["GEMINI_API_KEY"]),
    };
    let own = r#"{"emoji":"x","os":["linux","darwin"],"requires":{"bins":["uv"],"anyBins":["rg","grep"],"env":["GEMINI_API_KEY"],"config":["a.b"]}}"#;
    for metadata in [
        format!("{{\"openclaw\":{own}}}"),
        format!("\n  {{\n    \"clawdbot\":\n      {own}\n  }}"),
        format!("'{{\"myclaw\":{own}}}'"),
        format!("\n  author: somebody\n  version: 1.0\n  moltbot: {own}"),
    ] {
        let text = format!("---\nname: a\ndescription: b\nmetadata: {metadata}\n---\n");
        assert_eq!(parse(&text).map(|skill| skill.requirements), Ok(expected.clone()), "{text}");
    }
}

#[test]
fn metadata_of_an_unknown_shape_costs_nothing_else() {
    for metadata in ["[1, 2]", "7", "{author: x}", "{openclaw: {requires: 7}}", "null", "'{broken'"]
    {
        let text = format!("---\nname: a\ndescription: b\nmetadata: {metadata}\n---\n");
        assert_eq!(
            parse(&text).map(|skill| skill.requirements),
            Ok(Requirements::default()),
            "{text}"
        );
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, expected) in [
        ("# No front matter", "does not begin with front matter"),
        ("---\nname: a\ndescription: never closed\n", "does not begin with front matter"),
        ("---\nname: [\n---\n", "not valid YAML"),
        ("---\ndescription: b\n---\n", "has no `name`"),
        ("---\nname: a\n---\n", "has no `description`"),
        ("---\nname: a\ndescription: '  '\n---\n", "has no `description`"),
        ("---\nname: ../a\ndescription: b\n---\n", "`../a` must be"),
        ("---\nname: Upper Case\ndescription: b\n---\n", "must be"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
    assert!(parse(&long).is_err_and(|error| error.contains("longer than 1024")));
}
