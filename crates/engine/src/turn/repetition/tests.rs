use serde_json::json;

use super::*;

fn call(path: &str) -> ToolCall {
    ToolCall {
        id: "any".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": path}).as_object().unwrap().clone(),
        invalid_arguments: None,
        thought_signature: None,
    }
}

/// The call, counted from 1, after which the run should end. A call is given as its path and its result.
fn ends_after(limit: u32, calls: &[(&str, &str)]) -> Option<usize> {
    let mut repetition = Repetition::new(limit);
    calls
        .iter()
        .position(|(path, text)| {
            repetition.note(&call(path), text);
            repetition.repeats_itself()
        })
        .map(|at| at + 1)
}

#[test]
fn the_third_time_gets_a_remark_and_so_does_each_further_one() {
    let mut repetition = Repetition::new(6);
    let remarks: Vec<_> = ["a", "a", "b", "a", "a"]
        .map(|path| repetition.note(&call(path), "x").map(|note| note.contains("same result")))
        .to_vec();
    assert_eq!(remarks, [None, None, None, Some(true), Some(true)], "twice can be a check");
    assert!(repetition.note(&call("a"), "x").unwrap().contains("same result 5 times"));
}

#[test]
fn another_result_another_call_or_another_question_is_not_a_repetition() {
    let mut repetition = Repetition::new(6);
    for _ in 0..2 {
        assert_eq!(repetition.note(&call("a"), "x"), None);
    }
    assert_eq!(repetition.note(&call("a"), "changed"), None);
    assert_eq!(repetition.note(&call("b"), "x"), None);
    repetition.begin_anew();
    assert_eq!(repetition.note(&call("a"), "x"), None);
    let counting: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let changing: Vec<_> = counting.iter().map(|text| ("a", text.as_str())).collect();
    assert_eq!(ends_after(2, &changing), None, "a poll that shows a change each time");
}

#[test]
fn the_same_call_again_and_again_ends_the_run() {
    assert_eq!(ends_after(6, &[("a", "x"); 20]), Some(6));
    assert_eq!(ends_after(1, &[("a", "x"); 20]), Some(2), "once is no repetition");
    assert_eq!(ends_after(0, &[("a", "x"); 200]), None);
}

#[test]
fn two_calls_in_turn_end_the_run() {
    let in_turn = [("a", "x"), ("b", "y")].repeat(20);
    assert_eq!(ends_after(4, &in_turn), Some(8));
    let with_a_change = [&in_turn[..6], &[("a", "new")], &in_turn[1..7]].concat();
    assert_eq!(ends_after(4, &with_a_change), None);
}

#[test]
fn a_poll_without_a_change_ends_the_run_however_much_is_in_between() {
    let others: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let mut calls = Vec::new();
    for other in &others {
        calls.extend([("status", "pending"), (other.as_str(), "x"), ("look", other.as_str())]);
    }
    assert_eq!(ends_after(4, &calls), Some(3 * 7 + 1));
}
