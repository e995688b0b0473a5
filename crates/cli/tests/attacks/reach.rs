//! Attacks that name a file of somebody else: each tool with each way to spell a path.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::attack::Attacks;

type Call = (&'static str, Value);

/// A way to name a file: calls that prepare it, and the name.
pub(super) struct Spelling {
    pub(super) name: &'static str,
    pub(super) prepare: Vec<Call>,
    pub(super) path: String,
}

pub(super) fn bash(command: impl Into<String>) -> Call {
    ("bash", json!({"command": command.into()}))
}

/// The ways to spell `target`, which is below `home`; links have `label` in their names.
pub(super) fn spellings(home: &Path, target: &Path, label: &str) -> Vec<Spelling> {
    let whole = target.display().to_string();
    let parent = target.parent().unwrap_or(target).display().to_string();
    let base = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of_home = target.strip_prefix(home).unwrap_or(target).display().to_string();
    let up = "../".repeat(14);
    let plain = |name, path: String| Spelling { name, prepare: Vec::new(), path };
    let linked =
        |name, command: String, path: String| Spelling { name, prepare: vec![bash(command)], path };
    vec![
        plain("absolute", whole.clone()),
        plain("home", format!("~/{of_home}")),
        plain("parents", format!("{up}{}", whole.trim_start_matches('/'))),
        plain("dots", format!("././/./{up}./{}", whole.trim_start_matches('/'))),
        plain("slashes", whole.replace('/', "//")),
        plain("proc root", format!("/proc/self/root{whole}")),
        plain("proc thread root", format!("/proc/thread-self/root{whole}")),
        plain("proc directory", format!("/proc/self/cwd/{up}{}", whole.trim_start_matches('/'))),
        plain("proc of init", format!("/proc/1/root{whole}")),
        plain("url", format!("file://{whole}")),
        linked("link", format!("ln -s {whole} l-{label}"), format!("l-{label}")),
        linked(
            "linked directory",
            format!("ln -s {parent} d-{label}"),
            format!("d-{label}/{base}"),
        ),
        linked("linked root", format!("ln -s / r-{label}"), format!("r-{label}{whole}")),
        linked(
            "chain of links",
            format!(
                "mkdir c-{label} && ln -s {parent} c-{label}/a && ln -s c-{label}/a c-{label}-b"
            ),
            format!("c-{label}-b/{base}"),
        ),
        linked(
            "link to proc",
            format!("ln -s /proc/self/root p-{label}"),
            format!("p-{label}{whole}"),
        ),
        linked("hard link", format!("ln {whole} h-{label}"), format!("h-{label}")),
        linked("moved", format!("mv {whole} m-{label}"), format!("m-{label}")),
    ]
}

/// The calls by which each tool could show what is in `path`.
fn readers(path: &str, label: &str) -> Vec<(&'static str, Call)> {
    let (parent, base) = path.rsplit_once('/').unwrap_or((".", path));
    vec![
        ("read", ("read", json!({"path": path}))),
        ("grep", ("grep", json!({"pattern": "secret", "path": path}))),
        (
            "grep of the directory",
            ("grep", json!({"pattern": "secret", "path": parent, "glob": base})),
        ),
        ("cat", bash(format!("cat {path}"))),
        ("cp", bash(format!("cp -L {path} copy-{label} && cat copy-{label}"))),
        ("tar", bash(format!("tar -chf - {path} | tar -xOf -"))),
        ("python", bash(format!("python3 -c \"print(open('{path}').read())\""))),
        ("source", bash(format!("set -v; . {path}"))),
        ("mapped", bash(format!("mapfile -t lines < {path}; printf '%s\\n' \"${{lines[@]}}\""))),
        (
            "job",
            (
                "bash",
                json!({"command": format!("cat {path}; sleep 0.2"), "yieldMs": 5000, "pty": true}),
            ),
        ),
    ]
}

/// The calls by which each tool could change or replace `path`.
fn writers(path: &str, label: &str) -> Vec<(&'static str, Call)> {
    let mark = format!("by {label}");
    let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-# line one\n+{mark}\n");
    vec![
        ("write", ("write", json!({"path": path, "content": mark}))),
        ("edit", ("edit", json!({"path": path, "oldText": "line one", "newText": mark}))),
        ("apply_patch", ("apply_patch", json!({"patch": patch}))),
        ("redirection", bash(format!("echo '{mark}' >> {path}"))),
        ("mv", bash(format!("echo '{mark}' > n-{label} && mv -f n-{label} {path}"))),
        (
            "cp",
            bash(format!(
                "echo '{mark}' > n-{label} && cp -f --remove-destination n-{label} {path}"
            )),
        ),
        ("rm", bash(format!("rm -f {path}"))),
        ("truncate", bash(format!("truncate -s 0 {path}"))),
        ("ln", bash(format!("echo '{mark}' > n-{label} && ln -f n-{label} {path}"))),
        ("sed", bash(format!("sed -i 's/line one/{mark}/' {path}"))),
        ("dd", bash(format!("echo '{mark}' | dd of={path} conv=notrunc"))),
    ]
}

/// What else could be changed of `path`: not its content.
fn changers(path: &str) -> Vec<(&'static str, Call)> {
    vec![
        ("chmod", bash(format!("chmod 666 {path}"))),
        ("touch", bash(format!("touch -d 2001-01-01 {path}"))),
        ("chown", bash(format!("chown 65534 {path}"))),
        (
            "attribute",
            bash(format!("python3 -c \"import os; os.setxattr('{path}', 'user.x', b'1')\"")),
        ),
        ("lock mode", bash(format!("chmod u+s,g+s {path}"))),
    ]
}

/// What an attack of this file does.
#[derive(Clone, Copy)]
pub(super) enum Aim {
    Read,
    Write,
    Change,
}

/// Adds an attack for each tool that can have this aim with each spelling. `target` gives the file of the next attack.
pub(super) fn add(
    attacks: &mut Attacks,
    home: &Path,
    aim: Aim,
    tools: &[&str],
    mut target: impl FnMut(&Attacks) -> PathBuf,
) {
    let calls = |path: &str, label: &str| match aim {
        Aim::Read => readers(path, label),
        Aim::Write => writers(path, label),
        Aim::Change => changers(path),
    };
    let kinds: Vec<&str> = calls("x", "x").into_iter().map(|(name, _)| name).collect();
    let ways = spellings(home, home, "x").len();
    for (number, kind) in kinds.into_iter().enumerate() {
        for way in 0..ways {
            let path = target(attacks);
            let label = attacks.next_label();
            let Spelling { name, mut prepare, path } =
                spellings(home, &path, &label).swap_remove(way);
            let (_, call) = calls(&path, &label).swap_remove(number);
            if !tools.contains(&call.0) {
                continue;
            }
            prepare.push(call);
            attacks.add(format!("{kind}, path spelled as {name}"), prepare);
        }
    }
}
