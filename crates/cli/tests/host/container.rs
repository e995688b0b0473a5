//! The real runner in containers of podman and docker, with an image made of files of this machine.

use std::collections::BTreeSet;

use myclaw_testkit::{ModelServer, Reply, Script};

use super::*;

const IMAGE: &str = "localhost/myclaw-host-test";
/// What the tools of the test need. The program itself is mounted by the host; it needs its libraries.
const PROGRAMS: [&str; 3] = ["/bin/bash", "/bin/cat", "/bin/sleep"];

/// Names the daemon of docker, if it is another one than the usual.
const DOCKER_HOST: &str = "DOCKER_HOST";

/// Whether there is an image; `false` where podman, or the daemon of docker, is missing.
fn has_image(engine: &str) -> bool {
    let is_there = |path: &str| Path::new(path).exists();
    let works = match engine {
        "podman" => ["/usr/bin/podman", "/usr/sbin/runc"].into_iter().all(is_there),
        _ => Command::new(engine).arg("info").output().is_ok_and(|output| output.status.success()),
    };
    if !works {
        return skip(
            engine,
            "is not installed or does not work (apt install podman runc docker.io)",
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    for file in needed_files() {
        let place = root.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&file, place).unwrap();
    }
    fs::write(directory.path().join("Dockerfile"), "FROM scratch\nCOPY root /\n").unwrap();
    let mut build = Command::new(engine);
    if engine == "podman" {
        build.args(["--runtime", "runc"]);
    }
    build.env("DOCKER_BUILDKIT", "0").args(["build", "--quiet", "--tag", IMAGE]);
    build.arg(directory.path());
    let output = build.output().unwrap();
    output.status.success() || skip(engine, &String::from_utf8_lossy(&output.stderr))
}

/// Gives `false`. `scripts/test` installs podman, and no daemon of docker.
fn skip(engine: &str, reason: &str) -> bool {
    match engine {
        "podman" => myclaw_testkit::skip_without(&format!("{engine}: {reason}")),
        _ => myclaw_testkit::skip_here(&format!("{engine}: {reason}")),
    }
    false
}

/// The programs, and the libraries that they and MyClaw load.
fn needed_files() -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    for program in PROGRAMS.into_iter().chain([env!("CARGO_BIN_EXE_myclaw")]) {
        let output = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
        files.extend(paths.map(PathBuf::from));
    }
    files
}

