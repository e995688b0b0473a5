//! The long help texts: prose with examples, kept apart from the grammar.

mod agents;
mod attach;
mod backup;
mod channels;
mod cluster;
mod devices;
mod examples;
mod gateway;
mod host;
mod mcp;
mod memory;
mod nodes;
mod packages;
mod review;
mod runner;
mod uninstall;
mod update;
mod usage;
mod worktrees;

pub(super) use agents::*;
pub(super) use attach::*;
pub(super) use backup::*;
pub(super) use channels::*;
pub(super) use cluster::*;
pub(super) use devices::*;
pub(super) use examples::*;
pub(super) use gateway::*;
pub(super) use host::*;
pub(super) use mcp::*;
pub(super) use memory::*;
pub(super) use nodes::*;
pub(super) use packages::*;
pub(super) use review::*;
pub(super) use runner::*;
pub(super) use uninstall::*;
pub(super) use update::*;
pub(super) use usage::*;
pub(super) use worktrees::*;

pub(super) const ABOUT: &str = "\
A personal AI agent in one binary: it takes a message, calls a model, runs tools in a workspace and answers.

Without any configuration it still works: it uses a key from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, \
GEMINI_API_KEY, OPENROUTER_API_KEY, ...), else one that `myclaw auth add` keeps, else a model server that listens on \
this machine (Ollama, llama.cpp, LM Studio), else a small built-in planner, builtin/demo. One line on standard error \
names the model.";

pub(super) const ROOT_EXAMPLES: &str = "\
Examples:
  myclaw run \"List the files here\"            one message, one answer
  myclaw                                       an interactive chat
  myclaw -c                                    go on with the last session of this directory
  myclaw --resume                              choose a session from a list
  myclaw init                                  write a starter config
  myclaw doctor                                what is configured, what is missing

Exit codes:
  0    success; for a message: there is an answer
  1    failure (a file, a session, a limit of the run)
  2    usage: the command line or the message cannot be used
  3    config: the config file has to be changed
  4    model: the provider refused, failed or could not be reached
  130  aborted with Ctrl-C (or SIGTERM, SIGHUP)
  141  standard output was closed before the end";

pub(super) const RUN: &str = "\
Send one message and print the answer.

The answer goes to standard output as it arrives; tool activity, notices and usage go to standard error. The \
session is kept: the next run continues it. If another process runs the session, the message waits up to ten seconds, and \
then stays in the session's inbox: the other run or the next one answers it. Ctrl-C aborts the turn and everything its tools started, and leaves \
the session in order; a second Ctrl-C quits at once.

With --url, and where gateways share the sessions in a database, a gateway does the work.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  myclaw run \"List the files here\"
  myclaw run -c \"And now?\"                        go on with the last session of this directory
  myclaw run -C ~/src/project \"Why does the build fail?\"
  git diff | myclaw run \"explain this\"           the message, and what is piped in
  myclaw run -i plan.png \"What is wrong here?\"    with a picture
  git diff | myclaw run -                         the message from standard input
  myclaw run --session trip \"Where were we?\"      another session
  myclaw run --model ollama/qwen3:8b \"Hello\"      another model
  myclaw run --thinking low \"What day is it?\"    think less before answering
  myclaw run --json \"Count the lines\" | jq .type  one event per line
  myclaw run --allow-tool read,grep --max-turns 20 --max-cost 0.50 \"Review the diff\"
  myclaw run --goal '!cargo test' \"Fix the build\"  turn after turn, until the command succeeds
  myclaw run --output-schema review.json \"Review the diff\" | jq .findings    an answer for programs
  myclaw run --url wss://claw.example.org:18789 \"What is new?\"    on a session of a gateway elsewhere";

pub(super) const CHAT: &str = "\
Talk with the agent in the terminal. This is what happens when no command is given. A MESSAGE is sent at once.

Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line; a long paste is one line in the editor. \
Tab completes commands and paths; @ and Tab find a file. Ctrl-G opens the message in $VISUAL or $EDITOR. Ctrl-O shows \
the last outputs of tools in full, Ctrl-T what the model thinks. Esc or Ctrl-C aborts the turn that runs; Ctrl-C leaves \
when pressed twice at an empty prompt, and so does Ctrl-D. When input or output is a pipe it works line by line.

