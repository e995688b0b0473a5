use serde_json::json;

use super::*;

fn problems(words: &[(u64, &str)]) -> Vec<Problem> {
    let item = |(line, message): &(u64, &str)| json!({"range": {"start": {"line": line, "character": 0}}, "message": message});
    Problem::read(&json!(words.iter().map(item).collect::<Vec<_>>()))
}

#[test]
fn an_error_that_moved_is_not_new_and_a_second_one_is() {
    let before = problems(&[(1, "a"), (2, "b")]);
    let now = problems(&[(5, "a"), (6, "a"), (7, "b"), (8, "c")]);
    let found: Vec<String> = added(&before, &now).iter().map(Problem::shown).collect();
    assert_eq!(found, ["line 7:1: a", "line 9:1: c"]);
}

#[test]
fn only_errors_count_and_their_words_stay_on_one_line() {
    let items = json!([
        {"severity": 2, "message": "a warning"},
        {"severity": 1, "message": "two\nlines\u{1b}[31m", "code": "E0308", "range": {"start": {"line": 0, "character": 4}}},
        {"message": "x".repeat(1_000), "code": 7},
    ]);
    let found = Problem::read(&items);
    assert_eq!(found[0].shown(), "line 1:5: two lines [31m (E0308)");
    assert_eq!(found[1].shown(), format!("line 1:1: {} (7)", "x".repeat(300)));
    assert_eq!(found.len(), 2);
}

#[test]
fn a_path_survives_its_address_in_every_spelling() {
    let path = Path::new("/a b/ä%41:x/c.py");
    assert_eq!(address(path), "file:///a%20b/%C3%A4%2541%3Ax/c.py");
    assert_eq!(path_of(&address(path)).as_deref(), Some(path));
    assert_eq!(path_of("file:///a%20b/\u{e4}%2541:x/c.py").as_deref(), Some(path));
    assert_eq!(path_of("untitled:1"), None);
}
