//! The image of runners, as `container/build-image` makes it, with everything that a runner does in it: no network, the
//! model behind the host's socket, real scripts, and the file channel in and out.

use std::ffi::OsStr;
use std::process::Stdio;
use std::sync::Mutex;

use myclaw_testkit::{ModelServer, Reply, Script};

use super::container::containers;
use super::model::{isolated, searching, start};
use super::*;

const IMAGE: &str = "localhost/myclaw-image-test:latest";
/// The code of the script where packages cannot be downloaded.
const NO_PACKAGES: i32 = 75;

/// Most megabytes of the packages of Debian 12 in the image, as docs/operate/host.md says.
const MOST_OF_PACKAGES: u64 = 14;

/// Megabytes of the model.
const MODEL: u64 = 23;

/// The image with Chromium.
const BROWSER_IMAGE: &str = "localhost/myclaw-browser-image-test:latest";

/// One build at a time: each one holds its files several times on the disk.
static BUILDS: Mutex<()> = Mutex::new(());

/// Builds an image with this program, and passes the variables `with` to the script. Gives the Debian and what the script
/// says; `None` where the machine cannot.
fn build(image: &str, with: &[(&str, &OsStr)]) -> Option<(String, String)> {
    for program in ["/usr/bin/podman", "/usr/sbin/runc", "/usr/bin/mmdebstrap"] {
        if !Path::new(program).exists() {
            myclaw_testkit::skip_without(&format!(
                "{program} is missing (apt install podman runc mmdebstrap)"
            ));
            return None;
        }
    }
    let release = fs::read_to_string("/etc/os-release").unwrap();
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.unwrap_or("stable");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../container/build-image");
    let mut build = Command::new(script);
    build.args([image, env!("CARGO_BIN_EXE_myclaw")]).env("SUITE", suite);
    build.envs(with.iter().copied());
    let turn = BUILDS.lock();
    let output = build.output().unwrap();
    drop(turn);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(NO_PACKAGES) {
        myclaw_testkit::skip_here(&said);
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some((suite.to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// A directory with the model for searches by meaning; `None` where the machine has no Python with it.
fn weights() -> Option<tempfile::TempDir> {
    let Some(python) = std::env::var_os("MYCLAW_MINILM_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_MINILM_PYTHON is not set; scripts/test sets it");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/minilm.py");
    let directory = tempfile::tempdir().unwrap();
    let mut make = Command::new(python);
    make.arg(script).args(["model", "int8"]).arg(directory.path());
    assert!(make.status().unwrap().success());
    Some(directory)
}

/// The program in the image, without a job.
fn run_without_a_job() -> String {
    let mut run = Command::new("podman");
    run.args(["--runtime", "runc", "run", "--rm", "--interactive", "--network=none"]);
    run.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", IMAGE]);
    let output = run.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_runner_of_the_image_works_without_network_and_key() {
    let Some(weights) = weights() else { return };
    let with = [("WEIGHTS", weights.path().as_os_str())];
    let Some((suite, sizes)) = build(IMAGE, &with) else { return };
    let megabytes: Vec<u64> = sizes.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [image, programs] = megabytes[..] else { panic!("{sizes}") };
    // The program of a test has symbols, so it says nothing.
    let packages = image - programs - MODEL;
    assert!(
        suite != "bookworm" || packages <= MOST_OF_PACKAGES,
        "the packages of Debian in the image grew to {packages} MB, more than {MOST_OF_PACKAGES}: {sizes}"
    );
    assert!(run_without_a_job().contains("there is no job on standard input"));
    let folder = format!("img{}", std::process::id());
    let bench = Bench::new("");
    bench.add("fam@g.us", &folder, &["--all"]);
    let workflows = bench.host(&format!("groups/{folder}/workflows"));
    fs::create_dir_all(&workflows).unwrap();
    let registry = json!([
        {"name": "total", "description": "Adds the open invoices", "run": "bash total.sh", "args": ["customer"]},
        {"name": "find", "description": "Finds a word in the notes", "run": "./find.sh"},
    ]);
    fs::write(workflows.join("registry.json"), registry.to_string()).unwrap();
    fs::write(
        workflows.join("invoices.json"),
        r#"[{"who":"Ann","sum":3},{"who":"Ann","sum":4},{"who":"Bob","sum":9}]"#,
    )
    .unwrap();
    let total = r#"jq --arg who "$CUSTOMER" '[.[] | select(.who == $who).sum] | add' invoices.json | awk '{print "total " $1}'"#;
    fs::write(workflows.join("total.sh"), total).unwrap();
    fs::write(
        workflows.join("find.sh"),
        "#!/bin/sh\ngrep --count sum invoices.json | sed 's/^/lines: /'\n",
    )
    .unwrap();
    fs::set_permissions(workflows.join("find.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let calls = [
        // No word of it is in the registry.
        ("search_tools", json!({"query": "Which bills has nobody paid yet?"})),
        ("run_workflow", json!({"name": "total", "args": {"customer": "Ann"}})),
        ("run_workflow", json!({"name": "find"})),
        ("Bash", json!({"command": searching(server.address().port())})),
        ("send_message", json!({"text": "Nearly done."})),
    ];
    for (number, (name, arguments)) in calls.into_iter().enumerate() {
        server.push(Reply::openai().tool_call(number.to_string(), name, arguments));
    }
    server.push(Reply::openai().text("Ann owes 7."));
    let host = start(&bench, &server, &["--backend", "podman", "--image", IMAGE]);
    bench.send("m1", "fam@g.us", "What does Ann owe?");
    let mut texts = bench.texts(2);
    texts.sort();
    assert_eq!(texts, ["Ann owes 7.", "Nearly done."]);
    let requests = server.requests();
    let result =
        |request: usize| requests[request].messages().last().unwrap()["content"].to_string();
    for (request, expected) in
        [(1, "total"), (1, "Ranked by meaning"), (2, "total 7"), (3, "lines: 1")]
    {
        assert!(result(request).contains(expected), "{}", result(request));
    }
    isolated(&server, 4);
    assert!(!containers("podman", &folder).is_empty(), "it waits for further messages");
    stop(host);
    wait_until("the container is removed", || containers("podman", &folder).is_empty());
}

/// A container that has a network with nothing in it, and a page on its loopback. It ends with this.
struct Page {
    name: String,
}

impl Page {
    const ADDRESS: &'static str = "http://127.0.0.1:8080/";

    fn serve(directory: &Path) -> Self {
        let name = format!("myclaw-page-{}", std::process::id());
        let mut run = Command::new("podman");
        run.args([
            "--runtime",
            "runc",
            "run",
            "--rm",
            "--detach",
            "--network=none",
            "--name",
            &name,
        ]);
        run.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--entrypoint="]);
        run.arg(format!("--volume={}:/www:ro", directory.display())).arg(BROWSER_IMAGE);
        run.args(["busybox", "httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/www"]);
        let output = run.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { name }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(Command::new("podman").args(["rm", "--force", "--time=0", &self.name]).output());
    }
}

#[test]
fn a_runner_of_the_image_with_chromium_opens_a_page_on_loopback() {
    let Some(program) = std::env::var_os("MYCLAW_AGENT_BROWSER") else {
        myclaw_testkit::skip_without("MYCLAW_AGENT_BROWSER is not set; scripts/test sets it");
        return;
    };
    let with = [("AGENT_BROWSER", program.as_os_str()), ("PACKAGES", OsStr::new("busybox"))];
    if build(BROWSER_IMAGE, &with).is_none() {
        return;
    }
    let folder = format!("web{}", std::process::id());
    let bench = Bench::new("");
    bench.add("fam@g.us", &folder, &["--all"]);
    let pages = bench.path("pages");
    fs::create_dir(&pages).unwrap();
    let page = r#"<title>Garden</title><p id=said>Closed</p>
<button onclick="document.getElementById('said').textContent = 'Watered ' + (6 * 7)">Water</button>"#;
    fs::write(pages.join("index.html"), page).unwrap();
    let page = Page::serve(&pages);
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let browser = [
        json!({"action": "open", "url": Page::ADDRESS}),
        json!({"action": "snapshot"}),
        json!({"action": "click", "ref": "button"}),
        json!({"action": "snapshot"}),
    ];
    for (number, arguments) in browser.into_iter().enumerate() {
        server.push(Reply::openai().tool_call(number.to_string(), "agent-browser", arguments));
    }
    // Scripts find the browser too.
    let command = "env | grep -e ^PLAYWRIGHT -e ^AGENT; for d in $PLAYWRIGHT_BROWSERS_PATH; do $d/chromium --version; done";
    server.push(Reply::openai().tool_call("5", "Bash", json!({"command": command})));
    server.push(Reply::openai().text("It is watered."));
    let network = format!("container:{}", page.name);
    let options = ["--backend", "podman", "--image", BROWSER_IMAGE, "--network", &*network];
    let allowed = "--runner-option=--allow-host=127.0.0.1";
    let host = start(&bench, &server, &[&options[..], &[allowed]].concat());
    bench.send("m1", "fam@g.us", "Water the garden");
    assert_eq!(bench.texts(1), ["It is watered."]);
    stop(host);
    let requests = server.requests();
    let expected: [&[&str]; 5] = [
        &["Garden"],
        &["Closed", "Water"],
        &["\"content\""],
        &["Watered 42"],
        &[
            "PLAYWRIGHT_BROWSERS_PATH=/opt/browsers",
            "EXECUTABLE_PATH=/opt/browsers/chromium",
            "Chromium 1",
        ],
    ];
    for (number, words) in expected.into_iter().enumerate() {
        let result = requests[number + 1].messages().last().unwrap().to_string();
        for word in words {
            assert!(result.contains(word), "{word}: {result}");
        }
    }
}

/// The mirror is blamed only where it is the reason.
#[test]
fn packages_that_cannot_be_unpacked_are_explained() {
    let bench = Bench::new("");
    let programs = bench.host("fake");
    fs::create_dir_all(&programs).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../container/build-image");
    for (says, code, why) in [
        ("E: Unable to locate package nosuch", 1, "correct PACKAGES"),
        ("E: Failed to fetch http://h/x  Could not resolve 'h'", NO_PACKAGES, "cannot be reached"),
        ("Err:1 http://h 503  Service Unavailable", NO_PACKAGES, "cannot be reached"),
        (
            "E: The repository 'http://h nosuite Release' does not have a Release file.",
            1,
            "correct SUITE",
        ),
        ("tar: write error: No space left on device", 1, "set TMPDIR"),
        ("E: cannot chroot", 1, "the lines above say why"),
    ] {
        for (program, text) in [
            ("podman", "#!/bin/sh\n".to_owned()),
            ("mmdebstrap", format!("#!/bin/sh\necho \"{says}\" >&2\nexit 25\n")),
        ] {
            let path = programs.join(program);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let mut build = Command::new(&script);
        build.args(["image", env!("CARGO_BIN_EXE_myclaw")]).env("PATH", path);
        let output = build.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why) && said.contains(says), "{said}");
    }
}
