"""An editor made with the Python SDK of the Agent Client Protocol. It offers its files and terminals, has unsaved changes
in one file, and prints what it saw as one JSON object.

    python acp_client.py DIRECTORY AGENT [ARGUMENT ...]
"""

import asyncio
import json
import sys
from pathlib import Path

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)


class Editor:
    def __init__(self, unsaved):
        # The texts of open files, by path.
        self.open = dict(unsaved)
        self.terminals = {}
        self.seen = {"read": [], "written": [], "commands": [], "asked": 0, "plans": [], "shown": [], "text": ""}

    async def request_permission(self, options, **_):
        self.seen["asked"] += 1
        option = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def session_update(self, update, **_):
        kind = update.session_update
        if kind == "plan":
            self.seen["plans"].append([[entry.content, entry.status] for entry in update.entries])
        elif kind == "agent_message_chunk":
            self.seen["text"] += update.content.text
        elif kind == "tool_call_update":
            for content in update.content or []:
                if content.type == "terminal":
                    self.seen["shown"].append(content.terminal_id)

    async def read_text_file(self, path, **_):
        self.seen["read"].append(Path(path).name)
        return ReadTextFileResponse(content=self.open.get(path) or Path(path).read_text())

    async def write_text_file(self, path, content, **_):
        self.seen["written"].append([Path(path).name, content])
        self.open.pop(path, None)
        Path(path).write_text(content)

    async def create_terminal(self, command, args=None, cwd=None, **_):
        self.seen["commands"].append((args or [])[-1])
        process = await asyncio.create_subprocess_exec(
            command, *(args or []), cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        terminal = f"terminal-{len(self.terminals) + 1}"
        self.terminals[terminal] = {"process": process, "output": b"", "done": asyncio.Event()}
        asyncio.create_task(self.collect(self.terminals[terminal]))
        return CreateTerminalResponse(terminal_id=terminal)

    async def collect(self, terminal):
        terminal["output"] = await terminal["process"].stdout.read()
        await terminal["process"].wait()
        terminal["done"].set()

    async def wait_for_terminal_exit(self, terminal_id, **_):
        terminal = self.terminals[terminal_id]
        await terminal["done"].wait()
        return WaitForTerminalExitResponse(exit_code=max(terminal["process"].returncode, 0))

    async def terminal_output(self, terminal_id, **_):
        terminal = self.terminals[terminal_id]
        return TerminalOutputResponse(output=terminal["output"].decode(), truncated=False)

    async def kill_terminal(self, terminal_id, **_):
        self.terminals[terminal_id]["process"].kill()

    async def release_terminal(self, terminal_id, **_):
        self.seen.setdefault("released", []).append(terminal_id)

    def on_connect(self, conn):
        pass


async def main(directory, agent, *arguments):
    file = str(Path(directory) / "notes.txt")
    editor = Editor({file: "one\ntwo, not saved\n"})
    async with spawn_agent_process(editor, agent, *arguments) as (connection, process):
        await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
            ),
        )
        session = await connection.new_session(cwd=directory, mcp_servers=[])
        answer = await connection.prompt(session_id=session.session_id, prompt=[text_block("work")])
    editor.seen["answered"] = answer.stop_reason
    editor.seen["file"] = Path(file).read_text()
    print(json.dumps(editor.seen))


asyncio.run(main(*sys.argv[1:]))
