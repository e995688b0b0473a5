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
    let planned = plan(&rows, &HashMap::from([(already.id, already)]), |role| {
        (role == Role::Tool).then_some((100, 50))
    });
    assert_eq!(planned, [Reduction { id: rows[1].id, head: 100, tail: 50 }]);
}
