//! Ways out of the sandbox through programs and calls of the system that the other tables do not name.

use std::path::Path;

use myclaw_testkit::RunningChild;
use serde_json::{Value, json};

use super::attack::{Attack, Attacks};
use super::reach::bash;
use super::scene::Scene;
use super::stranger::{Bot, Shared};

/// Commands that show the file `{f}`.
const READERS: &[&str] = &[
    "for p in /proc/[0-9]*; do cat $p/root{f} $p/cwd{f}; done",
    "for p in /proc/[0-9]*/task/*; do cat $p/root{f}; done",
    "for p in /proc/[0-9]*; do cat $p/cwd/../../../../../../../../../..{f}; done",
    "for d in /proc/[0-9]*/fd/*; do [ -d $d ] && cat $d/../../../../../../../..{f}; done",
    "for d in /proc/[0-9]*/fd/*; do [ -f $d ] && timeout 1 grep -a secret- $d; done",
    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; cat {f}",
    "unshare -Urm sh -c 'cat {f}'",
    "unshare -Urm sh -c 'mount --bind / /mnt && cat /mnt{f}'",
    "unshare -Urmpf --mount-proc sh -c 'cat /proc/1/root{f}'",
    "mkdir -p r; unshare -Ur chroot / cat {f}",
    "nsenter -t 1 -m cat {f}",
    "nsenter -t $PPID -a cat {f}",
    "bwrap --bind / / cat {f}",
    "mount -t overlay -o lowerdir=/,upperdir=u,workdir=w x r; cat r{f}",
    "git diff --no-index /dev/null {f}",
    "git init -q g; cd g; git config alias.z '!cat {f}'; git z",
    "git hash-object {f} && git -C / show :{f}",
    "tar -cO {f}",
    "curl -s file://{f}",
    "awk 1 {f}",
    "sed '' {f}",
    "dd if={f}",
    "perl -pe1 {f}",
    "node -e \"console.log(require('fs').readFileSync('{f}','utf8'))\"",
    "while read -r line; do echo \"$line\"; done <{f}",
    "exec 3<{f}; cat <&3",
    "echo \"$(<{f})\"",
    "bash --rcfile {f} -ic true 2>&1",
    "bash -v {f}",
    "make -f {f} 2>&1",
    "date -f {f} 2>&1",
    "grep -r secret- $(dirname {f})",
    "find {f} -exec cat {} +",
    "sort {f}; tac {f}; rev {f} | rev",
    "base64 {f} | base64 -d",
    "xxd {f} | xxd -r",
    "install -m 644 {f} copy; cat copy",
    "cp --reflink=always {f} copy; cat copy",
    "ln -L {f} copy; cat copy",
    "ln -s {f} copy; cat copy",
    "(cd $(dirname {f}) && cat $(basename {f}))",
    "pushd / && cat .{f}",
    "cat /dev/fd/3 3<{f}",
    "openssl enc -base64 -in {f} | base64 -d",
    "gcc -E -x c -C {f} 2>&1",
    "env -S 'cat {f}'",
    "xargs -a {f} echo",
    "printf '{f}\\0' | wc --files0-from=-; printf '{f}\\0' | xargs -0 cat",
    "mkfifo p; cat {f} >p & cat p",
    "python3 -c \"import os;fd=os.open('{f}',os.O_PATH);print(open(f'/proc/self/fd/{fd}').read())\"",
    "python3 -c \"import os;fd=os.open('/',os.O_PATH);print(os.read(os.open('{f}'[1:],0,dir_fd=fd),99))\"",
    "python3 -c \"import os;os.chroot('/');print(open('{f}').read())\"",
    "python3 -c \"import os;os.chdir('/');print(open('.{f}').read())\"",
    "python3 -c \"import mmap;f=open('{f}','rb');print(mmap.mmap(f.fileno(),0,prot=1).read())\"",
    "python3 -c \"import os,socket;a,b=socket.socketpair();f=os.open('{f}',0);os.sendfile(a.fileno(),f,0,99);print(b.recv(99))\"",
    "python3 -c \"import os,sys;os.splice(os.open('{f}',0),1,99)\" | cat",
    "python3 -c \"import os;f=os.memfd_create('x');os.copy_file_range(os.open('{f}',0),f,99);os.lseek(f,0,0);print(os.read(f,99))\"",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);b=ctypes.create_string_buffer(99);f=c.syscall(2,b'{f}',0);c.read(f,b,98);print(b.value)\"",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);b=ctypes.create_string_buffer(99);f=c.syscall(437,-100,b'{f}',(ctypes.c_uint64*3)(0,0,0),24);c.read(f,b,98);print(b.value)\"",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);r=c.syscall(425,8,ctypes.create_string_buffer(248));print('ring',r);print(open('{f}').read())\"",
];

