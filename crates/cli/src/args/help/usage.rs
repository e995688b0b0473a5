//! Help of `myclaw usage`.

pub(in crate::args) const USAGE: &str = "\
Show what models have used in sessions of the gateway: calls, tokens and cost, by model, agent, channel or session.

The gateway counts each call by hour and by day. Days are those of UTC, and are kept for 400 days. What `myclaw run` and \
the chat use without the gateway is not counted here. The cost comes from the catalog's prices.";

pub(in crate::args) const USAGE_EXAMPLES: &str = "\
Examples:
  myclaw usage                          the last seven days, by model
  myclaw usage --since 30d --by agent
  myclaw usage --by channel --json      with the usage of each day";
