use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::History;
use crate::{AnswerEnd, RecordedRequest};

fn request(number: usize, end: OnceLock<(AnswerEnd, Instant)>) -> Arc<RecordedRequest> {
    let body = vec![b'x'; number + 1];
    Arc::new(RecordedRequest {
        method: "POST".to_owned(),
        path: format!("/{number}"),
        headers: Vec::new(),
        body_length: body.len(),
        body,
        connection: 0,
        head_arrived: Instant::now(),
        arrived: Instant::now(),
        json: OnceLock::new(),
        end,
    })
}

fn kept(history: &History) -> Vec<usize> {
    history.all().iter().map(|request| request.body.len()).collect()
}

#[test]
fn only_the_last_bodies_are_kept_and_none_of_an_answer_under_way_is_lost() {
    let over = || OnceLock::from((AnswerEnd::Complete, Instant::now()));
    let mut history = History::new(2);
    for number in 0..4 {
        let place = history.add(&request(number, over()));
        assert_eq!(history.mark_as_call(place), number);
    }
    assert_eq!(kept(&history), [0, 0, 3, 4]);
    let forgotten = &history.calls()[1];
    assert_eq!((forgotten.path.as_str(), forgotten.body_length), ("/1", 2));
    assert!(std::panic::catch_unwind(|| forgotten.try_json().is_ok()).is_err());

    history.add(&request(4, OnceLock::new()));
    for number in 5..8 {
        history.add(&request(number, over()));
    }
    assert_eq!(kept(&history), [0, 0, 0, 0, 5, 6, 7, 8]);
}
