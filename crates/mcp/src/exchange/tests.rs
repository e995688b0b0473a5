use super::*;
use crate::elicitation::{Questions, Reply};

fn line(text: &str) -> Line {
    Line::Whole(text.as_bytes().to_vec())
}

const LIMIT: Duration = Duration::from_secs(30);

/// What one question gets when the server prints `lines`; `ID` stands for its number.
async fn asked(lines: &[&str]) -> Result<Value, Failure> {
    let (exchange, mut queue) = Exchange::new();
    let answering = Arc::clone(&exchange);
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let server = tokio::spawn(async move {
        let question = queue.recv().await.unwrap().message;
        for text in lines {
            answering.take(line(&text.replace("ID", &question["id"].to_string()))).unwrap();
        }
        queue
    });
    let found = exchange.ask(Request::new("x", Map::new(), LIMIT)).await;
    drop(server.await.unwrap());
    found
}

#[tokio::test]
async fn an_answer_is_found_among_all_other_lines() {
    for lines in [
        &[r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1}}"#][..],
        &["Server started", "", "[]", "7", "{", r#"{"jsonrpc":"2.0","id":"ID","result":{"a":1}}"#],
        &[
            r#"{"id":4711,"result":{}}"#,
            r#"{"method":"notifications/x"}"#,
            r#"{"id":ID,"result":{"a":1}}"#,
        ],
        &[r#"[{"method":"notifications/x"},{"id":ID,"result":{"a":1}}]"#],
        &[r#"{"id":1.5,"result":2}"#, r#"{"id":{},"result":2}"#, r#"{"id":ID,"result":{"a":1}}"#],
        &[r#"{"id":"s1","method":"roots/list","params":{}}"#, r#"{"id":ID,"result":{"a":1}}"#],
    ] {
        assert_eq!(asked(lines).await.unwrap(), json!({"a": 1}), "{lines:?}");
    }
}

#[tokio::test]
async fn broken_and_refusing_answers_fail_the_question() {
    for (text, words) in [
        (r#"{"id":ID,"error":{"code":-32601,"message":"no such method"}}"#, "-32601"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"conte"#, "no JSON that ends"),
        (r#"{"result":{"id":99},"jsonrpc":"2.0","id":ID"#, "no JSON that ends"),
        (r#"{"id": ID, "result": {"id": 5, "text": "a"#, "no JSON that ends"),
    ] {
        let failure = asked(&[text]).await.unwrap_err();
        assert!(failure.to_string().contains(words), "{text}: {failure}");
    }
}

#[tokio::test]
async fn a_question_that_is_given_up_is_cancelled_and_its_late_answer_is_nothing() {
    let (exchange, mut queue) = Exchange::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let params = Map::new();
    let given_up = async {
        let request = Request { cancel: Some(&cancel), ..Request::new("x", params, LIMIT) };
        exchange.ask(request).await
    };
    assert_eq!(given_up.await.unwrap_err().kind, Kind::Aborted);
    let overdue = exchange.ask(Request::new("y", Map::new(), Duration::from_millis(1))).await;
    assert_eq!(overdue.unwrap_err().kind, Kind::Overdue);
    let mut said = Vec::new();
    while let Ok(message) = queue.try_recv() {
        said.push(message.message["method"].clone());
    }
    // The first one was never sent.
    assert_eq!(said, ["y", "notifications/cancelled"]);
    exchange.take(line(r#"{"id":2,"result":{}}"#)).unwrap();
    exchange.end(Failure::new(Kind::Ended, "it has ended"));
    let late = exchange.ask(Request::new("z", Map::new(), LIMIT)).await;
    assert_eq!(late.unwrap_err().what, "it has ended");
}

#[tokio::test]
async fn a_server_that_prints_without_end_is_ended() {
    let (exchange, _queue) = Exchange::new();
    let long = || Line::TooLong { head: vec![b'x'; 9], tail: vec![b'x'; 9], bytes: 40 << 20 };
    exchange.take(long()).unwrap();
    let failure = exchange.take(long()).unwrap_err();
    assert!(failure.what.contains("64 MB"), "{failure}");
}

#[tokio::test]
async fn requests_of_the_server_are_answered_and_never_block() {
    let (exchange, mut queue) = Exchange::new();
    for number in 0..500 {
        exchange.take(line(&format!(r#"{{"id":{number},"method":"ping"}}"#))).unwrap();
    }
    let first = queue.recv().await.unwrap();
    assert_eq!(first.line(), b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
    assert_eq!(first.message, json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    let mut count = 1;
    while queue.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, QUEUE);
}

/// The server waits for the user, and the limit for the server.
#[tokio::test]
async fn the_time_of_the_user_is_not_that_of_the_server() {
    let limit = Duration::from_millis(300);
    let (exchange, mut queue) = Exchange::new();
    let answering = Arc::clone(&exchange);
    let server = tokio::spawn(async move {
        let id = queue.recv().await.unwrap().message["id"].clone();
        let question = r#"{"id":"q1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"properties":{}}}}"#;
        answering.take(line(question)).unwrap();
        let reply = queue.recv().await.unwrap().message;
        answering.take(line(&json!({"id": id, "result": reply}).to_string())).unwrap();
        queue
    });
    let ask = |question: crate::Elicitation, _| {
        Box::pin(async move {
            tokio::time::sleep(limit * 3).await;
            assert_eq!(question.message, "Sure?");
            Reply::Accept(Map::new())
        }) as BoxFuture<'_, Reply>
    };
    let questions = Questions::of(Some(&ask));
    let mut request = Request::new("x", Map::new(), limit);
    request.questions = Some(&questions);
    let reply = exchange.ask(request).await.unwrap();
    assert_eq!(reply["id"], "q1");
    assert_eq!(reply["result"], json!({"action": "accept", "content": {}}));
    drop(server.await.unwrap());
}
