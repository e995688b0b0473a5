//! Which crate may use which, and which names a crate must not use: the table of `ARCHITECTURE.md`.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

#[path = "architecture/channels.rs"]
mod channels;
#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/names.rs"]
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use myclaw_llm::outside::harmless;

/// The crates from top to bottom, each with those that it may use. The test kit is for tests of all of them.
const CRATES: [(&str, &[&str]); 39] = [
    (
        "cli",
        &[
            "tui",
            "protocols",
            "import",
            "front",
            "gateway",
            "delivery",
            "cluster",
            "gateway-client",
            "host",
            "runner",
            "backup",
            "agent",
            "hooks",
            "engine",
            "session",
            "llm-cloud",
            "llm",
            "auth",
            "sandbox",
            "speech",
            "exec",
            "config",
            "skills",
            "files",
        ],
    ),
    (
        "tui",
        &[
            "front",
            "gateway-client",
            "agent",
            "tools",
            "engine",
            "session",
            "llm",
            "exec",
            "config",
            "files",
        ],
    ),
    (
        "protocols",
        &[
            "front",
            "gateway-client",
            "agent",
            "tools",
            "executor",
            "engine",
            "session",
            "llm",
            "config",
            "skills",
            "files",
        ],
    ),
    ("import", &["front", "agent", "engine", "session", "llm", "files"]),
    (
        "front",
        &[
            "gateway-client",
            "agent",
            "tools",
            "engine",
            "memory",
            "session",
            "llm",
            "auth",
            "exec",
            "config",
            "skills",
            "store",
            "files",
        ],
    ),
    (
        "gateway",
        &[
            "delivery",
            "gateway-client",
            "host",
            "agent",
            "tools",
            "executor",
            "engine",
            "session",
            "llm",
            "config",
            "skills",
            "channels",
            "store",
            "files",
        ],
    ),
    (
        "cluster",
        &["agent", "store-postgres", "session", "auth", "config", "store", "proxy", "files"],
    ),
    (
        "delivery",
        &[
            "agent", "tools", "engine", "session", "llm", "speech", "config", "channels", "store",
            "schedule", "files",
        ],
    ),
    (
        "gateway-client",
        &["agent", "executor", "hooks", "engine", "session", "llm", "config", "store", "files"],
    ),
    ("host", &["store", "schedule", "sandbox", "exec", "llm", "speech", "files"]),
    (
        "runner",
        &[
            "agent", "browser", "web", "tools", "engine", "session", "llm", "auth", "exec",
            "config", "embed", "speech", "files",
        ],
    ),
    (
        "agent",
        &[
            "browser",
            "mcp",
            "web",
            "tools",
            "hooks",
            "executor",
            "engine",
            "memory",
            "packages",
            "session",
            "llm-cloud",
            "llm",
            "auth",
            "policy",
            "sandbox",
            "exec",
            "config",
            "skills",
            "speech",
            "embed",
            "files",
        ],
    ),
    ("browser", &["web", "tools", "engine", "llm", "exec", "files"]),
    ("mcp", &["web", "tools", "engine", "llm", "sandbox", "exec", "files"]),
    ("web", &["tools", "engine", "llm", "exec", "proxy"]),
    ("tools", &["engine", "llm", "policy", "sandbox", "exec", "files"]),
    ("executor", &["engine", "llm", "sandbox", "exec", "files"]),
    ("hooks", &["engine", "llm", "policy", "exec", "config"]),
    ("engine", &["session", "llm", "auth", "config", "files"]),
    ("memory", &["session", "embed", "files"]),
    ("store-postgres", &["session", "store", "files"]),
    ("session", &["files"]),
    ("llm-cloud", &["llm"]),
    ("llm", &["proxy"]),
    ("auth", &["exec", "config", "files"]),
    ("packages", &["policy", "config", "skills", "files"]),
    ("policy", &["config"]),
    ("sandbox", &["exec", "files"]),
    ("speech", &["exec", "proxy", "files"]),
    ("exec", &["files"]),
    ("config", &["schedule", "files"]),
    ("skills", &["files"]),
    ("channels", &["files", "proxy"]),
    ("backup", &["store", "files"]),
    ("store", &["files"]),
    ("schedule", &[]),
    ("embed", &["files", "proxy"]),
    ("proxy", &[]),
    ("files", &[]),
];

