//! The rooms use those below them and none above: the arrows of `ARCHITECTURE.md`.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::fs;
use std::path::Path;

/// From top to bottom.
const ROOMS: [&str; 11] = [
    "cli", "tools", "hooks", "engine", "session", "llm", "auth", "sandbox", "exec", "config", "skills",
];

#[test]
fn arrows_point_down_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (level, room) in ROOMS.iter().enumerate() {
        let used = rooms_used_by(&crates.join(room).join("Cargo.toml"));
        for other in &used {
            let below = ROOMS
                .iter()
                .position(|name| name == other)
                .unwrap_or_else(|| panic!("{room} uses {other}"));
            assert!(below > level, "{room} must not use {other}: it stands above it");
        }
    }
}

#[test]
fn every_crate_is_a_room_or_the_test_kit() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names: Vec<String> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut known: Vec<&str> = ROOMS.into_iter().chain(["testkit"]).collect();
    known.sort_unstable();
    assert_eq!(names, known, "add the new room to ARCHITECTURE.md and to this test");
}

/// The rooms among the normal dependencies of a manifest. The test kit among them would ship it to users.
fn rooms_used_by(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    text.lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("myclaw-"))
        .map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_owned())
        .collect()
}
