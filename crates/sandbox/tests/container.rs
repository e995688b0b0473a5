//! A command in a container of podman, with an image made of one static program.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use myclaw_exec::{ChildSpec, Exit};
use myclaw_sandbox::{Confinement, ContainerEngine, Level, Sandbox, SandboxError, probe};
use tokio_util::sync::CancellationToken;

const HELPER: &str = env!("CARGO_BIN_EXE_myclaw-sandbox-helper");
const SHELL: &str = "/bin/busybox";

/// One test at a time starts containers: each looks at all of this process.
static CONTAINERS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// An image of this process, which is removed afterwards. Another run of the tests has one of its own.
struct Image(String);

impl Drop for Image {
    fn drop(&mut self) {
        drop(Command::new("podman").args(["rmi", "--force", &self.0]).output());
    }
}

/// Builds an image with these libraries of this machine; `None` if the machine lacks what it takes.
fn build(name: &str, libraries: &[String]) -> Option<Image> {
    if probe().podman.is_none() || !std::path::Path::new(SHELL).exists() {
        myclaw_testkit::skip_without(
            "podman or busybox is not installed (apt install podman runc busybox-static)",
        );
        return None;
    }
    let image = Image(format!("localhost/{name}-{}", std::process::id()));
    let directory = tempfile::tempdir().unwrap();
    fs::copy(SHELL, directory.path().join("sh")).unwrap();
    let mut recipe = "FROM scratch\nCOPY sh /bin/sh\n".to_owned();
    for (number, library) in libraries.iter().enumerate() {
        fs::copy(library, directory.path().join(number.to_string())).unwrap();
        recipe.push_str(&format!("COPY {number} {library}\n"));
    }
    fs::write(directory.path().join("Dockerfile"), recipe).unwrap();
    let output = Command::new("podman")
        .args(["--runtime", "runc", "build", "--quiet", "--tag", &image.0])
        .arg(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(image)
}

/// The containers of this process.
fn containers() -> String {
    let output =
        Command::new("podman").args(["ps", "--all", "--format", "{{.Names}}"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let own = format!("myclaw-{}-", std::process::id());
    text.lines().filter(|line| line.starts_with(&own)).collect()
}

#[tokio::test]
async fn podman_confines_a_command() {
    let _alone = CONTAINERS.lock().await;
    let Some(image) = build("myclaw-sandbox-test", &[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().canonicalize().unwrap();
    fs::write(workspace.join("file"), "text\n").unwrap();
    let sandbox = Sandbox::new(HELPER, [OsString::from("__sandbox-exec")]);
    let level =
        |image: &str| Level::Container { engine: ContainerEngine::Podman, image: image.to_owned() };
    let mut confinement = Confinement::new(level(&image.0), &workspace);
    let cancel = CancellationToken::new();
    let spec = |script: &str| {
        let mut spec = ChildSpec::new("/bin/sh", &workspace);
        spec.args = ["sh", "-c", script][1..].iter().map(OsString::from).collect();
        spec
    };

    let script =
        "read line < file; echo $line; echo new > made; echo x > /outside || echo refused; exit 7";
    let finished = sandbox.run(spec(script), &confinement, &cancel, &mut |_| {}).await.unwrap();
    assert_eq!(finished.exit, Exit::Code(7), "{finished:?}");
    assert!(
        finished.output.tail.starts_with("text\n") && finished.output.tail.contains("refused\n"),
        "{finished:?}"
    );
    assert_eq!(fs::read_to_string(workspace.join("made")).unwrap(), "new\n");

    let mut on_output = |_: &[u8]| cancel.cancel();
    let script = "echo ready; while :; do read line < /dev/zero; done";
    let finished = sandbox.run(spec(script), &confinement, &cancel, &mut on_output).await.unwrap();
    assert_eq!((finished.exit, containers().as_str()), (Exit::Aborted, ""));

    // Nobody waits for a dropped call, and its helper is ended at once.
    let (started, begins) = tokio::sync::oneshot::channel();
    let mut started = Some(started);
    let mut on_output = |_: &[u8]| {
        if let Some(started) = started.take() {
            started.send(()).unwrap();
        }
    };
    let cancel = CancellationToken::new();
    tokio::select! {
        _ = sandbox.run(spec(script), &confinement, &cancel, &mut on_output) => panic!("it has no end"),
        result = begins => result.unwrap(),
    }
    let begin = Instant::now();
    while !containers().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", containers());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    confinement.level = level("localhost/myclaw-no-such-image");
    let result = sandbox.run(spec(":"), &confinement, &CancellationToken::new(), &mut |_| {}).await;
    assert!(matches!(result, Err(SandboxError::Setup(_))), "{result:?}");
}

/// The helper is the first process of the container, and carries out the calls that could change what is protected.
#[tokio::test]
async fn protected_paths_stay_as_they_are_in_a_container() {
    let needed = Command::new("ldd").arg(HELPER).output().unwrap();
    let needed = String::from_utf8(needed.stdout).unwrap();
    let paths = needed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let libraries: Vec<String> = paths.map(str::to_owned).collect();
    let _alone = CONTAINERS.lock().await;
    let Some(image) = build("myclaw-sandbox-test-libraries", &libraries) else { return };
    // Below a place that is open inside, and below one that is not.
    for parent in ["/tmp", "/var/lib"] {
        let Ok(directory) = tempfile::tempdir_in(parent) else { continue };
        let workspace = directory.path().canonicalize().unwrap();
        for name in [".git", "sub/.vscode", "bare/objects", "bare/refs", "x"] {
            fs::create_dir_all(workspace.join(name)).unwrap();
        }
        let owners =
            ["AGENTS.md", ".git/config", "sub/.vscode/tasks.json", "bare/HEAD", "bare/config"];
        for name in owners {
            fs::write(workspace.join(name), "owner").unwrap();
        }
        let sandbox = Sandbox::new(HELPER, [OsString::from("__sandbox-exec")]);
        let image = image.0.clone();
        let level = Level::Container { engine: ContainerEngine::Podman, image };
        let mut confinement = Confinement::new(level, &workspace);
        confinement.protected = ["AGENTS.md", "HEARTBEAT.md"].map(Into::into).to_vec();
        confinement.protected_names = [".git", ".vscode"].map(str::to_owned).to_vec();
        let script = "for i in AGENTS.md HEARTBEAT.md agents.md .git/config .git/new sub/.vscode/tasks.json sub/.vscode/new \
                      sub/.git bare/config bare/HEAD bare/new HEAD sub/HEAD sub/head x/.git x/.vscode; do echo evil >$i; done; \
                      echo fine >x/free; echo fine >free";
        let mut spec = ChildSpec::new("/bin/sh", &workspace);
        spec.args = ["-c", script].map(OsString::from).to_vec();
        let finished =
            sandbox.run(spec, &confinement, &CancellationToken::new(), &mut |_| {}).await.unwrap();
        let printed = finished.output.tail;
        let free = fs::read_to_string(workspace.join("free")).unwrap_or_default();
        assert_eq!(free, "fine\n", "{printed} {:?}", finished.exit);
        for name in owners {
            assert_eq!(
                fs::read_to_string(workspace.join(name)).unwrap(),
                "owner",
                "{parent}: {name}"
            );
        }
        let made = [
            "HEARTBEAT.md",
            "agents.md",
            ".git/new",
            "sub/.vscode/new",
            "sub/.git",
            "bare/new",
            "HEAD",
            "sub/HEAD",
            "sub/head",
            "x/.git",
            "x/.vscode",
        ];
        for name in made {
            assert!(!workspace.join(name).exists(), "{parent}: {name}: {printed}");
        }
    }
}
