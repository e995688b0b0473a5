"""The client under test of the conformance suite for the Model Context Protocol: the program itself.

PROGRAM_UNDER_TEST names it, the last argument the server. It logs in if it is told to, approves the tools, and calls each of them
once, as a model on this machine says.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROGRAM, SERVER = os.environ["PROGRAM_UNDER_TEST"], sys.argv[-1]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
home = tempfile.mkdtemp(prefix="myclaw-conformance-")
results = []


def value(schema):
    """Some value that fits."""
    if "const" in schema or "enum" in schema or "default" in schema:
        return schema.get("const", schema.get("default", schema.get("enum", [None])[0]))
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    known = {"number": 5, "integer": 5, "boolean": True, "string": "text", "array": [], "null": None}
    if kind == "object":
        return {name: value(about) for name, about in schema.get("properties", {}).items()}
    return known[kind]


def calls_of(tools):
    """The calls to make: those that the scenario wants, or one of each tool."""
    wanted = CONTEXT.get("toolCalls")
    if wanted is not None:
        return [("conf__" + call["name"], call.get("arguments", {})) for call in wanted]
    return [(tool["name"], value(tool["input_schema"])) for tool in tools]


class Model(BaseHTTPRequestHandler):
    """Makes the calls in its first answer, and ends with the second."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tools = [tool for tool in request.get("tools", []) if tool["name"].startswith("conf__")]
        last = request["messages"][-1]["content"]
        found = [block for block in last if isinstance(block, dict) and block["type"] == "tool_result"]
        results.extend(json.dumps(block["content"]) for block in found)
        events = [{"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}]
        if tools and not found:
            for index, (name, arguments) in enumerate(calls_of(tools)):
                block = {"type": "tool_use", "id": "t%d" % index, "name": name, "input": {}}
                given = json.dumps(arguments)
                events += [{"type": "content_block_start", "index": index, "content_block": block},
                           {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": given}},
                           {"type": "content_block_stop", "index": index}]
        else:
            events += [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}},
                       {"type": "content_block_stop", "index": 0}]
        why = "tool_use" if tools and not found else "end_turn"
        events += [{"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 2}}, {"type": "message_stop"}]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(("event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event))).encode())


def program(*arguments):
    environment = {"HOME": home, "PATH": os.environ["PATH"], "MYCLAW_LOCAL_SERVERS": "none"}
    return subprocess.Popen([PROGRAM, *arguments], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def run(*arguments):
    child = program(*arguments)
    said, _ = child.communicate(timeout=60)
    print(" ".join(arguments), "->", child.returncode, said, flush=True)
    return child.returncode, said


def log_in(said):
    """Logs in as the message of the program says; whether that worked."""
    command = ["mcp", "login", "conf"]
    scope = re.search(r"mcp login conf --scope '([^']*)'", said)
    command += ["--scope", scope.group(1)] if scope else []
    child = program(*command)
    for line in child.stdout:
        print("login:", line, end="", flush=True)
        address = re.search(r"https?://\S+", line)
        if address:
            try:
                urllib.request.urlopen(address.group(0), timeout=10).read()
            except urllib.error.HTTPError as error:
                print("the browser got", error)
            break
    said, _ = child.communicate(timeout=30)
    print(said, flush=True)
    return child.returncode == 0


def with_logins(work):
    """Does the work, and again after each login that it asks for."""
    code, said = work()
    for _ in range(3):
        if "mcp login conf" not in said or not log_in(said):
            break
        code, said = work()
    return code


def calls():
    results.clear()
    code, said = run("run", "go on")
    return code, said + " ".join(results)


model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=model.serve_forever, daemon=True).start()
server = {"url": SERVER, "timeoutSeconds": 20, "auth": {"clientMetadataUrl": DOCUMENT}}
if "client_id" in CONTEXT:
    server["auth"] = {"clientId": CONTEXT["client_id"], "clientSecret": CONTEXT.get("client_secret", "none")}
config = {
    "provider": {"name": "anthropic", "model": "claude-sonnet-4-20250514", "baseUrl": "http://127.0.0.1:%d" % model.server_address[1],
                 "authProfiles": [{"id": "primary", "apiKey": "test-key"}]},
    "mcp": {"servers": {"conf": server}},
}
os.makedirs(home + "/.myclaw")
with open(home + "/.myclaw/myclaw.json", "w") as file:
    json.dump(config, file)
code = with_logins(lambda: run("mcp", "approve", "conf", "--yes"))
if code == 0:
    code = with_logins(calls)
    print("results:", results)
sys.exit(code)
