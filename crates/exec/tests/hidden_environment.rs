//! Variables move out of sight only in a process with one thread, so this test has a `main` of its own: it starts itself
//! again, and the second process hides its environment and says what is left.
#![expect(clippy::unwrap_used, reason = "all of this is test code")]

use std::process::Command;

const VARIABLES: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "sk-first"),
    ("SOMETHING_ELSE", "second value"),
    ("HTTPS_PROXY", "http://me:third@proxy"),
    ("LC_ALL", "C"),
];

fn main() {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    if std::env::args().any(|argument| argument == "hide") {
        return hide();
    }
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).arg("hide").env_clear().envs(VARIABLES).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (inside, outside) = said.split_once("outside:\n").unwrap();
    for (name, value) in VARIABLES {
        assert!(inside.contains(&format!("{name}={value}\n")), "{name} is still there: {said}");
    }
    assert_eq!(outside, "LC_ALL=C\n", "{said}");
}

fn hide() {
    myclaw_exec::hide_environment();
    for (name, value) in std::env::vars() {
        println!("{name}={value}");
    }
    let shown = std::fs::read("/proc/self/environ").unwrap_or_default();
    let is_dumpable = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(is_dumpable, rustix::process::DumpableBehavior::NotDumpable);
    println!("outside:");
    for entry in shown.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        println!("{}", String::from_utf8_lossy(entry));
    }
}
