//! Commands that are part of the shell.

/// What a builtin can do to the commands around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    /// It does only its own work, so an entry with its name permits it, like a program.
    Plain,
    /// It runs text as commands, or changes what later commands mean: `eval`, `source`, `exec`, `command`, `alias`,
    /// `hash`, `enable`, `trap`, `export`, … It is never permitted.
    Steering,
}

/// Builtins that do only their own work.
const PLAIN: [&str; 11] =
    [":", "[", "cd", "echo", "exit", "false", "kill", "printf", "pwd", "test", "true"];

/// The other builtins of bash and dash.
#[rustfmt::skip]
const STEERING: [&str; 51] = [
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "chdir", "command", "compgen", "complete", "compopt",
    "continue", "declare", "dirs", "disown", "enable", "eval", "exec", "export", "fc", "fg", "getopts", "hash", "help",
    "history", "jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return",
    "set", "shift", "shopt", "source", "suspend", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "wait",
];

/// The builtin of that name. Any other name is looked up as a program.
pub(super) fn of(name: &str) -> Option<Builtin> {
    if PLAIN.contains(&name) {
        Some(Builtin::Plain)
    } else if STEERING.contains(&name) {
        Some(Builtin::Steering)
    } else {
        None
    }
}
