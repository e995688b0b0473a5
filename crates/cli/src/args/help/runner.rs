//! Help of `myclaw runner`.

pub(in crate::args) const RUNNER: &str = "\
Do one job of a host in a container, and end. The job is one JSON object on standard input, with groupFolder, chatJid and \
prompt, and with sessionId, isMain, isScheduledTask, assistantName and secrets if there are any. Each text of the model \
is a block on standard output: JSON with status, result and newSessionId, between two markers.

The key and the model come from the secrets of the job only: OPENROUTER_API_KEY, MODEL_NAME and OPENROUTER_BASE_URL. The \
key `ollama` means an Ollama on the host. --model-url and --model come before them. With --model-socket all calls go to a \
socket of the host, which adds the key. The config file is not read.

The directories group, global and ipc are below --workspace. Messages, voice messages and tasks for the host are files \
in ipc/messages, ipc/voice and ipc/tasks; messages of the host are files in ipc/input, and the file _close ends the job.

Workflows are searched by meaning if the model all-MiniLM-L6-v2 is in --weights, or if --download-weights lets the first \
search get it (23 MB). Otherwise they are searched by keywords.

send_voice leaves speaking to the host, unless --speech-command or --speech-url name who speaks.

Exit codes: 0 when the job is done, 1 after a block with status error, 2 for a wrong command line, 141 when the host has \
closed the output.";

pub(in crate::args) const RUNNER_EXAMPLES: &str = "\
Examples:
  myclaw runner < job.json                        in a container, with the usual directories
  myclaw runner --stay --idle-limit 10m < job.json
  myclaw runner --download-weights < job.json     search workflows by meaning
  myclaw runner --speech-command 'espeak-ng --stdout' < job.json
  myclaw runner --workspace ./w --home ./h --allow-host 127.0.0.1:8080 < job.json";
