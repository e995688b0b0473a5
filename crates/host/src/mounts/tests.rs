use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A directory with an allowlist, an allowed root, and things that must not be seen.
struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    fn new(non_main_read_only: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["open/work", "open/deep/er", "open/.ssh", "private", "host/groups", "config"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let list = serde_json::json!({
            "allowedRoots": [
                {"path": root.join("open"), "allowReadWrite": true, "description": "work"},
                {"path": root.join("open/deep")},
                {"path": root.join("host")},
                {"path": root.join("config")},
            ],
            "blockedPatterns": ["Payroll"],
            "nonMainReadOnly": non_main_read_only,
        });
        fs::write(root.join("config/list.json"), list.to_string()).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn check(&self, asked: ExtraMount, is_main: bool) -> Result<Mount, String> {
        let host_root = self.path("host");
        let by = Applicant { is_main, host_root: &host_root };
        let (mut allowed, refused) = check(&[asked], &self.path("config/list.json"), by);
        match refused.first() {
            Some(error) => Err(error.problem.clone()),
            None => Ok(allowed.remove(0)),
        }
    }

    fn ask(&self, name: &str) -> ExtraMount {
        ExtraMount { host_path: self.path(name), container_path: None, access: Access::ReadWrite }
    }
}

#[test]
fn a_directory_below_an_allowed_root_is_mounted_with_the_rights_of_the_nearest_one() {
    let scene = Scene::new(true);
    let mounted = scene.check(scene.ask("open/work"), true).unwrap();
    let wanted = Mount {
        host: scene.path("open/work"),
        container: "/workspace/extra/work".into(),
        access: Access::ReadWrite,
    };
    assert_eq!(mounted, wanted);
    let access = |name, is_main| scene.check(scene.ask(name), is_main).unwrap().access;
    assert_eq!(access("open/work", false), Access::ReadOnly);
    assert_eq!(access("open/deep/er", true), Access::ReadOnly);
    assert_eq!(access("open", true), Access::ReadOnly, "it holds a root that may only be read");
    let free = Scene::new(false);
    assert_eq!(free.check(free.ask("open/work"), false).unwrap().access, Access::ReadWrite);
}

#[test]
fn no_path_leads_out_of_the_allowed_roots() {
    let scene = Scene::new(false);
    symlink(scene.path("private"), scene.path("open/link")).unwrap();
    symlink(scene.path("open/link"), scene.path("open/link-to-link")).unwrap();
    symlink(scene.path("open/.ssh"), scene.path("open/keys")).unwrap();
    fs::create_dir_all(scene.path("open/payroll-2026")).unwrap();
    fs::create_dir_all(scene.path("openly")).unwrap();
    let root = scene.path("");
    let problems = [
        ("private", "below no allowed root"),
        ("openly", "below no allowed root"),
        ("open/link", "which is below no allowed root"),
        ("open/link-to-link", "which is below no allowed root"),
        ("open/work/../../private", "which is below no allowed root"),
        ("open/.ssh", "\".ssh\", which is blocked"),
        ("open/keys", "\".ssh\", which is blocked"),
        ("open/payroll-2026", "\"Payroll\", which is blocked"),
        ("open/absent", "does not exist"),
        ("host/groups", "files of the host itself"),
        ("config", "holds the allowlist"),
        ("", "holds the allowlist"),
    ];
    for (name, problem) in problems {
        let refused = scene.check(scene.ask(name), true).unwrap_err();
        assert!(refused.contains(problem), "{} of {}: {refused}", name, root.display());
    }
}

#[test]
fn the_place_in_the_container_is_relative_and_used_once() {
    let scene = Scene::new(false);
    for place in ["", "/etc", "../group", "a/../../b", "a:ro", "a,b", "a\nb"] {
        let asked = ExtraMount { container_path: Some(place.to_owned()), ..scene.ask("open/work") };
        let refused = scene.check(asked, true).unwrap_err();
        assert!(refused.contains("its place in the container"), "{place:?}: {refused}");
    }
    let host_root = scene.path("host");
    let by = Applicant { is_main: true, host_root: &host_root };
    let twice = [scene.ask("open/work"), scene.ask("open/work")];
    let (allowed, refused) = check(&twice, &scene.path("config/list.json"), by);
    assert_eq!((allowed.len(), refused.len()), (1, 1));
    // A place within another one would be made in the directory that is mounted there.
    let at = |name: &str, place: &str| ExtraMount {
        container_path: Some(place.to_owned()),
        ..scene.ask(name)
    };
    for places in [["a", "a/b"], ["a/b", "a"]] {
        let nested = [at("open/work", places[0]), at("open/deep", places[1])];
        let (allowed, refused) = check(&nested, &scene.path("config/list.json"), by);
        assert_eq!((allowed.len(), refused.len()), (1, 1), "{places:?}");
    }
}

#[test]
fn links_to_roots_and_to_the_list_change_nothing() {
    let scene = Scene::new(false);
    // A link with a short path to the root that may only be read.
    fs::create_dir_all(scene.path("open/deep/nested/far")).unwrap();
    symlink(scene.path("open/deep/nested"), scene.path("short")).unwrap();
    let list = serde_json::json!({
        "allowedRoots": [
            {"path": scene.path("short")},
            {"path": scene.path("open/deep"), "allowReadWrite": true},
            {"path": scene.path("links")},
        ],
        "nonMainReadOnly": false,
    });
    fs::write(scene.path("config/list.json"), list.to_string()).unwrap();
    let mounted = scene.check(scene.ask("open/deep/nested/far"), true).unwrap();
    assert_eq!(mounted.access, Access::ReadOnly);
    fs::create_dir_all(scene.path("links")).unwrap();
    symlink(scene.path("config/list.json"), scene.path("links/list.json")).unwrap();
    let host_root = scene.path("host");
    let by = Applicant { is_main: true, host_root: &host_root };
    let (allowed, refused) = check(&[scene.ask("links")], &scene.path("links/list.json"), by);
    assert_eq!((allowed.len(), refused.len()), (0, 1));
    assert!(refused[0].problem.contains("holds the allowlist"), "{refused:?}");
}

#[test]
fn without_a_usable_list_nothing_is_mounted() {
    let scene = Scene::new(false);
    let list = scene.path("config/list.json");
    for (content, problem) in [
        (Some("{"), "cannot be used: it ends before its JSON is complete"),
        (Some(r#"{"allowedRoots":[]}"#), "cannot be used: `nonMainReadOnly` is missing"),
        (Some(r#"{"allowedRoots":[],"nonMainReadOnly":true}"#), "below no allowed root"),
        (None, "there is no allowlist"),
    ] {
        match content {
            Some(content) => fs::write(&list, content).unwrap(),
            None => fs::remove_file(&list).unwrap(),
        }
        let refused = scene.check(scene.ask("open/work"), true).unwrap_err();
        assert!(refused.contains(problem), "{refused}");
    }
}
