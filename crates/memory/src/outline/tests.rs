use std::fs;

use super::*;

#[test]
fn the_list_is_bounded_and_keeps_the_newest() {
    let facts: Vec<Fact> = (0..300)
        .map(|number| Fact::read(&format!("- Fact number {number} of many, ähnlich lang")).unwrap())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let list = outline(&facts, directory.path());
    assert!(
        list.len() <= MOST_OUTLINE_BYTES && list.len() > MOST_OUTLINE_BYTES - 200,
        "{}",
        list.len()
    );
    assert!(list.contains("number 299 of") && !list.contains("number 2 of"), "{list}");
    assert!(list.starts_with("- 2") && list.contains(" older facts: memory_search"), "{list}");
    fs::create_dir(directory.path().join("memory")).unwrap();
    for number in 0..40 {
        fs::write(
            directory.path().join(format!("memory/a long name of a note {number:02}.md")),
            "x",
        )
        .unwrap();
    }
    let list = outline(&facts, directory.path());
    assert!(list.len() <= MOST_OUTLINE_BYTES, "{}", list.len());
    assert!(list.contains("Other notes in memory/: a long name of a note 00.md"), "{list}");
}

#[test]
fn what_holds_no_more_is_left_out_and_outside_text_is_marked() {
    let lines = [
        "- ~~Lives in Bonn.~~ until 2026-01-01",
        "- Lives in Cologne. <!-- k3f9q; 2026-01-01; from owner; after web_fetch -->",
    ];
    let facts: Vec<Fact> = lines.iter().map(|line| Fact::read(line).unwrap()).collect();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(outline(&facts, directory.path()), "- Lives in Cologne. (k3f9q, after web_fetch)");
    assert_eq!(outline(&[], directory.path()), "");
}
