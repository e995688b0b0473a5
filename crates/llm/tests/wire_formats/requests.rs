//! Whole requests: what each format sends for a request.

use myclaw_llm::wire::encode;
use myclaw_llm::{
    AnswerFormat, AnswerOptions, Api, AssistantMessage, CallLimits, ContentBlock, ForcedCall,
    Message, ModelRequest, PairedMessages, ThinkingLevel, ToolUse,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::formats::FORMATS;
use crate::request::*;
use crate::support::model;

#[test]
fn whole_requests() {
    for format in FORMATS {
        let body = TestRequest::new(format.api, &turn(format.api)).body();
        assert_eq!(body, (format.request)(), "{:?}", format.api);
    }
}

#[test]
fn tool_calls_are_forbidden_in_the_words_of_each_format() {
    let stand_in = json!({"toolSpec": {
        "name": "read", "description": "Not available any more.", "inputSchema": {"json": {"type": "object"}},
    }});
    for (api, member, forbidden) in [
        (Api::AnthropicMessages, "tool_choice", json!({"type": "none"})),
        (Api::OpenaiCompletions, "tool_choice", json!("none")),
        (Api::OpenaiResponses, "tool_choice", json!("none")),
        (Api::GoogleGenerativeAi, "toolConfig", json!({"functionCallingConfig": {"mode": "NONE"}})),
        (Api::BedrockConverse, "toolConfig", json!({"tools": [stand_in]})),
    ] {
        let mut request = TestRequest::new(api, &turn(api));
        let mut expected = request.body();
        request.tool_use = ToolUse::Forbidden;
        expected[member] = forbidden;
        assert_eq!(request.body(), expected, "nothing else changes: {api:?}");
    }
}

/// What each format has nothing for, and what the other options are called there.
fn named_options() -> [(Api, Vec<&'static str>, Value); 5] {
    let schema = json!({"type": "object"});
    [
        (
            Api::OpenaiCompletions,
            vec![],
            json!({
                "temperature": 0.5, "top_p": 0.25, "presence_penalty": 0.5, "frequency_penalty": 1.5, "seed": 7,
                "stop": ["END"], "parallel_tool_calls": false,
                "tool_choice": {"type": "function", "function": {"name": "read"}},
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": true}},
            }),
        ),
        (
            Api::OpenaiResponses,
            vec!["presence_penalty", "frequency_penalty", "seed", "stop"],
            json!({
                "temperature": 0.5, "top_p": 0.25, "parallel_tool_calls": false,
                "tool_choice": {"type": "function", "name": "read"},
                "text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": true}},
            }),
        ),
        (
            Api::AnthropicMessages,
            vec!["presence_penalty", "frequency_penalty", "seed"],
            json!({
                "temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END"],
                "tool_choice": {"type": "tool", "name": "read", "disable_parallel_tool_use": true},
                "output_config": {"format": {"type": "json_schema", "schema": schema}},
            }),
        ),
        (
            Api::GoogleGenerativeAi,
            vec!["parallel_tool_calls"],
            json!({
                "generationConfig": {
                    "maxOutputTokens": 8192, "temperature": 0.5, "topP": 0.25, "presencePenalty": 0.5,
                    "frequencyPenalty": 1.5, "seed": 7, "stopSequences": ["END"],
                    "responseMimeType": "application/json", "responseJsonSchema": schema,
                },
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
            }),
        ),
        (
            Api::BedrockConverse,
            vec![
                "presence_penalty",
                "frequency_penalty",
                "seed",
                "response_format",
                "parallel_tool_calls",
            ],
            json!({"inferenceConfig": {
                "maxTokens": 8192, "temperature": 0.5, "topP": 0.25, "stopSequences": ["END"],
            }}),
        ),
    ]
}

