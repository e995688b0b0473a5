//! The help texts of `myclaw gateway`.

pub(in crate::args) const GATEWAY: &str = "\
Run the process that is always on. It listens on this machine, on the port gateway.port of the config file (18789), \
and is reachable from others only if gateway.bind says so (docs/operate/remote.md). It answers programs and web chats \
that present its token. The first start creates the token, in the file gateway/token of the state directory.

Every message is on disk before it is acknowledged, and is answered or reported exactly once, even if the process is \
killed: the next start goes on with what was begun. The first SIGINT or SIGTERM takes no more messages and waits up to \
ten seconds for running turns; the second ends the process at once. docs/operate/gateway.md describes the protocol.";

pub(in crate::args) const GATEWAY_EXAMPLES: &str = "\
Examples:
  myclaw gateway                               until Ctrl-C
  myclaw gateway install                       as a service, which starts with your session
  myclaw gateway status
  curl -H \"Authorization: Bearer $(cat ~/.myclaw/gateway/token)\" \\
    -d '{\"text\": \"hello\", \"id\": \"a-uuid\"}' -H 'Content-Type: application/json' \\
    http://127.0.0.1:18789/api/messages

Exit codes:
  0    it was stopped
  1    another gateway runs, the port is in use, or a file cannot be used
  3    the config file has to be changed
  130  it was stopped twice, and ended at once";

pub(in crate::args) const GATEWAY_INSTALL: &str = "\
Write a service file for this program (a systemd user unit on Linux, a launchd agent on macOS) and start the service. \
The file records PATH and the variables MYCLAW_HOME, MYCLAW_STATE_DIR, MYCLAW_CONFIG_PATH and MYCLAW_GATEWAY_PORT as they \
are now. Other variables of your shell are not seen by a service: put keys into the key store (`myclaw auth add`) or into \
.env in the state directory.

A file that differs is not replaced without --force. Where the service program cannot be reached, the commands to run \
are printed.";

pub(in crate::args) const GATEWAY_INSTALL_EXAMPLES: &str = "\
Examples:
  myclaw gateway install
  myclaw gateway install --dry-run             print the file
  myclaw gateway install --force               after an update that moved the program

Exit codes:
  0    the file is written; the output says whether the service runs
  1    a file that differs exists, or it cannot be written";

pub(in crate::args) const GATEWAY_LINK: &str = "\
Print a link that signs you in to the page of the running gateway, so that no token has to be copied. It works once and for \
ten minutes, and ends with the gateway's process. The browser that opens it becomes a device with the scope owner: \
`myclaw devices` lists it and takes its access away. With gateway.allowedHosts there is a line for each of these names; \
the first link that is opened uses up the others.";

pub(in crate::args) const GATEWAY_LINK_EXAMPLES: &str = "\
Examples:
  myclaw gateway link
  myclaw gateway link --qr                     for a phone that reaches the gateway
  xdg-open \"$(myclaw gateway link | head -n 1)\"

Exit codes:
  0    the link is printed
  1    no gateway runs, or it refuses";

pub(in crate::args) const GATEWAY_UNINSTALL_EXAMPLES: &str = "\
Examples:
  myclaw gateway uninstall

Sessions, messages and the config stay.";

pub(in crate::args) const GATEWAY_LOGS_EXAMPLES: &str = "\
Examples:
  myclaw gateway logs
  myclaw gateway logs --follow --lines 20

The log is logs/myclaw.log in the state directory, if logging.file of the config file is true; else the journal of the \
service.";
