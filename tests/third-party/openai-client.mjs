// OpenAI's client for Node.js against the gateway: OPENAI=… GATEWAY=http://… TOKEN=… node openai-client.mjs
// What the model answers is in crates/cli/tests/gateway/openai.rs.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { OPENAI, GATEWAY, TOKEN } = process.env;
const { default: OpenAI } = await import(pathToFileURL(join(OPENAI, "index.mjs")).href);
const client = new OpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: TOKEN, maxRetries: 0 });

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.deepEqual(models, ["myclaw"]);

const whole = await client.chat.completions.create({ model: "myclaw", messages: [{ role: "user", content: "say many words" }] });
const text = whole.choices[0].message.content;
assert.match(text, /^(word ?){20}$/);
assert(whole.usage.total_tokens > 0);

const stream = await client.chat.completions.create({
  model: "myclaw",
  messages: [{ role: "user", content: "say many words" }],
  stream: true,
  stream_options: { include_usage: true },
});
const pieces = [];
let usage = null;
let finish = null;
for await (const chunk of stream) {
  if (chunk.usage) usage = chunk.usage;
  finish = chunk.choices[0]?.finish_reason ?? finish;
  const piece = chunk.choices[0]?.delta?.content;
  if (piece) pieces.push(piece);
}
assert.equal(pieces.join("").trimEnd(), text.trimEnd());
assert(pieces.length > 3, `the answer came in ${pieces.length} pieces`);
assert.equal(finish, "stop");
assert(usage.prompt_tokens > 0 && usage.completion_tokens > 0);

const first = await client.responses.create({ model: "myclaw", input: "<m1>" });
assert.equal(first.output_text, "re: <m1>");
assert.equal(first.status, "completed");
const second = await client.responses.create({ model: "myclaw", input: "<m2>", previous_response_id: first.id });
assert.equal(second.output_text, "re: <m2>, after <m1>");
// Another branch from the first knows nothing of the second.
const branch = await client.responses.create({ model: "myclaw", input: "<m3>", previous_response_id: first.id });
assert.equal(branch.output_text, "re: <m3>, after <m1>");
const stored = await client.responses.retrieve(second.id);
assert.equal(stored.output_text, "re: <m2>, after <m1>");
await assert.rejects(client.responses.create({ model: "myclaw", input: "x", previous_response_id: "resp_none" }), OpenAI.NotFoundError);

const kinds = [];
let streamed = "";
for await (const event of await client.responses.create({ model: "myclaw", input: "say many words", stream: true })) {
  if (kinds.at(-1) !== event.type) kinds.push(event.type);
  if (event.type === "response.output_text.delta") streamed += event.delta;
  if (event.type === "response.completed") assert(event.response.usage.total_tokens > 0);
}
assert.equal(streamed.trimEnd(), text.trimEnd());
assert.deepEqual(kinds, [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
  "response.completed",
]);
// The client's own helper builds the same response from the events.
const final = await client.responses.stream({ model: "myclaw", input: "say many words" }).finalResponse();
assert.equal(final.output_text.trimEnd(), text.trimEnd());

const stranger = new OpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: "wrong-token-wrong-token", maxRetries: 0 });
await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
await assert.rejects(client.chat.completions.create({ model: "myclaw", messages: [] }), OpenAI.BadRequestError);
// The client's own loop calls the function and sends its result.
const runner = client.chat.completions.runTools({
  model: "myclaw",
  messages: [{ role: "user", content: "weather in Oslo?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather.",
        parameters: { type: "object", properties: { city: { type: "string" } } },
        parse: JSON.parse,
        function: ({ city }) => (city === "Oslo" ? "sunny" : "unknown"),
      },
    },
  ],
});
assert.equal(await runner.finalContent(), "it is sunny");
const streaming = client.chat.completions.runTools({
  model: "myclaw",
  stream: true,
  messages: [{ role: "user", content: "weather in Oslo?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather.",
        parameters: { type: "object", properties: { city: { type: "string" } } },
        parse: JSON.parse,
        function: () => "sunny",
      },
    },
  ],
});
assert.equal(await streaming.finalContent(), "it is sunny");
console.log("passed");
