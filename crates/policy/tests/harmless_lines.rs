//! What an allowlist with the bare names of programs permits: their harmless subcommands and options, in every form in
//! which a program reads them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use myclaw_config::{
    CommandRule, ConfigPath, ExecAsk, ExecRules, ExecSecurity, ProgramRule, SandboxMode,
    SandboxRules,
};
use myclaw_policy::{
    ExecLevel, ExecPolicy, ExecRequest, ExecVerdict, Level, PlaceFacts, RepositoryPrograms,
    ResolvedProgram, SessionFacts, WrittenAs, changes_no_file, starts_programs,
};

const LINES: &str = include_str!("data/harmless_lines.tsv");

/// A policy that permits what `rules` say, and asks about the rest.
fn policy(rules: Vec<CommandRule>) -> ExecPolicy {
    let rules = ExecRules {
        security: Some(ExecSecurity::Allowlist),
        ask: Some(ExecAsk::OnMiss),
        allowlist: Some(rules),
    };
    let place = ConfigPath::default().key("tools").key("exec");
    let level = ExecLevel { level: Level::Global, place, rules };
    let sandbox = SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() };
    let session =
        SessionFacts { key: "main", main_keys: &[], host_says_main: false, is_open_project: false };
    ExecPolicy::for_session(&[level], &sandbox, &ConfigPath::default().key("sandbox"), session)
        .unwrap()
}

fn everything() -> ExecPolicy {
    policy(vec![CommandRule::Program("*".to_owned())])
}

fn entry(program: &str, arguments: &[&str]) -> CommandRule {
    CommandRule::WithArguments(ProgramRule {
        program: program.to_owned(),
        args: Some(arguments.iter().map(|it| (*it).to_owned()).collect()),
    })
}

/// A machine on which every program is in /usr/bin, with these links, files and directories.
#[derive(Default)]
struct Machine {
    /// Paths that exist, with where they lead.
    files: BTreeMap<PathBuf, PathBuf>,
    /// Directories in which git starts something, with what.
    repositories: BTreeMap<PathBuf, RepositoryPrograms>,
    /// Directories with another repository in their working tree.
    inner_repositories: BTreeMap<PathBuf, String>,
    /// Whether writing counts, with /home/ann/work as the only place in which files with unknown names start nothing.
    judges_places: bool,
    environment: BTreeMap<String, String>,
}

impl Machine {
    /// Places as the agent sees them: of a home directory every hidden file, the directories of PATH, and some names.
    fn start_place(&self, path: &Path, form: WrittenAs<'_>) -> Option<String> {
        if !self.judges_places {
            return None;
        }
        let mut lexical = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(lexical.pop()),
                Component::CurDir => {}
                part => lexical.push(part),
            }
        }
        let facts = PlaceFacts {
            home: Some(Path::new("/home/ann")),
            working: &[Path::new("/home/ann/work")],
            programs: &[Path::new("/usr/bin"), Path::new("/home/ann/tools")],
            is_executable: false,
        };
        let is_directory = ["/home/ann", "/home/ann/work", "/home/ann/work/out", "/home/ann/tools"]
            .iter()
            .any(|directory| lexical == Path::new(directory));
        let own = starts_programs(&lexical, &facts);
        match form {
            WrittenAs::Copies(sources) if is_directory => own.or_else(|| {
                let copy = |source: &PathBuf| lexical.join(source.file_name().unwrap_or_default());
                sources.iter().find_map(|source| starts_programs(&copy(source), &facts))
            }),
            WrittenAs::Unnamed if !lexical.starts_with("/home/ann/work/out") => {
                own.or_else(|| Some("its names are not known".to_owned()))
            }
            _ => own,
        }
    }
}

