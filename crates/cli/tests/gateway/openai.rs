//! The chat completions of OpenAI.

use super::*;

#[test]
fn chat_completions_answer_whole_and_streamed() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let (status, models) = client.get("/v1/models").unwrap();
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("myclaw")));

    let ask = |stream: bool| {
        json!({
            "model": "myclaw", "stream": stream,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "how are you?"}]},
            ],
        })
    };
    let (status, whole) = client.post("/v1/chat/completions", &ask(false)).unwrap();
    assert_eq!(status, 200, "{whole}");
    assert_eq!(whole["choices"][0]["message"], json!({"role": "assistant", "content": "fine"}));
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    let (status, streamed) = client.post("/v1/chat/completions", &ask(true)).unwrap();
    let streamed = streamed.as_str().unwrap();
    assert_eq!(status, 200, "{streamed}");
    assert!(streamed.contains(r#""content":"fine""#), "{streamed}");
    assert!(streamed.contains("data: [DONE]"), "{streamed}");
    let question = bench.model.requests()[0].body_text();
    assert!(question.contains("be brief") && question.contains("how are you?"), "{question}");
    gateway.stop();
}

#[test]
fn a_user_continues_a_session_and_a_key_repeats_nothing() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    let ask = |key: &str, text: &str| {
        let body = json!({"user": "ann", "messages": [{"role": "user", "content": text}]});
        let header = format!("Idempotency-Key: {key}\r\n");
        let (status, answer) = client.post_with("/v1/chat/completions", &header, &body).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask("a", "<m1>"), "re: <m1>");
    assert_eq!(ask("a", "<m1>"), "re: <m1>");
    assert_eq!(ask("b", "<m2>"), "re: <m2>");
    let bad = json!({"messages": [{"role": "assistant", "content": "x"}]});
    let (status, answer) = client.post("/v1/chat/completions", &bad).unwrap();
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("usage")));
    gateway.stop();
    assert_eq!(bench.said("openai-ann"), ["<m1>", "re: <m1>", "<m2>", "re: <m2>"]);
}
