"""OpenAI's client for Python against the gateway: GATEWAY=http://… TOKEN=… python openai_client.py

What the model answers is in crates/cli/tests/gateway/openai.rs.
"""

import base64
import os
import time

import openai

client = openai.OpenAI(base_url=os.environ["GATEWAY"] + "/v1", api_key=os.environ["TOKEN"], max_retries=0)
assert [model.id for model in client.models.list()] == ["myclaw"]

question = [{"role": "user", "content": "say many words"}]
whole = client.chat.completions.create(model="myclaw", messages=question)
text = whole.choices[0].message.content
assert text.split() == ["word"] * 20, text
assert whole.usage.total_tokens > 0

chunks = list(
    client.chat.completions.create(model="myclaw", messages=question, stream=True, stream_options={"include_usage": True})
)
pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
assert "".join(pieces).strip() == text.strip(), pieces
assert len(pieces) > 3, pieces
assert chunks[-1].usage.completion_tokens > 0, chunks[-1]

# The same request again is answered from the store.
key = {"Idempotency-Key": "python-1"}
once = client.chat.completions.create(model="myclaw", messages=question, extra_headers=key)
again = client.chat.completions.create(model="myclaw", messages=question, extra_headers=key)
assert once.id == again.id and once.choices[0].message.content == again.choices[0].message.content

first = client.responses.create(model="myclaw", input=[{"role": "user", "content": "<m5>"}], instructions="be brief")
assert first.output_text == "re: <m5>", first
second = client.responses.create(model="myclaw", input="<m6>", previous_response_id=first.id)
assert second.output_text == "re: <m6>, after <m5>", second
assert second.previous_response_id == first.id
assert client.responses.retrieve(second.id).output_text == second.output_text

with client.responses.stream(model="myclaw", input="say many words") as stream:
    deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert stream.get_final_response().output_text.strip() == text.strip()
assert len(deltas) > 3, deltas

background = client.responses.create(model="myclaw", input="<m8>", background=True)
assert background.status == "queued", background
for _ in range(600):
    stored = client.responses.retrieve(background.id)
    if stored.status not in ("queued", "in_progress"):
        break
    time.sleep(0.1)
assert (stored.status, stored.output_text) == ("completed", "re: <m8>"), stored

endless = client.responses.create(model="myclaw", input="say it without end", background=True)
cancelled = client.responses.cancel(endless.id)
assert cancelled.status == "cancelled", cancelled
items = client.responses.input_items.list(endless.id).data
assert [item.content[0].text for item in items] == ["say it without end"], items
client.responses.delete(endless.id)

pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
seen = client.chat.completions.create(
    model="myclaw",
    messages=[{"role": "user", "content": [
        {"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": pixel}}]}],
)
assert seen.choices[0].message.content == "a picture", seen
seen = client.responses.create(
    model="myclaw",
    input=[{"role": "user", "content": [{"type": "input_image", "image_url": pixel, "detail": "auto"}]}],
)
assert seen.output_text == "a picture", seen

