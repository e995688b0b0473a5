//! The help texts of `myclaw attach`.

pub(in crate::args) const ATTACH: &str = "\
The chat in the terminal, on a session of a gateway: without --url of the one that runs for this state directory. What \
happens in the session is shown as in `myclaw chat`, also what others say there; the session goes on when you leave. If \
the gateway is restarted or the connection breaks, attach comes back by itself and shows what was missed. What you type \
meanwhile is sent once, when the gateway is back.

The token of a gateway elsewhere comes from a file or a variable, never from the command line, which other users of the \
machine can read.";

pub(in crate::args) const ATTACH_EXAMPLES: &str = "\
Examples:
  myclaw attach
  myclaw attach --session work
  myclaw attach --url wss://claw.example.org --token-file ~/claw-token
  MYCLAW_GATEWAY_TOKEN=… myclaw attach --url wss://192.168.1.5:18789 --ca claw.pem

Exit codes:
  0    you left
  1    no gateway runs, it does not let you in, or a message was not taken
  2    the command line cannot be used, or there is no terminal
  130  interrupted twice";