/// The containers of a group.
pub(super) fn containers(engine: &str, folder: &str) -> String {
    let mut list = Command::new(engine);
    let output = list.args(["ps", "--all", "--format", "{{.Names}}"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.contains(&format!("-{folder}-"))).collect()
}

fn start(bench: &Bench, server: &ModelServer, engine: &str) -> RunningChild {
    let mut command = bench.command(&["host", "--backend", engine, "--image", IMAGE]);
    if let Some(daemon) = std::env::var_os(DOCKER_HOST) {
        command.env(DOCKER_HOST, daemon);
    }
    command.args(["--network", "host", "--idle-limit", "10m", "--grace", "2s"]);
    command.env("OPENROUTER_API_KEY", "k");
    command.env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
    RunningChild::spawn(&mut command)
}

#[test]
fn a_runner_in_a_container_of_podman_answers_and_is_removed_after_a_crash() {
    answers_and_is_removed("podman");
}

#[test]
fn a_runner_in_a_container_of_docker_answers_and_is_removed_after_a_crash() {
    answers_and_is_removed("docker");
}

fn answers_and_is_removed(engine: &str) {
    if !has_image(engine) {
        return;
    }
    let registry =
        r#"[{"name": "weather", "description": "The weather", "run": "bash weather.sh"}]"#;
    // No other test on this machine has containers of this name.
    let folder = format!("{engine}{}", std::process::id());
    let bench = Bench::new("");
    bench.add("fam@g.us", &folder, &["--all"]);
    let workflows = bench.host(&format!("groups/{folder}/workflows"));
    fs::create_dir_all(&workflows).unwrap();
    fs::write(workflows.join("registry.json"), registry).unwrap();
    fs::write(workflows.join("weather.sh"), "echo \"sunny in $CITY\"; echo ran > ../ran\n")
        .unwrap();
    let server = ModelServer::spawn_blocking_thread(
        Script::from([
            Reply::openai().tool_call(
                "1",
                "run_workflow",
                json!({"name": "weather", "args": {"city": "Rome"}}),
            ),
            Reply::openai().tool_call(
                "2",
                "Bash",
                json!({"command": "cat /workspace/global/x; echo no > /workspace/global/x"}),
            ),
            Reply::openai().text("It is sunny."),
        ])
        .then_repeat(Reply::openai().text("Again.")),
    );
    let host = start(&bench, &server, engine);
    bench.send("m1", "fam@g.us", "What is the weather in Rome?");
    assert_eq!(bench.texts(1), ["It is sunny."]);
    let requests = server.requests();
    let result =
        |request: usize| requests[request].messages().last().unwrap()["content"].to_string();
    assert!(result(1).contains("sunny in Rome"), "{}", result(1));
    assert!(result(2).contains("Read-only file system"), "{}", result(2));
    assert!(bench.host(&format!("groups/{folder}/ran")).exists());
    assert!(!containers(engine, &folder).is_empty(), "it waits for further messages");
    host.signal(Signal::Kill);
    drop(host.wait(PATIENCE));
    let host = start(&bench, &server, engine);
    wait_until("the container of the killed host is removed", || {
        containers(engine, &folder).is_empty()
    });
    bench.send("m2", "fam@g.us", "And now?");
    // A host that was killed before it had recorded the end of an answer says so first.
    wait_until("the next message is answered", || bench.texts(2).last().unwrap() == "Again.");
    stop(host);
    wait_until("the container is removed", || containers(engine, &folder).is_empty());
}

#[test]
fn a_container_of_podman_keeps_what_programs_of_the_owner_obey() {
    if has_image("podman") {
        keeps_what_programs_obey(&["--backend", "podman", "--image", IMAGE, "--network", "host"]);
    }
}

#[test]
fn a_sandbox_keeps_what_programs_of_the_owner_obey() {
    keeps_what_programs_obey(&["--backend", "sandbox"]);
}

/// In a further directory that the group may change.
fn keeps_what_programs_obey(backend: &[&str]) {
    // No other test on this machine has containers of this name.
    let folder = format!("shared{}{}", backend[1], std::process::id());
    let bench = Bench::new("");
    let shared = bench.path("open/wiki");
    for directory in [".git", "sub", "deep/sub", ".github"] {
        fs::create_dir_all(shared.join(directory)).unwrap();
    }
    fs::write(shared.join(".git/config"), "[core]\n").unwrap();
    fs::write(shared.join("page.txt"), "old\n").unwrap();
    let roots = json!([{"path": bench.path("open"), "allowReadWrite": true}]);
    let list = bench.path("allowlist.json");
    fs::write(&list, json!({"allowedRoots": roots, "nonMainReadOnly": false}).to_string()).unwrap();
    let mount = format!("{}:wiki:rw", shared.display());
    bench.add("c", &folder, &["--all", "--mount", &mount]);
    // The home of a test is below the `/tmp` that a sandbox has for itself, where names are protected as well.
    let (inside, own) = match backend[1] {
        "podman" => ("/workspace/extra/wiki".to_owned(), "/workspace/group/.envrc".to_owned()),
        _ => {
            let own = bench.host(&format!("groups/{folder}/own.txt"));
            (shared.display().to_string(), own.display().to_string())
        }
    };
    let command = format!(
        "cd {inside} || exit; for name in .git/config .git/hooks .envrc .env .github/x .vimrc Makefile package.json CLAUDE.md \
         AGENTS.md SOUL.md Cargo.toml sub/.envrc sub/AGENTS.md deep/sub/.ENVRC sub/x.code-workspace; do echo evil > $name; done; \
         echo new > page.txt; echo more > sub/Makefile; echo more > deep/new.txt; echo mine > {own}; \
         echo t > /tmp/t && cat /tmp/t; cat .git/config"
    );
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::openai().tool_call("1", "Bash", json!({"command": command})),
        Reply::openai().text("Done."),
    ]));
    let mut host = bench.command(&["host", "--allowlist", list.to_str().unwrap()]);
    host.args(backend).args(["--idle-limit", "10m", "--grace", "2s"]);
    host.env("OPENROUTER_API_KEY", "k").env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
    let host = RunningChild::spawn(&mut host);
    bench.send("m1", "c", "Write.");
    assert_eq!(bench.texts(1), ["Done."]);
    let requests = server.requests();
    let result = requests[1].messages().last().unwrap()["content"].to_string();
    assert_eq!(result.matches("Read-only file system").count(), 16, "{result}");
    assert!(result.contains("t\\n[core]"), "{result}");
    stop(host);
    let read = |path: &str| fs::read_to_string(shared.join(path)).unwrap();
    assert_eq!(read(".git/config"), "[core]\n");
    assert_eq!((read("page.txt"), read("sub/Makefile")), ("new\n".into(), "more\n".into()));
    assert_eq!(read("deep/new.txt"), "more\n");
    let name = Path::new(&own).file_name().unwrap();
    assert!(bench.host(&format!("groups/{folder}")).join(name).exists());
    for name in [".envrc", "Makefile", "CLAUDE.md", "sub/.envrc", "deep/sub/.ENVRC", ".github/x"] {
        assert!(!shared.join(name).exists(), "{name}");
    }
}