/// Words that must not stand in the sources of a crate, outside comments and tests: the crate, the word, and why.
const FORBIDDEN: [(&str, &str, &str); 42] = [
    ("gateway", "AuthStore", "the agent looks keys up"),
    ("gateway", "KeyResolver", "the agent looks keys up"),
    ("gateway", "HttpProvider", "the agent connects to models"),
    ("gateway", "builtin_tools", "the agent builds the tools of a run"),
    ("gateway", "command_hooks", "the agent builds the hooks of a run"),
    ("delivery", "AuthStore", "the agent looks keys up"),
    ("delivery", "KeyResolver", "the agent looks keys up"),
    ("delivery", "HttpProvider", "the agent connects to models"),
    ("delivery", "builtin_tools", "the agent builds the tools of a run"),
    ("delivery", "command_hooks", "the agent builds the hooks of a run"),
    ("delivery", "clap", "the command line is the binary's"),
    ("delivery", "println", "front-ends print"),
    ("delivery", "rusqlite", "the database is behind the trait `Store`"),
    ("delivery", "SqliteStore", "the gateway opens the store"),
    ("delivery", "axum", "HTTP is the gateway's"),
    ("delivery", "tungstenite", "clients are behind the trait `Front`"),
    ("gateway-client", "builtin_tools", "the agent builds the tools of a node"),
    ("gateway-client", "clap", "the command line is the binary's"),
    ("gateway-client", "println", "front-ends print"),
    ("gateway-client", "rusqlite", "the store says whether a gateway runs"),
    ("agent", "clap", "the command line is the binary's"),
    ("agent", "ExitCode", "failures have a class; the binary maps it to an exit code"),
    ("agent", "println", "front-ends print"),
    ("agent", "eprintln", "front-ends print"),
    ("gateway", "clap", "the command line is the binary's"),
    ("gateway", "println", "front-ends print"),
    ("gateway", "rusqlite", "the database is behind the trait `Store`"),
    ("runner", "clap", "the command line is the binary's"),
    ("runner", "println", "what is printed is a block of the protocol"),
    ("runner", "Config", "the runner takes values"),
    ("host", "clap", "the command line is the binary's"),
    ("host", "println", "front-ends print"),
    ("host", "rusqlite", "the database is behind the trait `Store`"),
    ("channels", "SessionKey", "which session a message belongs to is decided elsewhere"),
    ("channels", "Config", "a channel takes values"),
    ("channels", "Model", "what answers is decided elsewhere"),
    ("channels", "Store", "the intake makes messages durable"),
    ("store", "Config", "the store takes values"),
    ("engine", "Config", "the engine takes values"),
    ("engine", "ResolvedAgent", "the engine takes values"),
    ("engine", "Environment", "the engine takes values"),
    ("engine", "HttpProvider", "who stands behind a model is passed in"),
];

/// The crates that show a run to a person or a program in this process.
const FRONT_ENDS: [&str; 5] = ["cli", "tui", "protocols", "import", "front"];
/// Words that must not stand in any of them, and why.
const FORBIDDEN_IN_FRONT_ENDS: [(&str, &str); 4] = [
    ("Api", "wire formats are the model layer's"),
    ("KeyResolver", "the agent looks keys up"),
    ("builtin_tools", "the agent builds the tools of a run"),
    ("command_hooks", "the agent builds the hooks of a run"),
];

