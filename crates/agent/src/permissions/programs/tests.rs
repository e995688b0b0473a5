use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn program(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn find(&self, name: &str, path: &str) -> Option<ResolvedProgram> {
        let path = path.replace('@', self.path("").to_str().unwrap());
        let environment = BTreeMap::from([("PATH".to_owned(), path)]);
        resolve(name, &environment, &self.path("work"))
    }
}

#[test]
fn a_name_is_found_in_the_path_of_the_child_and_a_link_is_followed() {
    let place = Place::new();
    let real = place.program("real/tool-1.2", 0o755);
    let plain = place.program("bin/plain", 0o755);
    place.program("first/plain", 0o644);
    symlink(&real, place.path("bin/tool")).unwrap();

    let found = place.find("tool", "@first:@bin").unwrap();
    assert_eq!(found, ResolvedProgram { path: place.path("bin/tool"), real });
    // A file that may not be run is passed over, as the shell does.
    assert_eq!(place.find("plain", "@first:@bin").unwrap().path, plain);
    assert_eq!(place.find("absent", "@first:@bin"), None);
    assert_eq!(resolve("tool", &BTreeMap::new(), &place.path("work")), None);
}

#[test]
fn a_program_behind_a_relative_entry_of_the_path_is_not_found() {
    let place = Place::new();
    let trusted = place.program("bin/git", 0o755);
    let own = place.program("work/git", 0o755);

    for path in [".:@bin", ":@bin", "tools:@bin"] {
        assert_eq!(place.find("git", path), None, "{path}");
    }
    // The shell finds the first one, whatever follows.
    assert_eq!(place.find("git", "@bin:.").unwrap().path, trusted);
    assert_eq!(place.find("./git", "@bin").unwrap().real, own);
}

#[test]
fn variables_that_change_with_each_login_are_left_out() {
    let environment = environment(&EnvironmentPolicy::inherited());
    for name in VOLATILE {
        assert!(!environment.contains_key(name), "{name}");
    }
    assert!(environment.contains_key("PATH"));
}
