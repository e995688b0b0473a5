use super::*;

fn row(role: Role, length: usize) -> TranscriptMessage {
    TranscriptMessage::new(role, "x".repeat(length), 0)
}

#[test]
fn only_what_gets_smaller_is_reduced() {
    let rows = [
        row(Role::User, 9_000),
        row(Role::Tool, 9_000),
        row(Role::Tool, 90),
        row(Role::Tool, 9_000),
    ];
    let already = Reduction { id: rows[3].id, head: 10, tail: 0 };
    let planned = plan(&rows, &HashMap::from([(already.id, already)]), |row| {
        (row.role == Role::Tool).then_some((100, 50))
    });
    assert_eq!(planned, [Reduction { id: rows[1].id, head: 100, tail: 50 }]);
}

#[test]
fn results_get_shorter_the_more_there_are() {
    let result = row(Role::Tool, 9_000);
    assert_eq!(half_of_result(&result, 10_000, 1), 2_000);
    assert_eq!(half_of_result(&result, 5_000, 10), 980);
    assert_eq!(half_of_result(&result, 0, 1), 2_000, "one alone is not cut again");
    assert_eq!(half_of_result(&result, 2_000, 100), 0, "nothing but the note");
    let wide = TranscriptMessage::new(Role::Tool, "ä".repeat(9_000), 0);
    assert_eq!(half_of_result(&wide, 5_000, 10), 326);
}
