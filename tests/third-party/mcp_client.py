"""A client made with the Python SDK of the Model Context Protocol: asks MyClaw, approves what it asks, reads the session, and
prints what it saw as one JSON object.

    python mcp_client.py legacy|2026-07-28 stdio COMMAND [ARGUMENT ...]
    python mcp_client.py legacy|2026-07-28 http URL TOKEN
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def main(mode, transport, *target):
    seen = {"asked": [], "progress": []}

    async def approve(_context, params):
        seen["asked"].append(params.message)
        return ElicitResult(action="accept", content={"answer": "once"})

    async def progress(_progress, _total, message):
        seen["progress"].append(message)

    if transport == "stdio":
        server = StdioServerParameters(command=target[0], args=list(target[1:]), env=dict(os.environ))
        streams = stdio_client(server)
    else:
        headers = {"Authorization": f"Bearer {target[1]}"}
        streams = streamable_http_client(target[0], http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    async with Client(streams, mode=mode, elicitation_callback=approve) as client:
        seen["revision"] = client.protocol_version
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("ask", {"message": "go"}, progress_callback=progress)
        seen["reply"] = answer.structured_content["reply"]
        session = {"session": answer.structured_content["session"]}
        read = await client.call_tool("session_read", session)
        seen["read"] = [message["text"] for message in read.structured_content["messages"]]
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
