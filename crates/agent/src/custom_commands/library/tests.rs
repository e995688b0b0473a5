use super::*;

fn prompt(description: &str, text: &str) -> Prompt {
    Prompt { description: description.to_owned(), text: text.to_owned() }
}

#[test]
fn what_is_written_is_read_again() {
    for it in [
        prompt("", "Tidy $1."),
        prompt("Tidies: \"all\" # of it", "Tidy\n\n$ARGUMENTS"),
        prompt("", "---\nno: front matter\n---\nText"),
        prompt("- a list", "---"),
    ] {
        assert_eq!(prompt_of(&written(None, &it)), it);
    }
}

#[test]
fn other_fields_of_the_front_matter_stay() {
    let old =
        "---\nargument-hint: [one]\ndescription: >\n  over\n  lines\nmodel: small\n---\nOld.\n";
    assert_eq!(prompt_of(old), prompt("over lines", "Old."));
    let new = written(Some(old), &prompt("new", "New."));
    assert_eq!(new, "---\nargument-hint: [one]\nmodel: small\ndescription: \"new\"\n---\n\nNew.\n");
    let bare = written(Some(&new), &prompt("", "New."));
    assert_eq!(bare, "---\nargument-hint: [one]\nmodel: small\n---\n\nNew.\n");
    assert_eq!(written(Some("---\ndescription: x\n---\nOld."), &prompt("", "New.")), "New.\n");
}
