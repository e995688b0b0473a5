// A client made with the TypeScript SDK of the Model Context Protocol: asks MyClaw, approves what it asks, reads the session,
// and prints what it saw as one JSON object.
//
//     node mcp-client.mjs PACKAGES legacy|2026-07-28 stdio COMMAND [ARGUMENT ...]
//     node mcp-client.mjs PACKAGES legacy|2026-07-28 http URL TOKEN
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, mode, transport, ...target] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(packages, "client/dist", file)).href);
const { Client, StreamableHTTPClientTransport } = await load("index.mjs");

const versionNegotiation = { mode: mode === "legacy" ? "legacy" : { pin: mode } };
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} }, versionNegotiation });
const seen = { asked: [], progress: [] };
client.setRequestHandler("elicitation/create", async (request) => {
    seen.asked.push(request.params.message);
    return { action: "accept", content: { answer: "once" } };
});
if (transport === "stdio") {
    const { StdioClientTransport } = await load("stdio.mjs");
    const [command, ...args] = target;
    await client.connect(new StdioClientTransport({ command, args, env: process.env }));
} else {
    const headers = { Authorization: `Bearer ${target[1]}` };
    await client.connect(new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } }));
}
seen.revision = client.getNegotiatedProtocolVersion();
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const onprogress = (progress) => seen.progress.push(progress.message);
const answer = await client.callTool({ name: "ask", arguments: { message: "go" } }, { onprogress });
seen.reply = answer.structuredContent.reply;
const read = await client.callTool({ name: "session_read", arguments: { session: answer.structuredContent.session } });
seen.read = read.structuredContent.messages.map((message) => message.text);
await client.close();
console.log(JSON.stringify(seen));
