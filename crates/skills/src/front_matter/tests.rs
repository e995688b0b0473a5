use super::{FrontMatter, Requirements, without_front_matter};

fn parse(text: &str) -> Result<FrontMatter, String> {
    FrontMatter::parse(text, "the-directory")
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
        remarks: Vec::new(),
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
        unreadable: Vec::new(),
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
    for metadata in ["[1, 2]", "7", "{author: x}", "{openclaw: {emoji: x}}", "null", "'{broken'"] {
        let text = format!("---\nname: a\ndescription: b\nmetadata: {metadata}\n---\n");
        assert_eq!(
            parse(&text).map(|skill| skill.requirements),
            Ok(Requirements::default()),
            "{text}"
        );
    }
}

#[test]
fn a_requirement_that_cannot_be_read_is_named() {
    for (metadata, unreadable) in [
        ("{openclaw: {requires: 7}}", "metadata.openclaw.requires"),
        ("{myclaw: [a]}", "metadata.myclaw"),
        ("{myclaw: {os: {linux: true}}}", "metadata.myclaw.os"),
        ("{clawdbot: {requires: {bins: [1]}}}", "metadata.clawdbot.requires.bins"),
        ("{openclaw: {requires: {binz: [x]}}}", "metadata.openclaw.requires.binz"),
        ("{myclaw: {requires: {env: [X], programs: uv}}}", "metadata.myclaw.requires.programs"),
        ("{openclaw: {require: {bins: [x]}}}", "metadata.openclaw.require"),
        ("{openclaw: {requirements: {bins: [x]}}}", "metadata.openclaw.requirements"),
        ("{moltbot: {requires: {Bins: [x]}}}", "metadata.moltbot.requires.Bins"),
        ("'{\"myclaw\": {\"requires\": {\"anybins\": []}}}'", "metadata.myclaw.requires.anybins"),
        ("'{\"openclaw\": {\"requires\": '", "metadata"),
    ] {
        let text = format!("---\nname: a\ndescription: b\nmetadata: {metadata}\n---\n");
        let found = parse(&text).map(|skill| skill.requirements.unreadable);
        assert_eq!(found, Ok(strings(&[unreadable])), "{text}");
    }
    let one = "---\nname: a\ndescription: b\nmetadata: {myclaw: {requires: {bins: uv}}}\n---\n";
    assert_eq!(parse(one).map(|skill| skill.requirements.programs), Ok(strings(&["uv"])));
}

#[test]
fn one_bad_field_costs_no_other() {
    for (text, name, description, remark) in [
        (
            "name: notes\ndescription: use this: when asked\nargument-hint: [a] [b]",
            "notes",
            "use this: when asked",
            "read line by line",
        ),
        ("name: notes\ndescription: d\nargument-hint: [a] [b]", "notes", "d", "read line by line"),
        (
            "name: notes\ndescription: >\n  one\n  two\nx: @y",
            "notes",
            "one two",
            "read line by line",
        ),
        ("name: My Notes\ndescription: d", "my-notes", "d", "`my-notes` is taken"),
        ("name: ../a\ndescription: d", "a", "d", "`a` is taken"),
        ("name: 42\ndescription: 7", "42", "7", ""),
        ("description: d", "the-directory", "d", "`the-directory` is taken"),
        ("name: ''\ndescription: d", "the-directory", "d", "`the-directory` is taken"),
        ("name: \u{43a}\u{43b}\u{44e}\u{447}\ndescription: d", "the-directory", "d", "is taken"),
        ("name: a\nlicense: x: y", "a", "Text of it.", "the first paragraph is taken"),
    ] {
        let text = format!("---\n{text}\n---\n# Title\n\nText\nof it.\n\nMore.\n");
        let skill = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            (skill.name.as_str(), skill.description.as_str()),
            (name, description),
            "{text}"
        );
        assert!(skill.remarks.join("; ").contains(remark), "{text}: {:?}", skill.remarks);
    }
    let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
    let skill = parse(&long).expect("a skill");
    assert_eq!(skill.description.chars().count(), 1_024);
    assert!(skill.remarks[0].contains("longer than 1024"), "{:?}", skill.remarks);
    let requirement =
        "---\nname: a\ndescription: b: c\nmetadata: {myclaw: {requires: {bins: [uv]}}}\n---\n";
    assert_eq!(parse(requirement).map(|skill| skill.requirements.programs), Ok(strings(&["uv"])));
}

#[test]
fn the_front_matter_is_not_part_of_the_text() {
    for (text, body) in [
        ("---\ndescription: a: b\nallowed-tools: [x] [y]\n---\nDo it.\n", "Do it.\n"),
        ("\u{feff}---\r\na: b\r\n---\r\nDo it.", "Do it."),
        ("---\nnever closed\n", "---\nnever closed\n"),
        ("Do it.\n---\n", "Do it.\n---\n"),
    ] {
        assert_eq!(without_front_matter(text), body, "{text:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, expected) in [
        ("# No front matter", "does not begin with front matter"),
        ("---\nname: a\ndescription: never closed\n", "does not begin with front matter"),
        ("---\nname: a\n---\n", "has no `description`"),
        ("---\nname: a\ndescription: '  '\n---\n# Only a title", "has no `description`"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let nameless = FrontMatter::parse("---\ndescription: d\n---\n", "\u{43a}");
    assert!(nameless.is_err_and(|error| error.contains("it has no name")));
}
