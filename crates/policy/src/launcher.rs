//! Programs that run other programs.
//!
//! An entry for `find` must not permit every program that `find -exec` can start. So an entry of the allowlist without
//! arguments does not cover arguments that start another program; an entry that spells these arguments out does. The
//! list holds only known programs; the sandbox is the boundary for others.

/// Programs whose arguments, input or scripts are programs: shells, interpreters, wrappers, remote shells, debuggers and
/// editors. Version numbers are removed before the comparison.
#[rustfmt::skip]
const RUNS_ANYTHING: &[&str] = &[
    // shells
    "sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "pdksh", "yash", "fish", "csh", "tcsh", "busybox",
    "toybox", "pwsh", "powershell", "nu", "elvish", "xonsh", "osh", "ysh", "rc", "es", "scsh",
    // interpreters
    "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "qjs", "gjs",
    "lua", "luajit", "php", "tclsh", "wish", "expect", "Rscript", "R", "julia", "ghci", "runghc", "runhaskell", "scala",
    "groovy", "java", "jshell", "jrunscript", "erl", "escript", "elixir", "iex", "guile", "racket", "sbcl", "clisp", "emacs",
    "emacsclient", "osascript", "awk", "gawk", "mawk", "nawk", "original-awk", "m4", "dc", "gnuplot", "octave", "gs",
    "swipl", "ocaml", "crystal", "nim", "raku", "kotlin", "dotnet-script", "rust-script",
    // editors and pagers, which have a command to start a shell
    "vi", "vim", "nvim", "view", "vimdiff", "rvim", "ex", "ed", "red", "nano", "pico", "micro", "joe", "less", "more", "most",
    "man", "info", "mail", "mutt", "lynx", "w3m",
    // wrappers
    "env", "xargs", "parallel", "nice", "ionice", "chrt", "taskset", "numactl", "nohup", "setsid", "timeout", "gtimeout",
    "stdbuf", "unbuffer", "script", "scriptreplay", "time", "watch", "entr", "flock", "lockf", "sem", "batch", "at",
    "crontab", "start-stop-daemon", "run-parts", "setarch", "linux32", "linux64", "eatmydata", "fakeroot", "faketime",
    "proxychains", "torsocks", "torify", "tsocks", "dbus-run-session", "dbus-launch", "xvfb-run", "direnv", "chronic", "ts",
    "ifne", "pee", "zrun", "rlwrap", "cpulimit", "prlimit", "softlimit", "choom", "catchsegv", "ldd", "xdg-open", "open",
    "gio", "exo-open", "nsenter", "unshare", "chroot", "bwrap", "firejail", "capsh", "setpriv", "systemd-run",
    "systemd-nspawn", "machinectl", "ld.so", "with-contenv", "tini", "dumb-init", "catatonit", "logsave", "daemonize",
    // other users, machines and containers
    "sudo", "sudoedit", "doas", "su", "runuser", "pkexec", "gosu", "su-exec", "newgrp", "sg", "ssh", "sshpass", "autossh",
    "mosh", "rsh", "rlogin", "telnet", "sftp", "scp", "ftp", "lftp", "socat", "screen", "tmux", "byobu", "dtach", "abduco",
    "docker", "podman", "nerdctl", "ctr", "runc", "crun", "lxc", "kubectl", "oc", "vagrant", "adb", "ansible", "pssh",
    // debuggers, tracers and database shells
    "gdb", "lldb", "strace", "ltrace", "valgrind", "perf", "bpftrace", "rr", "sqlite", "psql", "mysql", "mariadb", "mongosh",
    "redis-cli", "sqlplus", "duckdb",
    // runners of downloaded packages
    "npx", "bunx", "pnpx", "uvx", "pipx", "corepack",
];

