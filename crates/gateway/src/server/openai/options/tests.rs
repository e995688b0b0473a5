use super::*;

fn code(model: Option<&str>, asked: &Value) -> Option<String> {
    let refused = read(model, asked.as_object().unwrap()).err()?;
    Some(refused.1["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
fn the_usual_values_ask_for_nothing() {
    for asked in [
        json!({}),
        json!({"temperature": 1, "top_p": 1.0, "n": 1, "presence_penalty": 0, "frequency_penalty": null}),
        json!({"tools": [], "tool_choice": "auto", "functions": null, "logprobs": false, "stop": []}),
        json!({"tool_choice": "none", "parallel_tool_calls": false, "modalities": ["text"]}),
        json!({"response_format": {"type": "text"}, "text": {"format": {"type": "text"}, "verbosity": "low"}}),
        json!({"metadata": {"a": "b"}, "reasoning": {"effort": "low"}, "store": true}),
    ] {
        assert_eq!(read(Some("myclaw"), asked.as_object().unwrap()).unwrap(), None, "{asked}");
    }
}

#[test]
fn what_can_be_asked_is_read_in_both_forms() {
    let function = json!({"name": "f", "description": "does f", "parameters": {"type": "object"}});
    let mut own = function.clone();
    own["type"] = json!("function");
    for tools in [json!([{"type": "function", "function": function}]), json!([own])] {
        let asked = json!({"tools": tools, "tool_choice": {"type": "function", "name": "f"},
            "temperature": 0, "max_tokens": 9, "stop": "\n", "seed": 7});
        let read = read(Some("a/b"), asked.as_object().unwrap()).unwrap().unwrap();
        assert_eq!((read.tools.len(), &*read.tools[0].name), (1, "f"));
        assert_eq!(read.options.forced_call, Some(ForcedCall::Tool("f".to_owned())));
        assert!(read.has_only_these);
        assert_eq!((read.options.temperature, read.options.max_output), (Some(0.0), Some(9)));
        assert_eq!((read.options.stop, read.options.seed), (vec!["\n".to_owned()], Some(7)));
        assert_eq!(read.model.as_deref(), Some("a/b"));
    }
    let wrapped =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": true}});
    let plain =
        json!({"format": {"type": "json_schema", "name": "x", "schema": {}, "strict": true}});
    let forms = [json!({"response_format": wrapped}), json!({"text": plain})];
    let [chat, responses] = forms.map(|asked| read(None, asked.as_object().unwrap()).unwrap());
    assert!(chat.is_some());
    assert_eq!(chat, responses);
}

#[test]
fn what_cannot_be_done_is_refused() {
    for asked in [
        json!({"temperature": "warm"}),
        json!({"n": 2}),
        json!({"max_tokens": 0}),
        json!({"seed": 0.5}),
        json!({"stop": ["a", "b", "c", "d", "e"]}),
        json!({"stop": 5}),
        json!({"functions": [{"name": "f"}]}),
        json!({"tools": [{"type": "web_search"}]}),
        json!({"tools": [{"type": "function", "name": "a b"}]}),
        json!({"tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]}),
        json!({"tools": "f"}),
        json!({"tool_choice": "required"}),
        json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        json!({"function_call": {"name": "f"}}),
        json!({"response_format": {"type": "xml"}}),
        json!({"response_format": {"type": "json_schema"}}),
        json!({"modalities": ["audio"]}),
        json!({"logprobs": true}),
        json!({"logit_bias": {"1": 2}}),
    ] {
        assert_eq!(code(None, &asked).as_deref(), Some("unsupported_parameter"), "{asked}");
    }
}
