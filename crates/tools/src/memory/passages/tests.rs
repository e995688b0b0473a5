use super::*;

fn lines(passages: &[Passage]) -> Vec<(usize, usize)> {
    passages.iter().map(|passage| (passage.first, passage.last)).collect()
}

#[test]
fn a_heading_begins_a_passage_unless_only_headings_came_before() {
    let text = "# All\n## Boiler\nLeaks.\n\n## Car\nRuns.\n#tag in a line\n";
    let cut = passages("a.md", text);
    assert_eq!(lines(&cut), [(1, 4), (5, 6), (7, 7)]);
    assert_eq!(cut[0].text, "# All\n## Boiler\nLeaks.\n\n");
}

#[test]
fn blank_notes_have_no_passage() {
    assert_eq!(passages("a.md", ""), []);
    assert_eq!(passages("a.md", "\n  \n\n"), []);
}

#[test]
fn no_text_is_lost_and_no_passage_is_too_long() {
    let long = "ä".repeat(2 * MAX_CHARS + 5);
    let text = format!("short\n{long}\n{}", "word word\n".repeat(300));
    let cut = passages("a.md", &text);
    assert!(cut.iter().all(|passage| passage.text.chars().count() <= MAX_CHARS));
    let joined: String = cut.iter().map(|passage| passage.text.replace('\n', "")).collect();
    assert_eq!(joined, text.replace('\n', ""));
    assert_eq!(cut.last().map(|passage| passage.last), Some(302));
}