/// Programs that run another one only if an argument asks for it. An option that begins with `--` also matches its
/// abbreviations; `-x` matches any group of letters with an `x` in it; a longer one matches itself, with or without a
/// value after `=`; a bare word matches itself; `0x` is a letter `x` in a first argument without a dash; `^-x` is `-x`
/// as the first argument; `*=` is any argument with an equals sign.
#[rustfmt::skip]
const RUNS_WITH_OPTION: &[(&str, &[&str])] = &[
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ugrep", &["--filter", "--pager"]),
    ("ag", &["--pager"]),
    ("ack", &["--pager", "--output"]),
    ("sort", &["--compress-program"]),
    ("gsort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("sdiff", &["--diff-program"]),
    ("patch", &["-e", "--ed"]),
    ("tar", &["-I", "-F", "0I", "0F", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script",
        "--new-volume-script", "--rsh-command", "--rmt-command"]),
    ("gtar", &["-I", "-F", "0I", "0F", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script",
        "--new-volume-script", "--rsh-command", "--rmt-command"]),
    ("bsdtar", &["--use-compress-program"]),
    ("cpio", &["--rsh-command", "--rmt-command"]),
    ("zip", &["-T", "--unzip-command"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("wget", &["-e", "--execute", "--use-askpass", "--config"]),
    ("curl", &["-K", "--config"]),
    ("git", &["-c", "^-p", "-O", "-x", "--paginate", "--config-env", "--exec-path", "--exec", "--upload-pack",
        "--receive-pack", "--ext-diff", "--textconv", "--open-files-in-pager", "--extcmd", "--template", "--git-dir", "-C",
        "config", "foreach", "filter-branch", "difftool", "mergetool", "bisect", "send-email", "instaweb", "hook"]),
    ("hg", &["--config", "--config-file"]),
    ("svn", &["--config-option", "--config-dir", "--diff-cmd", "--editor-cmd"]),
    ("make", &["-f", "--file", "--makefile", "--eval", "*=", "-C", "--directory"]),
    ("gmake", &["-f", "--file", "--makefile", "--eval", "*=", "-C", "--directory"]),
    ("cmake", &["-E", "-P"]),
    ("ninja", &["-f", "-C"]),
    ("cargo", &["--config"]),
    ("go", &["-exec", "-toolexec", "-vettool", "run", "generate"]),
    ("gcc", &["-wrapper", "-B", "-fplugin", "-specs", "--specs"]),
    ("cc", &["-wrapper", "-B", "-fplugin", "-specs", "--specs"]),
    ("npm", &["exec", "x", "explore", "config", "set", "--script-shell", "--node-options"]),
    ("pnpm", &["exec", "dlx", "config", "--script-shell", "--node-options"]),
    ("yarn", &["exec", "dlx", "config", "node", "--script-shell"]),
    ("uv", &["run", "tool"]),
    ("poetry", &["run", "shell"]),
    ("ip", &["exec", "-b", "-batch", "-force", "--batch"]),
    ("apt", &["-o", "-c", "--option", "--config-file"]),
    ("apt-get", &["-o", "-c", "--option", "--config-file"]),
    ("openssl", &["-engine", "-provider", "-provider-path"]),
    ("groff", &["-U"]),
    ("tex", &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"]),
    ("pdftex", &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"]),
    ("pdflatex", &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"]),
    ("xelatex", &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"]),
    ("lualatex", &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"]),
    ("nmap", &["--script", "--interactive"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("netcat", &["-e", "-c", "--exec"]),
    ("tcpdump", &["-z"]),
    ("ffmpeg", &["-report"]),
    ("nm", &["--plugin"]),
    ("ar", &["--plugin"]),
    ("printf", &["-v"]),
    ("test", &["-v", "-R"]),
    ("[", &["-v", "-R"]),
];

/// What a program may do with its arguments beyond its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// It runs the commands that its arguments, its input or a script name.
    Anything,
    /// It runs something if one of these options is given.
    WithOption(&'static [&'static str]),
    /// It is `sed`, whose scripts can run commands.
    Sed,
    /// It is not known to run other programs.
    Nothing,
}

impl Launcher {
    /// Looks up the file name of a program. A version at the end, as in `python3.12`, is ignored.
    pub(crate) fn of(file_name: &str) -> Self {
        let name = match file_name {
            _ if file_name.starts_with("ld-") => "ld.so",
            _ => file_name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')),
        };
        if matches!(name, "sed" | "gsed") {
            return Self::Sed;
        }
        // File systems that ignore case find `Python` as well.
        if RUNS_ANYTHING.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Self::Anything;
        }
        let options = RUNS_WITH_OPTION.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        options.map_or(Self::Nothing, |(_, options)| Self::WithOption(options))
    }
}

/// True if the argument at that index is one of the options.
pub(crate) fn is_launch_option(options: &[&str], index: usize, argument: &str) -> bool {
    options.iter().any(|option| is_option(option, index, argument))
}

fn is_option(option: &str, index: usize, argument: &str) -> bool {
    if option == "*=" {
        return argument.contains('=');
    }
    if let Some(first) = option.strip_prefix('^') {
        return index == 0 && argument == first;
    }
    if let Some(letter) = option.strip_prefix('0') {
        return index == 0 && !argument.starts_with('-') && argument.contains(letter);
    }
    if option.starts_with("--") {
        let name = argument.split('=').next().unwrap_or_default();
        return name.len() > 2 && option.starts_with(name);
    }
    match option.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => {
            argument.starts_with('-') && !argument.starts_with("--") && argument.contains(letter)
        }
        Some(_) => argument.split('=').next() == Some(option),
        None => argument == option,
    }
}

#[cfg(test)]
mod tests;
