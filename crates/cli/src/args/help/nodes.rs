//! Help texts of `node` and `nodes`.

pub(in crate::args) const NODE: &str = "\
Connect this machine to a gateway elsewhere, which may then use it: run commands and file tools, take pictures, notify. \
The config file of this machine decides what is allowed: its policy, its sandbox and the commands in `node`. \
docs/operate/nodes.md describes it.";

pub(in crate::args) const NODE_EXAMPLES: &str = "\
Examples:
  myclaw node --url wss://claw.example.org:18789 --pair K7QM2XPA
  myclaw node --url wss://192.168.1.5:18789 --ca claw.pem --pair K7QM2XPA --name workshop
  myclaw node";

pub(in crate::args) const NODES: &str = "\
Show the other machines that the agent may use, and decide which ones it may. A machine becomes a node with `myclaw node`; \
`myclaw devices revoke` takes its access away.";

pub(in crate::args) const NODES_EXAMPLES: &str = "\
Examples:
  myclaw nodes list
  myclaw nodes approve k7qm2xpa";

pub(in crate::args) const NODES_LIST_EXAMPLES: &str = "\
Examples:
  myclaw nodes list
  myclaw nodes list --json | jq -r '.nodes[].name'";

pub(in crate::args) const NODES_DESCRIBE_EXAMPLES: &str = "\
Examples:
  myclaw nodes describe workshop";

pub(in crate::args) const NODES_APPROVE_EXAMPLES: &str = "\
Examples:
  myclaw nodes approve k7qm2xpa";

pub(in crate::args) const NODES_REJECT_EXAMPLES: &str = "\
Examples:
  myclaw nodes reject k7qm2xpa";
