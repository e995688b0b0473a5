//! Sessions of the owner that are sandboxed: one with a name, and one in a project.

use std::path::Path;

use myclaw_testkit::{ChildOutput, RunningChild};
use serde_json::json;

use super::attack::{Attack, Attacks};
use super::reach::{self, Aim};
use super::scene::Scene;

/// The tools that these sessions have.
pub(super) const TOOLS: [&str; 12] = [
    "bash",
    "process",
    "read",
    "write",
    "edit",
    "apply_patch",
    "grep",
    "find",
    "ls",
    "image",
    "memory_search",
    "memory_get",
];

/// What has no effect for another reason than a boundary: a tool replaces the link instead of its target, or takes `~` for a
/// name.
const VOID: [&str; 8] = [
    "grep of the directory, path spelled as link",
    "python, path spelled as home",
    "mv, path spelled as link",
    "cp, path spelled as link",
    "rm, path spelled as link",
    "ln, path spelled as link",
    "sed, path spelled as link",
    "attribute, path spelled as home",
];

fn run(scene: &Scene, directory: &Path, session: &str, text: &str) -> ChildOutput {
    let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.current_dir(directory).args(["run", "--session", session, "-"]);
    RunningChild::run_with_input(&mut command, text)
}

/// Every tool with every spelling of a path outside, in a session that works in `directory`.
fn try_to_reach(scene: &mut Scene, directory: &Path, session: &str) -> Attacks {
    let all = [Aim::Read, Aim::Write, Aim::Change];
    try_to_reach_with(scene, &all, |scene, batch| {
        run(scene, directory, session, batch).assert_code(0);
    })
}

/// The same, where `say` gives a message to the session and waits for its answer.
pub(super) fn try_to_reach_with(
    scene: &mut Scene,
    aims: &[Aim],
    mut say: impl FnMut(&Scene, &str),
) -> Attacks {
    let home = scene.home.path().to_owned();
    let mut attacks = Attacks::new("a");
    for aim in aims {
        reach::add(&mut attacks, &home, *aim, &TOOLS, |attacks| scene.victim(attacks));
    }
    scene.begin();
    for batch in attacks.batches(100) {
        say(scene, &batch);
        scene.check(|_| true);
    }
    attacks
}

fn reaches_nothing(scene: &mut Scene, directory: &Path, session: &str) {
    let attacks = try_to_reach(scene, directory, session);
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn a_named_session_reaches_nothing_outside_of_its_workspace() {
    let mut scene = Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["allowlist"] = json!(TOOLS);
    });
    let home = scene.home.path().to_owned();
    reaches_nothing(&mut scene, &home, "trip");
}

#[test]
fn a_sandboxed_project_reaches_nothing_outside_of_itself() {
    let mut scene = Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["allowlist"] = json!(TOOLS);
        config["project"]["sandbox"] = json!(true);
    });
    let project = scene.home.path().join("src/thing");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    reaches_nothing(&mut scene, &project, "work");
}

/// That the attacks are worth something: without the boundary they get what they want.
#[test]
fn without_a_sandbox_the_same_calls_reach_their_files() {
    let mut scene = Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
        // Commands that find everything run in no namespace, in which hard links would not cross mounts.
        config["tools"]["bash"]["stateDirectory"] = json!("open");
    });
    let home = scene.home.path().to_owned();
    let attacks = try_to_reach(&mut scene, &home, "trip");
    // What no session reaches: a patch outside of its directory, a URL for a command, the files of the first process, and with a
    // tool for files those behind any process.
    let is_void = |name: &str| {
        let is_file_tool = ["read", "grep", "write", "edit"].iter().any(|it| name.starts_with(it));
        name.starts_with("apply_patch")
            || name.ends_with(" url")
            || name.ends_with("proc of init")
            || is_file_tool && name.contains("proc")
    };
    let missed: Vec<&str> = attacks
        .all
        .iter()
        .filter(|attack| !scene.breaches.has(&attack.label) && !is_void(&attack.name))
        .map(|attack| &*attack.name)
        .collect();
    assert_eq!(missed, VOID);
}
