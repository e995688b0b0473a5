//! Tools and options of programs that speak OpenAI's protocols.

use super::*;

/// A function of a program, in the form of chat completions.
fn weather() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": parameters}})
}

/// The same in the form of responses.
fn own_weather() -> Value {
    let mut tool = weather()["function"].clone();
    tool["type"] = json!("function");
    tool
}

/// Calls the function once for each city that a question names, with a word before; then says what came of it.
fn asking() -> Script {
    shared(|request, number| {
        let news = news(request);
        let results = news.split("[Result of ").count() - 1;
        if results > 0 {
            let sun = if news.contains("sunny") { "sunny" } else { "unknown" };
            return Reply::anthropic().text(format!("{results} results, {sun}")).step();
        }
        let cities = ["Oslo", "Rome"].into_iter().filter(|city| news.contains(city));
        let mut reply = Reply::anthropic();
        if news.contains("aloud") {
            reply = reply.text("I look.");
        }
        for city in cities {
            let id = format!("toolu_{number}_{city}");
            reply = reply.tool_call(id, "get_weather", json!({"city": city}));
        }
        reply.step()
    })
}

/// What the newest message says to the model.
fn news(request: &RecordedRequest) -> String {
    json!(request.messages().last()).to_string()
}

fn names(request: &RecordedRequest) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_programs_tool_is_called_by_the_program_and_the_turn_goes_on_with_its_result() {
    let bench = Bench::new(asking());
    let gateway = bench.start();
    let client = &gateway.client;
    let mut messages = vec![json!({"role": "user", "content": "Oslo and Rome, aloud?"})];
    let body = json!({"messages": &messages, "tools": [weather()]});
    let (status, answer) = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{answer}");
    assert_eq!(choice["message"]["content"], "I look.");
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    let named: Vec<_> = calls.iter().map(|call| &call["function"]["arguments"]).collect();
    assert_eq!(named, [&json!(r#"{"city":"Oslo"}"#), &json!(r#"{"city":"Rome"}"#)]);
    assert!(calls.iter().all(|call| call["type"] == "function"), "{answer}");
    // The agent's own tools are on offer too, and the log has no open call.
    let offered = names(&bench.model.requests()[0]);
    assert!(offered.contains(&"get_weather".to_owned()) && offered.contains(&"read".to_owned()));

    messages.push(choice["message"].clone());
    let result = |call: &Value, text: &str| json!({"role": "tool", "tool_call_id": call["id"], "content": text});
    // One result is not enough.
    let mut some = messages.clone();
    some.push(result(&calls[0], "sunny"));
    let body = json!({"messages": some, "tools": [weather()]});
    let (status, refused) = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("needs one result"),
        "{refused}"
    );
    messages.extend([result(&calls[0], "sunny"), result(&calls[1], "rain")]);
    let body = json!({"messages": &messages, "tools": [weather()]});
    let (status, answer) = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(
        (status, &answer["choices"][0]["message"]["content"]),
        (200, &json!("2 results, sunny"))
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    // It is the same session, so the model has its own call before the result.
    let last = bench.model.requests().last().unwrap().messages().to_vec();
    let text = json!(last).to_string();
    assert!(text.contains("toolu_0_Oslo") && !text.contains("Earlier messages"), "{text}");
    // The same results again are another branch, and others' ids are text.
    let (status, again) = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(
        (status, &again["choices"][0]["message"]["content"]),
        (200, &json!("2 results, sunny"))
    );
    let foreign = json!({"messages": [
        {"role": "user", "content": "Paris?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_abc", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_abc", "content": "snow"},
    ]});
    let (status, answer) = client.post("/v1/chat/completions", &foreign).unwrap();
    assert_eq!(status, 200, "{answer}");
    let text = json!(bench.model.requests().last().unwrap().messages()).to_string();
    assert!(text.contains("called get_weather, call_abc") && text.contains("snow"), "{text}");
    gateway.stop();
}

#[test]
fn a_stream_ends_with_the_calls() {
    let bench = Bench::new(asking());
    let gateway = bench.start();
    let body = json!({"stream": true, "tools": [weather()],
        "messages": [{"role": "user", "content": "Oslo and Rome?"}]});
    let (status, streamed) = gateway.client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(status, 200, "{streamed}");
    let lines = streamed.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: {"));
    let chunks: Vec<Value> =
        lines.map(|line| serde_json::from_str(&format!("{{{line}")).unwrap()).collect();
    let deltas =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array());
    let calls: Vec<_> =
        deltas.flatten().map(|call| (&call["index"], &call["function"]["name"])).collect();
    assert_eq!(calls, [(&json!(0), &json!("get_weather")), (&json!(1), &json!("get_weather"))]);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    gateway.stop();
}

#[test]
fn results_go_on_in_responses_with_and_without_the_conversation() {
    let bench = Bench::new(asking());
    let gateway = bench.start();
    let client = &gateway.client;
    let body = json!({"input": "Oslo?", "tools": [own_weather()]});
    let (status, first) = client.post("/v1/responses", &body).unwrap();
    assert_eq!((status, &first["status"]), (200, &json!("completed")), "{first}");
    let call = &first["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
    let stored = client.get(&format!("/v1/responses/{}", first["id"].as_str().unwrap())).unwrap().1;
    assert_eq!((&stored["output"], &stored["tools"]), (&first["output"], &first["tools"]));
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"});
    let short = json!({"previous_response_id": first["id"], "input": [output]});
    let long = json!({"input": [{"role": "user", "content": "Oslo?"}, call, output]});
    for body in [short, long] {
        let (status, second) = client.post("/v1/responses", &body).unwrap();
        assert_eq!(status, 200, "{second}");
        assert_eq!(second["output"][0]["content"][0]["text"], "1 results, sunny", "{second}");
    }
    let streamed = json!({"stream": true, "input": "Oslo?", "tools": [own_weather()]});
    let streamed = client.post("/v1/responses", &streamed).unwrap().1;
    let events = streamed.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("event: "));
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    gateway.stop();
}

/// Killed while the model writes its call: the next process hands it over.
#[test]
fn a_call_is_handed_over_once_whatever_is_killed() {
    let gate = Gate::closed();
    let of_model = gate.clone();
    let bench = Bench::new(shared(move |_, number| {
        let reply = Reply::anthropic().tool_call("toolu_a", "get_weather", json!({"city": "Oslo"}));
        if number == 0 { reply.step().hold_after(0, &of_model) } else { reply.step() }
    }));
    let gateway = bench.start();
    let body = json!({"background": true, "input": "Oslo?", "tools": [own_weather()]});
    let begun = gateway.client.post("/v1/responses", &body).unwrap().1;
    bench.model.wait_for_requests_blocking(1);
    gateway.kill();
    gate.open();
    let gateway = bench.start();
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    until("the call", || gateway.client.get(&path).unwrap().1["status"] == "completed");
    let response = gateway.client.get(&path).unwrap().1;
    assert_eq!(response["output"].as_array().map(Vec::len), Some(1), "{response}");
    assert_eq!(response["output"][0]["type"], "function_call");
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 2);
}

#[test]
fn choices_of_tools_decide_what_is_on_offer() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let messages = json!([{"role": "user", "content": "hello"}]);
    let mut seen = Vec::new();
    for choice in [
        json!("auto"),
        json!("none"),
        json!("required"),
        json!({"type": "function", "function": {"name": "get_weather"}}),
    ] {
        let body = json!({"messages": messages, "tools": [weather()], "tool_choice": choice});
        let (status, answer) = client.post("/v1/chat/completions", &body).unwrap();
        assert_eq!(status, 200, "{choice} {answer}");
        let request = bench.model.requests().pop().unwrap();
        let offered = names(&request);
        let has = |name: &str| offered.contains(&name.to_owned());
        seen.push((has("read"), has("get_weather"), request.json()["tool_choice"].clone()));
    }
    let named = json!({"type": "tool", "name": "get_weather"});
    assert_eq!(
        seen,
        [
            (true, true, Value::Null),
            (true, false, Value::Null),
            (false, true, json!({"type": "any"})),
            (false, true, named),
        ]
    );
    gateway.stop();
}

#[test]
fn options_of_the_answer_reach_the_model_or_are_refused_by_name() {
    let bench = Bench::new(answering("{}"));
    let gateway = bench.start();
    let client = &gateway.client;
    let messages = json!([{"role": "user", "content": "hello"}]);
    let schema = json!({"type": "object", "properties": {}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": &schema}});
    let body = json!({"messages": &messages, "input": "hello", "temperature": 0.2, "top_p": 0.5,
        "max_tokens": 77, "stop": ["END"], "response_format": format});
    for path in ["/v1/chat/completions", "/v1/responses"] {
        let (status, answer) = client.post(path, &body).unwrap();
        assert_eq!(status, 200, "{path} {answer}");
        let request = bench.model.requests().pop().unwrap();
        let sent = request.json();
        assert_eq!((&sent["temperature"], &sent["top_p"]), (&json!(0.2), &json!(0.5)));
        assert_eq!((&sent["max_tokens"], &sent["stop_sequences"]), (&json!(77), &json!(["END"])));
        assert_eq!(sent["output_config"]["format"]["schema"], schema);
    }
    // The next request of the same session asks for nothing.
    let asks = |fields: Value| {
        let mut body = json!({"user": "ann", "messages": &messages});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(client.post("/v1/chat/completions", &body).unwrap().0, 200);
        bench.model.requests().pop().unwrap().json()["temperature"].clone()
    };
    assert_eq!(asks(json!({"temperature": 0.3})), json!(0.3));
    assert_eq!(asks(json!({})), Value::Null);
    // The usual values are what clients send that say everything.
    assert_eq!(asks(json!({"temperature": 1, "top_p": 1, "n": 1})), Value::Null);
    let count = bench.model.requests().len();
    for (field, value) in [
        ("seed", json!(7)),
        ("presence_penalty", json!(0.5)),
        ("response_format", json!({"type": "json_object"})),
        ("logprobs", json!(true)),
        ("n", json!(2)),
    ] {
        for path in ["/v1/chat/completions", "/v1/responses"] {
            let mut body = json!({"messages": &messages, "input": "hello"});
            body[field] = value.clone();
            let (status, answer) = client.post(path, &body).unwrap();
            assert_eq!(
                (status, &answer["error"]["param"]),
                (400, &json!(field)),
                "{path} {answer}"
            );
        }
    }
    gateway.stop();
    assert_eq!(bench.model.requests().len(), count);
}

/// Two requests for one session at once: each has its own tools.
#[test]
fn requests_with_options_have_turns_of_their_own() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let gateway = bench.start();
    let ask = |text: &str, temperature: f64| {
        let body =
            json!({"user": "ann", "background": true, "input": text, "temperature": temperature});
        gateway.client.post("/v1/responses", &body).unwrap().1["id"].as_str().unwrap().to_owned()
    };
    let first = ask("<m1>", 0.1);
    bench.model.wait_for_requests_blocking(1);
    let others = [ask("<m2>", 0.2), ask("<m3>", 1.0), ask("<m4>", 0.4)];
    gate.open();
    for id in [&first].into_iter().chain(&others) {
        let path = format!("/v1/responses/{id}");
        until("the answer", || gateway.client.get(&path).unwrap().1["status"] == "completed");
    }
    let sent: Vec<_> = bench
        .model
        .requests()
        .iter()
        .map(|request| request.json()["temperature"].clone())
        .collect();
    assert_eq!(sent, [json!(0.1), json!(0.2), Value::Null, json!(0.4)]);
    gateway.stop();
    let said = bench.said("openai-ann");
    assert_eq!(
        said,
        ["<m1>", "re: <m1>", "<m2>", "re: <m2>", "<m3>", "re: <m3>", "<m4>", "re: <m4>"]
    );
}
