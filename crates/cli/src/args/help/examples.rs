//! Examples of subcommands whose help texts consist of examples alone.

pub(in crate::args) const CONFIG_CHECK_EXAMPLES: &str = "\
Examples:
  myclaw config check";

pub(in crate::args) const CONFIG_GET_EXAMPLES: &str = "\
Examples:
  myclaw config get agents.defaults.model
  myclaw config get                               the whole file as JSON";

pub(in crate::args) const CONFIG_SET_EXAMPLES: &str = "\
Examples:
  myclaw config set agents.defaults.model anthropic/claude-sonnet-4-6
  myclaw config set project.start continue
  myclaw config set models.favorites '[\"ollama/qwen3:8b\", \"openai/gpt-5\"]'
  myclaw config set gateway.token '${MY_TOKEN}'   a secret stays in the environment";

pub(in crate::args) const CONFIG_UNSET_EXAMPLES: &str = "\
Examples:
  myclaw config unset agents.defaults.model";

pub(in crate::args) const CONFIG_EDIT_EXAMPLES: &str = "\
Examples:
  EDITOR=nano myclaw config edit";

pub(in crate::args) const CONFIG_PATH_EXAMPLES: &str = "\
Examples:
  $EDITOR \"$(myclaw config path)\"";

pub(in crate::args) const CONFIG_SCHEMA_EXAMPLES: &str = "\
Examples:
  myclaw config schema > myclaw.schema.json";

pub(in crate::args) const SESSIONS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw sessions list --limit 10
  myclaw sessions list --label travel --search \"train to Rome\"
  myclaw sessions list --json | jq -r .name";

pub(in crate::args) const SESSIONS_SEARCH_EXAMPLES: &str = "\
Examples:
  myclaw sessions search \"train to Rome\" --ignore-case
  myclaw sessions search --regex 'flight [A-Z]{2}[0-9]+' --label travel";

pub(in crate::args) const SESSIONS_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw sessions show trip --last 10
  myclaw sessions show trip --all
  myclaw sessions show trip --json | jq -r .content";

pub(in crate::args) const SESSIONS_WATCH_EXAMPLES: &str = "\
Examples:
  myclaw sessions watch
  myclaw sessions watch --once
  myclaw sessions watch --json | jq -r 'select(.state == \"asking\") | .name'";

pub(in crate::args) const SESSIONS_STOP_EXAMPLES: &str = "\
Examples:
  myclaw sessions stop trip";

pub(in crate::args) const SESSIONS_ANSWER_EXAMPLES: &str = "\
Examples:
  myclaw sessions answer trip yes
  myclaw sessions answer trip no, use git clean";

pub(in crate::args) const SESSIONS_FORK_EXAMPLES: &str = "\
Examples:
  myclaw sessions fork trip other-trip
  myclaw sessions fork trip other-trip --at 0no9v4v6bi2o1k8f";

pub(in crate::args) const SESSIONS_TITLE_EXAMPLES: &str = "\
Examples:
  myclaw sessions title trip \"A week in Rome\"
  myclaw sessions title trip                     takes the title away";

pub(in crate::args) const SESSIONS_LABEL_EXAMPLES: &str = "\
Examples:
  myclaw sessions label trip travel 2026
  myclaw sessions label trip 2026 --remove";

pub(in crate::args) const SESSIONS_EXPORT_EXAMPLES: &str = "\
Examples:
  myclaw sessions export trip --format html -o trip.html
  myclaw sessions export trip --format markdown | less
  myclaw sessions export trip > trip.jsonl";