#[test]
fn options_of_the_answer_have_the_names_of_each_format() {
    let all = AnswerOptions {
        temperature: Some(0.5),
        top_p: Some(0.25),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(1.5),
        seed: Some(7),
        stop: vec!["END".to_owned()],
        max_output: None,
        format: Some(AnswerFormat::JsonSchema {
            name: "x".to_owned(),
            description: None,
            schema: json!({"type": "object"}),
            strict: Some(true),
        }),
        forced_call: Some(ForcedCall::Tool("read".to_owned())),
        single_calls: true,
    };
    for (api, refused, expected) in named_options() {
        let mut request = TestRequest::new(api, &turn(api));
        let mut body = request.body();
        let mut options = all.clone();
        for name in refused {
            assert_eq!(options.unsupported(api), Some(name), "{api:?}");
            match name {
                "presence_penalty" => options.presence_penalty = None,
                "frequency_penalty" => options.frequency_penalty = None,
                "seed" => options.seed = None,
                "stop" => options.stop.clear(),
                "response_format" => options.format = None,
                _ => options.single_calls = false,
            }
        }
        assert_eq!(options.unsupported(api), None, "{api:?}");
        request.options = Some(options);
        let asked = request.body();
        for (name, value) in expected.as_object().unwrap() {
            body[name] = value.clone();
        }
        if api == Api::BedrockConverse {
            body["toolConfig"]["toolChoice"] = json!({"tool": {"name": "read"}});
        }
        assert_eq!(asked, body, "nothing else changes: {api:?}");
    }
    let mut request = TestRequest::new(Api::AnthropicMessages, &[user("hi")]);
    request.options = Some(AnswerOptions { seed: Some(7), ..AnswerOptions::default() });
    let error = request.try_encode().unwrap_err().message;
    assert!(error.contains("`seed` cannot be asked of testing/test-model"), "{error}");
}

#[test]
fn hosts_get_the_fields_they_know() {
    let body = |provider: &str, base_url: &str| {
        let mut request = TestRequest::new(Api::OpenaiCompletions, &[user("hi")]);
        request.model.provider = provider.to_owned();
        request.model.base_url = base_url.to_owned();
        request.model.reasoning = true;
        request.body()
    };
    let openai = body("openai", "https://api.openai.com/v1");
    assert_eq!(openai["messages"][0]["role"], "developer");
    assert_eq!(
        (&openai["max_completion_tokens"], &openai["max_tokens"]),
        (&json!(8192), &Value::Null)
    );
    let mistral = body("mistral", "https://api.mistral.ai/v1");
    assert_eq!(mistral["messages"][0]["role"], "system");
    assert_eq!((&mistral["max_tokens"], &mistral["stream_options"]), (&json!(8192), &Value::Null));
}

