#!/usr/bin/env python3
"""A language server for which each word BAD is an error. `mode.txt` next to it says how it reports: push (by itself), pull (when
asked), late (push, once the file `go` is there), deaf (never), noise (no messages). It adds its process id to `started.txt`.
"""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODE = open(os.path.join(HERE, "mode.txt")).read().strip()
try:
    with open(os.path.join(HERE, "started.txt"), "a") as started:
        started.write(f"{os.getpid()}\n")
except OSError:
    # A sandbox.
    pass
texts = {}


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    sys.stdout.buffer.flush()


def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            break
        name, value = line.decode().split(":", 1)
        if name.lower() == "content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length))


def problems(text):
    for number, line in enumerate(text.split("\n")):
        at = line.find("BAD")
        if at >= 0:
            place = {"line": number, "character": at}
            yield {"range": {"start": place, "end": place}, "severity": 1, "code": "bad", "message": f"{line.strip()} has BAD"}
        if "ODD" in line:
            place = {"line": number, "character": 0}
            yield {"range": {"start": place, "end": place}, "severity": 2, "message": "a warning"}


def report(uri, version):
    if MODE in ("push", "late"):
        found = list(problems(texts[uri]))
        # In two steps, as servers do that know the syntax first.
        for part in (found[:1], found):
            params = {"uri": uri, "version": version, "diagnostics": part}
            send({"method": "textDocument/publishDiagnostics", "params": params})


if MODE == "noise":
    print("hello, this is not a message\n" * 1000, flush=True)
while True:
    message = read()
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        while MODE == "late" and not os.path.exists(os.path.join(HERE, "go")):
            time.sleep(0.02)
        if MODE == "deaf":
            continue
        capabilities = {"textDocumentSync": 1}
        if MODE == "pull":
            capabilities["diagnosticProvider"] = {"interFileDependencies": True, "workspaceDiagnostics": False}
        send({"id": message["id"], "result": {"capabilities": capabilities}})
        send({"id": 1, "method": "workspace/configuration", "params": {"items": [{"section": "python"}]}})
    elif method == "textDocument/didOpen":
        document = params["textDocument"]
        texts[document["uri"]] = document["text"]
        report(document["uri"], document["version"])
    elif method == "textDocument/didChange":
        document = params["textDocument"]
        texts[document["uri"]] = params["contentChanges"][-1]["text"]
        report(document["uri"], document["version"])
    elif method == "textDocument/diagnostic":
        items = list(problems(texts[params["textDocument"]["uri"]]))
        send({"id": message["id"], "result": {"kind": "full", "items": items}})