!COMMAND runs a command and shows its output to the model with the next message; !!COMMAND shows it to you alone. \
/help lists the commands of the chat. While the agent works, Enter sends a message that it reads before its next step, \
/later TEXT one that it reads when it is done, and /stop aborts the turn.";
pub(super) const CHAT_EXAMPLES: &str = "\
Examples:
  myclaw
  myclaw \"why does the build fail?\"
  myclaw chat --session trip
  printf 'list files\\nexit\\n' | myclaw chat";

pub(super) const RPC: &str = "\
Serve a program that embeds MyClaw. It writes one JSON object per line to standard input, such as \
{\"type\":\"prompt\",\"message\":\"Hello\"}, and reads replies and events from standard output, one JSON object per \
line as well.

Commands: prompt, steer, follow_up, abort, approve, bash, set_model, set_thinking, compact, undo, get_state, get_messages, \
get_session_stats, get_commands, fork, new_session, switch_session, rename, export, delete, list_sessions, list_models, \
list_jobs, kill_job, list_skills. An `id` is repeated in the reply. A field that is not known is an error. Any command may \
name a `session`; the default is the current one. docs/develop/rpc.md describes all of it.

A prompt for a busy session is handled by its `mode`, else by messages.queue.mode of the config: steer (read before the \
next step), followup (answered afterwards), collect (answered afterwards, together with others; the default), \
steer-backlog (both of the first two, so it is sent twice), interrupt (stops the turn).

A message is on disk before its reply is sent. When standard input ends, running turns are finished first.";

pub(super) const RPC_EXAMPLES: &str = "\
Examples:
  echo '{\"type\":\"prompt\",\"message\":\"List my files\"}' | myclaw rpc
  echo '{\"id\":1,\"type\":\"get_state\"}' | myclaw rpc --session trip
  myclaw rpc --url wss://claw.example.org:18789 --session trip    a session of a gateway elsewhere";

pub(super) const ACP: &str = "\
Serve an editor that speaks the Agent Client Protocol (version 1), such as Zed. The editor starts this command itself: \
its settings name `myclaw` with the argument `acp`. docs/use/acp.md shows how, and lists what is supported.

The editor chooses the directory for the tools and the session to begin or continue. Standard output \
carries only the protocol; other messages go to standard error. When the editor closes standard \
input, turns that still run are aborted, and the session is kept.";

pub(super) const ACP_EXAMPLES: &str = "\
Examples:
  myclaw acp
  myclaw acp --model anthropic/claude-sonnet-4-6 --thinking low
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}' | myclaw acp

In Zed's settings.json:
  \"agent_servers\": {\"MyClaw\": {\"type\": \"custom\", \"command\": \"myclaw\", \"args\": [\"acp\"]}}";

pub(super) const ONBOARD: &str = "\
Set up MyClaw: a model with its key, the workspace, one channel, and the service. Each step asks, tries the answer, and \
then writes it; a step that fails has changed nothing. Each answer is also an option. Run it again at any time: what works \
stays as it is.";

pub(super) const ONBOARD_EXAMPLES: &str = "\
Examples:
  myclaw onboard
  myclaw onboard --yes --provider anthropic --key-stdin < key.txt
  myclaw onboard --yes --provider openai --model gpt-5.1 --key-env OPENAI_API_KEY --workspace ~/agent
  myclaw onboard --yes --channel telegram --channel-token-env TELEGRAM_BOT_TOKEN --install-service
  myclaw onboard --yes --channel xmpp --channel-set address=claw@example.org";

pub(super) const INIT: &str = "\
Write a starter config, with every key explained in comments, and the workspace in which the tools work. What \
exists already is never overwritten.";

pub(super) const INIT_EXAMPLES: &str = "\
Examples:
  myclaw init
  MYCLAW_HOME=/tmp/try myclaw init    somewhere else than the home directory";

