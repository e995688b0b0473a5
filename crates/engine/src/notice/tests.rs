use super::*;

#[test]
fn sentences_count_one_and_several() {
    let unreadable =
        |count| Notice::UnreadableLines { count, path: "/s/a.jsonl".into() }.to_string();
    assert_eq!(unreadable(1), "1 unreadable line of /s/a.jsonl skipped; it stays in the file");
    assert_eq!(unreadable(2), "2 unreadable lines of /s/a.jsonl skipped; they stay in the file");
    let waiting = |count| Notice::MessagesWaiting { count }.to_string();
    assert_eq!(waiting(1), "an earlier message still waits in this session and is answered too");
    assert_eq!(waiting(2), "2 earlier messages still wait in this session and are answered too");
    let job = |id: &str| EndedJob { id: id.to_owned(), command: format!("sleep {id}") };
    let ended = |jobs| Notice::JobsEnded { jobs }.to_string();
    assert_eq!(ended(vec![job("1")]), "a background job was ended with its session: 1 (sleep 1)");
    assert_eq!(
        ended(vec![job("1"), job("2")]),
        "2 background jobs were ended with their session: 1 (sleep 1), 2 (sleep 2)"
    );
}
