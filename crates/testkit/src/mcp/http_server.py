#!/usr/bin/env python3
"""An MCP server behind HTTP whose tools misbehave in all the ways of servers, and an authorization server.

Modes: sessions (2025-11-25), stateless (2026-07-28 only), old (the transport of 2024-11-05), busy (stateless, and answers the
first request too late), agreeing (busy, and answers `initialize` with its revision), closing (stateless, and closes the
connection of the first request of each method: of the list of tools in the middle of the answer), noting (stateless, with a
resource that the tool edit changes), noting_sessions (the same with sessions), astray (old, and wants requests at another origin). The second argument is a file: each
request becomes a line of JSON in it. The third is JSON: if it is not empty, the server wants a login, and its authorization
server, which has the same address, has these faults; the path that is the value of away leads to another origin. The first line of the output is the port.
"""
import base64
import hashlib
import json
import queue
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, LOG, OAUTH = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
ASTRAY = MODE == "astray"
MODE = "old" if ASTRAY else MODE
BUSY, AGREES = MODE in ("busy", "agreeing"), MODE == "agreeing"
CLOSES = MODE == "closing"
NOTES = MODE.startswith("noting")
MODE = "sessions" if MODE == "noting_sessions" else "stateless" if BUSY or CLOSES or NOTES else MODE
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
BROKEN = {"type": "object", "properties": {"region": {"type": "array", "x-mcp-header": "Region"}}}
NAMES = ["echo", "json", "count", "cut", "cut_for_ever", "html", "five", "forget", "away", "nearby", "unauthorized", "forbidden",
         "flood", "silent", "other", "empty", "half", "change", "revoke", "revoke_all", "edit"]
TOOLS = [{"name": name, "description": "Does " + name, "inputSchema": TEXT} for name in NAMES]
TOOLS += [{"name": name, "description": "Does " + name, "inputSchema": NUMBER} for name in ["slow", "huge", "huge_stream"]]
TOOLS += [{"name": "region", "description": "Says its header", "inputSchema": REGION},
          {"name": "broken", "description": "Wants an impossible header", "inputSchema": BROKEN}]

