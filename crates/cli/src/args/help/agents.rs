//! Help of `myclaw agents`.

pub(in crate::args) const AGENTS: &str = "\
List the agents that are files, which the agent can start as sub-agents.

A file is Markdown: front matter with `description`, and if you like `tools`, `mode` and `model`; below it the instructions. \
Its name is the agent's. Files are looked for in `agents/` of the state directory, then of the agent's workspace, then in \
`agents/` and `.claude/agents/` of the project. `tools` and `mode` only narrow what the session that starts it may do. A \
file with a mistake is named with its line, and hinders no other; the exit code is 1 then.";

pub(in crate::args) const AGENTS_EXAMPLES: &str = "\
Examples:
  myclaw agents
  myclaw agents -C ~/src/thing --json

A file ~/.myclaw/agents/reviewer.md:
  ---
  description: Reviews a change and lists what is wrong with it
  tools: read, grep, find, ls
  mode: read-only
  ---
  Read the files that the task names. Answer with a list of mistakes, each with file and line.";