/// `allowed`, or the kind of reason for which it asks.
fn verdict(policy: &ExecPolicy, machine: &Machine, line: &str) -> String {
    let request = ExecRequest {
        command: line,
        directory: Path::new("/home/ann/work"),
        workspace: Path::new("/home/ann/work"),
        environment: &machine.environment,
        changed_variables: &[],
        resolve: &|name| {
            let path = Path::new("/usr/bin").join(name);
            Some(ResolvedProgram { real: path.clone(), path })
        },
        real_path: &|path| machine.files.get(path).cloned(),
        repository: &|path| machine.repositories.get(path).cloned().unwrap_or_default(),
        inner_repository: &|path| machine.inner_repositories.get(path).cloned(),
        start_place: &|path, form| machine.start_place(path, form),
    };
    match policy.check(&request) {
        ExecVerdict::Allowed => "allowed".to_owned(),
        ExecVerdict::NeedsApproval(refusal) => refusal.kind.code().to_owned(),
        ExecVerdict::Denied(refusal) => panic!("{line}: {refusal}"),
    }
}

#[test]
fn each_line_gets_its_verdict() {
    let policy = everything();
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in LINES.lines().filter(|row| !row.starts_with('#') && !row.is_empty()) {
        let (expected, line) = row.split_once('\t').unwrap();
        let actual = verdict(&policy, &Machine::default(), line);
        if actual != expected {
            wrong.push(format!("{line}: expected {expected}, got {actual}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 600, "{count} lines");
}

/// A command before whose operand an option stands, the option, and the program that the option starts.
const STARTERS: &[(&str, &str, &str)] = &[
    ("git diff", "--ext-diff", ""),
    ("git grep x", "--open-files-in-pager", "./p"),
    ("git show", "--textconv", ""),
    ("git log", "--output", "./p"),
    ("git merge x", "--strategy", "p"),
    ("git commit -m x", "--trailer", "a:b"),
    ("git status", "--exec-path", "."),
    ("rg x", "--pre", "./p"),
    ("rg x", "--hostname-bin", "./p"),
    ("fd x", "--exec", "./p"),
    ("fd x", "--exec-batch", "./p"),
    ("sort a", "--compress-program", "./p"),
    ("sort a", "--output", "p"),
    ("split a", "--filter", "./p"),
    ("tar -xf a", "--to-command", "./p"),
    ("tar -cf a b", "--use-compress-program", "./p"),
    ("tar -cf a b", "--checkpoint-action", "exec=./p"),
    ("tar -cf a b", "--rsh-command", "./p"),
    ("tar -cf a b", "--new-volume-script", "./p"),
    ("zip a b", "--unzip-command", "./p"),
    ("rsync a b", "--rsh", "./p"),
    ("rsync a b", "--rsync-path", "./p"),
    ("curl x", "--config", "p"),
    ("curl x", "--output", "p"),
    ("curl x", "--upload-file", "p"),
    ("wget -O- x", "--execute", "p"),
    ("wget -O- x", "--use-askpass", "./p"),
    ("install a b", "--strip-program", "./p"),
    ("sdiff a b", "--diff-program", "./p"),
    ("diff3 a b c", "--diff-program", "./p"),
    ("bat a", "--pager", "./p"),
    ("ncat h 1", "--sh-exec", "p"),
    ("ncat h 1", "--lua-exec", "p"),
    ("nm a", "--plugin", "./p"),
    ("date", "--set", "p"),
    ("gpg --list-keys", "--agent-program", "./p"),
    ("rpm -qa", "--pipe", "p"),
    ("dpkg -l", "--pre-invoke", "p"),
    ("apt list", "--option", "a=b"),
    ("systemctl status", "--host", "h"),
    ("xmllint a", "--shell", ""),
    ("ugrep x", "--filter", "./p"),
    ("patch -u a", "--ed", ""),
    ("git fetch", "--upload-pack", "./p"),
    ("git push", "--receive-pack", "./p"),
    ("git clone a", "--upload-pack", "./p"),
    ("docker ps", "--config", "p"),
    ("kubectl get x", "--kubeconfig", "p"),
];

/// All places and forms of a long option: abbreviated, with the value attached or apart, before and after the operands,
/// and with quotes in it.
#[test]
fn no_form_of_an_option_that_starts_a_program_is_permitted() {
    let policy = everything();
    let mut permitted = Vec::new();
    let mut count = 0;
    for (command, option, value) in STARTERS {
        let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
        for end in 3..=option.len() {
            let option = &option[..end];
            if HARMLESS_BEGINNINGS.contains(&option) {
                continue;
            }
            let quoted = format!("{}\"{}\"", &option[..end - 1], &option[end - 1..]);
            let escaped = format!("\\{option}");
            for option in [option, &quoted, &escaped] {
                let forms = if value.is_empty() {
                    vec![option.to_owned()]
                } else {
                    vec![format!("{option}={value}"), format!("{option} {value}")]
                };
                for form in forms {
                    for line in [
                        format!("{program} {rest} {form}"),
                        format!("{program} {form} {rest}"),
                        format!("ls; {program} {rest} {form} | cat"),
                    ] {
                        count += 1;
                        if verdict(&policy, &Machine::default(), &line) == "allowed" {
                            permitted.push(line);
                        }
                    }
                }
            }
        }
    }
    assert!(permitted.is_empty(), "{}", permitted.join("\n"));
    assert!(count > 3_000, "{count} lines");
}

/// Beginnings of the options above that are harmless options of their own.
const HARMLESS_BEGINNINGS: &[&str] = &["--text"];

/// A letter that starts a program, in every group of harmless letters around it.
#[test]
fn no_group_of_letters_hides_one_that_starts_a_program() {
    let policy = everything();
    for (program, before, letter, value) in [
        ("tar", "xzv", 'I', "./p"),
        ("tar", "cv", 'F', "./p"),
        ("tar", "x", 'C', "/"),
        ("sort", "ru", 'o', "p"),
        ("rsync", "avz", 'e', "./p"),
        ("fd", "Ha", 'x', "./p"),
        ("fd", "Ha", 'X', "./p"),
        ("rg", "nil", 'z', ""),
        ("curl", "sSL", 'o', "p"),
        ("curl", "sSL", 'K', "p"),
        ("curl", "sSL", 'O', ""),
        ("nc", "vz", 'e', "./p"),
        ("nc", "vz", 'c', "p"),
        ("tcpdump", "nv", 'z', "./p"),
        ("tcpdump", "nv", 'w', "p"),
        ("zip", "rq", 'T', ""),
        ("unzip", "oq", 'd', "/"),
        ("install", "cp", 's', ""),
        ("git grep", "ni", 'O', "./p"),
        ("git commit", "aq", 'S', ""),
        ("git checkout", "q", 'p', ""),
        ("ss", "tl", 'K', ""),
    ] {
        let letters: Vec<char> = before.chars().collect();
        for at in 0..=letters.len() {
            let mut group: String = letters.iter().collect();
            group.insert(at, letter);
            for line in [
                format!("{program} -{group} {value} a"),
                format!("{program} -{group}{value} a"),
                format!("{program} a -{group} {value}"),
            ] {
                let actual = verdict(&policy, &Machine::default(), &line);
                assert_ne!(actual, "allowed", "{line}");
            }
        }
        let line = format!("{program} -{before} a");
        assert_ne!(verdict(&policy, &Machine::default(), &line), "not-harmless", "{line}");
    }
}

fn shown(policy: &ExecPolicy, machine: &Machine, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        assert_eq!(verdict(policy, machine, line), *expected, "{line}");
    }
}

#[test]
fn an_entry_permits_what_it_spells_out_and_the_rest_stays_described() {
    let policy = policy(vec![
        entry("git", &["push", "origin", "main"]),
        entry("git", &["fetch", "..."]),
        entry("git", &["-C", "/opt/repo", "status"]),
        entry("make", &["test", "..."]),
        entry("npm", &["run", "*"]),
        entry("cargo", &["build", "..."]),
        entry("cargo", &["*"]),
        entry("sort", &["-o", "*", "..."]),
        entry("sort", &["--output=*", "..."]),
        entry("sort", &["--compress*", "..."]),
        entry("tar", &["xzf", "*"]),
        entry("find", &[".", "-name", "*", "-delete"]),
        entry("python3", &["*", "..."]),
        entry("timeout", &["10", "..."]),
        entry("crontab", &["*"]),
        entry("sed", &["-i", "s/a/b/", "*"]),
    ]);
    shown(
        &policy,
        &Machine::default(),
        &[
            ("git push origin main", "allowed"),
            ("git push origin other", "arguments"),
            ("git fetch", "allowed"),
            ("git fetch --upload-pack=./x", "not-harmless"),
            ("git fetch origin", "not-harmless"),
            ("git -C /opt/repo status", "allowed"),
            ("git -C /tmp/repo status", "arguments"),
            ("make test", "allowed"),
            ("make test -j4 -k", "allowed"),
            ("make test other", "allowed"),
            ("make test SHELL=/tmp/x", "not-harmless"),
            ("make test -f /tmp/x", "not-harmless"),
            ("make test -j4f/tmp/x", "allowed"),
            ("make test --eval=x", "not-harmless"),
            ("npm run lint", "allowed"),
            ("npm exec lint", "arguments"),
            ("cargo build --release -p x", "allowed"),
            ("cargo build --config x", "not-harmless"),
            ("cargo build --conf=x", "not-harmless"),
            ("cargo install", "launcher"),
            ("cargo test", "launcher"),
            ("sort -o out a", "allowed"),
            ("sort -o out -o other a", "not-harmless"),
            ("sort --output=out a", "allowed"),
            ("sort --compress-program=x a", "not-harmless"),
            ("tar xzf a.tgz", "allowed"),
            ("tar xzf host:a.tgz", "not-harmless"),
            ("find . -name x -delete", "allowed"),
            ("find . -name -exec -delete", "arguments"),
            ("python3 x.py", "launcher"),
            ("timeout 10 ls", "allowed"),
            ("crontab x", "not-harmless"),
            ("sed -i s/a/b/ x", "launcher"),
        ],
    );
}

#[test]
fn a_star_stays_in_its_directory_and_links_count_as_what_they_lead_to() {
    let policy = policy(vec![
        entry("python3", &["scripts/*.py", "..."]),
        entry("cat", &["**"]),
        entry("cp", &["/opt/data/*", "out/**"]),
        entry("head", &["*"]),
        entry("run", &["--file=/opt/data/*", "https://example.com/*"]),
        entry("tail", &["/etc/hosts"]),
        CommandRule::Program("cd".to_owned()),
    ]);
    let link = |from: &str, to: &str| (PathBuf::from(from), PathBuf::from(to));
    let machine = Machine {
        files: BTreeMap::from([
            link("/home/ann/work", "/home/ann/work"),
            link("/home/ann/work/scripts", "/home/ann/work/scripts"),
            link("/home/ann/work/scripts/lint.py", "/home/ann/work/scripts/lint.py"),
            link("/home/ann/work/scripts/link.py", "/tmp/evil.py"),
            link("/home/ann/work/scripts/sub", "/home/ann/work/scripts/sub"),
            link("/home/ann/work/scripts/sub/x.py", "/home/ann/work/scripts/sub/x.py"),
            link("/home/ann/work/scripts/../evil.py", "/home/ann/work/evil.py"),
            link("/home/ann/work/evil/scripts/x.py", "/home/ann/work/evil/scripts/x.py"),
            link("/home/ann/work/evil/scripts", "/home/ann/work/evil/scripts"),
            link("/opt/data", "/mnt/data"),
            link("/opt/data/a", "/mnt/data/a"),
            link("/opt/data/b", "/etc/shadow"),
            link("/opt/data/../x", "/opt/x"),
            link("/home/ann/work/out", "/home/ann/work/out"),
            link("/home/ann/work/out/link", "/home"),
            link("/etc", "/etc"),
            link("/etc/hosts", "/etc/hosts"),
        ]),
        ..Machine::default()
    };
    shown(
        &policy,
        &machine,
        &[
            ("python3 scripts/lint.py", "allowed"),
            ("python3 /home/ann/work/scripts/lint.py x", "allowed"),
            ("python3 scripts/new.py", "allowed"),
            ("python3 scripts/link.py", "star"),
            ("python3 scripts/sub/x.py", "star"),
            ("python3 scripts/../evil.py", "star"),
            ("python3 scripts/../scripts/lint.py", "star"),
            ("python3 evil/../scripts/lint.py", "arguments"),
            ("cp /opt/data/../data/a out/x", "star"),
            ("cp /opt/data/a out/y/../x", "star"),
            ("run --file=/opt/data/../data/a https://example.com/x", "star"),
            ("python3 ./scripts/lint.py", "allowed"),
            ("python3 evil/scripts/x.py", "arguments"),
            ("cd evil && python3 scripts/x.py", "star"),
            ("cd scripts && python3 lint.py", "arguments"),
            ("cd /home/ann/work && python3 scripts/lint.py", "allowed"),
            ("cd $X && python3 scripts/lint.py", "star"),
            ("cat a/b/c", "allowed"),
            ("cat /etc/passwd", "allowed"),
            ("cat a/../../etc/passwd", "star"),
            ("cat ..", "star"),
            ("cat a..b", "allowed"),
            ("cp /opt/data/a out/x", "allowed"),
            // The same file by its real name.
            ("cp /mnt/data/a out/x", "allowed"),
            ("cp /opt/data/b out/x", "star"),
            ("cp /opt/data/a out/y/z", "allowed"),
            ("cp /opt/data/a out/link/x", "star"),
            ("cp /opt/data/../x out/x", "star"),
            ("head README.md", "allowed"),
            ("head src/main.rs", "star"),
            ("head ..", "star"),
            ("head -n5", "arguments"),
            ("run --file=/opt/data/a https://example.com/x", "allowed"),
            ("run --file=/opt/data/b https://example.com/x", "star"),
            ("run --file=/opt/data/a https://example.com/x/y", "star"),
            ("run --file=/opt/data/a https://example.com.evil/x", "arguments"),
            ("tail /etc/hosts", "allowed"),
            ("cd /etc && tail hosts", "arguments"),
            ("cd /etc && tail /etc/hosts", "allowed"),
        ],
    );
}

#[test]
fn git_asks_where_the_repository_names_programs() {
    let any = RepositoryPrograms { any_command: Some("x".to_owned()), changing_command: None };
    let hook = RepositoryPrograms { any_command: None, changing_command: Some("y".to_owned()) };
    let mut machine = Machine {
        repositories: BTreeMap::from([
            (PathBuf::from("/home/ann/work/evil"), any.clone()),
            (PathBuf::from("/home/ann/work/hooks"), hook),
            (PathBuf::from("/evil"), any),
        ]),
        ..Machine::default()
    };
    let mut rules = vec![CommandRule::Program("*".to_owned())];
    rules.push(entry("git", &["-C", "evil", "status"]));
    rules.push(entry("git", &["--git-dir=/evil", "--work-tree", "/", "log"]));
    rules.push(entry("git", &["push"]));
    let policy = policy(rules);
    shown(
        &policy,
        &machine,
        &[
            ("git status", "allowed"),
            ("cd evil && git status", "repository"),
            ("cd evil; git log", "repository"),
            ("cd evil | git log", "repository"),
            ("cd evil & git log", "repository"),
            ("cd ./evil && git log", "repository"),
            ("cd ../work/evil && git log", "repository"),
            ("cd a && cd ../evil && git log", "repository"),
            ("cd evil && cd .. && git log", "repository"),
            ("cd /home/ann/work/evil && git log && ls", "repository"),
            ("cd /home/ann/work/evil/ && gh pr list", "repository"),
            ("cd evil && ls", "allowed"),
            ("cd other && git log", "allowed"),
            ("cd hooks && git status", "allowed"),
            ("cd hooks && git add x", "repository"),
            ("cd hooks && git commit -m x", "repository"),
            ("cd hooks && git push", "repository"),
            ("git -C evil status", "repository"),
            ("git --git-dir=/evil --work-tree / log", "repository"),
            ("git push", "allowed"),
        ],
    );
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        machine.environment = BTreeMap::from([(name.to_owned(), "/evil".to_owned())]);
        shown(&policy, &machine, &[("git status", "repository"), ("ls", "allowed")]);
    }
    machine.environment = BTreeMap::from([("CDPATH".to_owned(), "/x".to_owned())]);
    shown(&policy, &machine, &[("cd a && git log", "unknown-directory"), ("git log", "allowed")]);
}

/// Commands that write a file. `@` stands for its path.
const FORMS: [&str; 40] = [
    "gcc -o @ a.c",
    "gcc -c a.c -MF @",
    "clang -o @ a.c",
    "cp a @",
    "cp -t @ a",
    "cp --target-directory=@ a",
    "cp -a a b @",
    "mv a @",
    "mv -f a @",
    "ln -s a @",
    "ln -s @ a",
    "ln -f a @",
    "install -m 755 a @",
    "install -D -t @ a",
    "rsync -a a @",
    "dd if=a of=@",
    "touch @",
    "mkdir -p @",
    "chmod +x @",
    "truncate -s 0 @",
    "zip @ a",
    "zip -r @ a b",
    "tar -cf @ a",
    "tar cf @ a",
    "tar --create --file=@ a",
    "tar -xf a --one-top-level=@",
    "ffmpeg -i a @",
    "ffmpeg -y -i a b @",
    "git mv a @",
    "gzip @",
    "xz -d @",
    "unheard-of @",
    "unheard-of --output=@",
    "unheard-of --output @",
    "unheard-of -o@",
    "unheard-of of=@",
    "unheard-of -Wl,-Map,@",
    "ls && cp a @",
    "timeout 5 cp a @",
    "nice cp a @",
];

/// Places from which programs are started.
const PLACES: [&str; 14] = [
    "/home/ann/.bashrc",
    "/home/ann/bin/ls",
    "../tools/ls",
    "/home/ann/tools/ls",
    "../.profile",
    "/etc/cron.d/x",
    "/usr/bin/ls",
    ".envrc",
    "sub/.git/config",
    ".vscode/tasks.json",
    "Makefile",
    "sub/JENKINSFILE",
    ".travis.yml",
    "Cargo.toml",
];

/// What commands write is judged as if a tool for files wrote it.
#[test]
fn no_command_writes_where_programs_are_started() {
    let policy = everything();
    let machine = Machine {
        judges_places: true,
        environment: BTreeMap::from([("HOME".to_owned(), "/home/ann".to_owned())]),
        ..Machine::default()
    };
    let mut permitted = Vec::new();
    for (form, place) in FORMS.iter().flat_map(|form| PLACES.map(|place| (form, place))) {
        let line = form.replace('@', place);
        if verdict(&policy, &machine, &line) == "allowed" {
            permitted.push(line);
        }
        for free in ["out/x", "notes.txt"] {
            let line = form.replace('@', free);
            // What is not known of a directory is asked about.
            let asks = ["target", " -t ", "top-level"].iter().any(|it| line.contains(it));
            let expected = if asks { None } else { Some("allowed") };
            let actual = verdict(&policy, &machine, &line);
            assert!(expected.is_none_or(|it| it == actual), "{line}: {actual}");
        }
    }
    assert!(permitted.is_empty(), "{}", permitted.join("\n"));
}

/// Command lines with what they write, and the verdict.
const WRITERS: &[(&str, &str)] = &[
    ("cp .bashrc notes.txt", "allowed"),
    ("cp .bashrc out", "start-place"),
    ("cp Makefile notes.txt", "allowed"),
    ("cp /tmp/Makefile .", "start-place"),
    ("cp /tmp/Makefile out", "start-place"),
    ("cp -t out a Makefile", "start-place"),
    ("cp -r x/. .", "start-place"),
    ("cp -r x/ .", "start-place"),
    ("cp a ~/.bashrc", "expanded-argument"),
    ("cp src/*.c out", "allowed"),
    ("ln /tmp/Makefile", "start-place"),
    ("ln -s ../sub/.envrc", "start-place"),
    ("ln -s /tmp/notes.txt", "allowed"),
    ("cp src/*.c .", "start-place"),
    ("cp *.c out", "expanded-argument"),
    ("cp a b$X", "expanded-argument"),
    ("rm -f *.o", "allowed"),
    ("cp a ls; cd ../tools", "allowed"),
    ("cd ../tools && cp a ls", "start-place"),
    ("cd .. && touch .profile", "start-place"),
    ("cd ~ && touch a", "unknown-directory"),
    ("cd $X && cp a b", "unknown-directory"),
    ("cd ~ && tar -xf a.tar", "unknown-directory"),
    ("cd $X && touch /srv/a", "allowed"),
    ("tar -xf a.tar", "start-place"),
    ("tar -tf a.tar", "allowed"),
    ("tar -xOf a.tar", "allowed"),
    ("tar xf a.tar", "start-place"),
    ("cd out && tar xzf a.tar", "start-place"),
    ("cd /home/ann/work/out && tar xzf a.tar", "start-place"),
    ("tar -xf a.tar --one-top-level=out/a", "allowed"),
    ("tar -xf a.tar --one-top-level", "start-place"),
    ("unzip -o a.zip", "start-place"),
    ("unzip -l a.zip", "allowed"),
    ("patch -p1 -u -i a.patch", "start-place"),
    ("patch --dry-run -p1 -u", "allowed"),
    ("gunzip Makefile.gz", "start-place"),
    ("zstd -d .envrc.zst", "start-place"),
    ("ffmpeg -i Makefile out/a.mp4", "allowed"),
    ("ffmpeg -i a tee:x", "not-harmless"),
    ("ffmpeg -i a -f tee x", "not-harmless"),
    ("unheard-of ~/.bashrc", "start-place"),
    ("unheard-of ~/x", "allowed"),
    ("unheard-of $X", "unknown-target"),
    ("unheard-of ~root/x", "unknown-target"),
    ("unheard-of out/*", "allowed"),
    ("unheard-of /home/ann/*", "start-place"),
    ("ln -s a b && cp c b", "beside-link"),
    ("cp c b && ln -s a b", "allowed"),
    ("tar -xf a --one-top-level=out/a && touch b", "beside-link"),
    ("sort -o x a", "allowed"),
    ("sort -o .env a", "allowed"),
    ("sort -o .envrc a", "not-harmless"),
    ("sort --output=.envrc a", "not-harmless"),
    ("sort --output=x a", "allowed"),
    ("git add Makefile", "allowed"),
    ("git rm Makefile", "allowed"),
    ("ls Makefile; cat .envrc; grep x /etc/passwd", "allowed"),
    ("dd if=/dev/zero of=out/x", "allowed"),
    // Each part of an argument that may be a path, and the argument as a whole.
    ("unheard-of o=/home/ann/a,b/../.x", "start-place"),
    ("unheard-of a=b=/home/ann/.x", "start-place"),
    ("unheard-of a:/home/ann/.x", "start-place"),
    ("unheard-of 'a|/home/ann/.x'", "start-place"),
    ("unheard-of a,/home/ann/.x", "start-place"),
    ("unheard-of -o/home/ann/.x", "start-place"),
    ("unheard-of --/home/ann/.x", "allowed"),
    ("unheard-of /home/ann/?x", "start-place"),
    ("unheard-of /home/ann/[x]y", "start-place"),
    ("unheard-of '/home/ann/*'", "allowed"),
    ("cd ../tools && unheard-of -", "allowed"),
    ("cd ../tools && unheard-of ''", "allowed"),
    ("cd ../tools && unheard-of x", "start-place"),
    // The first operand, and the last one.
    ("zip out/a.zip Makefile", "allowed"),
    ("zip Makefile a", "allowed"),
    ("zip .envrc a", "start-place"),
    ("rsync /tmp/Makefile", "start-place"),
    ("rsync /tmp/notes.txt", "allowed"),
    // What an entry spells out is the decision of its author.
    ("touch Makefile", "allowed"),
    ("touch Makefile .envrc", "start-place"),
    ("gunzip sub/Makefile.gz a.gz", "allowed"),
    ("gunzip sub/Makefile.gz .envrc.gz", "start-place"),
    ("cp a Makefile", "allowed"),
    ("cp a .envrc", "start-place"),
    ("gcc -o Makefile a.c", "allowed"),
    ("gcc -o .envrc a.c", "start-place"),
    ("tar -xf a.tar --one-top-level=/home/ann/.x", "allowed"),
    ("tar -xf a.tar --one-top-level=/home/ann/.y", "start-place"),
    ("make --what a", "allowed"),
    ("make --what .envrc", "launcher"),
];

#[test]
fn what_a_command_writes_is_found_where_it_runs() {
    let policy = policy(vec![
        CommandRule::Program("*".to_owned()),
        entry("sort", &["-o", "*", "..."]),
        entry("sort", &["--output=*", "..."]),
        entry("sort", &["-o", ".env", "..."]),
        entry("zip", &["Makefile", "..."]),
        entry("touch", &["Makefile", "..."]),
        entry("gunzip", &["sub/Makefile.gz", "..."]),
        entry("cp", &["a", "Makefile"]),
        entry("gcc", &["-o", "Makefile", "..."]),
        entry("tar", &["-xf", "*", "--one-top-level=/home/ann/.x"]),
        entry("make", &["--what", "*"]),
    ]);
    let machine = Machine {
        judges_places: true,
        environment: BTreeMap::from([("HOME".to_owned(), "/home/ann".to_owned())]),
        ..Machine::default()
    };
    shown(&policy, &machine, WRITERS);
}

#[test]
fn git_asks_before_it_takes_a_tree_with_a_repository_in_it() {
    let policy = everything();
    let inner = BTreeMap::from([(PathBuf::from("/home/ann/work"), "sub".to_owned())]);
    let machine = Machine { inner_repositories: inner, ..Machine::default() };
    for command in [
        "checkout x",
        "checkout -b x",
        "checkout -- .",
        "switch x",
        "switch -c x",
        "restore -s x .",
        "reset --hard x",
        "reset",
        "stash",
        "stash pop",
        "stash branch x",
        "merge --ff-only x",
        "merge --no-edit x",
        "cherry-pick -n x",
        "revert --no-edit x",
    ] {
        let line = format!("git {command}");
        assert_eq!(verdict(&policy, &machine, &line), "repository", "{line}");
        assert_eq!(verdict(&policy, &Machine::default(), &line), "allowed", "{line}");
    }
    for command in ["worktree add ../x", "submodule update", "checkout --recurse-submodules x"] {
        assert_ne!(verdict(&policy, &machine, &format!("git {command}")), "allowed");
    }
    shown(&policy, &machine, &[("git status", "allowed"), ("git log", "allowed")]);
}

#[test]
fn a_line_that_changes_no_file_is_known_as_such() {
    for line in [
        "ls -la",
        "cat a b | grep -n x | sort | head -5",
        "git status --short && git log --oneline -3",
        "cd src; rg needle",
        "time wc -l a",
        "sed -n 1,5p a",
    ] {
        assert!(changes_no_file(line), "{line}");
    }
    for line in [
        "",
        "rm a",
        "ls > a",
        "cat a | tee b",
        "sort -o a b",
        "sed -i s/a/b/ a",
        "find . -delete",
        "find . -exec rm {} +",
        "git checkout .",
        "git log --output=a",
        "git branch new",
        "ls $(rm a)",
        "./ls",
        "sh -c ls",
        "cargo test",
        "ls; unknown-program",
        "X=1 ls",
        "timeout 5 rm a",
    ] {
        assert!(!changes_no_file(line), "{line}");
    }
}
