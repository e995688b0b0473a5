"""A server made with the Python SDK of the Model Context Protocol: over standard input, or at the port that is its argument."""
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 1) -> str:
    """The weather of the next days"""
    return f"{days} sunny days in {city}"


@server.tool()
def stations() -> dict[str, int]:
    """How many stations there are"""
    return {"Bonn": 3}


if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run(transport="stdio")