#[test]
fn ids_and_names_are_sent_in_the_form_that_the_host_takes() {
    let mut odd = assistant(Api::OpenaiCompletions, vec![call("functions.read:0", "a")]);
    if let ContentBlock::ToolCall(call) = &mut odd.content[0] {
        call.name = "my tool".to_owned();
    }
    let messages = [user("a"), Message::Assistant(odd), result("functions.read:0", vec![], false)];
    let anthropic = TestRequest::new(Api::AnthropicMessages, &messages).wire_messages();
    let sent = &anthropic[1]["content"][0];
    assert_eq!(
        (&sent["id"], &sent["name"]),
        (&json!("functions_read_0_a12d3apm8dzd1"), &json!("my_tool"))
    );
    assert_eq!(anthropic[2]["content"][0]["tool_use_id"], sent["id"]);
    assert_eq!(
        anthropic[2]["content"][0]["content"],
        json!([{"type": "text", "text": "(no output)"}])
    );

    let mut request = TestRequest::new(Api::OpenaiCompletions, &messages);
    request.model.provider = "mistral".to_owned();
    let mistral = request.wire_messages();
    let id = mistral[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(mistral[3], json!({"role": "tool", "content": "(no output)", "tool_call_id": id}));
}

#[test]
fn nothing_empty_is_sent() {
    for format in FORMATS {
        let sent = TestRequest::new(format.api, &with_blanks(format.api)).wire_messages();
        assert_eq!(sent, (format.without_blanks)(), "{:?}", format.api);
    }
}

#[test]
fn unreadable_arguments_go_back_as_what_they_were() {
    let mut message = assistant(Api::OpenaiCompletions, vec![call("one", "a")]);
    if let ContentBlock::ToolCall(call) = &mut message.content[0] {
        call.arguments.clear();
        call.invalid_arguments = Some("{\"path\": ".to_owned());
    }
    let messages = [user("a"), Message::Assistant(message)];
    for format in FORMATS {
        let sent = TestRequest::new(format.api, &messages).wire_messages();
        assert_eq!((format.unreadable_arguments)(&sent), json!({"invalid_json": "{\"path\": "}));
    }
}

#[test]
fn thinking_goes_back_only_where_it_came_from() {
    let content = vec![
        thinking("signed", Some("sig"), false),
        thinking("", Some("secret"), true),
        thinking("unsigned", None, false),
        ContentBlock::text("Answer."),
    ];
    let sent = |message: AssistantMessage| {
        let messages = [user("a"), Message::Assistant(message), user("b")];
        TestRequest::new(Api::AnthropicMessages, &messages).wire_messages()[1]["content"].take()
    };
    let as_text =
        |text: &str| json!({"type": "text", "text": format!("<thinking>\n{text}\n</thinking>")});
    let own = assistant(Api::AnthropicMessages, content);
    assert_eq!(
        sent(own.clone()),
        json!([
            {"type": "thinking", "thinking": "signed", "signature": "sig"},
            {"type": "redacted_thinking", "data": "secret"},
            as_text("unsigned"),
            {"type": "text", "text": "Answer."},
        ])
    );
    let dated = AssistantMessage { model: "test-model-20260101".to_owned(), ..own.clone() };
    assert_eq!(sent(dated), sent(own.clone()));
    for foreign in [
        AssistantMessage { model: "other-model".to_owned(), ..own.clone() },
        AssistantMessage { provider: "other".to_owned(), ..own.clone() },
        AssistantMessage { api: Api::OpenaiCompletions, ..own },
    ] {
        assert_eq!(
            sent(foreign),
            json!([as_text("signed"), as_text("unsigned"), {"type": "text", "text": "Answer."}])
        );
    }
}

#[test]
fn openai_hosts_get_no_reasoning_fields() {
    let content =
        vec![thinking("hm", None, false), ContentBlock::text("Answer."), call("one", "a")];
    let own = Message::Assistant(assistant(Api::OpenaiCompletions, content.clone()));
    let foreign = Message::Assistant(assistant(Api::AnthropicMessages, content));
    let sent = |provider: &str, message: &Message| {
        let messages =
            [user("a"), message.clone(), result("one", vec![ContentBlock::text("x")], false)];
        let mut request = TestRequest::new(Api::OpenaiCompletions, &messages);
        if let Message::Assistant(assistant) = &mut request.messages[1] {
            assistant.provider = provider.to_owned();
        }
        request.model.provider = provider.to_owned();
        request.wire_messages()[2].take()
    };
    assert_eq!(sent("testing", &own)["content"], "Answer.");
    assert_eq!(
        sent("testing", &own).as_object().unwrap().keys().collect::<Vec<_>>(),
        ["role", "content", "tool_calls"]
    );
    assert_eq!(sent("testing", &foreign)["content"], "<thinking>\nhm\n</thinking>\n\nAnswer.");
    assert_eq!(sent("deepseek", &own)["reasoning_content"], "hm");
}

#[test]
fn the_signature_of_a_call_goes_back_to_its_model() {
    let mut content = vec![call("one", "a")];
    if let ContentBlock::ToolCall(call) = &mut content[0] {
        call.thought_signature = Some("sig".to_owned());
    }
    let own = assistant(Api::OpenaiCompletions, content);
    let foreign = AssistantMessage { model: "other".to_owned(), ..own.clone() };
    for (message, expected) in
        [(own, json!({"google": {"thought_signature": "sig"}})), (foreign, Value::Null)]
    {
        let messages = [user("a"), Message::Assistant(message)];
        let wire = TestRequest::new(Api::OpenaiCompletions, &messages).wire_messages();
        assert_eq!(wire[2]["tool_calls"][0]["extra_content"], expected);
    }
}

#[test]
fn keys_stand_in_the_headers_and_are_never_printed() {
    let header = |api: Api, key: &str, name: &str| {
        let mut request = TestRequest::new(api, &[user("a")]);
        request.key = Some(SecretString::from(key));
        let request = request.encode();
        assert!(!format!("{request:?}").contains(key.trim()), "{request:?}");
        request.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(
        header(Api::AnthropicMessages, " sk-ant-api03-x\n", "x-api-key").as_deref(),
        Some("sk-ant-api03-x")
    );
    assert_eq!(header(Api::AnthropicMessages, "sk-ant-oat01-x", "x-api-key"), None);
    let bearer = header(Api::AnthropicMessages, "sk-ant-oat01-x", "authorization");
    assert_eq!(bearer.as_deref(), Some("Bearer sk-ant-oat01-x"));
    let bearer = header(Api::OpenaiCompletions, "sk-x1234", "authorization");
    assert_eq!(bearer.as_deref(), Some("Bearer sk-x1234"));
    assert_eq!(
        TestRequest::new(Api::OpenaiCompletions, &[user("a")])
            .encode()
            .headers
            .get("authorization"),
        None
    );
}

/// Anthropic refuses OAuth tokens without it ("OAuth authentication is currently not supported").
#[test]
fn oauth_tokens_of_anthropic_come_with_their_beta() {
    let betas = |key: &str, own: &[(&str, &str)]| -> Vec<String> {
        let mut request = TestRequest::new(Api::AnthropicMessages, &[user("a")]);
        request.key = Some(SecretString::from(key.to_owned()));
        let own = own
            .iter()
            .map(|&(name, value)| (name.to_owned(), SecretString::from(value.to_owned())));
        request.model.quirks.headers = own.collect();
        let headers = request.encode().headers;
        let values = headers.get_all("anthropic-beta").iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(betas("sk-ant-api03-x", &[]), [""; 0]);
    assert_eq!(betas("sk-ant-oat01-x", &[]), ["oauth-2025-04-20"]);
    let own = [("Anthropic-Beta", "context-1m-2025-08-07")];
    assert_eq!(betas("sk-ant-api03-x", &own), ["context-1m-2025-08-07"]);
    assert_eq!(betas("sk-ant-oat01-x", &own), ["oauth-2025-04-20", "context-1m-2025-08-07"]);
}

#[test]
fn what_cannot_be_sent_is_an_error() {
    let key = SecretString::from("sk-with\nbreak");
    let mut model = model(Api::OpenaiCompletions, "https://models.example/v1");
    let hello = PairedMessages::repair(vec![user("hi")]);
    let blank = PairedMessages::repair(vec![user(" ")]);
    let mut error = |api: Api, messages: &PairedMessages, api_key: Option<&SecretString>| {
        model.api = api;
        let request = ModelRequest {
            model: &model,
            system_prompt: "",
            messages,
            tools: &[],
            tool_use: ToolUse::Auto,
            max_output: None,
            options: None,
            thinking: ThinkingLevel::Off,
            api_key,
            limits: CallLimits::default(),
        };
        encode(&request).unwrap_err().message
    };
    for format in FORMATS {
        let api = format.api;
        let refused = "the API key holds a character that no HTTP header can carry (a line break?): copy it again";
        assert_eq!(error(api, &hello, Some(&key)), refused);
        assert_eq!(error(api, &hello, Some(&SecretString::from("“sk-quoted”"))), refused);
        assert_eq!(error(api, &blank, None), "there is no message to send to the model");
    }
    assert_eq!(
        error(Api::Builtin, &hello, None),
        "model testing/test-model is not served over HTTP"
    );
}

#[test]
fn headers_of_the_settings_go_with_the_request_and_replace_ours() {
    for api in [Api::AnthropicMessages, Api::OpenaiCompletions] {
        let mut request = TestRequest::new(api, &turn(api));
        let pairs = [("x-team", "blue"), ("Accept", "text/plain")];
        request.model.quirks.headers = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), SecretString::from(value)))
            .collect();
        let headers = request.encode().headers;
        assert_eq!(
            (&headers["x-team"], &headers["accept"]),
            (&"blue".parse().unwrap(), &"text/plain".parse().unwrap())
        );
        assert!(headers["x-team"].is_sensitive());
    }
}

#[test]
fn what_the_settings_say_of_a_host_goes_before_its_address() {
    use myclaw_llm::wire::compat::{CompatOverrides, OutputLimitField, StreamUsage, SystemRole};
    let mut request = TestRequest::new(Api::OpenaiCompletions, &turn(Api::OpenaiCompletions));
    request.model.reasoning = true;
    request.model.quirks.compat = CompatOverrides {
        output_limit: Some(OutputLimitField::MaxCompletionTokens),
        system_role: Some(SystemRole::DeveloperWhenReasoning),
        stream_usage: Some(StreamUsage::Always),
        ..CompatOverrides::default()
    };
    let body = request.body();
    assert_eq!(body["max_completion_tokens"], 8192);
    assert_eq!(body["messages"][0]["role"], "developer");
    assert_eq!((body.get("max_tokens"), body.get("stream_options")), (None, None));
}
