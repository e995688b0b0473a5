//! The real runner in containers of podman, with an image made of files of this machine.

use std::collections::BTreeSet;

use myclaw_testkit::{ModelServer, Reply, Script};

use super::*;

const IMAGE: &str = "localhost/myclaw-host-test";
/// What the tools of the test need. The program itself is mounted by the host; it needs its libraries.
const PROGRAMS: [&str; 3] = ["/bin/bash", "/bin/cat", "/bin/sleep"];

/// Whether there is an image; `false` where podman is missing.
fn has_image() -> bool {
    if !["/usr/bin/podman", "/usr/sbin/runc"].into_iter().all(|path| Path::new(path).exists()) {
        println!("skipped: podman or runc is not installed (apt install podman runc)");
        return false;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    for file in needed_files() {
        let place = root.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&file, place).unwrap();
    }
    fs::write(directory.path().join("Dockerfile"), "FROM scratch\nCOPY root /\n").unwrap();
    let mut build = Command::new("podman");
    build.args(["--runtime", "runc", "build", "--quiet", "--tag", IMAGE]).arg(directory.path());
    let output = build.output().unwrap();
    if !output.status.success() {
        println!("skipped: podman cannot build: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
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
pub(super) fn containers(folder: &str) -> String {
    let mut list = Command::new("podman");
    let output = list.args(["ps", "--all", "--format", "{{.Names}}"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.contains(&format!("-{folder}-"))).collect()
}

fn start(bench: &Bench, server: &ModelServer) -> RunningChild {
    let mut command = bench.command(&["host", "--backend", "podman", "--image", IMAGE]);
    command.args(["--network", "host", "--idle-limit", "10m", "--grace", "2s"]);
    command.env("OPENROUTER_API_KEY", "k");
    command.env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
    RunningChild::spawn(&mut command)
}

#[test]
fn a_runner_in_a_container_answers_and_is_removed_after_a_crash() {
    if !has_image() {
        return;
    }
    let registry =
        r#"[{"name": "weather", "description": "The weather", "run": "bash weather.sh"}]"#;
    // No other test on this machine has containers of this name.
    let folder = format!("pod{}", std::process::id());
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
    let host = start(&bench, &server);
    bench.send("m1", "fam@g.us", "What is the weather in Rome?");
    assert_eq!(bench.texts(1), ["It is sunny."]);
    let requests = server.requests();
    let result =
        |request: usize| requests[request].messages().last().unwrap()["content"].to_string();
    assert!(result(1).contains("sunny in Rome"), "{}", result(1));
    assert!(result(2).contains("Read-only file system"), "{}", result(2));
    assert!(bench.host(&format!("groups/{folder}/ran")).exists());
    assert!(!containers(&folder).is_empty(), "it waits for further messages");
    host.signal(Signal::Kill);
    drop(host.wait(PATIENCE));
    let host = start(&bench, &server);
    wait_until("the container of the killed host is removed", || containers(&folder).is_empty());
    bench.send("m2", "fam@g.us", "And now?");
    assert_eq!(bench.texts(2)[1], "Again.");
    stop(host);
    wait_until("the container is removed", || containers(&folder).is_empty());
}
