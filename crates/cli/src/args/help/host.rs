//! Help of `myclaw host`, `groups` and `workflows`.

pub(in crate::args) const HOST: &str = "\
Answer chats with one container per group. The host takes messages, starts `myclaw runner` in a container of the group \
with the job on its standard input, and sends what it answers. It runs until Ctrl-C or SIGTERM; what it has acknowledged \
goes on at the next start.

Messages come in as JSON files in channel/in of its directory and go out as files in channel/out. `myclaw groups add` \
says which chats are answered. The key and the model of the runners are OPENROUTER_API_KEY, MODEL_NAME and \
OPENROUTER_BASE_URL, from the environment or ~/.myclaw/.env; runners get them through standard input only. \
\
With --model-socket they do not get them at all: the host adds the key to their calls, and they need no network. \
docs/operate/host.md describes all of it.";

pub(in crate::args) const HOST_EXAMPLES: &str = "\
Examples:
  myclaw groups add 49170123@s.whatsapp.net --folder main --name Me
  OPENROUTER_API_KEY=… myclaw host --name Andy
  myclaw host --backend docker --image myclaw-runner:1 --network none
  myclaw host --model-socket --model-tokens 2000000     runners without key and network
  OPENROUTER_API_KEY=ollama OPENROUTER_BASE_URL=http://127.0.0.1:11434/v1 myclaw host --backend sandbox
  echo '{\"chat\":\"49170123@s.whatsapp.net\",\"text\":\"Hello\"}' > m.tmp && mv m.tmp ~/.myclaw/host/channel/in/1.json";

pub(in crate::args) const GROUPS: &str = "\
Decide which chats a host answers. Each group has a directory of its own, with its MISSION.md, its workflows and its \
files. The group with the folder `main` is the owner's own: it answers every message, and its agent may write to and \
plan tasks for all groups.";

pub(in crate::args) const GROUPS_EXAMPLES: &str = "\
Examples:
  myclaw groups add 49170123@s.whatsapp.net --folder main
  myclaw groups add 1203630@g.us --folder family --name Family --trigger !bot
  myclaw groups list";

pub(in crate::args) const GROUPS_ADD_EXAMPLES: &str = "\
Examples:
  myclaw groups add 49170123@s.whatsapp.net --folder main --name Me
  myclaw groups add 1203630@g.us --folder family --all
  myclaw groups add work-chat --folder work --mount /srv/wiki --mount /srv/notes:notes:rw";

pub(in crate::args) const GROUPS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw groups list
  myclaw groups list --json | jq -r .folder";

pub(in crate::args) const GROUPS_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw groups show family";

pub(in crate::args) const GROUPS_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw groups remove family";

pub(in crate::args) const WORKFLOWS: &str = "\
Look after the workflows of a group: scripts of the owner that its agent finds and runs, listed in \
workflows/registry.json of the group's directory.";

pub(in crate::args) const WORKFLOWS_EXAMPLES: &str = "\
Examples:
  myclaw workflows list
  myclaw workflows search \"send the invoice\" --group work
  myclaw workflows run weather city=Rome
  myclaw workflows check --group work";

pub(in crate::args) const WORKFLOWS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw workflows list --group work
  myclaw workflows list --path ./workflows --json";

pub(in crate::args) const WORKFLOWS_SEARCH_EXAMPLES: &str = "\
Examples:
  myclaw workflows search what is the weather like";

pub(in crate::args) const WORKFLOWS_RUN_EXAMPLES: &str = "\
Examples:
  myclaw workflows run weather city=Rome --limit 30s";

pub(in crate::args) const WORKFLOWS_CHECK_EXAMPLES: &str = "\
Examples:
  myclaw workflows check --path ./workflows";
