//! Help texts of `memory`.

pub(in crate::args) const MEMORY: &str = "\
See, search, correct and delete what the agent remembers. Facts are in memory/facts.md of the agent's workspace, one a \
line, which you can edit too. docs/use/memory.md describes what is remembered and who is told of it.";

pub(in crate::args) const MEMORY_EXAMPLES: &str = "\
Examples:
  myclaw memory list
  myclaw memory search \"when is the boiler repaired?\"
  myclaw memory why k3f9q
  myclaw memory forget k3f9q";

pub(in crate::args) const MEMORY_LIST_EXAMPLES: &str = "\
Examples:
  myclaw memory list
  myclaw memory list --all --json | jq -r .text";

pub(in crate::args) const MEMORY_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw memory show k3f9q";

pub(in crate::args) const MEMORY_SEARCH_EXAMPLES: &str = "\
Examples:
  myclaw memory search \"the train to Rome\"
  myclaw memory search --everybody --json invoice | jq -r .text";

pub(in crate::args) const MEMORY_ADD_EXAMPLES: &str = "\
Examples:
  myclaw memory add Allergic to peanuts.
  myclaw memory add --replaces k3f9q Lives in Cologne.";

pub(in crate::args) const MEMORY_EDIT_EXAMPLES: &str = "\
Examples:
  myclaw memory edit k3f9q Allergic to peanuts and hazelnuts.";

pub(in crate::args) const MEMORY_FORGET: &str = "\
Forget a fact: it is removed from the notes, the index, the vectors and the lists in prompts, and is not learned again. \
Messages that say it stay in the logs of their sessions, but are neither searched nor learned from. With --redact its \
words become stars in all messages, side files, undo records, logs and the gateway's database. What is killed half-way \
is completed by the next command. Backups and other copies outside of the state directory are out of reach.";

pub(in crate::args) const MEMORY_FORGET_EXAMPLES: &str = "\
Examples:
  myclaw memory forget k3f9q
  myclaw memory forget k3f9q --redact                    shows what would be replaced
  myclaw memory forget k3f9q --redact --word peanuts --yes";

pub(in crate::args) const MEMORY_WHY_EXAMPLES: &str = "\
Examples:
  myclaw memory why k3f9q";
