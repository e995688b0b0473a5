"""A server made with the Python SDK of the Model Context Protocol."""
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


server.run(transport="stdio")
