"""The checks that Open Responses publishes, against the gateway: GATEWAY=http://… TOKEN=… python open_responses.py

Its suite is no package, so its cases are written here after it, as of the revision 18e56560 of openresponses/openresponses,
with the names that they have there. The schema is a package: openresponses-types 2.4.0 is made of it. What the model answers is
in crates/cli/tests/gateway/openai.rs.
"""

import json
import os
import urllib.error
import urllib.request

import openresponses_types as schema

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def send(path="", fields=None, token=None):
    body = None if fields is None else json.dumps({"model": "myclaw", **fields}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + (token or os.environ["TOKEN"])}
    request = urllib.request.Request(os.environ["GATEWAY"] + "/v1/responses" + path, body, headers)
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def ask(**fields):
    return send(fields=fields)


def whole(**fields):
    return checked(json.loads(ask(**fields)))


def checked(response):
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
    lines = ask(**fields, stream=True).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert [line[7:] for line in lines if line.startswith("event: ")] == [event["type"] for event in events], lines
    for number, event in enumerate(events):
        model_of(event["type"]).model_validate_json(json.dumps(event), strict=True)
        assert event["sequence_number"] == number, event
    checked(events[-1]["response"])
    return events


def refused(status, **request):
    """The error of a request, in the form that the schema has for errors."""
    try:
        answer = send(**request)
    except urllib.error.HTTPError as error:
        assert error.code == status, (error.code, request)
        payload = json.loads(error.read())["error"]
        schema.ErrorPayload.model_validate_json(json.dumps(payload), strict=True)
        return payload
    raise AssertionError((answer, request))


def message(role, content):
    return {"type": "message", "role": role, "content": content}


def is_complete(response):
    assert response["status"] == "completed" and response["output"], response


weather = [message("user", "weather in Oslo?")]
PDF = "data:application/pdf;base64,JVBERi0xLjcK"
file = [{"type": "input_text", "text": "read it"}, {"type": "input_file", "filename": "plan.pdf", "file_data": PDF}]
picture = [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": PIXEL}]
turns = [message("user", "I am <m1>."), message("assistant", "Hello!"), message("user", "who am I?")]
# basic-response, streaming-response, system-prompt, image-input, file-input, multi-turn
is_complete(whole(input=[message("user", "say hello <m1>")]))
is_complete(streamed(input=[message("user", "say many words")])[-1]["response"])
is_complete(whole(input=[message("system", "you are a pirate"), message("user", "say hello <m1>")]))
is_complete(whole(input=[message("user", picture)]))
is_complete(whole(input=[message("user", file)]))
is_complete(whole(input=turns))
# previous-response-id
first = whole(input="remember <m1>")
second = whole(input="and <m2>?", previous_response_id=first["id"])
is_complete(second)
assert second["previous_response_id"] == first["id"] and "after <m1>" in json.dumps(second["output"]), second
# tool-calling, function-call-roundtrip
called = whole(input=weather, tools=[TOOL])
is_complete(called)
assert called["output"][-1]["type"] == "function_call", called
forced = whole(input="weather in Oslo?", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"})
calls = [item for item in forced["output"] if item["type"] == "function_call"]
results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"} for call in calls]
answered = whole(input=results, previous_response_id=forced["id"])
is_complete(answered)
assert calls and "it is sunny" in json.dumps(answered["output"]), answered
# tool-calling-streaming, which an earlier revision has
events = streamed(input=weather, tools=[TOOL])
of_calls = [event["type"] for event in events if event.get("item", {}).get("type") == "function_call"]
assert of_calls == ["response.output_item.added", "response.output_item.done"], of_calls
kinds = [event["type"] for event in events]
for kind in ("response.function_call_arguments.delta", "response.function_call_arguments.done"):
    assert kind in kinds, kinds
# file-search and offline-web-search are skipped unless their options are given, and these tools are refused here.
for tool in ({"type": "file_search", "vector_store_ids": ["x"]}, {"type": "web_search"}):
    assert refused(400, fields={"input": "search", "tools": [tool]})["code"] == "unsupported_parameter"
# What its suite leaves out: errors, cut answers, stored responses, options that the response repeats, and one that waits.
refused(400, fields={"input": 7})
refused(400, fields={"input": [message("nobody", "hello")]})
refused(404, fields={"input": "hello", "model": "no-such-provider/m"})
refused(404, fields={"input": "hello", "previous_response_id": "resp_x"})
refused(404, path="/resp_x")
refused(401, fields={"input": "hello"}, token="wrong")
refused(502, fields={"input": "fail now"})
failed = streamed(input="fail now")[-1]
assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed"), failed
assert failed["response"]["error"]["message"], failed
cut = whole(input="cut short", max_output_tokens=50)
assert (cut["status"], cut["incomplete_details"]["reason"]) == ("incomplete", "max_output_tokens"), cut
assert streamed(input="cut short", max_output_tokens=50)[-1]["type"] == "response.incomplete"
stored = checked(json.loads(send("/" + first["id"])))
assert (stored["id"], stored["status"], stored["output"]) == (first["id"], "completed", first["output"]), stored
form = {"type": "json_schema", "name": "place", "schema": {"type": "object", "properties": {}}}
asked = whole(input="as JSON", text={"format": form}, temperature=0.2, max_output_tokens=50, metadata={"a": "b"})
assert (asked["temperature"], asked["max_output_tokens"], asked["text"]["format"]["name"]) == (0.2, 50, "place"), asked
assert whole(input=weather, tools=[TOOL], tool_choice="required")["tool_choice"] == "required"
assert whole(input="say hello <m1>", background=True)["status"] == "queued"
print("passed")