picture = {"filename": "p.png", "file_data": pixel}
notes = {"filename": "notes.txt", "file_data": "data:text/plain;base64," + base64.b64encode(b"<m9> in a file\n").decode()}
pdf = {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7\n").decode()}
binary = {"filename": "b.bin", "file_data": base64.b64encode(bytes(range(256))).decode()}
large = {"filename": "large.txt", "file_data": base64.b64encode(b"word " * 60_000).decode()}


def chat_about(file):
    content = [{"type": "text", "text": "what is in it?"}, {"type": "file", "file": file}]
    answer = client.chat.completions.create(model="myclaw", messages=[{"role": "user", "content": content}])
    return answer.choices[0].message.content


def respond_about(file):
    content = [{"type": "input_text", "text": "what is in it?"}, {"type": "input_file", **file}]
    return client.responses.create(model="myclaw", input=[{"role": "user", "content": content}]).output_text


for about in (chat_about, respond_about):
    assert about(picture) == "a picture", about(picture)
    assert about(notes) == "re: <m9>", about(notes)
    assert about({**notes, "file_data": notes["file_data"].partition(",")[2]}) == "re: <m9>"
    # Others are saved in the workspace, and the agent is told where.
    for file in (pdf, binary, large):
        assert about(file) == f"saved as {file['filename']}", about(file)
    for file, words in [
        ({"file_id": "file-1"}, "keeps no files"),
        ({"filename": "c.txt", "file_data": "no base64!"}, "`c.txt` is not standard base64"),
    ]:
        try:
            about(file)
        except openai.BadRequestError as error:
            assert words in str(error), error
            continue
        raise AssertionError(f"{words}: no error")

# A file and a picture at once, and a file without words.
both = [{"type": "input_file", **pdf}, {"type": "input_image", "image_url": pixel, "detail": "auto"}]
assert client.responses.create(model="myclaw", input=[{"role": "user", "content": both}]).output_text == "a picture"
alone = client.responses.create(model="myclaw", input=[{"role": "user", "content": both[:1]}])
assert alone.output_text == "saved as a.pdf", alone
asked = client.responses.input_items.list(alone.id).data[0].content
assert [(part.type, part.filename) for part in asked if part.type == "input_file"] == [("input_file", "a.pdf")], asked
try:
    client.responses.create(model="myclaw", input=[{"role": "user", "content": both[:1] * 9}])
except openai.BadRequestError as error:
    assert "at most 8 files" in str(error), error
else:
    raise AssertionError("nine files: no error")

far = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.png"}}]}]
for problem, request in [
    (openai.BadRequestError, lambda: client.chat.completions.create(model="myclaw", messages=far)),
    (openai.NotFoundError, lambda: client.responses.retrieve(endless.id)),
    (openai.NotFoundError, lambda: client.responses.delete(endless.id)),
    (openai.BadRequestError, lambda: client.chat.completions.create(model="myclaw", messages=[])),
    (openai.NotFoundError, lambda: client.responses.retrieve("resp_none")),
    (openai.AuthenticationError, lambda: client.with_options(api_key="wrong-token-wrong-token").models.list()),
]:
    try:
        request()
    except problem:
        continue
    raise AssertionError(f"no {problem.__name__}")
# Tools of this program: the client's own types read what comes, whole and streamed.
tool = {"name": "get_weather", "description": "The weather.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}
tools = [{"type": "function", "function": tool}]
asked = [{"role": "user", "content": "weather in Oslo?"}]
called = client.chat.completions.create(model="myclaw", messages=asked, tools=tools, temperature=1).choices[0]
assert called.finish_reason == "tool_calls", called
(call,) = called.message.tool_calls
assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Oslo"}'), call
result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
told = client.chat.completions.create(model="myclaw", messages=[*asked, called.message, result], tools=tools).choices[0]
assert (told.message.content, told.finish_reason) == ("it is sunny", "stop"), told
with client.chat.completions.stream(model="myclaw", messages=asked, tools=tools) as stream:
    stream.until_done()
    whole = stream.get_final_completion().choices[0]
assert whole.message.tool_calls[0].function.name == "get_weather", whole

flat = [{"type": "function", "strict": False, **tool}]
first = client.responses.create(model="myclaw", input="weather in Oslo?", tools=flat)
(item,) = [item for item in first.output if item.type == "function_call"]
output = {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
second = client.responses.create(model="myclaw", input=[output], previous_response_id=first.id, tools=flat)
assert second.output_text == "it is sunny", second
# As programs without state do it: all of it again.
again = [{"role": "user", "content": "weather in Oslo?"}, *[item.model_dump() for item in first.output], output]
assert client.responses.create(model="myclaw", input=again, store=False).output_text == "it is sunny"
with client.responses.stream(model="myclaw", input="weather in Oslo?", tools=flat) as stream:
    kinds = [event.type for event in stream]
    assert "response.function_call_arguments.done" in kinds, kinds
    assert stream.get_final_response().output[0].arguments == '{"city":"Oslo"}'

form = {"type": "json_schema", "json_schema": {"name": "place", "schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}}
placed = client.chat.completions.create(
    model="myclaw", messages=[{"role": "user", "content": "as JSON"}], response_format=form, max_tokens=50)
assert placed.choices[0].message.content == '{"city":"Oslo"}', placed
try:
    client.chat.completions.create(model="myclaw", messages=asked, seed=7)
except openai.BadRequestError as error:
    assert error.param == "seed", error
else:
    raise AssertionError("a seed, which the model's protocol has not: no error")
print("passed")
