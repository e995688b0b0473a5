use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::{Problem, SkillOrigin, SkillPlace, find};
use crate::Machine;

fn write_skill(place: &Path, directory: &str, front_matter: &str) {
    let directory = place.join(directory);
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("SKILL.md"), format!("---\n{front_matter}\n---\nText.\n"))
        .expect("a file");
}

fn owner(directory: &Path) -> SkillPlace {
    SkillPlace { base: directory.to_owned(), below: "".into(), origin: SkillOrigin::Owner }
}

fn workspace(directory: &Path) -> SkillPlace {
    let (base, below) = (directory.parent().expect("a parent"), directory.file_name());
    let below = below.expect("a name").into();
    SkillPlace { base: base.to_owned(), below, origin: SkillOrigin::Workspace }
}

#[test]
fn the_earlier_place_wins_and_the_other_skill_is_reported() {
    let home = TempDir::new().expect("a directory");
    let (own, shared) = (home.path().join("own"), home.path().join("shared"));
    write_skill(&own, "notes", "name: notes\ndescription: the owner's");
    write_skill(&shared, "notes", "name: notes\ndescription: the workspace's");
    write_skill(&shared, "alpha", "name: alpha\ndescription: first");
    let catalog = find(&[owner(&own), workspace(&shared)], &Machine::default());
    let names: Vec<_> = catalog
        .skills
        .iter()
        .map(|skill| (skill.name.as_str(), skill.description.as_str(), skill.origin))
        .collect();
    assert_eq!(
        names,
        [("alpha", "first", SkillOrigin::Workspace), ("notes", "the owner's", SkillOrigin::Owner)]
    );
    let problems: Vec<_> = catalog.problems.iter().map(|problem| problem.path.as_path()).collect();
    assert_eq!(problems, [shared.join("notes/SKILL.md")]);
    assert!(catalog.problems[0].message.contains("which counts"));
}

#[test]
fn a_place_that_links_to_another_is_no_problem() {
    let home = TempDir::new().expect("a directory");
    let own = home.path().join("own");
    write_skill(&own, "notes", "name: notes\ndescription: d");
    symlink(&own, home.path().join("other")).expect("a link");
    let catalog = find(&[owner(&own), owner(&home.path().join("other"))], &Machine::default());
    assert_eq!(catalog.skills.len(), 1);
    assert_eq!(catalog.problems, []);
}

#[test]
fn a_workspace_cannot_link_to_skills_elsewhere_and_the_owner_can() {
    let home = TempDir::new().expect("a directory");
    let (elsewhere, place) = (home.path().join("elsewhere"), home.path().join("place"));
    write_skill(&elsewhere, "notes", "name: notes\ndescription: d");
    fs::create_dir(&place).expect("a directory");
    symlink(elsewhere.join("notes"), place.join("notes")).expect("a link");
    assert_eq!(find(&[owner(&place)], &Machine::default()).skills.len(), 1);
    let linked = "it cannot be used: it is a symbolic link, or its path leads over one; put a copy of the skill here \
                  instead";
    let confined = find(&[workspace(&place)], &Machine::default());
    assert_eq!(confined.skills, []);
    let problem = |path| Problem { path, message: linked.to_owned() };
    assert_eq!(confined.problems, [problem(place.join("notes/SKILL.md"))]);

    // The whole place is a link, or the file alone.
    fs::rename(&place, home.path().join("before")).expect("a new name");
    symlink(&elsewhere, &place).expect("a link");
    let confined = find(&[workspace(&place)], &Machine::default());
    assert_eq!((confined.skills, confined.problems), (vec![], vec![problem(place.clone())]));
    fs::remove_file(&place).expect("no link");
    fs::create_dir_all(place.join("notes")).expect("a directory");
    symlink(elsewhere.join("notes/SKILL.md"), place.join("notes/SKILL.md")).expect("a link");
    let confined = find(&[workspace(&place)], &Machine::default());
    let problems = vec![problem(place.join("notes/SKILL.md"))];
    assert_eq!((confined.skills, confined.problems), (vec![], problems));
}

#[test]
fn what_is_not_a_regular_file_is_reported_and_never_waited_for() {
    let home = TempDir::new().expect("a directory");
    let pipe = home.path().join("pipe");
    fs::create_dir_all(&pipe).expect("a directory");
    let status =
        std::process::Command::new("mkfifo").arg(pipe.join("SKILL.md")).status().expect("mkfifo");
    assert!(status.success());
    fs::create_dir_all(home.path().join("directory/SKILL.md")).expect("a directory");
    for place in [owner(home.path()), workspace(home.path())] {
        let catalog = find(&[place], &Machine::default());
        assert_eq!(catalog.skills, []);
        let paths: Vec<_> = catalog.problems.iter().map(|problem| problem.path.as_path()).collect();
        let names = ["directory/SKILL.md", "pipe/SKILL.md"];
        assert_eq!(paths, names.map(|name| home.path().join(name)));
    }
}

#[test]
fn requirements_that_are_missing_are_named() {
    let home = TempDir::new().expect("a directory");
    let programs = home.path().join("bin");
    fs::create_dir(&programs).expect("a directory");
    for (name, mode) in [("runs", 0o755), ("text", 0o644)] {
        fs::write(programs.join(name), "").expect("a file");
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let metadata = |own: &str| format!("name: a\ndescription: d\nmetadata: {{\"myclaw\":{own}}}");
    let machine =
        Machine { program_directories: vec![programs], variables: vec!["SET".to_owned()] };
    let place = home.path().join("skills");
    let missing = |own: &str| {
        write_skill(&place, "a", &metadata(own));
        find(&[owner(&place)], &machine).skills[0].missing.clone()
    };
    assert_eq!(
        missing(r#"{"requires":{"bins":["runs"],"anyBins":["none","runs"],"env":["SET"]}}"#),
        [""; 0]
    );
    assert_eq!(
        missing(
            r#"{"os":["plan9"],"requires":{"bins":["runs","text","../bin/runs"],"anyBins":["x","y"],"env":["UNSET"]}}"#
        ),
        [
            "operating system plan9",
            "program text",
            "program ../bin/runs",
            "program x or y",
            "variable UNSET"
        ]
    );
    assert_eq!(find(&[owner(&place)], &machine).usable().count(), 0);
}

#[test]
fn a_missing_place_holds_nothing() {
    let home = TempDir::new().expect("a directory");
    assert_eq!(
        find(&[owner(&home.path().join("missing"))], &Machine::default()),
        super::SkillCatalog::default()
    );
}