pub(in crate::args) const SESSIONS_IMPORT_EXAMPLES: &str = "\
Examples:
  myclaw sessions import trip.jsonl --session trip
  myclaw sessions import ~/.pi/agent/sessions/*/*.jsonl
  myclaw sessions import ~/.claude/projects       all sessions of Claude Code
  myclaw sessions import ~/.codex/sessions        all sessions of Codex";

pub(in crate::args) const SESSIONS_DELETE_EXAMPLES: &str = "\
Examples:
  myclaw sessions delete trip                   says what would be deleted
  myclaw sessions delete trip --yes";

pub(in crate::args) const SESSIONS_PRUNE_EXAMPLES: &str = "\
Examples:
  myclaw sessions prune --older-than 30d --dry-run
  myclaw sessions prune --older-than 8w --with-transcripts";

pub(in crate::args) const POLICY_EXPLAIN_EXAMPLES: &str = "\
Examples:
  myclaw policy explain
  myclaw policy explain browser --session trip
  myclaw policy explain bash --command 'cargo test && git push'
  myclaw policy explain --json | jq -r 'select(.verdict == \"denied\") | .tool'";

pub(in crate::args) const APPROVALS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw approvals list
  myclaw approvals list --json | jq -r 'select(.state == \"waiting\") | .approval.call'";

pub(in crate::args) const APPROVALS_REVOKE_EXAMPLES: &str = "\
Examples:
  myclaw approvals revoke 3f9a21c0d4e5
  myclaw approvals revoke --all";

pub(in crate::args) const SKILLS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw skills list
  myclaw skills list --json | jq -r 'select(.usable) | .name'";

pub(in crate::args) const SKILLS_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw skills show release-notes";

pub(in crate::args) const SKILLS_CHECK_EXAMPLES: &str = "\
Examples:
  myclaw skills check
  myclaw skills check --agent ops";

pub(in crate::args) const AUTH_LIST_EXAMPLES: &str = "\
Examples:
  myclaw auth list
  myclaw auth list anthropic --json | jq -r .state";

pub(in crate::args) const AUTH_LOGIN: &str = "\
Log in at a provider, for what its vendor permits in other programs. With openrouter, openai (a ChatGPT plan) and google a \
page opens in your browser. If that runs on another machine, paste the address of the page that it ends at. With \
azure-openai, huggingface and github-copilot you type a code on a page, in any browser. Ctrl-C gives up and keeps nothing.

google, azure-openai and huggingface need an application of your own there; without one this says how to make it.";

pub(in crate::args) const AUTH_LOGIN_EXAMPLES: &str = "\
Examples:
  myclaw auth login openrouter
  myclaw auth login openai                                  uses a ChatGPT plan
  myclaw auth login google --client-file client_secret.json
  myclaw auth login azure-openai --client-id ID --tenant contoso.onmicrosoft.com
  myclaw auth login huggingface --client-id ID
  myclaw auth login github-copilot --github company.ghe.com

Exit codes:
  0    the login is kept
  2    the provider has no login here, or something is missing
  4    the login was refused, or has expired, or the server could not be asked
  130  given up with Ctrl-C; nothing is kept";

pub(in crate::args) const AUTH_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw auth remove anthropic:work";

pub(in crate::args) const AUTH_TEST_EXAMPLES: &str = "\
Examples:
  myclaw auth test
  myclaw auth test anthropic:work
  myclaw auth test --provider anthropic --model claude-haiku-4-5";

pub(in crate::args) const AUTH_CLEAR_COOLDOWN_EXAMPLES: &str = "\
Examples:
  myclaw auth clear-cooldown
  myclaw auth clear-cooldown anthropic:work";

pub(in crate::args) const AUTH_ORDER_EXAMPLES: &str = "\
Examples:
  myclaw auth order anthropic work private       these first, in this order
  myclaw auth order anthropic                    the usual order again";

pub(in crate::args) const AUTH_PIN_EXAMPLES: &str = "\
Examples:
  myclaw auth pin anthropic:work";

pub(in crate::args) const AUTH_PREFER_EXAMPLES: &str = "\
Examples:
  myclaw auth prefer anthropic:work";

pub(in crate::args) const AUTH_UNPIN_EXAMPLES: &str = "\
Examples:
  myclaw auth unpin anthropic";

pub(in crate::args) const GATEWAY_STATUS_EXAMPLES: &str = "\
Examples:
  myclaw gateway status
  myclaw gateway status --json | jq .openMessages

Exit codes:
  0    a gateway runs
  1    none runs, or something else listens on its port";
