//! Help texts of `myclaw mcp`.

pub(in crate::args) const MCP: &str = "\
Add, test, approve and list MCP servers: programs and addresses whose tools the agent uses. The servers are in `mcp.servers` of the config \
file; the tools of `files` are `files__read` and so on.

A model is shown the tools of a server as you approved them. What changes later stays off until you approve the difference. \
A program runs in a sandbox: it reads its own installation and the paths among its arguments, and reaches no host, unless you \
permit more. docs/use/mcp.md";

pub(in crate::args) const MCP_EXAMPLES: &str = "\
Examples:
  myclaw mcp add files --read ~/Documents -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
  myclaw mcp add github --env GITHUB_TOKEN --allow-host api.github.com -- github-mcp-server stdio
  myclaw mcp add docs --url https://docs.example.com/mcp
  myclaw mcp import --from claude-code
  myclaw mcp approve files
  myclaw mcp list
  myclaw mcp test files
  myclaw mcp serve";

pub(in crate::args) const MCP_ADD: &str = "\
Adds a server to the config file, starts it, shows its tools and asks whether you approve them. Without a terminal, nothing \
is approved unless --yes is given. The command and its arguments come after `--`. A server elsewhere has an address, `--url`; \
what looks like `${NAME}` in a header is a variable of the environment or of the file `.env` of the state directory.";

pub(in crate::args) const MCP_ADD_EXAMPLES: &str = "\
Examples:
  myclaw mcp add time -- uvx mcp-server-time
  myclaw mcp add files --read ~/Documents -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
  myclaw mcp add github --env GITHUB_TOKEN --allow-host api.github.com -- github-mcp-server stdio
  myclaw mcp add docs --url https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'";

pub(in crate::args) const MCP_APPROVE: &str = "\
Starts a server, shows how its tools differ from those that you approved, and asks whether you approve them as they are now. \
Without a name, shows the file `.mcp.json` of the current project, or what has changed in it: its servers count only as you \
approved them.";

pub(in crate::args) const MCP_APPROVE_EXAMPLES: &str = "\
Examples:
  myclaw mcp approve files
  myclaw mcp approve files --yes
  myclaw mcp approve";

pub(in crate::args) const MCP_LIST_EXAMPLES: &str = "\
Examples:
  myclaw mcp list
  myclaw mcp list --json --agent work";

pub(in crate::args) const MCP_TEST_EXAMPLES: &str = "\
Examples:
  myclaw mcp test files
  myclaw mcp test";

pub(in crate::args) const MCP_TOOLS_EXAMPLES: &str = "\
Examples:
  myclaw mcp tools files
  myclaw mcp tools files --json";

pub(in crate::args) const MCP_LOGIN: &str = "\
Logs in at a server with an address: prints the page that you open in a browser, and waits for its answer on a port of this \
machine. If the browser runs on another machine, it ends at a page that cannot be shown; paste the address of that page here. \
The login is kept in the state directory, renewed before it ends, and sent to that address only.";

pub(in crate::args) const MCP_LOGIN_EXAMPLES: &str = "\
Examples:
  myclaw mcp login docs
  myclaw mcp login docs --scope 'files:read files:write'";

pub(in crate::args) const MCP_LOGOUT_EXAMPLES: &str = "\
Examples:
  myclaw mcp logout docs";

pub(in crate::args) const MCP_LOGS_EXAMPLES: &str = "\
Examples:
  myclaw mcp logs files
  myclaw mcp logs files --lines 200";

pub(in crate::args) const MCP_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw mcp remove files";

pub(in crate::args) const MCP_IMPORT: &str = "\
Adds the servers that other programs are set up with: Claude Code, Codex, Cursor, VS Code, goose and OpenClaw. Those of the \
current project count too. Nothing of them is approved. A server whose name is taken is left as it is.";

pub(in crate::args) const MCP_IMPORT_EXAMPLES: &str = "\
Examples:
  myclaw mcp import
  myclaw mcp import --from codex --dry-run
  myclaw mcp import --from claude-code .mcp.json";

pub(in crate::args) const MCP_CALL: &str = "\
Calls a tool of an MCP server and prints its result. It works in scripts of code mode only, which the agent runs in a sandbox \
(`mcp.codeMode` of the config). SERVER and TOOL are the two parts of the tool's name, SERVER__TOOL. Approvals and rules hold as \
for a call of the model. It fails if the call does, with the reason. docs/use/mcp.md";

pub(in crate::args) const MCP_CALL_EXAMPLES: &str = "\
Examples:
  myclaw mcp call weather forecast '{\"city\": \"Bonn\"}'
  myclaw mcp call github list_issues '{\"state\": \"open\"}' | grep -c crash";

pub(in crate::args) const MCP_SERVE: &str = "\
Makes MyClaw a server of the Model Context Protocol for another agent, which starts this command: its config names `myclaw` with \
the arguments `mcp serve`. The tools are `ask`, `sessions_search`, `session_read` and `memory_search`. A call of `ask` is a turn \
under your rules; what needs an approval is asked in that program, if it can ask. The gateway has the same at `/mcp`. \
docs/use/mcp-server.md";

pub(in crate::args) const MCP_SERVE_EXAMPLES: &str = "\
Examples:
  claude mcp add myclaw -- myclaw mcp serve
  codex mcp add myclaw -- myclaw mcp serve --agent work
  npx @modelcontextprotocol/inspector --cli myclaw mcp serve --method tools/list";
