"""The checks that Open Responses publishes, against the gateway: GATEWAY=http://… TOKEN=… python open_responses.py

Its suite is no package, so its cases are written here after it. The schema is: the package openresponses-types is made of it.
What the model answers is in crates/cli/tests/gateway/openai.rs.
"""

import json
import os
import urllib.request

import openresponses_types as schema

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def ask(**fields):
    body = json.dumps({"model": "myclaw", **fields}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["TOKEN"]}
    request = urllib.request.Request(os.environ["GATEWAY"] + "/v1/responses", body, headers)
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def whole(**fields):
    response = json.loads(ask(**fields))
    checked = json.loads(json.dumps(response))
    if "schema" in checked["text"]["format"]:
        # The published schema allows nothing but null there; OpenAI's own clients read the schema that was asked for.
        checked["text"]["format"]["schema"] = None
    schema.ResponseResource.model_validate_json(json.dumps(checked), strict=True)
    return response


def model_of(kind):
    """The model of an event: response.output_text.delta is ResponseOutputTextDeltaStreamingEvent."""
    name = "".join(word.capitalize() for word in kind.replace("_", ".").split("."))
    return getattr(schema, f"{name}StreamingEvent")


def streamed(**fields):
    events = [json.loads(line[6:]) for line in ask(**fields, stream=True).splitlines() if line.startswith("data: {")]
    for number, event in enumerate(events):
        model_of(event["type"]).model_validate_json(json.dumps(event), strict=True)
        assert event["sequence_number"] == number, event
    schema.ResponseResource.model_validate_json(json.dumps(events[-1]["response"]), strict=True)
    return events


def message(role, content):
    return {"type": "message", "role": role, "content": content}


def is_complete(response):
    assert response["status"] == "completed" and response["output"], response


weather = [message("user", "weather in Oslo?")]
picture = [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": PIXEL}]
turns = [message("user", "I am <m1>."), message("assistant", "Hello!"), message("user", "who am I?")]
is_complete(whole(input=[message("user", "say hello <m1>")]))
is_complete(streamed(input=[message("user", "say many words")])[-1]["response"])
is_complete(whole(input=[message("system", "you are a pirate"), message("user", "say hello <m1>")]))
is_complete(whole(input=[message("user", picture)]))
is_complete(whole(input=turns))
called = whole(input=weather, tools=[TOOL])
is_complete(called)
assert called["output"][-1]["type"] == "function_call", called
events = streamed(input=weather, tools=[TOOL])
of_calls = [event["type"] for event in events if event.get("item", {}).get("type") == "function_call"]
assert of_calls == ["response.output_item.added", "response.output_item.done"], of_calls
kinds = [event["type"] for event in events]
for kind in ("response.function_call_arguments.delta", "response.function_call_arguments.done"):
    assert kind in kinds, kinds
# What its suite leaves out: options that the response repeats, and one that waits.
form = {"type": "json_schema", "name": "place", "schema": {"type": "object", "properties": {}}}
asked = whole(input="as JSON", text={"format": form}, temperature=0.2, max_output_tokens=50, metadata={"a": "b"})
assert (asked["temperature"], asked["max_output_tokens"], asked["text"]["format"]["name"]) == (0.2, 50, "place"), asked
assert whole(input=weather, tools=[TOOL], tool_choice="required")["tool_choice"] == "required"
assert whole(input="say hello <m1>", background=True)["status"] == "queued"
print("passed")
