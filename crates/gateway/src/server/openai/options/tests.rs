use super::*;

fn code(model: Option<&str>, asked: &Value) -> Option<String> {
    let refused = check(model, asked.as_object().unwrap()).err()?;
    Some(refused.1["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
fn what_would_change_the_answer_is_refused_and_hints_are_taken() {
    for asked in [
        json!({}),
        json!({"temperature": 1, "top_p": 1.0, "n": 1, "presence_penalty": 0, "frequency_penalty": null}),
        json!({"tools": [], "tool_choice": "auto", "functions": null, "logprobs": false, "stop": []}),
        json!({"response_format": {"type": "text"}, "text": {"format": {"type": "text"}, "verbosity": "low"}}),
        json!({"max_tokens": 100, "metadata": {"a": "b"}, "seed": 7, "reasoning": {"effort": "low"}, "store": true}),
    ] {
        assert_eq!(code(Some("myclaw"), &asked), None, "{asked}");
        assert_eq!(code(None, &asked), None, "{asked}");
    }
    assert_eq!(code(Some("gpt-4o"), &json!({})).as_deref(), Some("model_not_found"));
    for asked in [
        json!({"temperature": 0.2}),
        json!({"temperature": 0}),
        json!({"temperature": "warm"}),
        json!({"top_p": 0.5}),
        json!({"n": 2}),
        json!({"presence_penalty": 0.1}),
        json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
        json!({"functions": [{"name": "f"}]}),
        json!({"tool_choice": "required"}),
        json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        json!({"function_call": {"name": "f"}}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}),
        json!({"stop": "\n"}),
        json!({"logprobs": true}),
        json!({"logit_bias": {"1": 2}}),
    ] {
        assert_eq!(code(None, &asked).as_deref(), Some("unsupported_parameter"), "{asked}");
    }
}
