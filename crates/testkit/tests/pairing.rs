//! The check of requests: what passes, and what each broken rule is called.

mod requests;

use myclaw_testkit::{WireFormat, validate_body};
use serde_json::{Value, json};

use requests::*;

/// The body with another value at a JSON pointer; `null` removes what is there.
#[cfg(test)]
fn with(mut body: Value, pointer: &str, new: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Array(list) if new.is_null() => drop(list.remove(key.parse().unwrap())),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = new,
        Value::Object(map) if new.is_null() => drop(map.remove(key)),
        Value::Object(map) => drop(map.insert(key.to_owned(), new)),
        other => panic!("nothing below {other}"),
    }
    body
}

/// Each change to a `good` body breaks one rule, named by its place and some of its words.
#[cfg(test)]
fn assert_breaks(format: WireFormat, good: &Value, broken: &[(&str, Value, &str, &str)]) {
    for (pointer, new, place, rule) in broken {
        let body = with(good.clone(), pointer, new.clone());
        let violation = validate_body(format, &body).expect_err(pointer);
        assert_eq!(violation.place, *place, "{pointer}: {violation}");
        assert!(violation.rule.contains(rule), "{pointer}: {violation}");
    }
}

#[test]
fn good_requests_pass() {
    assert_eq!(validate_body(WireFormat::AnthropicMessages, &anthropic()), Ok(()));
    assert_eq!(validate_body(WireFormat::OpenAiCompletions, &openai()), Ok(()));
    assert_eq!(validate_body(WireFormat::GoogleGenerativeAi, &google()), Ok(()));
    assert_eq!(validate_body(WireFormat::BedrockConverse, &bedrock()), Ok(()));
    assert_eq!(validate_body(WireFormat::OpenAiResponses, &responses()), Ok(()));
}

#[test]
fn each_rule_of_anthropic_is_checked() {
    let cached = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    assert_breaks(
        WireFormat::AnthropicMessages,
        &anthropic(),
        &[
            ("/model", json!(""), "model", "non-empty"),
            ("/max_tokens", json!(0), "max_tokens", "positive"),
            ("/system/0/text", json!(" "), "system[0].text", "non-empty"),
            ("/tools/0/name", json!("a b"), "tools[0].name", "must match"),
            ("/tools", json!([]), "tools", "must be given"),
            ("/messages", json!([]), "messages", "empty"),
            ("/messages/0", Value::Null, "messages[0]", "a user begins"),
            ("/messages/3", Value::Null, "messages[3]", "alternate"),
            ("/messages/4", Value::Null, "messages", "last message"),
            (
                "/messages/4/content",
                json!([cached, cached, cached, cached]),
                "cache_control",
                "5 blocks",
            ),
        ],
    );
}

#[test]
fn each_rule_of_anthropics_blocks_is_checked() {
    let empty_result = json!({"type": "tool_result", "tool_use_id": "a", "content": ""});
    assert_breaks(
        WireFormat::AnthropicMessages,
        &anthropic(),
        &[
            ("/messages/0/content", json!("\n"), "messages[0].content", "non-empty"),
            ("/messages/0/content", json!([]), "messages[0].content", "empty"),
            (
                "/messages/1/content/0/signature",
                json!(""),
                "messages[1].content[0].signature",
                "non-empty",
            ),
            ("/messages/1/content/1/text", json!(""), "messages[1].content[1].text", "non-empty"),
            ("/messages/1/content/3/id", json!("a"), "messages[1].content[3]", "used twice"),
            ("/messages/1/content/3/id", json!("a.b"), "messages[1].content[3].id", "must match"),
            ("/messages/1/content/3/input", json!("{}"), "messages[1].content[3].input", "object"),
            ("/messages/1/content/3", Value::Null, "messages[2].content[0]", "answers no tool_use"),
            (
                "/messages/2/content/0",
                Value::Null,
                "messages[2].content",
                "without a tool_result directly after them: [\"b\"]",
            ),
            ("/messages/2/content/1", empty_result, "messages[2].content[1].content", "non-empty"),
            (
                "/messages/2/content/1/tool_use_id",
                json!("b"),
                "messages[2].content[1]",
                "used twice",
            ),
            (
                "/messages/2/content/0",
                json!({"type": "text", "text": "x"}),
                "messages[2].content[1]",
                "come before",
            ),
            (
                "/messages/2/content",
                json!("never mind"),
                "messages[2].content",
                "without a tool_result",
            ),
            (
                "/messages/4/content/0/source/media_type",
                json!("image/bmp"),
                "messages[4].content[0].source.media_type",
                "bmp",
            ),
        ],
    );
}

