//! Commands of other agents, and what does the same here.

/// The commands, and what a message says of each.
pub(super) const COMMANDS: [(&[&str], &str); 20] = [
    (&["/checkpoint"], "`/rewind` goes back to an earlier message, in files too"),
    (&["/reset"], "`/new` begins a new session; the one before is kept"),
    (&["/rename", "/name"], "`/title TEXT` gives the session a title"),
    (
        &["/status", "/session", "/stats"],
        "`/usage`, `/context` and `/config` show the state of the session",
    ),
    (&["/tokens"], "`/context` shows what fills the window, and `/usage` what was used"),
    (&["/add", "/read-only"], "name the file in the message; after `@`, Tab completes its path"),
    (&["/drop"], "`/compact` makes room in the window"),
    (
        &["/run", "/test", "/lint", "/git", "/ls"],
        "`!COMMAND` runs a command, and its output goes to the model with the next message",
    ),
    (&["/commit"], "ask the agent to commit, or do it with `!git commit`"),
    (
        &["/permissions", "/approvals", "/allowed-tools"],
        "`myclaw approvals list` shows what you allowed, and `myclaw policy explain` what may run",
    ),
    (&["/login", "/logout"], "`myclaw auth` keeps the keys of providers"),
    (&["/hooks", "/settings"], "it is set in the config, which `myclaw config edit` opens"),
    (
        &["/statusline"],
        "`terminal.statusLine` and `terminal.statusCommand` say what it shows; `myclaw config edit` opens the config",
    ),
    (
        &["/vim"],
        "`myclaw config set terminal.keys vi` edits lines with the keys of vi, from the next chat on",
    ),
    (&["/doctor"], "`myclaw doctor` checks the set-up"),
    (
        &["/effort", "/think", "/think-tokens", "/reasoning-effort"],
        "`/thinking LEVEL` sets how much the model thinks",
    ),
    (&["/editor"], "Ctrl-G opens the message in your editor"),
    (&["/paste"], "Ctrl-V takes a picture from the clipboard"),
    (&["/web"], "name the address in the message; the agent reads the page"),
    (&["/save", "/share"], "`/export FILE` writes the session to a file, without known keys"),
];

/// What does here what the command `name` does in another agent, if it is a command of one.
pub(super) fn here(name: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(names, _)| names.contains(&name)).map(|(_, here)| *here)
}