pub(super) const CONFIG: &str = "\
Check, read and change the config file, print its path, or print its JSON Schema. The file is JSON5 (comments and trailing commas \
are fine); ${NAME} is replaced by the environment variable NAME.";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  myclaw config check
  myclaw config set agents.defaults.model anthropic/claude-sonnet-4-6
  $EDITOR \"$(myclaw config path)\"
  myclaw config schema > myclaw.schema.json";

pub(super) const SESSIONS: &str = "\
List, watch, stop, search, show, fork, compact, undo, title, label, export, import, delete or prune sessions. Each is a plain text file, one \
JSON row per message.";

pub(super) const SESSIONS_EXAMPLES: &str = "\
Examples:
  myclaw sessions list
  myclaw sessions watch
  myclaw sessions search \"train to Rome\" --ignore-case
  myclaw sessions show trip --last 10
  myclaw sessions fork trip other-trip --at 0no9v4v6bi2o1k8f
  myclaw sessions compact trip --focus \"what is booked\"
  myclaw sessions undo trip --dry-run
  myclaw sessions label trip travel 2026
  myclaw sessions export trip --format html -o trip.html
  myclaw sessions import ~/.pi/agent/sessions/*/*.jsonl
  myclaw sessions delete trip --yes
  myclaw sessions prune --older-than 30d --dry-run";

pub(super) const SESSIONS_WATCH: &str = "\
Show the sessions that work at this moment, in chats of other terminals, in runs and in the gateway of this state directory: how \
long, what they cost, the tool or model that they wait for, and what they ask. In a terminal the list is drawn again in place; \
y and n answer, Enter writes an answer, s stops, a attaches to a session of the gateway, q leaves. Elsewhere each change is a \
line.";

pub(super) const SESSIONS_COMPACT: &str = "\
Replace the older messages with a summary in what the model is sent. The last ten messages stay as they \
are; in a short session, the last message and its answer do. All messages stay in the transcript: `sessions show \
NAME --all` shows them. A long session is compacted automatically before it exceeds the model's context window.";

pub(super) const SESSIONS_COMPACT_EXAMPLES: &str = "\
Examples:
  myclaw sessions compact trip
  myclaw sessions compact trip --focus \"what is booked, and what it cost\"
  myclaw sessions compact trip --model anthropic/claude-haiku-4-5 --json | jq -r .summary";

pub(super) const SESSIONS_UNDO: &str = "\
Give files back the content that they had before a turn changed them, with tools for files or with commands. Files that \
something else changed since are left alone and named. Each further undo goes one turn back; --redo goes forward again. \
The model is told with your next message.";

pub(super) const SESSIONS_UNDO_EXAMPLES: &str = "\
Examples:
  myclaw sessions undo trip --dry-run
  myclaw sessions undo trip
  myclaw sessions undo trip --redo
  myclaw sessions undo trip --list
  myclaw sessions undo trip --turn 3";

pub(super) const MODELS: &str = "\
List the models that can be used (those known by name, and those that a model server on this machine offers), show \
what is known about one, or try one. Models that are not listed work too; they are given as PROVIDER/MODEL.";

pub(super) const MODELS_EXAMPLES: &str = "\
Examples:
  myclaw models list anthropic
  myclaw models show anthropic/claude-sonnet-4-6
  myclaw models test anthropic/claude-sonnet-4-6";

pub(super) const MODELS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw models list
  myclaw models list anthropic
  myclaw models list --search kimi
  myclaw models list --json | jq -r 'select(.key == \"set\") | \"\\(.provider)/\\(.id)\"'";

pub(super) const MODELS_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw models show anthropic/claude-sonnet-4-6
  myclaw models show ollama/qwen3:8b
  myclaw models show openrouter/openai/gpt-5 --json | jq .contextWindow";

pub(super) const MODELS_TEST: &str = "\
Make one tiny call to a model, and show what works: text, a tool call, streaming, token counts, and how long it took. \
The call is real, so it costs what a few hundred tokens cost.";

pub(super) const MODELS_TEST_EXAMPLES: &str = "\
Examples:
  myclaw models test anthropic/claude-sonnet-4-6
  myclaw models test ollama/qwen3:8b && echo it answers

Exit codes:
  0  the model answered
  2  the name or the key is missing
  3  the config file has to be changed
  4  the provider refused, failed or could not be reached";

pub(super) const POLICY: &str = "\
Show what a session may do. Rules of the config decide which tools a session has and which commands may run: `tools`, \
agents.list[].tools, tools.byProvider, channels.telegram.tools, tools.bySender, and agents.defaults.sandbox for all \
sessions but the main one. Each can only take away.";

pub(super) const POLICY_EXAMPLES: &str = "\
Examples:
  myclaw policy explain                                all tools of the main session
  myclaw policy explain write --session trip
  myclaw policy explain bash --command 'git push'";

pub(super) const APPROVALS: &str = "\
List or revoke the approvals of tool calls. A rule of the config (tools.ask, tools.exec) or a hook can require that you \
approve a call. The answer \"always\" is kept until it is revoked.";

pub(super) const APPROVALS_EXAMPLES: &str = "\
Examples:
  myclaw approvals list
  myclaw approvals revoke 3f9a
  myclaw approvals revoke --all";

pub(super) const SKILLS: &str = "\
List the skills, show one, or say which cannot be used. A skill is a directory with a SKILL.md that teaches the agent a \
task. The agent's prompt lists each with its name and description, and the model reads the rest when a task matches.

Skills are looked for in `skills` of the state directory (~/.myclaw/skills), in skills.load.extraDirs of the config, in \
~/.agents/skills, ~/.claude/skills and ~/.codex/skills, and in skills, .agents/skills and .claude/skills of the agent's \
workspace. Of two with one name the first counts.";

pub(super) const SKILLS_EXAMPLES: &str = "\
Examples:
  myclaw skills list
  myclaw skills show release-notes
  myclaw skills check";

pub(super) const SANDBOX: &str = "\
Show what the sandbox of a session enforces, and test it on this machine. In a sandboxed session the tools run in a \
helper process that the operating system confines. By default every session but the agent's main one is sandboxed.";

pub(super) const SANDBOX_EXAMPLES: &str = "\
Examples:
  myclaw sandbox explain --session trip
  myclaw sandbox test";

pub(super) const SANDBOX_EXPLAIN_EXAMPLES: &str = "\
Examples:
  myclaw sandbox explain                  the main session
  myclaw sandbox explain --session trip
  myclaw sandbox explain -s trip --json | jq .available

Exit codes:
  0    the session can run
  1    it is sandboxed, and this machine cannot enforce what the config demands
  3    the config has a mistake";

pub(super) const SANDBOX_TEST_EXAMPLES: &str = "\
Each attempt is made without the sandbox and inside it, by processes made for the purpose. Nothing leaves the machine.

Examples:
  myclaw sandbox test
  myclaw sandbox test --agent ops         the level that is configured for another agent

Exit codes:
  0    every attempt was stopped, except for the known gaps of the level (docs/operate/sandbox.md)
  1    an attempt got out or could not be made, or the level is not available";

pub(super) const CRON: &str = "\
Plan what the agent does by itself. A job is due once (--at), at an interval (--every) or at the local times of a cron \
expression (--cron); then the agent gets its message, in its main session or in a session of the job's own, and the \
answer goes to where you wrote last. The gateway runs the jobs: each due time once, also if the process is killed.\n\n\
The commands ask the gateway that runs. If none does, they read and change its store. docs/use/schedule.md has \
the details.";

pub(super) const CRON_EXAMPLES: &str = "\
Examples:
  myclaw cron add \"Remind me to call Ann\" --at 20m
  myclaw cron list
  myclaw cron runs 3f2a9c81d0b4
  myclaw cron pause 3f2a9c81d0b4

Exit codes:
  0  done
  2  a schedule, a job or an option that cannot be used";

pub(super) const CRON_ADD_EXAMPLES: &str = "\
Examples:
  myclaw cron add \"Water the plants\" --when \"every monday and thursday at 8\"
  myclaw cron add \"Call Ann\" --at 2026-12-24T18:00 --tz Europe/Berlin
  myclaw cron add \"Summarise the news\" --cron \"0 7 * * 1-5\" --isolated
  myclaw cron add \"Check the backups\" --every 6h --deliver none --missed skip";

pub(super) const CRON_LIST_EXAMPLES: &str = "\
Examples:
  myclaw cron list
  myclaw cron list --json | jq -r '.jobs[].name'";

pub(super) const CRON_STATUS_EXAMPLES: &str = "\
Examples:
  myclaw cron status";

pub(super) const CRON_RUN_EXAMPLES: &str = "\
Examples:
  myclaw cron run \"Check the backups\"";

pub(super) const CRON_RUNS_EXAMPLES: &str = "\
Examples:
  myclaw cron runs \"Check the backups\" -n 5";

pub(super) const CRON_EDIT_EXAMPLES: &str = "\
Examples:
  myclaw cron edit \"Check the backups\" --every 12h";

pub(super) const CRON_PAUSE_EXAMPLES: &str = "\
Examples:
  myclaw cron pause \"Check the backups\"";

pub(super) const CRON_RESUME_EXAMPLES: &str = "\
Examples:
  myclaw cron resume \"Check the backups\"";

pub(super) const CRON_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw cron remove \"Check the backups\"";

pub(super) const CRON_WAKE_EXAMPLES: &str = "\
Examples:
  myclaw cron wake \"The build has finished\"
  myclaw cron wake \"Look at the new invoices\" --next-heartbeat";

pub(super) const AUTH: &str = "\
List, add, test and order the keys of providers. Keys are kept in a file of the agent that its owner alone can read, \
or stay where they are: in a variable, in a file, in the system's keyring, or behind a command. A key is never shown.";

pub(super) const AUTH_EXAMPLES: &str = "\
Examples:
  myclaw auth list
  myclaw auth add anthropic                                 asks for the key
  pass show openai | myclaw auth add openai --profile work
  myclaw auth add groq --command 'pass show groq'
  myclaw auth login openrouter                              logs in in the browser
  myclaw auth login github-copilot                          logs in with a code
  myclaw auth test
  myclaw auth order anthropic work private                  these first, in this order
  myclaw auth pin anthropic:work                            this one and no other
  myclaw auth clear-cooldown";

pub(super) const AUTH_ADD: &str = "\
Keep a key of a provider. It is asked for without being shown, or read from standard input; or it stays where it is, in \
a file, a variable, the system's keyring or behind a command, and is fetched when it is needed.

`myclaw auth login` logs in where providers have logins. GitHub Copilot has nothing else: without a key this shows an address and a code, waits until you have typed the code \
there, and keeps the token. Ctrl-C cancels the login and keeps nothing.";

pub(super) const AUTH_ADD_EXAMPLES: &str = "\
Examples:
  myclaw auth add anthropic                                 asks for the key
  pass show openai | myclaw auth add openai --profile work
  myclaw auth add groq --command 'pass show groq'           asks pass each time
  myclaw auth add mistral --env WORK_MISTRAL_KEY
  myclaw auth add github-copilot                            signs in with a code
  myclaw auth add github-copilot --github company.ghe.com   at a company's own GitHub

Exit codes:
  0    the key is kept
  2    the provider, the name or the key cannot be used
  4    the login was refused, or has expired, or GitHub could not be asked
  130  given up with Ctrl-C; nothing is kept";

pub(super) const DOCTOR: &str = "\
Show what is configured, what is missing and what to do next. The exit code is 0 if a turn can run. Keys are never \
shown, only whether they are there. With --security: what is open in this set-up, each with the command that closes it; \
the exit code is 1 if there is a finding.";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  myclaw doctor
  myclaw doctor --json | jq 'select(.status != \"ok\")'
  myclaw doctor --security";

pub(super) const COMPLETIONS: &str = "\
Print a completion script for a shell.";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  myclaw completions bash > ~/.local/share/bash-completion/completions/myclaw
  myclaw completions zsh > ~/.zfunc/_myclaw
  myclaw completions fish > ~/.config/fish/completions/myclaw.fish";