/// Commands that leave `{m}` or change `{f}`.
const CHANGERS: &[&str] = &[
    "touch {m}",
    "mkdir {m}",
    "ln -s x {m}",
    "mkfifo {m}",
    "mknod {m} p",
    "python3 -c \"import socket;socket.socket(1).bind('{m}')\"",
    "cp /bin/true {m}",
    "tar -cf {m} .",
    "git init -q {m}",
    "git -c core.worktree=/ init -q; git --work-tree=/ add {f}; git --work-tree=/ checkout-index -f --prefix={m} -a; : >{m}",
    "curl -s -o {m} file:///etc/hostname",
    "(umask 0; setsid sh -c 'touch {m}' &) ; sleep 0.1",
    "echo 'touch {m}' | at now; echo '* * * * * touch {m}' | crontab -",
    "systemd-run --user touch {m}; systemd-run touch {m}",
    "for p in /proc/[0-9]*; do touch $p/root{m} $p/cwd/../../../../../../..{m}; done",
    "unshare -Urm touch {m}",
    "unshare -Urm sh -c 'mount -o remount,rw /; touch {m}'",
    "truncate -s 0 {f}; : >{f}",
    "chmod 777 {f}; chown 1 {f}; touch -h {f}; chattr +i {f}; setfacl -m u:1:r {f}",
    "python3 -c \"import os;os.rename('{f}','{f}x')\"",
    "python3 -c \"import os;os.link('{f}','l')\"; echo x >>l",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);open('n','w');c.syscall(316,-100,b'n',-100,b'{f}',2)\"",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);c.syscall(452,-100,b'{f}',0o777,0)\"",
    "python3 -c \"import ctypes;c=ctypes.CDLL(None);c.truncate(b'{f}',0);c.syscall(76,b'{f}',0);c.syscall(90,b'{f}',0o777)\"",
    "python3 -c \"import os;os.utime('{f}',(1,1))\"; python3 -c \"import os;os.setxattr('{f}','user.a',b'1')\"",
    "python3 -c \"import os;fd=os.open('{f}',os.O_PATH);os.chmod(f'/proc/self/fd/{fd}',0o777)\"",
    "python3 -c \"import os;os.unlink('{f}')\"; rm -rf $(dirname {f})",
    "ptrace=1; gdb -p 1 -batch -ex 'call (int)system(\"touch {m}\")'",
    "python3 -c \"import ctypes,os;c=ctypes.CDLL(None);[c.ptrace(16,int(p),0,0)==0 and print(p) for p in os.listdir('/proc') if p.isdigit() and int(p)!=os.getpid()]\"",
    "docker -H unix:///var/run/docker.sock run -v /:/h x touch /h{m}; dbus-send --session x",
    "echo 'touch {m}' >>~/.bashrc; echo 'touch {m}' >>~/.profile; echo x >>~/.ssh/authorized_keys",
    "for f in ~/.myclaw/skills/x ~/.myclaw/hooks/x ~/.myclaw/.env; do mkdir -p $(dirname $f); echo x >>$f; done",
];