#[test]
fn a_crate_uses_only_what_the_table_allows() {
    for (name, allowed) in CRATES {
        for used in crates_used_by(&crates().join(name).join("Cargo.toml")) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn the_table_points_down_only() {
    for (level, (name, allowed)) in CRATES.iter().enumerate() {
        for other in *allowed {
            let below = CRATES.iter().position(|(name, _)| name == other);
            assert!(below.is_some_and(|below| below > level), "{other} is not below {name}");
        }
    }
}

#[test]
fn every_crate_is_in_the_table_or_the_test_kit() {
    let mut names: Vec<String> = fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut known: Vec<&str> = CRATES.iter().map(|(name, _)| *name).chain(["testkit"]).collect();
    known.sort_unstable();
    assert_eq!(names, known, "add the new crate to ARCHITECTURE.md and to this test");
}

#[test]
fn no_crate_uses_a_name_that_is_not_its_own_business() {
    let mut found = Vec::new();
    let in_front_ends = FORBIDDEN_IN_FRONT_ENDS
        .iter()
        .flat_map(|(word, reason)| FRONT_ENDS.map(|name| (name, *word, *reason)));
    for (name, word, reason) in FORBIDDEN.into_iter().chain(in_front_ends) {
        for file in sources(&crates().join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                if holds_word(line.split("//").next().unwrap_or_default(), word) {
                    found.push(format!("{}:{number}: `{word}`: {reason}", file.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Most names of other crates that `agent` passes on, for programs that depend on it alone.
const MOST_PASSED_ON: usize = 64;

/// A name that `agent` passes on hides which crate a module uses: the table would hold and say nothing.
#[test]
fn what_the_agent_passes_on_is_for_programs_outside_of_the_workspace() {
    let passed_on = circles::from_other_crates(&crates().join("agent/src/lib.rs"));
    assert!(passed_on.len() <= MOST_PASSED_ON, "{} names: {passed_on:?}", passed_on.len());
    assert!(passed_on.contains(&["config".to_owned(), "Config".to_owned()][..]), "{passed_on:?}");
    let mut found = Vec::new();
    for (name, _) in CRATES.iter().filter(|(name, _)| *name != "agent") {
        for file in sources(&crates().join(name).join("src")) {
            for path in circles::imported_from(&file, "myclaw_agent") {
                if passed_on.iter().any(|passed| path.starts_with(passed)) {
                    found.push(format!("{}: {}", file.display(), path.join("::")));
                }
            }
        }
    }
    assert!(found.is_empty(), "import it from the crate that defines it:\n{}", found.join("\n"));
}

/// How many modules of a crate import themselves over others. All other crates have none, and these numbers only shrink.
const IN_CIRCLES: [(&str, usize); 15] = [
    ("tui", 2),
    ("protocols", 7),
    ("host", 17),
    ("runner", 3),
    ("mcp", 4),
    ("tools", 2),
    ("engine", 15),
    ("session", 18),
    ("llm-cloud", 2),
    ("llm", 18),
    ("auth", 4),
    ("sandbox", 5),
    ("exec", 2),
    ("config", 31),
    ("channels", 11),
];

#[test]
fn the_modules_of_a_crate_import_each_other_in_one_direction() {
    let known = BTreeMap::from(IN_CIRCLES);
    let mut wrong = Vec::new();
    for (name, _) in CRATES {
        let found = circles::circles(&crates().join(name));
        let allowed = known.get(name).copied().unwrap_or_default();
        if found.len() > allowed {
            let lines =
                found.iter().map(|(module, others)| format!("  {module} -> {}", others.join(", ")));
            let lines = lines.collect::<Vec<_>>().join("\n");
            wrong.push(format!("{name}: {} instead of {allowed}:\n{lines}", found.len()));
        } else if found.len() < allowed {
            wrong.push(format!("{name}: write {} in IN_CIRCLES", found.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the agent's stores are made of directories.
const STORES: &str = "agent/src/stores.rs";
/// Where what belongs to the notes of an agent is found in its directory.
const MEMORY_STORES: &str = "agent/src/memory_stores.rs";
/// Where state directories are copied into a database and back.
const TRANSFER: &str = "cluster/src/transfer.rs";
const IMPORT: &str = "cluster/src/transfer/import.rs";
const EXPORT: &str = "cluster/src/transfer/export.rs";
/// What makes a store of a path, or says where its files are: the crate that defines it, and the modules of others that may
/// name it. Everybody else is given `Stores`.
const MADE_OF_A_PATH: [(&str, &str, &[&str]); 18] = [
    ("SessionStore", "session", &[STORES, IMPORT, EXPORT]),
    ("SessionLog", "session", &[]),
    ("SessionIndex", "session", &[]),
    ("FileInbox", "session", &[]),
    // Hooks of Claude Code read a field of that name.
    ("transcript_path", "session", &[EXPORT, "hooks/src/claude.rs"]),
    // A runner keeps sessions as documents. The agent passes them on to programs that do the same.
    ("JsonSessions", "session", &["runner/src/job.rs", "agent/src/lib.rs"]),
    ("DaySpending", "session", &[STORES, "runner/src/job.rs"]),
    ("FileBlobs", "session", &[STORES, EXPORT]),
    ("FileJobs", "tools", &[STORES]),
    ("in_agent_dir", "auth", &["agent/src/key_stores.rs", TRANSFER]),
    ("VectorFile", "embed", &["agent/src/vector_stores.rs"]),
    // What was approved, what is to be forgotten, and what belongs to notes.
    ("FileDocuments", "files", &[STORES, MEMORY_STORES, "agent/src/memory/record.rs", TRANSFER]),
    ("Notebook::new", "memory", &[MEMORY_STORES]),
    ("SessionSearch::new", "memory", &[MEMORY_STORES]),
    ("remove_index", "memory", &[MEMORY_STORES]),
    // The log of a server's program, in the directory that the stores name.
    ("server_log", "mcp", &["agent/src/mcp.rs", "cli/src/commands/mcp.rs"]),
    ("remove_server_log", "mcp", &["agent/src/mcp.rs"]),
    // These look at the rights of the directory and at the room on its disk.
    (
        "sessions_dir",
        "config",
        &[STORES, "agent/src/security_check/files.rs", "cli/src/commands/doctor.rs"],
    ),
];

#[test]
fn stores_are_made_of_paths_in_the_named_modules_alone() {
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for (name, _) in CRATES {
        for file in sources(&crates().join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                let code = line.split("//").next().unwrap_or_default();
                for (word, _, places) in MADE_OF_A_PATH.iter().filter(|(_, home, _)| *home != name)
                {
                    if !holds_word(code, word) {
                        continue;
                    }
                    match places.iter().find(|place| file.ends_with(place)) {
                        Some(place) => drop(used.insert((*word, *place))),
                        None => found.push(format!("{}:{number}: {word}", file.display())),
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "use the traits in `Home::stores`:\n{}", found.join("\n"));
    let of_word = |(word, _, places): &(&'static str, _, &[&'static str])| {
        places.iter().map(|place| (*word, *place)).collect::<Vec<_>>()
    };
    let listed: BTreeSet<_> = MADE_OF_A_PATH.iter().flat_map(of_word).collect();
    let unused: Vec<_> = listed.difference(&used).collect();
    assert!(unused.is_empty(), "these are no exceptions any more: {unused:?}");
}

/// The modules that open, list, make or remove files by themselves in the crates outside of every sandbox, and why each may.
/// All others go through `SharedDirectory`, because what they open may be in a directory that a sandboxed session, a
/// container or somebody's project can change. Before you add a module, ask who else can change its directory.
const OWN_FILES: [(&str, &[&str]); 10] = [
    (
        "in the state directory, which no tool of another party may change",
        &[
            "agent/src/agent_files.rs",
            "agent/src/approvals/store.rs",
            "agent/src/custom_commands/library.rs",
            "agent/src/running.rs",
            "agent/src/running/marks.rs",
            "agent/src/snapshots.rs",
            "agent/src/snapshots/written.rs",
            "agent/src/stores.rs",
            "agent/src/workspace/moved.rs",
            "channels/src/matrix/encryption/rows.rs",
            "packages/src/store.rs",
            "tui/src/clipboard.rs",
            "tui/src/editor.rs",
            "tui/src/pastes.rs",
            "cli/src/commands/config/change.rs",
            "cli/src/commands/doctor.rs",
            "cli/src/commands/doctor/keys.rs",
            "cli/src/commands/gateway/logs.rs",
            "cli/src/commands/uninstall.rs",
            "front/src/logging/file.rs",
            "gateway/src/channel_draft.rs",
            "gateway/src/containers.rs",
            "delivery/src/delivery/media.rs",
            "gateway-client/src/node/state.rs",
            "gateway-client/src/node/work.rs",
            "gateway-client/src/running.rs",
            "gateway/src/server/logs.rs",
            "gateway-client/src/token.rs",
        ],
    ),
    (
        "where the owner has installed the program, or of a release that is checked before it is used",
        &[
            "cli/src/commands/update/installed.rs",
            "cli/src/commands/update/release.rs",
            "cli/src/commands/update/running.rs",
        ],
    ),
    (
        "in the host's own directories, which no container sees",
        &[
            "host/src/backend.rs",
            "host/src/backend/sandboxed.rs",
            "host/src/channel.rs",
            "host/src/desk.rs",
            "host/src/groups.rs",
            "host/src/model.rs",
            "host/src/model/usage.rs",
            "host/src/mounts.rs",
            "host/src/run/log.rs",
            "host/src/speech.rs",
        ],
    ),
    (
        "in a new directory of this process, before the confined program that may change it starts",
        &["agent/src/mcp/script.rs", "mcp/src/script.rs"],
    ),
    (
        "in a new directory of this process, which no confined program may change",
        &["agent/src/program.rs"],
    ),
    (
        "at a path that the owner has typed or written into the config, who may mean a link",
        &[
            "cli/src/commands/backup.rs",
            "agent/src/key_lookup.rs",
            "agent/src/mcp/import.rs",
            "agent/src/packages/fetch.rs",
            "agent/src/secrets.rs",
            "agent/src/worktrees.rs",
            "channels/src/socket.rs",
            "front/src/attachments.rs",
            "front/src/gateway.rs",
            "agent/src/custom_commands.rs",
            "tui/src/paths.rs",
            "cli/src/commands/auth/add.rs",
            "cli/src/commands/auth/login.rs",
            "cli/src/commands/run/form.rs",
            "cli/src/commands/gateway/service.rs",
            "cli/src/commands/runner.rs",
            "front/src/sessions/export.rs",
            "import/src/lib.rs",
            "import/src/files.rs",
            "import/src/target.rs",
            "gateway-client/src/tls.rs",
            "cluster/src/address.rs",
            "cluster/src/transfer.rs",
            "cluster/src/transfer/import.rs",
            "cluster/src/transfer/export.rs",
            "skills/src/find.rs",
        ],
    ),
    (
        "for the eyes of the person at this terminal or editor only, whose own tools may follow links; never waits",
        &["protocols/src/acp/editor.rs", "front/src/terminal/images.rs"],
    ),
    (
        "as the program that is judged will read it, over links too; only the owner who is asked sees it",
        &[
            "agent/src/permissions/bound/carried.rs",
            "agent/src/permissions/bound/state.rs",
            "agent/src/permissions/repository.rs",
            "agent/src/permissions/repository/index.rs",
            "agent/src/permissions/tree.rs",
        ],
    ),
    (
        "to count the entries of a directory, in which no link is followed",
        &["agent/src/snapshots/listed.rs"],
    ),
    (
        "a terminal or a file of the system",
        &[
            "agent/src/helper.rs",
            "cli/src/commands/run.rs",
            "front/src/interrupt.rs",
            "front/src/terminal/keyboard.rs",
            "front/src/terminal/relay.rs",
        ],
    ),
];
/// The crates that run outside of every sandbox and work in directories of others.
const OUTSIDE: [&str; 16] = [
    "engine",
    "agent",
    "mcp",
    "packages",
    "gateway",
    "delivery",
    "gateway-client",
    "cluster",
    "channels",
    "skills",
    "host",
    "cli",
    "tui",
    "protocols",
    "import",
    "front",
];
/// Functions and modules of a module `fs` that open nothing.
const LOOKS: [&str; 5] = ["inotify", "metadata", "self", "set_permissions", "symlink_metadata"];
/// Other ways to open, make or remove a file.
const OPENERS: [&str; 16] = [
    "File::open",
    "File::create",
    "File::create_new",
    "File::options",
    "OpenOptions",
    "DirBuilder",
    "NewFile::in_directory",
    "NewFile::named",
    "open_regular",
    "open_regular_unlinked",
    "private_options",
    "read_regular",
    "remove_if_there",
    "WalkBuilder",
    "read_dir",
    "symlink",
];

#[test]
fn files_in_directories_that_others_can_change_are_opened_in_one_way() {
    let mut found = Vec::new();
    let mut unused: Vec<&str> = OWN_FILES.iter().flat_map(|(_, files)| *files).copied().collect();
    for file in OUTSIDE.iter().flat_map(|name| sources(&crates().join(name).join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(crates()).unwrap().to_str().unwrap();
        let mut is_passed_on = false;
        let lines = (1..).zip(text.lines()).filter(|(_, line)| {
            is_passed_on |= line.trim_start().starts_with("pub use ");
            let opens = !is_passed_on && opens_files(line);
            is_passed_on &= !line.contains(';');
            opens
        });
        let lines: Vec<String> =
            lines.map(|(number, line)| format!("{name}:{number}: {}", line.trim())).collect();
        match unused.iter().position(|known| *known == name) {
            Some(at) if !lines.is_empty() => drop(unused.remove(at)),
            _ => found.extend(lines),
        }
    }
    assert!(found.is_empty(), "use SharedDirectory, or see OWN_FILES:\n{}", found.join("\n"));
    assert!(unused.is_empty(), "these open no files any more, so remove them: {unused:?}");
}

/// On Windows the function of the standard library returns paths in a form that people, and many programs, do not know.
#[test]
fn paths_are_resolved_by_one_function() {
    let mut found = Vec::new();
    for (name, _) in CRATES {
        for file in sources(&crates().join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            if code.into_iter().any(|line| holds_word(line, "canonicalize")) {
                found.push(file.strip_prefix(crates()).unwrap().display().to_string());
            }
        }
    }
    assert_eq!(found, ["files/src/canonical.rs"], "use canonical of myclaw_files");
}

/// The crates that write texts for models.
const WORDING: [&str; 11] = [
    "agent",
    "channels",
    "delivery",
    "engine",
    "gateway",
    "gateway-client",
    "host",
    "mcp",
    "runner",
    "tools",
    "web",
];

/// How notes between square brackets begin that nobody is deceived by, and why: all others are made harmless in what comes
/// from outside.
const PLAIN_NOTES: [(&str, &[&str]); 7] = [
    (
        "behind the kind of a passage; a test of `wording.rs` in `delivery` walks all kinds",
        &[", without text", "the lines quoted twice"],
    ),
    (
        "about the result of a tool, as a part of it",
        &[
            "job ",
            "Some bytes are not valid",
            "The file is in ",
            "NUL characters",
            "no text",
            "aborted",
            "chars of old output",
            "an old picture",
            "refused by the network",
            "what the node returned",
            "end]",
            "cut here",
            "the rest was cut",
            "the server ",
        ],
    ),
    (
        "within what somebody else wrote, which is quoted",
        &[
            "a story]",
            "a note of Telegram",
            "to be viewed once",
            "The rest of the mail",
            "a file is not here",
        ],
    ),
    ("of the host, whose whole prompt is made harmless", &["the file {ATTACHMENTS}", "Voice: "]),
    ("of the requests of other programs, in what is quoted", &["called "]),
    ("what a model wrote by mistake", &["tool_call", "tool_request"]),
    (
        "for people, or for other programs",
        &[
            "DONE]",
            "redacted]",
            "an image of type",
            "image: ",
            "x]",
            "UNAVAILABLE",
            "LIMIT]",
            "INUSE]",
        ],
    ),
];

/// A note that is forgotten here can be imitated by a stranger.
#[test]
fn every_note_of_the_program_is_made_harmless_in_what_comes_from_outside() {
    let mut found = Vec::new();
    let mut unused: Vec<&str> = PLAIN_NOTES.iter().flat_map(|(_, notes)| *notes).copied().collect();
    let mut count = 0;
    for file in WORDING.iter().flat_map(|name| sources(&crates().join(name).join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        // A module that is for tests only has a file of its own there.
        let code = match file.ends_with("channels/src/kinds.rs") {
            true => "",
            false => text.split("#[cfg(test)]").next().unwrap_or_default(),
        };
        for (number, line) in (1..).zip(code.lines()) {
            for note in notes_of(line) {
                count += 1;
                if let Some(at) = unused.iter().position(|known| note.starts_with(known)) {
                    unused.remove(at);
                }
                let is_plain = PLAIN_NOTES
                    .iter()
                    .any(|(_, notes)| notes.iter().any(|known| note.starts_with(known)));
                let shown = format!("[{}", note.replace("\\\"", "\""));
                if !is_plain && harmless(&shown) == shown {
                    found.push(format!("{}:{number}: [{note}", file.display()));
                }
            }
        }
    }
    assert!(count > 40, "{count} notes were found");
    assert!(
        found.is_empty(),
        "add the note to crates/llm/src/outside/own.rs, or see PLAIN_NOTES:\n{}",
        found.join("\n")
    );
    assert!(unused.is_empty(), "no note begins so any more, so remove them: {unused:?}");
}

/// The texts between quotation marks that begin with a note, as far as they are in this line. A part that is filled in at
/// the beginning is left out.
fn notes_of(line: &str) -> Vec<&str> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return Vec::new();
    }
    let begins = line.match_indices("\"").map(|(at, _)| &line[at + 1..]);
    begins
        .filter_map(|text| text.trim_start_matches("\\n").strip_prefix('['))
        .map(|note| match note.strip_prefix('{') {
            Some(filled) => {
                filled.split_once('}').map_or("", |(_, rest)| rest).trim_start_matches([' ', ':'])
            }
            None => note,
        })
        .filter(|note| note.chars().filter(|letter| letter.is_alphabetic()).count() > 2)
        .filter(|note| note.starts_with(|letter: char| letter.is_alphabetic() || letter == ','))
        .collect()
}

/// Whether a line calls or imports what opens, lists, makes or removes files. What is made private and empty is no file.
fn opens_files(line: &str) -> bool {
    let line = line.split("//").next().unwrap_or_default();
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let calls_module = line.match_indices("fs::").any(|(at, matched)| {
        let before = &line[..at];
        let behind = line[at + matched.len()..].trim_start_matches('{');
        let names = behind.split(|char: char| !is_name(char)).filter(|name| !name.is_empty());
        // Types and traits begin with a capital; behind a name there are its arguments.
        let mut names = names.take(if line.trim_start().starts_with("use ") { 100 } else { 1 });
        let is_function =
            |name: &str| name.starts_with(char::is_lowercase) && !LOOKS.contains(&name);
        !before.ends_with(is_name) && !before.ends_with("unix::") && names.any(is_function)
    });
    calls_module || OPENERS.iter().any(|word| holds_word(line, word))
}

#[test]
fn what_opens_files_is_recognised() {
    for line in [
        "let text = fs::read_to_string(path)?;",
        "std::fs::write(path, text)?;",
        "tokio::fs::read(path).await",
        "use std::fs::{self, read};",
        "use std::fs::read_dir;",
        "File::open(path)",
        "let file = OpenOptions::new().read(true).open(path);",
        "rustix::fs::open(path, flags, mode)",
        "std::os::unix::fs::symlink(one, other)",
        "for entry in path.read_dir()? {",
        "read_regular(path, 1)",
    ] {
        assert!(opens_files(line), "{line}");
    }
    for line in [
        "use std::fs::{self, File, Metadata};",
        "use std::os::unix::fs::MetadataExt;",
        "fn f(file: &std::fs::File) {}",
        "fs::metadata(path)",
        "let offs::read = 1;",
        "// fs::read(path)",
        "shared.read(path, 1)",
    ] {
        assert!(!opens_files(line), "{line}");
    }
}

#[test]
fn only_whole_words_count() {
    assert!(holds_word("fn f(config: &Config) {}", "Config"));
    assert!(holds_word("Config", "Config"));
    assert!(!holds_word("fn f(config: &QueueConfig) {}", "Config"));
    assert!(!holds_word("ConfigError", "Config"));
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
    })
}

/// The Rust files below `directory` that are no tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
    files
}

/// The crates of this workspace among the normal dependencies of a manifest. The test kit among them would ship it to
/// users.
fn crates_used_by(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    text.lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("myclaw-"))
        .map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_owned())
        .collect()
}
