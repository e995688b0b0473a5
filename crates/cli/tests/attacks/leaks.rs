//! What a command in the sandbox could learn or hold up without opening a file.

use std::time::{Duration, Instant};

use myclaw_testkit::{RunningChild, is_running};
use serde_json::json;

use super::attack::{Attack, Attacks};
use super::scene::{Scene, result_with};

/// Longest that a call of two seconds takes on a busy machine, with the time in which its processes may end by themselves.
const LONGEST: Duration = Duration::from_secs(40);

/// Python that prints `REACHED` if it gets what it wants of the file `F`.
const WATCHES: &[(&str, &str)] = &[
    ("inotify", "i=c.inotify_init1(0); r=c.inotify_add_watch(i, F, 0xfff)"),
    (
        "inotify of its directory",
        "i=c.inotify_init1(0); r=c.inotify_add_watch(i, os.path.dirname(F), 0xfff)",
    ),
    (
        "inotify by a link",
        "os.symlink(F, 'w'); i=c.inotify_init1(0); r=c.inotify_add_watch(i, b'w', 0xfff)",
    ),
    (
        "fanotify",
        "i=c.fanotify_init(0x200, 0); r=c.fanotify_mark(i, 1, 0x3b, -100, F) if i >= 0 else -1",
    ),
    (
        "dnotify",
        "fd=os.open(os.path.dirname(F), os.O_RDONLY); import fcntl; fcntl.fcntl(fd, 1026, 0x3f); r=0",
    ),
    (
        "handle",
        "b=ctypes.create_string_buffer(b'\\x80\\0\\0\\0', 160); m=ctypes.c_int(); r=c.name_to_handle_at(-100, F, b, ctypes.byref(m), 0)",
    ),
    ("attributes", "os.listxattr(F) if os.setxattr(F, 'user.x', b'1') is None else 0; r=0"),
    ("list of its directory", "os.listdir(os.path.dirname(F)); r=0"),
    (
        "lock",
        "fd=os.open(F, os.O_PATH); import fcntl; fcntl.flock(fd, fcntl.LOCK_EX|fcntl.LOCK_NB); r=0",
    ),
];

/// Commands after which the call still has to end.
const STOPS: &[&str] = &[
    "kill -STOP $PPID; sleep 300",
    "kill -TSTP $PPID; sleep 300",
    "kill -KILL $PPID; sleep 300",
    "kill -STOP -1; sleep 300",
    "kill -STOP 1; sleep 300",
    "for p in $(seq $((PPID-9)) $((PPID+9))); do [ $p != $$ ] && kill -STOP $p; done; sleep 300",
    "trap '' TERM INT HUP; sleep 300",
    "setsid sleep 300 & wait",
    "(trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 300') ",
    "kill -STOP $$",
];

#[test]
fn a_command_watches_nothing_outside_and_ends_in_time() {
    let mut scene = Scene::new(|config| {
        config["tools"]["bash"]["timeoutSeconds"] = json!(2);
    });
    let mut attacks = Attacks::new("x");
    for (name, code) in WATCHES {
        let victim = scene.victim(&attacks);
        let code = format!(
            "import ctypes, os\nc=ctypes.CDLL(None, use_errno=True)\nF={:?}.encode()\n{code}\nprint('REACH'+'ED' if r >= 0 else os.strerror(ctypes.get_errno()))",
            victim.display().to_string()
        );
        let quoted = code.replace('\'', "'\\''");
        attacks.add(*name, vec![("bash", json!({"command": format!("python3 -c '{quoted}'")}))]);
    }
    for command in STOPS {
        attacks.add(*command, vec![("bash", json!({"command": command}))]);
    }
    scene.begin();
    // All at once: some take their whole time.
    let start = |attack: &Attack| {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut child =
            RunningChild::spawn_piped(command.args(["run", "--session", &attack.label, "-"]));
        child.send(&attack.instructions());
        child.close_stdin();
        child
    };
    let children: Vec<RunningChild> = attacks.all.iter().map(start).collect();
    let end = Instant::now() + LONGEST;
    for (attack, child) in attacks.all.iter().zip(&children) {
        while is_running(child.id()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_running(child.id()) {
            scene.breaches.note(&attack.label, "the call does not end");
        }
    }
    drop(children);
    for request in scene.new_requests() {
        if let Some(label) = result_with(&request, "REACHED") {
            scene.breaches.note(&label, "it reached the file");
        }
    }
    scene.check_files();
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}