/// Calls of file tools, with the file `{f}` and the mark `{m}`.
const CALLS: &[(&str, &str)] = &[
    ("read", r#"{"path":"/proc/self/fd/0"}"#),
    ("read", r#"{"path":"/proc/self/environ"}"#),
    ("read", r#"{"path":"/dev/fd/../root{f}"}"#),
    ("read", r#"{"path":"./../../../../../../../../../../..{f}"}"#),
    ("read", r#"{"path":"file://localhost{f}"}"#),
    ("read", r#"{"path":"{f}","offset":1,"limit":5}"#),
    ("image", r#"{"path":"{f}"}"#),
    ("memory_get", r#"{"path":"{f}"}"#),
    ("memory_get", r#"{"path":"../../../../../../../../..{f}"}"#),
    ("grep", r#"{"pattern":"secret-","path":"/"}"#),
    ("grep", r#"{"pattern":"secret-","path":".","glob":"../../**"}"#),
    ("grep", r#"{"pattern":"secret-","path":".","glob":"{f}"}"#),
    ("find", r#"{"pattern":"{f}"}"#),
    ("find", r#"{"pattern":"../../../../**"}"#),
    ("ls", r#"{"path":"/proc/self/root/"}"#),
    ("write", r#"{"path":"{m}","content":"x"}"#),
    ("write", r#"{"path":"/proc/self/root{m}","content":"x"}"#),
    ("write", r#"{"path":"a/../../../../../../../../../../..{m}","content":"x"}"#),
    ("edit", r#"{"path":"{f}","edits":[{"oldText":"line one","newText":"x"}]}"#),
    ("apply_patch", r#"{"patch":"*** Begin Patch\n*** Add File: {m}\n+x\n*** End Patch"}"#),
    ("apply_patch", r#"{"patch":"*** Begin Patch\n*** Delete File: {f}\n*** End Patch"}"#),
    (
        "apply_patch",
        r#"{"patch":"*** Begin Patch\n*** Add File: a\n+x\n*** Update File: a\n*** Move to: {m}\n@@\n-x\n+y\n*** End Patch"}"#,
    ),
    ("bash", r#"{"command":"touch x","workdir":"/"}"#),
    ("bash", r#"{"command":"cat {f}","workdir":"/proc/self/root"}"#),
    ("bash", r#"{"command":"$X","env":{"X":"cat {f}","BASH_ENV":"{f}","LD_PRELOAD":"{f}"}}"#),
    ("bash", r#"{"command":"cat {f}; touch {m}","pty":true,"yieldMs":3000}"#),
    ("bash", r#"{"command":"cat {f}; touch {m}","background":true}"#),
];

fn attacks(scene: &mut Scene) -> Attacks {
    attacks_with(scene, &[READERS, CHANGERS].concat(), CALLS)
}

fn attacks_with(scene: &mut Scene, commands: &[&str], calls: &[(&'static str, &str)]) -> Attacks {
    let mut attacks = Attacks::new("v");
    let commands = commands.iter().map(|line| ("bash", bash(*line).1.to_string()));
    let calls = calls.iter().map(|&(tool, arguments)| (tool, arguments.to_owned()));
    for (tool, arguments) in commands.chain(calls) {
        let victim = scene.victim(&attacks).display().to_string();
        let mark = scene.marks().join(attacks.next_label()).display().to_string();
        let filled = arguments.replace("{f}", &victim).replace("{m}", &mark);
        attacks.add_raw(arguments, vec![(tool, filled)]);
    }
    scene.begin();
    attacks
}

fn run(scene: &mut Scene, directory: &Path, session: &str, attacks: &Attacks) {
    for batch in attacks.batches(20) {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.current_dir(directory).args(["run", "--session", session, "-"]);
        RunningChild::run_with_input(&mut command, &*batch).assert_code(0);
        scene.check(|_| true);
    }
}

fn sandbox(config: &mut Value) {
    config["agents"]["defaults"]["sandbox"]["allowlist"] = json!(super::sandboxed::TOOLS);
    config["tools"]["bash"]["timeoutSeconds"] = json!(10);
}

#[test]
fn a_named_session_stays_in() {
    let mut scene = Scene::new(sandbox);
    let home = scene.home.path().to_owned();
    let attacks = attacks(&mut scene);
    run(&mut scene, &home, "trip", &attacks);
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn a_sandboxed_project_stays_in() {
    let mut scene = Scene::new(|config| {
        sandbox(config);
        config["project"]["sandbox"] = json!(true);
    });
    let project = scene.home.path().join("src/thing");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let attacks = attacks(&mut scene);
    run(&mut scene, &project, "work", &attacks);
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn a_stranger_stays_in() {
    let mut bot = Bot::with(Shared::No, |config| {
        config["tools"]["bash"]["timeoutSeconds"] = json!(10);
    });
    let attacks = attacks(&mut bot.scene);
    bot.attack(&attacks);
    bot.end(&[&attacks]);
}

/// That the attacks are worth something: without a sandbox most of them read their file. Some need programs or rights that
/// not every machine has.
#[test]
fn without_a_sandbox_most_readers_read() {
    let mut scene = Scene::new(|config| {
        sandbox(config);
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    });
    let home = scene.home.path().to_owned();
    let attacks = attacks_with(&mut scene, READERS, &[]);
    run(&mut scene, &home, "trip", &attacks);
    let count = attacks.all.iter().filter(|attack| scene.breaches.has(&attack.label)).count();
    assert!(count > READERS.len() / 2, "{count} of {}", READERS.len());
}