WELL_KNOWN = "/.well-known/oauth-"
codes, access, refresh = {}, set(), set()
lock = threading.Lock()
sessions, streams, kept, closed = set(), {}, {}, set()
state = {"made": 0, "count": 0, "changed": False, "delayed": False, "note": "Buy milk.", "watched": False}
# Held while the note is changed.
edits = threading.Condition()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def record(self, body):
        line = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        with lock, open(LOG, "a") as log:
            log.write(json.dumps(line) + "\n")

    def plain(self, status, body=b"", kind="application/json", **headers):
        if not isinstance(body, bytes):
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        if kind and body:
            self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, **headers):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def event(self, message, **fields):
        lines = [f"{name}: {value}" for name, value in fields.items()]
        lines.append("data: " + (message if isinstance(message, str) else json.dumps(message)))
        self.wfile.write(("\n".join(lines) + "\n\n").encode())
        self.wfile.flush()

    def session(self):
        return self.headers.get("mcp-session-id")

    def do_DELETE(self):
        self.record(None)
        with lock:
            sessions.discard(self.session())
        self.plain(200)

    def is_away(self):
        """Whether the path leads elsewhere, which is then said."""
        if not OAUTH.get("away") or not self.path.startswith(OAUTH["away"]):
            return False
        self.plain(307, location="http://localhost:%d/stolen" % PORT)
        return True

    def is_refused(self):
        """Whether there is no login, which is then said."""
        if not OAUTH or self.headers.get("authorization", "")[7:] in access:
            return False
        where = "http://127.0.0.1:%d%sprotected-resource/mcp" % (PORT, WELL_KNOWN)
        asks = 'Bearer realm="x", resource_metadata="%s", scope="read"' % where
        self.plain(401, {"error": "invalid_token"}, www_authenticate=asks)
        return True

    def describe(self):
        """Answers what is asked about the login; whether that was it."""
        me = "http://127.0.0.1:%d" % PORT
        path, _, query = self.path.partition("?")
        if path == WELL_KNOWN + "protected-resource/mcp":
            self.plain(200, {"resource": OAUTH.get("resource", me + "/mcp"), "authorization_servers": [me], "scopes_supported": ["all"]})
        elif path == WELL_KNOWN + "authorization-server":
            about = {"issuer": OAUTH.get("issuer", me), "authorization_endpoint": me + "/authorize", "token_endpoint": me + "/token",
                     "registration_endpoint": me + "/register", "code_challenge_methods_supported": ["plain", "S256"],
                     "authorization_response_iss_parameter_supported": True, "scopes_supported": ["read", "offline_access"],
                     "token_endpoint_auth_methods_supported": [OAUTH.get("proof", "none")]}
            about.update(OAUTH.get("about", {}))
            self.plain(200, {name: value for name, value in about.items() if value is not None})
        elif path == "/authorize":
            asked = dict(urllib.parse.parse_qsl(query))
            code = "code-%d" % len(codes)
            codes[code] = asked
            answer = {"code": code, "state": asked["state"], "iss": OAUTH.get("iss", me)}
            if OAUTH.get("deny"):
                answer = {"error": "access_denied", "state": asked["state"], "iss": me}
            answer = {name: value for name, value in answer.items() if value}
            self.plain(302, location=asked["redirect_uri"] + "?" + urllib.parse.urlencode(answer))
        else:
            return False
        return True

    def tokens(self):
        """New tokens; the old ones are good no more."""
        number = state["tokens"] = state.get("tokens", 0) + 1
        access.add("access-%d-0123456789" % number)
        refresh.clear()
        refresh.add("refresh-%d-0123456789" % number)
        return self.plain(200, {"access_token": "access-%d-0123456789" % number, "token_type": "Bearer", "scope": "read",
                                "refresh_token": "refresh-%d-0123456789" % number, "expires_in": OAUTH.get("lifetime", 3600)})

    def exchange(self, form):
        if OAUTH.get("proof") == "client_secret_basic":
            if self.headers.get("authorization") != "Basic " + base64.b64encode(b"client:secret-0123456789").decode():
                return self.plain(401, {"error": "invalid_client"})
        elif form.get("client_id") != "client":
            return self.plain(401, {"error": "invalid_client"})
        if form.get("resource") != "http://127.0.0.1:%d/mcp" % PORT:
            return self.plain(400, {"error": "invalid_target"})
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in refresh:
                # Somebody has stolen it.
                access.clear(), refresh.clear()
                return self.plain(400, {"error": "invalid_grant", "error_description": form["refresh_token"] + " was used"})
            if OAUTH.pop("lost_renewal", None):
                # The new tokens are on their way for longer than the client lives.
                refresh.clear()
                time.sleep(30)
            return self.tokens()
        asked = codes.pop(form["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if not asked or digest != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return self.plain(400, {"error": "invalid_grant"})
        return self.tokens()

    def do_GET(self):
        self.record(None)
        if self.is_away():
            return
        if OAUTH and self.describe():
            return
        if self.is_refused():
            return
        if self.path == "/moved":
            return self.plain(200, "<html>moved</html>", "text/html")
        if MODE == "stateless":
            return self.plain(405)
        if MODE == "old":
            name = str(len(streams))
            streams[name] = queue.Queue()
            self.stream()
            self.event(("http://localhost:%d" % PORT if ASTRAY else "") + "/messages?session=" + name, event="endpoint")
            return self.pour(streams[name])
        last = self.headers.get("last-event-id")
        if last and last.startswith("cut-"):
            self.stream()
            time.sleep(0.05)
            return self.event(kept.pop(last), id=last + "-end")
        if self.session() not in sessions:
            return self.plain(404)
        self.stream()
        said = state["note"]
        for _ in range(600):
            if said != state["note"] and state["watched"]:
                said = state["note"]
                self.event({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "notes://today"}})
            if state["changed"]:
                state["changed"] = False
                self.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            self.wfile.write(b": alive\n\n")
            self.wfile.flush()
            time.sleep(0.1)

    def pour(self, messages):
        while True:
            try:
                self.event(messages.get(timeout=0.5), event="message")
            except queue.Empty:
                self.wfile.write(b": alive\n\n")
                self.wfile.flush()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        is_form = "form" in self.headers["content-type"]
        body = dict(urllib.parse.parse_qsl(body)) if is_form else json.loads(body)
        self.record(body)
        if self.is_away():
            return
        if OAUTH and self.path == "/register":
            return self.plain(201, {"client_id": "client", "client_secret": "secret-0123456789" if "proof" in OAUTH else None, **body})
        if OAUTH and self.path == "/token":
            with lock:
                return self.exchange(body)
        if self.is_refused():
            return
        if MODE == "old":
            if not self.path.startswith("/messages"):
                return self.plain(404, "<html>Cannot POST</html>", "text/html")
            self.plain(202)
            answer = self.answer(body)
            if answer:
                streams[self.path.split("=")[1]].put(answer)
            return
        if MODE == "sessions" and body["method"] != "initialize" and body["method"] != "server/discover":
            if self.session() is None:
                return self.plain(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: session id is missing"}})
            if self.session() not in sessions:
                return self.plain(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
            if self.headers.get("mcp-protocol-version") != "2025-11-25":
                return self.plain(400, "no version")
        if MODE == "sessions" and body["method"] == "server/discover":
            return self.plain(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: Server not initialized"}})
        if CLOSES and body["method"] not in closed:
            closed.add(body["method"])
            self.close_connection = True
            if body["method"] == "tools/list":
                self.wfile.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"jsonrpc": "2.0", ')
            return
        if BUSY and body["method"] == "server/discover" and not state["delayed"]:
            state["delayed"] = True
            time.sleep(16)
        if AGREES and body["method"] == "initialize":
            result = {"protocolVersion": "2026-07-28", "capabilities": {"tools": {}}, "serverInfo": {"name": "remote", "version": "2"}}
            return self.plain(200, {"jsonrpc": "2.0", "id": body["id"], "result": result})
        if MODE == "stateless" and not self.is_whole(body):
            return self.plain(400, {"jsonrpc": "2.0", "id": body.get("id"), "error": {"code": -32020, "message": "the headers do not fit"}})
        if "id" not in body:
            return self.plain(202)
        if NOTES and body["method"] == "subscriptions/listen":
            return self.tell(body)
        if body["method"] == "tools/call" and hasattr(self, "do_" + body["params"]["name"]):
            arguments = body["params"].get("arguments", {})
            return getattr(self, "do_" + body["params"]["name"])(body, arguments)
        answer = self.answer(body)
        if body["method"] == "initialize":
            with lock:
                state["made"] += 1
                name = "session-%d" % state["made"]
                sessions.add(name)
            return self.plain(200, answer, mcp_session_id=name)
        if body["method"] == "tools/call" and body["params"]["name"] == "echo":
            self.stream()
            return self.event(answer)
        self.plain(404 if "error" in answer else 200, answer)

    def is_whole(self, body):
        params = body.get("params", {})
        wanted = {"mcp-protocol-version": params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion"), "mcp-method": body["method"]}
        if body["method"] == "tools/call":
            wanted["mcp-name"] = params["name"]
        return all(self.headers.get(name) == value for name, value in wanted.items())

    def answer(self, body):
        method, params = body["method"], body.get("params", {})
        result = None
        if method == "initialize" and MODE != "stateless":
            version = "2024-11-05" if MODE == "old" else "2025-11-25"
            able = {"tools": {}, "resources": {"subscribe": True}} if NOTES else {"tools": {}}
            result = {"protocolVersion": version, "capabilities": able, "serverInfo": {"name": "remote", "version": "1"}}
        elif method == "resources/subscribe" and MODE == "sessions":
            state["watched"], result = params["uri"] == "notes://today", {}
        elif method == "server/discover" and MODE == "stateless":
            able = {"tools": {}, "resources": {"subscribe": True}} if NOTES else {"tools": {}}
            result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": able,
                      "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "remote", "version": "2"}}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif NOTES and method == "resources/list":
            result = {"resources": [{"uri": "notes://today", "name": "today"}]}
        elif NOTES and method == "resources/read":
            result = {"contents": [{"uri": params["uri"], "text": state["note"]}]}
        elif method == "tools/call":
            words = params.get("arguments", {}).get("text", "")
            if params["name"] == "count":
                state["count"] += 1
                words = str(state["count"])
            if params["name"] == "change":
                TOOLS[0]["description"], state["changed"] = "Does something else", True
            if params["name"].startswith("revoke"):
                access.clear()
            if params["name"] == "revoke_all":
                refresh.clear()
            if params["name"] == "region":
                words = self.headers.get("mcp-param-region", "(none)")
            result = text(params["name"] + ": " + words)
        if "id" not in body:
            return None
        if result is None:
            return {"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32601, "message": "Method not found"}}
        return {"jsonrpc": "2.0", "id": body["id"], "result": result}

    def tell(self, body):
        """Says what changes, until the client hangs up."""
        about = {"_meta": {"io.modelcontextprotocol/subscriptionId": body["id"]}}
        wanted, said = body["params"]["notifications"], state["note"]
        self.stream()
        self.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {**about, "notifications": wanted}})
        with edits:
            while True:
                if said != state["note"] and "notes://today" in wanted.get("resourceSubscriptions", []):
                    said = state["note"]
                    self.event({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {**about, "uri": "notes://today"}})
                self.wfile.write(b": alive\n\n")
                self.wfile.flush()
                edits.wait(0.2)

    def do_edit(self, body, arguments):
        with edits:
            state["note"] = arguments["text"]
            edits.notify_all()
        self.plain(200, self.answer(body))

    def do_slow(self, body, arguments):
        self.stream()
        token = body["params"].get("_meta", {}).get("progressToken")
        for step in range(arguments["n"]):
            time.sleep(0.1)
            report = {"progressToken": token, "progress": step + 1, "total": arguments["n"]}
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})
        self.event(self.answer(body))

    def do_cut(self, body, arguments):
        """Breaks off after its first event, and goes on where the client takes it up again."""
        name = "cut-%s" % body["id"]
        kept[name] = self.answer(body)
        self.stream()
        self.event("", id=name, retry=50)

    def do_cut_for_ever(self, body, arguments):
        self.stream()
        self.wfile.write(b'data: {"jsonrpc": "2.0", "id": ')

    def do_html(self, body, arguments):
        self.plain(200, "<html>Sign in to the hotel</html>", "text/html; charset=utf-8")

    def do_five(self, body, arguments):
        self.plain(503, "the database is gone", "text/plain")

    def do_forget(self, body, arguments):
        with lock:
            sessions.clear()
        self.plain(200, self.answer(body))

    def do_away(self, body, arguments):
        self.plain(307, location="http://localhost:%d/elsewhere" % PORT)

    def do_nearby(self, body, arguments):
        if self.path == "/nearby":
            return self.plain(200, self.answer(body))
        self.plain(307, location="/nearby")

    def do_unauthorized(self, body, arguments):
        self.plain(401, "who are you", "text/plain", www_authenticate='Bearer realm="x"')

    def do_forbidden(self, body, arguments):
        self.plain(403, "not you", "text/plain")

    def do_flood(self, body, arguments):
        self.stream()
        while True:
            self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "y" * (1 << 20)}})

    def do_silent(self, body, arguments):
        time.sleep(30)

    def do_other(self, body, arguments):
        self.plain(200, {"jsonrpc": "2.0", "id": 999999, "result": text("wrong")})

    def do_empty(self, body, arguments):
        self.plain(202)

    def do_half(self, body, arguments):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"jsonrpc"')
        self.close_connection = True

    def do_huge(self, body, arguments):
        answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": text("x" * (arguments["n"] << 20))})
        self.plain(200, answer)

    def do_huge_stream(self, body, arguments):
        self.stream()
        self.event({"jsonrpc": "2.0", "id": body["id"], "result": text("x" * (arguments["n"] << 20))})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
PORT = server.server_address[1]
print(PORT, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
# Ends with the test that has started it.
sys.stdin.read()
