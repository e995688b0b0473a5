use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use super::*;

fn notebook(directory: &Path) -> Notebook {
    Notebook::new(directory.join("workspace"), directory.join("state/facts.lock"))
}

fn new(text: &str) -> NewFact<'_> {
    let origin = FactOrigin { date: "2026-11-29".to_owned(), ..FactOrigin::default() };
    NewFact { text, origin, replaces: None }
}

fn added(notebook: &Notebook, fact: NewFact<'_>) -> Fact {
    match notebook.add(fact).unwrap() {
        Added::New(fact, _) | Added::Known(fact) => fact,
    }
}

#[test]
fn a_newer_fact_strikes_the_older_one_and_hand_written_lines_stay() {
    let directory = tempfile::tempdir().unwrap();
    let notebook = notebook(directory.path());
    assert_eq!(notebook.facts().unwrap(), []);
    let bonn = added(&notebook, new("Lives in Bonn."));
    let text = fs::read_to_string(notebook.path()).unwrap();
    fs::write(notebook.path(), format!("{text}\n## Mine\n- by hand\nprose\n")).unwrap();
    let cologne =
        added(&notebook, NewFact { replaces: Some(&bonn.id), ..new("Lives in Cologne.") });
    assert_eq!(notebook.add(new("lives in cologne.")).unwrap(), Added::Known(cologne.clone()));
    let text = fs::read_to_string(notebook.path()).unwrap();
    assert!(text.starts_with(HEADING), "{text}");
    let expected = format!(
        "- ~~Lives in Bonn.~~ until 2026-11-29, now {1} <!-- {0}; 2026-11-29 -->\n\n## Mine\n- by hand\nprose\n\
         - Lives in Cologne. <!-- {1}; 2026-11-29 -->\n",
        bonn.id, cologne.id
    );
    assert!(text.ends_with(&expected), "{text}");
    let hand = notebook.facts().unwrap().into_iter().find(|fact| fact.text == "by hand").unwrap();
    notebook.edit(&hand.id, "by another hand").unwrap();
    assert_eq!(notebook.edit(&hand.id, "by a third hand").unwrap().text, "by another hand");
    notebook.remove(&bonn.id).unwrap();
    let texts: Vec<String> = notebook.facts().unwrap().into_iter().map(|fact| fact.text).collect();
    assert_eq!(texts, ["by a third hand", "Lives in Cologne."]);
    assert!(matches!(notebook.remove(&bonn.id), Err(NotebookError::Unknown(_))));
    let missing = NewFact { replaces: Some(&bonn.id), ..new("x") };
    assert!(matches!(notebook.add(missing), Err(NotebookError::Unknown(_))));
    assert!(matches!(notebook.add(new(" \n- ")), Err(NotebookError::Empty)));
    let long = "ä".repeat(401);
    assert!(matches!(notebook.add(new(&long)), Err(NotebookError::Long(401))));
    assert!(matches!(notebook.edit(&bonn.id, &long), Err(NotebookError::Long(401))));
    let origin = FactOrigin { is_learned: true, ..FactOrigin::default() };
    let learned = notebook.add(NewFact { origin, ..new(&long) });
    assert!(matches!(learned, Err(NotebookError::Long(401))));
}

#[test]
fn writers_do_not_lose_what_others_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let notebook = notebook(directory.path());
    thread::scope(|scope| {
        for writer in 0..4 {
            let notebook = &notebook;
            scope.spawn(move || {
                for number in 0..10 {
                    notebook.add(new(&format!("fact {number} of {writer}"))).unwrap();
                }
            });
        }
    });
    let facts = notebook.facts().unwrap();
    assert_eq!(facts.len(), 40);
    let mut ids: Vec<&FactId> = facts.iter().map(|fact| &fact.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
}

#[test]
fn what_is_no_text_stays_as_it_is_and_a_file_that_is_too_long_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let notebook = notebook(directory.path());
    let tea = added(&notebook, new("Likes tea."));
    let before = fs::read(notebook.path()).unwrap();
    // Latin-1, with the line ends of Windows.
    let odd = b"- Meets Jos\xe9 in the caf\xe9\r\n\xff\xfe\r\n";
    fs::write(notebook.path(), [before.as_slice(), odd].concat()).unwrap();
    notebook.edit(&tea.id, "Likes green tea.").unwrap();
    added(&notebook, new("Likes milk."));
    let after = fs::read(notebook.path()).unwrap();
    let kept = b"\n- Meets Jos\xe9 in the caf\xe9\n\xff\xfe\n- Likes milk.";
    assert!(after.windows(kept.len()).any(|part| part == kept), "{}", text_of_bytes(&after));
    let texts: Vec<String> = notebook.facts().unwrap().into_iter().map(|fact| fact.text).collect();
    assert_eq!(texts, ["Likes green tea.", "Meets Jos\u{fffd} in the caf\u{fffd}", "Likes milk."]);
    // UTF-16 becomes UTF-8.
    let wide: Vec<u8> =
        "\u{feff}- Caf\u{e9}\n- Two\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(notebook.path(), wide).unwrap();
    added(&notebook, new("Three"));
    let text = fs::read_to_string(notebook.path()).unwrap();
    assert!(text.starts_with("- Caf\u{e9}\n- Two\n- Three"), "{text}");
    fs::write(notebook.path(), "- x\n".repeat(300_000)).unwrap();
    let full = notebook.facts().unwrap_err().to_string();
    assert!(full.contains("move what is old to another note in memory/"), "{full}");
}

#[test]
fn a_link_leads_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let notebook = notebook(directory.path());
    let outside = directory.path().join("outside");
    fs::create_dir_all(directory.path().join("workspace")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("facts.md"), "- secret\n").unwrap();
    symlink(&outside, directory.path().join("workspace/memory")).unwrap();
    assert!(notebook.facts().is_err());
    assert!(notebook.add(new("x")).is_err());
    assert_eq!(fs::read_to_string(outside.join("facts.md")).unwrap(), "- secret\n");
}