#[test]
fn each_rule_of_openai_is_checked() {
    assert_breaks(
        WireFormat::OpenAiCompletions,
        &openai(),
        &[
            (
                "/tools/0/function/parameters/type",
                json!("array"),
                "tools[0].function.parameters.type",
                "object",
            ),
            (
                "/messages/0",
                json!({"role": "assistant", "content": "x"}),
                "messages[0]",
                "must be a user's",
            ),
            ("/messages/1", Value::Null, "messages[1]", "must be a user's"),
            ("/messages/1/content", json!([]), "messages[1].content", "empty"),
            ("/messages/2/tool_calls", json!([]), "messages[2].tool_calls", "empty"),
            ("/messages/2/tool_calls", Value::Null, "messages[2]", "needs content or tool calls"),
            ("/messages/2/tool_calls/1/id", json!("a"), "messages[2].tool_calls[1]", "used twice"),
            (
                "/messages/2/tool_calls/1/id",
                json!("a".repeat(41)),
                "messages[2].tool_calls[1].id",
                "longer than 40",
            ),
            (
                "/messages/2/tool_calls/0/function/arguments",
                json!("{"),
                "messages[2].tool_calls[0].function.arguments",
                "JSON object",
            ),
            ("/messages/2/content", json!(""), "messages[2].content", "non-empty"),
            (
                "/messages/3",
                Value::Null,
                "messages[4]",
                "without a tool message directly after them: [\"a\"]",
            ),
            ("/messages/3/tool_call_id", json!("z"), "messages[3]", "answers no open call"),
            ("/messages/3/content", json!(""), "messages[3].content", "non-empty"),
            ("/messages/4/tool_call_id", json!("a"), "messages[4]", "answers no open call"),
            ("/messages/5", json!({"role": "system", "content": "x"}), "messages[5]", "come first"),
            ("/messages/6", Value::Null, "messages", "last message"),
        ],
    );
}

#[test]
fn each_rule_of_google_is_checked() {
    assert_breaks(
        WireFormat::GoogleGenerativeAi,
        &google(),
        &[
            ("/stream", json!(true), "body", "unknown name \"stream\""),
            ("/systemInstruction/parts", json!([]), "systemInstruction.parts", "empty"),
            ("/tools", json!([]), "tools", "must be given"),
            (
                "/tools/0/functionDeclarations/0/name",
                json!("1x"),
                "tools[0].functionDeclarations[0].name",
                "begin with a letter",
            ),
            (
                "/tools/0/functionDeclarations/0/parametersJsonSchema/type",
                json!("array"),
                "tools[0].functionDeclarations[0].parametersJsonSchema.type",
                "object",
            ),
            ("/contents", json!([]), "contents", "empty"),
            ("/contents/0", Value::Null, "contents[0]", "a user begins"),
            ("/contents/3", Value::Null, "contents[3]", "alternate"),
            ("/contents/4", Value::Null, "contents", "last content"),
        ],
    );
}

#[test]
fn each_rule_of_googles_parts_is_checked() {
    assert_breaks(
        WireFormat::GoogleGenerativeAi,
        &google(),
        &[
            ("/contents/0/parts", json!([]), "contents[0].parts", "empty"),
            ("/contents/0/parts/0/text", json!(" "), "contents[0].parts[0].text", "non-empty"),
            ("/contents/0/parts/0/inlineData", json!({}), "contents[0].parts[0]", "one kind"),
            (
                "/contents/0/parts/1/inlineData/mimeType",
                json!("image/gif"),
                "contents[0].parts[1].inlineData.mimeType",
                "gif",
            ),
            (
                "/contents/0/parts/0/thoughtSignature",
                json!("s"),
                "contents[0].parts[0]",
                "only a model",
            ),
            (
                "/contents/1/parts/2/functionCall/args",
                json!([]),
                "contents[1].parts[2].functionCall.args",
                "object",
            ),
            ("/contents/1/parts/2/signature", json!("s"), "contents[1].parts[2]", "unknown name"),
            (
                "/contents/1/parts/3",
                Value::Null,
                "contents[2].parts",
                "number of function response parts",
            ),
            (
                "/contents/2/parts/1",
                Value::Null,
                "contents[2].parts",
                "number of function response parts",
            ),
            (
                "/contents/2/parts/0/functionResponse/id",
                json!("z"),
                "contents[2].parts",
                "answers no call",
            ),
            (
                "/contents/2/parts/0/functionResponse/response",
                json!("x"),
                "contents[2].parts[0].functionResponse.response",
                "object",
            ),
        ],
    );
}

#[test]
fn a_request_may_not_end_in_open_calls() {
    let mut body = openai();
    body["messages"].as_array_mut().unwrap().truncate(4);
    let violation = validate_body(WireFormat::OpenAiCompletions, &body).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "messages: tool calls without a tool message after them: [\"b\"]"
    );
}

