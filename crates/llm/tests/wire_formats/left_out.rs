//! Options that a host refuses: the call is made once more without them, and that is remembered. The bodies are those of
//! the hosts.

use myclaw_llm::{
    AnswerFormat, AnswerOptions, Api, CallFailure, CallLimits, ErrorClass, ForcedCall,
    HttpProvider, Model, ModelRequest, Provider, StreamEvent, ThinkingLevel, ToolUse,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::formats::FORMATS;
use crate::support::*;

use Api::{
    AnthropicMessages as Messages, BedrockConverse as Bedrock, GoogleGenerativeAi as Google,
    OpenaiCompletions as Chat, OpenaiResponses as Responses,
};

/// A model whose requests have as many options as the format knows.
fn thinking_model(api: Api, url: &str) -> Model {
    let mut model = model(api, url);
    model.reasoning = true;
    "openai".clone_into(&mut model.provider);
    if api == Bedrock {
        "anthropic.claude-sonnet-4-5".clone_into(&mut model.id);
    }
    model
}

fn options() -> AnswerOptions {
    AnswerOptions { temperature: Some(0.2), top_p: Some(0.9), ..AnswerOptions::default() }
}

async fn ask(
    provider: &HttpProvider,
    model: &Model,
    options: &AnswerOptions,
) -> (Result<(), Box<myclaw_llm::ModelError>>, Vec<String>) {
    let (key, tools, messages) = (SecretString::from(KEY), tools(), hello());
    let request = ModelRequest {
        model,
        system_prompt: "You help.",
        messages: &messages,
        tools: &tools,
        tool_use: ToolUse::Auto,
        max_output: None,
        options: Some(options),
        thinking: ThinkingLevel::High,
        api_key: Some(&key),
        limits: CallLimits::default(),
    };
    let mut left_out = Vec::new();
    let mut sink = |event| {
        if let StreamEvent::OptionLeftOut { option, error } = event {
            assert!(error.starts_with("openai at ") && !error.contains('\n'), "{error}");
            left_out.push(option);
        }
    };
    let result = provider.call(request, &CancellationToken::new(), &mut sink).await;
    let result = result.map(drop).map_err(|failure| match failure {
        CallFailure::Failed { error, .. } => error,
        CallFailure::Aborted { .. } => panic!("nobody aborts"),
    });
    (result, left_out)
}

fn good(api: Api) -> Vec<Step> {
    let format = FORMATS.iter().find(|format| format.api == api).unwrap();
    match api {
        Bedrock => {
            let kind = &["content-type: application/vnd.amazon.eventstream", "connection: close"];
            vec![send(head("200 OK", kind)), send(format.streams[0]), Step::Close]
        }
        _ => stream(format.streams[0]),
    }
}

fn refusal(status: &str, body: &str) -> Vec<Step> {
    answer(status, "application/json", body)
}

/// `body` without the member at this path, and without the object in which it was alone.
fn without(mut body: Value, path: &str) -> Value {
    match path.split_once('.') {
        Some((outer, inner)) => {
            let object = body[outer].as_object_mut().unwrap();
            assert!(object.remove(inner).is_some(), "{path} was sent");
            if object.is_empty() {
                body.as_object_mut().unwrap().remove(outer);
            }
        }
        None => assert!(body.as_object_mut().unwrap().remove(path).is_some(), "{path} was sent"),
    }
    body
}

/// Status, format, what the host says, and what is left out.
const REFUSALS: &[(&str, Api, &str, &[&str])] = &[
    // OpenAI, Azure: https://github.com/run-llama/llama_index/issues/20865
    (
        "400",
        Chat,
        r#"{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.","type":"invalid_request_error","param":"parallel_tool_calls","code":"unsupported_parameter"}}"#,
        &["parallel_tool_calls"],
    ),
    (
        "400",
        Chat,
        r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
        &["temperature"],
    ),
    // https://github.com/anomalyco/opencode/issues/12113
    (
        "400",
        Chat,
        r#"{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}"#,
        &["reasoning_effort"],
    ),
    (
        "400",
        Chat,
        r#"{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error","param":null,"code":null}}"#,
        &["stream_options"],
    ),
    // https://github.com/BerriAI/litellm/issues/16704
    (
        "400",
        Chat,
        r#"{"error":{"message":"Invalid value: 'none'. Supported values are: 'low', 'medium', and 'high'.","type":"invalid_request_error","param":"reasoning_effort","code":"invalid_value"}}"#,
        &["reasoning_effort"],
    ),
    // https://github.com/can1357/oh-my-pi/issues/11052
    (
        "400",
        Chat,
        r#"{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions. Please use /v1/responses instead.","type":"invalid_request_error","param":"reasoning_effort","code":null}}"#,
        &["reasoning_effort"],
    ),
    // Groq: https://github.com/CherryHQ/cherry-studio/issues/1099
    (
        "400",
        Chat,
        r#"{"error":{"message":"property 'reasoning_effort' is unsupported, did you mean 'temperature'?","type":"invalid_request_error"}}"#,
        &["reasoning_effort"],
    ),
    // Mistral, and others that are built with FastAPI: https://github.com/partITech/php-mistral/issues/76
    (
        "422",
        Chat,
        r#"{"object":"Error","detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}}],"message":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}],"type":"invalid_request_error","code":3001}"#,
        &["stream_options"],
    ),
    (
        "422",
        Chat,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","top_p"],"msg":"Extra inputs are not permitted","input":null}]},"type":"invalid_request_error","param":null,"code":null}"#,
        &["top_p"],
    ),
    // vLLM: https://github.com/gpustack/gpustack/issues/429
    (
        "400",
        Chat,
        r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]","type":"BadRequestError","param":null,"code":400}"#,
        &["stream_options"],
    ),
    // llama.cpp: https://github.com/ggml-org/llama.cpp/issues/12591
    (
        "500",
        Chat,
        r#"{"error":{"code":500,"message":"Unsupported param: parallel_tool_calls","type":"server_error"}}"#,
        &["parallel_tool_calls"],
    ),
    // Ollama: https://github.com/ollama/ollama/issues/12561
    (
        "400",
        Chat,
        r#"{"error":{"message":"think value \"high\" is not supported for this model","type":"api_error","param":null,"code":null}}"#,
        &["reasoning_effort"],
    ),
    (
        "400",
        Chat,
        r#"{"error":{"message":"\"llama3.2:latest\" does not support thinking","type":"invalid_request_error","param":null,"code":null}}"#,
        &["reasoning_effort"],
    ),
    // Cohere: https://github.com/OpenRouterTeam/openrouter-examples/issues/71
    (
        "422",
        Chat,
        r#"{"message":"unknown field: parameter 'stream_options' is not a valid field. For proper usage, please refer to https://docs.cohere.com/reference/chat"}"#,
        &["stream_options"],
    ),
    // LM Studio
    (
        "400",
        Chat,
        r#"{"error":"Unrecognized key(s) in object: 'stream_options'"}"#,
        &["stream_options"],
    ),
    // LiteLLM: https://github.com/BerriAI/litellm/issues/10985, https://github.com/kaiko-ai/eva/issues/895
    (
        "400",
        Chat,
        r#"{"error":{"message":"litellm.UnsupportedParamsError: gemini does not support parameters: ['reasoning_effort'], for model=gemini-2.5-flash. To drop these, set `litellm.drop_params=True` or for proxy:\n\n`litellm_settings:\n drop_params: true`\n. \n If you want to use these params dynamically send allowed_openai_params=['top_p'] in your request.","type":"None","param":"None","code":"400"}}"#,
        &["reasoning_effort"],
    ),
    (
        "400",
        Chat,
        r#"{"error":{"message":"litellm.UnsupportedParamsError: bedrock does not support parameters: ['tool_choice', 'temperature'], for model=x","type":"None","param":null,"code":"400"}}"#,
        &["tool_choice", "temperature"],
    ),
    // A server in Rust, whose error lists what it takes.
    (
        "422",
        Chat,
        "Failed to deserialize the JSON body into the target type: unknown field `top_p`, expected one of `messages`, `model`, `temperature`, `tool_choice`",
        &["top_p"],
    ),
    // OpenRouter.
    (
        "404",
        Chat,
        r#"{"error":{"message":"No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}"#,
        &["tool_choice"],
    ),
    (
        "400",
        Chat,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"`top_p` is not supported with this model\",\"type\":\"invalid_request_error\"}}","provider_name":"Groq"}}}"#,
        &["top_p"],
    ),
    // The Responses API.
    (
        "400",
        Responses,
        r#"{"error":{"message":"Unsupported parameter: max_output_tokens","type":"invalid_request_error","param":"max_output_tokens"}}"#,
        &["max_output_tokens"],
    ),
    (
        "400",
        Responses,
        r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries. This is unsupported.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#,
        &["reasoning.summary"],
    ),
    (
        "400",
        Responses,
        r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#,
        &["include"],
    ),
    ("400", Responses, r#"{"detail":"Unsupported parameter: store"}"#, &["store"]),
    (
        "400",
        Responses,
        r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_parameter"}}"#,
        &["reasoning"],
    ),
    // Anthropic: https://github.com/danny-avila/LibreChat/issues/11949
    (
        "400",
        Messages,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature is not supported when extended work is enabled"}}"#,
        &["temperature"],
    ),
    (
        "400",
        Messages,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` and `top_p` cannot both be specified for this model. Please use only one."}}"#,
        &["top_p"],
    ),
    (
        "400",
        Messages,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"`top_p` is deprecated for this model."}}"#,
        &["top_p"],
    ),
    (
        "400",
        Messages,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"thinking: Extra inputs are not permitted"}}"#,
        &["thinking"],
    ),
    // Google.
    (
        "400",
        Google,
        r#"{"error":{"code":400,"message":"Thinking level is not supported for this model.","status":"INVALID_ARGUMENT"}}"#,
        &["generationConfig.thinkingConfig"],
    ),
    (
        "400",
        Google,
        r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"topP\" at 'generation_config': Cannot find field.","status":"INVALID_ARGUMENT"}}"#,
        &["generationConfig.topP"],
    ),
    // Bedrock.
    (
        "400",
        Bedrock,
        r#"{"message":"The model returned the following errors: Malformed input request: #: extraneous key [top_p] is not permitted, please reformat your input and try again."}"#,
        &["inferenceConfig.topP"],
    ),
    (
        "400",
        Bedrock,
        r#"{"message":"The model returned the following errors: `temperature` is deprecated for this model."}"#,
        &["inferenceConfig.temperature"],
    ),
];

#[tokio::test]
async fn what_a_host_refuses_is_left_out_and_stays_left_out() {
    let asked = AnswerOptions { single_calls: true, ..options() };
    for &(status, api, body, names) in REFUSALS {
        let asked = if matches!(api, Google | Bedrock) { options() } else { asked.clone() };
        let server =
            Server::start([refusal(&format!("{status} No"), body), good(api), good(api)]).await;
        let (provider, model) = (provider(), thinking_model(api, &server.url()));
        let (result, left_out) = ask(&provider, &model, &asked).await;
        assert!(result.is_ok(), "{body}: {result:?}");
        assert_eq!(left_out, [names.join(", ")], "{body}");
        let (result, left_out) = ask(&provider, &model, &asked).await;
        assert!(result.is_ok() && left_out.is_empty(), "{body}: {result:?}");
        let sent: Vec<Value> = server.requests().into_iter().map(|request| request.body).collect();
        let expected = names.iter().fold(sent[0].clone(), |body, name| without(body, name));
        assert_eq!(sent[1..], [expected.clone(), expected], "{body}");
    }
}

#[tokio::test]
async fn a_limit_is_sent_under_its_other_name() {
    const REFUSED: [(&str, &str, &str); 2] = [
        // https://github.com/openai/openai-python/issues/1546
        (
            "max_tokens",
            "max_completion_tokens",
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
        ),
        (
            "max_completion_tokens",
            "max_tokens",
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":8192}]}"#,
        ),
    ];
    for (old, new, body) in REFUSED {
        let server = Server::start([refusal("400 No", body), good(Chat), good(Chat)]).await;
        let mut model = thinking_model(Chat, &server.url());
        model.quirks.compat.output_limit = Some(match old {
            "max_tokens" => myclaw_llm::wire::compat::OutputLimitField::MaxTokens,
            _ => myclaw_llm::wire::compat::OutputLimitField::MaxCompletionTokens,
        });
        let (result, left_out) = ask(&provider(), &model, &options()).await;
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(left_out, [old]);
        let sent = server.requests();
        assert_eq!(sent[1].body[new], sent[0].body[old]);
        assert_eq!(without(sent[1].body.clone(), new), without(sent[0].body.clone(), old));
    }
    // A host that takes neither gets neither.
    let both = REFUSED.map(|(_, _, body)| refusal("400 No", body));
    let [first, second] = both;
    let server = Server::start([first, second, good(Chat)]).await;
    let mut model = thinking_model(Chat, &server.url());
    model.quirks.compat.output_limit = Some(myclaw_llm::wire::compat::OutputLimitField::MaxTokens);
    let (result, left_out) = ask(&provider(), &model, &options()).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(left_out, ["max_tokens", "max_completion_tokens"]);
    assert_eq!(server.requests()[2].body, without(server.requests()[0].body.clone(), "max_tokens"));
}

#[tokio::test]
async fn what_matters_is_never_left_out() {
    let schema = AnswerFormat::JsonSchema {
        name: "x".to_owned(),
        description: None,
        schema: json!({"type": "object"}),
        strict: None,
    };
    let asked = AnswerOptions {
        format: Some(schema),
        forced_call: Some(ForcedCall::Any),
        stop: vec!["END".to_owned()],
        ..options()
    };
    for (status, body) in [
        (400, r#"{"error":{"message":"Unsupported parameter: tools","param":"tools"}}"#),
        (
            400,
            r#"{"error":{"message":"gemma3 does not support tools","type":"api_error","param":null}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"model 'x' is not supported, use temperature","param":"model"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'response_format' is not supported with this model.","param":"response_format"}}"#,
        ),
        (400, r#"{"error":{"message":"tool_choice 'required' is not supported"}}"#),
        (400, r#"{"error":{"message":"Unsupported parameter: 'stop'","param":"stop"}}"#),
        (
            400,
            r#"{"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_effort' is unsupported)]"}}"#,
        ),
        (
            422,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_effort"],"msg":"Extra inputs are not permitted"}]}"#,
        ),
        (
            422,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"function","temperature"],"msg":"Extra inputs are not permitted"}]}"#,
        ),
        (400, r#"{"error":{"message":"temperature must be at most 1","param":"temperature"}}"#),
        (
            400,
            r#"{"error":{"message":"Unsupported image. This is not the temperature_unit that you seek."}}"#,
        ),
        (
            401,
            r#"{"error":{"message":"Unsupported parameter: temperature","param":"temperature"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"not supported: this model's maximum context length is 8192 tokens, temperature aside","code":"context_length_exceeded"}}"#,
        ),
        (503, r#"{"error":{"message":"temperature is not supported"}}"#),
    ] {
        let server = Server::start([refusal(&format!("{status} No"), body), good(Chat)]).await;
        let (result, left_out) =
            ask(&provider(), &thinking_model(Chat, &server.url()), &asked).await;
        assert!(result.is_err() && left_out.is_empty(), "{body}: {left_out:?}");
        assert_eq!(server.requests().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn a_call_is_made_again_three_times_at_most() {
    let refused = |name: &str| {
        let error = json!({"message": format!("Unsupported parameter: '{name}'"), "param": name});
        refusal("400 Bad Request", &json!({ "error": error }).to_string())
    };
    let names = ["stream_options", "temperature", "top_p", "reasoning_effort"];
    let server = Server::start(names.map(refused)).await;
    let model = thinking_model(Chat, &server.url());
    let (result, left_out) = ask(&provider(), &model, &options()).await;
    let error = result.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown);
    assert!(error.message.contains("'reasoning_effort'"), "{}", error.message);
    assert_eq!(left_out, names[..3]);
    assert_eq!(server.requests().len(), 4);

    // The same refusal again is the end, and is not remembered.
    let answers = [refused("top_p"), refused("top_p"), good(Chat)];
    let server = Server::start(answers).await;
    let (provider, model) = (provider(), thinking_model(Chat, &server.url()));
    let (result, left_out) = ask(&provider, &model, &options()).await;
    assert!(result.is_err());
    assert_eq!(left_out, ["top_p"]);
    assert!(ask(&provider, &model, &options()).await.0.is_ok());
    assert_eq!(server.requests()[2].body, server.requests()[0].body);
}

#[tokio::test]
async fn each_host_and_each_model_has_its_own_refusals() {
    let body = r#"{"error":{"message":"Unsupported parameter: 'top_p'","param":"top_p"}}"#;
    let server = Server::start([refusal("400 No", body), good(Chat), good(Chat), good(Chat)]).await;
    let (provider, model) = (provider(), thinking_model(Chat, &server.url()));
    assert!(ask(&provider, &model, &options()).await.0.is_ok());
    let other = Model { id: "another".to_owned(), ..model.clone() };
    assert!(ask(&provider, &other, &options()).await.0.is_ok());
    assert!(ask(&provider, &model, &options()).await.0.is_ok());
    let has = server.requests().iter().map(|r| !r.body["top_p"].is_null()).collect::<Vec<_>>();
    assert_eq!(has, [true, false, true, false]);
}

#[tokio::test]
async fn a_refusal_inside_an_answer_counts_before_text() {
    let refused = json!({"error": {"message": "Unsupported parameter: 'top_p' is not supported", "code": 400}});
    let server = Server::start([stream(format!("data: {refused}\n\n")), good(Chat)]).await;
    let (result, left_out) =
        ask(&provider(), &thinking_model(Chat, &server.url()), &options()).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(left_out, ["top_p"]);

    let text = json!({"choices": [{"index": 0, "delta": {"content": "Hi"}}]});
    let server =
        Server::start([stream(format!("data: {text}\n\ndata: {refused}\n\n")), good(Chat)]).await;
    let (result, left_out) =
        ask(&provider(), &thinking_model(Chat, &server.url()), &options()).await;
    assert!(result.is_err() && left_out.is_empty());
}
