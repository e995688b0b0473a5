// An editor made with the protocol's official TypeScript SDK. It drives an agent through a conversation, a
// cancellation and a second process that loads the conversation, and prints what it saw as one JSON object.
//
//   node acp-client.mjs SDK-PACKAGE DIRECTORY AGENT [ARGUMENT ...]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, agent, ...args] = process.argv.slice(2);
const file = (name) => import(pathToFileURL(join(sdk, "dist", "v1", name)).href);
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await file("stable/acp.js");
// The SDK checks notifications by itself, and answers by their types alone.
const schema = await file("schema/zod.gen.js");

// Where the SDK meets something that it does not understand, it says so there.
const complaints = [];
console.error = (...words) => complaints.push(words.map(String).join(" "));
console.warn = console.error;

/** Runs `work` with an agent of its own. */
async function connected(work) {
  const child = spawn(agent, args, { stdio: ["pipe", "pipe", "inherit"] });
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const updates = [];
  let onUpdate = () => {};
  const editor = client({ name: "third-party" }).onNotification(
    methods.client.session.update,
    ({ params }) => {
      updates.push(params.update);
      onUpdate(params.update);
    },
  );
  const result = await editor.connectWith(stream, async (context) => {
    const initialized = schema.zInitializeResponse.parse(
      await context.request(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: {},
      }),
    );
    const seen = (wanted) =>
      new Promise((resolve) => {
        onUpdate = (update) => update.sessionUpdate === wanted && resolve();
      });
    return { initialized, ...(await work({ context, updates, seen })) };
  });
  child.stdin.end();
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  return { ...result, code };
}

const text = (updates, kind) =>
  updates
    .filter((update) => update.sessionUpdate === kind)
    .map((update) => update.content.text)
    .join("");

const say = async (context, sessionId, words) =>
  schema.zPromptResponse.parse(
    await context.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: words }],
    }),
  ).stopReason;

const first = await connected(async ({ context, updates, seen }) => {
  const session = schema.zNewSessionResponse.parse(
    await context.request(methods.agent.session.new, { cwd, mcpServers: [] }),
  );
  const { sessionId } = session;
  const answered = await say(context, sessionId, "hello");
  const told = text(updates, "agent_message_chunk");
  const started = seen("tool_call");
  const waiting = say(context, sessionId, "wait for me");
  await started;
  await context.notify(methods.agent.session.cancel, { sessionId });
  const cancelled = await waiting;
  const calls = updates
    .filter((update) => update.sessionUpdate.startsWith("tool_call"))
    .map((update) => update.status);
  return { sessionId, answered, told, cancelled, calls };
});

const second = await connected(async ({ context, updates }) => {
  const { sessionId } = first;
  const list = schema.zListSessionsResponse.parse(
    await context.request(methods.agent.session.list, {}),
  );
  schema.zLoadSessionResponse.parse(
    await context.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] }),
  );
  const said = text(updates, "user_message_chunk");
  const told = text(updates, "agent_message_chunk");
  const answered = await say(context, sessionId, "and now?");
  const error = await say(context, "nobody", "hello?").catch((error) => error.code);
  return { listed: list.sessions.map((session) => session.title), said, told, answered, error };
});

console.log(JSON.stringify({ first, second, complaints }));