#[test]
fn each_rule_of_bedrock_is_checked() {
    let cache_point = json!({"cachePoint": {"type": "default"}});
    assert_breaks(
        WireFormat::BedrockConverse,
        &bedrock(),
        &[
            ("/inferenceConfig/maxTokens", json!(0), "inferenceConfig.maxTokens", "positive"),
            ("/system/0/text", json!(" "), "system[0].text", "non-empty"),
            ("/toolConfig", Value::Null, "toolConfig", "must be given"),
            ("/toolConfig/tools", json!([cache_point]), "toolConfig.tools[0]", "no tool"),
            (
                "/toolConfig/tools/0/toolSpec/name",
                json!("a b"),
                "toolConfig.tools[0].name",
                "must match",
            ),
            (
                "/toolConfig/tools/0/toolSpec/description",
                json!(""),
                "toolConfig.tools[0].description",
                "empty",
            ),
            ("/messages/0", Value::Null, "messages[0]", "a user begins"),
            ("/messages/4", Value::Null, "messages", "last message"),
            ("/messages/4/content", json!([cache_point, cache_point]), "cachePoint", "there are 5"),
        ],
    );
}

#[test]
fn each_rule_of_bedrocks_blocks_is_checked() {
    let result = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "x"}]}});
    assert_breaks(
        WireFormat::BedrockConverse,
        &bedrock(),
        &[
            ("/messages/0/content", json!("text"), "messages[0].content", "must be a list"),
            ("/messages/0/content/0/text", json!("\n"), "messages[0].content[0].text", "non-empty"),
            (
                "/messages/0/content/0",
                json!({"text": "a", "image": {}}),
                "messages[0].content[0]",
                "one member",
            ),
            (
                "/messages/1/content/0/reasoningContent/reasoningText/signature",
                json!(""),
                "messages[1].content[0].signature",
                "non-empty",
            ),
            (
                "/messages/1/content/3/toolUse/toolUseId",
                json!("a"),
                "messages[1].content[3]",
                "used twice",
            ),
            (
                "/messages/1/content/3/toolUse/toolUseId",
                json!("a.b"),
                "messages[1].content[3].toolUseId",
                "must match",
            ),
            (
                "/messages/1/content/3/toolUse/input",
                json!("{}"),
                "messages[1].content[3].input",
                "object",
            ),
            ("/messages/2/content/0", result("c"), "messages[2].content[0]", "answers no toolUse"),
            ("/messages/2/content/0", result("a"), "messages[2].content[1]", "used twice"),
            (
                "/messages/2/content/0",
                Value::Null,
                "messages[2].content",
                "without a toolResult directly after them: [\"b\"]",
            ),
            (
                "/messages/2/content/1/toolResult/status",
                json!("bad"),
                "messages[2].content[1].status",
                "bad",
            ),
            (
                "/messages/4/content/0/image/format",
                json!("bmp"),
                "messages[4].content[0].format",
                "bmp",
            ),
        ],
    );
}

#[test]
fn each_rule_of_responses_is_checked() {
    let long = "x".repeat(65);
    assert_breaks(
        WireFormat::OpenAiResponses,
        &responses(),
        &[
            ("/model", json!(""), "model", "non-empty"),
            ("/max_output_tokens", json!(15), "max_output_tokens", "at least 16"),
            ("/tools/0/name", json!("a b"), "tools[0].name", "must match"),
            ("/tools/0/type", json!("custom"), "tools[0].type", "function"),
            ("/tools/0/parameters/type", json!("x"), "tools[0].parameters.type", "object"),
            ("/input", json!([]), "input", "empty"),
            ("/input/0/content", json!(" "), "input[0].content", "non-empty"),
            ("/input/0/role", json!("tool"), "input[0]", "unknown role"),
            ("/input/8/role", json!("system"), "input[8]", "come first"),
            ("/input/0", json!({"role": "assistant", "content": "x"}), "input[0]", "a user's"),
            ("/input/1/content/0/text", json!(""), "input[1].content[0].text", "non-empty"),
            ("/input/1/content/1/type", json!("image_url"), "input[1].content[1]", "no part"),
            ("/input/2/summary", json!(null), "input[2].summary", "list"),
            ("/input/2/encrypted_content", json!(""), "input[2].encrypted_content", "non-empty"),
            ("/input/2/type", json!("web_search_call"), "input[2]", "no item"),
            ("/input/3/id", json!(long), "input[3].id", "longer than 64"),
            ("/input/4/call_id", json!("a"), "input[4]", "used twice"),
            ("/input/4/call_id", json!(long), "input[4].call_id", "longer than 64"),
            ("/input/4/arguments", json!({}), "input[4].arguments", "JSON object"),
            ("/input/4/name", json!(""), "input[4].name", "must match"),
            ("/input/5", Value::Null, "input[6]", "without an output before it: [\"b\"]"),
            ("/input/5/call_id", json!("c"), "input[5]", "answers no open call"),
            ("/input/6/output", json!(""), "input[6].output", "non-empty"),
            ("/input/7/content/0/type", json!("input_text"), "input[7].content[0]", "no part"),
            (
                "/input/7",
                json!({"type": "reasoning", "summary": [], "encrypted_content": "x"}),
                "input[7]",
                "that follows",
            ),
            ("/input/8", Value::Null, "input", "last item"),
        ],
    );
}
