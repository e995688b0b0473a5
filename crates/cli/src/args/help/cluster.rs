//! Help texts of `cluster` and `store`.

pub(in crate::args) const CLUSTER: &str = "\
Show and empty the gateways that share one PostgreSQL database (gateway.store of the config file). docs/operate/cluster.md \
describes how several machines become one.";

pub(in crate::args) const CLUSTER_EXAMPLES: &str = "\
Examples:
  myclaw cluster status
  myclaw cluster drain rack-2";

pub(in crate::args) const CLUSTER_STATUS_EXAMPLES: &str = "\
Examples:
  myclaw cluster status
  myclaw cluster status --json | jq -r '.nodes[].name'";

pub(in crate::args) const CLUSTER_DRAIN: &str = "\
Stop the gateway of a machine as a SIGTERM does: it takes no more messages, gives running turns ten seconds, and hands over \
what it holds. The other gateways go on with it at once. The command returns when the gateway is gone.";

pub(in crate::args) const CLUSTER_DRAIN_EXAMPLES: &str = "\
Examples:
  myclaw cluster drain rack-2
  myclaw cluster drain 'rack-2#5d0c11fe'       one of two gateways on the same machine

Exit codes:
  0  it has stopped
  1  there is no such gateway, or it does not stop";

pub(in crate::args) const STORE: &str = "\
Look after the PostgreSQL database of a cluster: gateway.store of the config file, or MYCLAW_STORE_URL. A gateway on one \
machine needs none. docs/operate/cluster.md describes it.";

pub(in crate::args) const STORE_EXAMPLES: &str = "\
Examples:
  myclaw store check
  myclaw store import
  myclaw store export ~/myclaw-copy";

pub(in crate::args) const STORE_MIGRATE_EXAMPLES: &str = "\
Examples:
  myclaw store migrate

Each start does the same, but creates no other tenant (gateway.tenant) than main. An older program refuses tables of a newer form.";

pub(in crate::args) const STORE_CHECK_EXAMPLES: &str = "\
Examples:
  myclaw store check
  myclaw store check --json

Exit codes:
  0  it can be used
  1  it cannot be reached or used; the message says why
  3  the config names no database, or its address cannot be read";

pub(in crate::args) const STORE_IMPORT: &str = "\
Copy the sessions and records of a state directory into an empty database: logs with every byte, what waits in inboxes, open \
messages, replies that are not sent, jobs, devices and pairings. No gateway may run on the directory or the database. The \
directory stays as it is. Workspaces and outputs of tools stay on the machine, and keys do unless MYCLAW_STORE_KEY is set.";

pub(in crate::args) const STORE_IMPORT_EXAMPLES: &str = "\
Examples:
  myclaw store import
  myclaw store import /var/lib/myclaw/.myclaw";

pub(in crate::args) const STORE_EXPORT: &str = "\
Copy the sessions and records of the database into a new state directory, which a single machine can run: logs with the \
same bytes as an import read. Stop all gateways first: what they write meanwhile may be missing. The config file and \
workspaces are not copied, and keys are only if MYCLAW_STORE_KEY is set.";

pub(in crate::args) const STORE_EXPORT_EXAMPLES: &str = "\
Examples:
  myclaw store export ~/myclaw-copy
  MYCLAW_STATE_DIR=~/myclaw-copy MYCLAW_STORE_URL= myclaw sessions list";
