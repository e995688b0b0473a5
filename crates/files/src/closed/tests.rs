use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A state directory with a workspace and skills, next to a home directory.
struct Place {
    base: PathBuf,
    closed: ClosedPaths,
    _directory: TempDir,
}

fn place() -> Place {
    let directory = TempDir::new().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for path in ["state/workspace", "state/skills/one", "state/agents/main", "home"] {
        fs::create_dir_all(base.join(path)).unwrap();
    }
    for path in ["state/config.json", "state/agents/main/keys.json", "home/notes.md", "home/key"] {
        fs::write(base.join(path), "text").unwrap();
    }
    let closed = ClosedPaths::default()
        .with(&base.join("state"), Opening::Closed)
        .with(&base.join("state/config.json"), Opening::Closed)
        .with(&base.join("home/key"), Opening::Closed)
        .with(&base.join("state/workspace"), Opening::Everything)
        .with(&base.join("state/skills"), Opening::Reading);
    Place { base, closed, _directory: directory }
}

/// Who refuses the path, relative to the base.
fn refusing(place: &Place, path: &str, wanted: PathUse) -> Option<String> {
    let real = real_path(&place.base.join(path)).unwrap();
    let refusing = place.closed.refusing(&real, wanted)?;
    Some(refusing.strip_prefix(&place.base).unwrap().to_str().unwrap().to_owned())
}

#[test]
fn the_deepest_place_decides() {
    let place = place();
    let verdicts =
        |path| [PathUse::Read, PathUse::Change].map(|wanted| refusing(&place, path, wanted));
    let (state, skills) = (Some("state".to_owned()), Some("state/skills".to_owned()));
    assert_eq!(verdicts("home/notes.md"), [None, None]);
    assert_eq!(verdicts("."), [None, None]);
    assert_eq!(verdicts("state"), [state.clone(), state.clone()]);
    assert_eq!(verdicts("state/agents/main/keys.json"), [state.clone(), state.clone()]);
    assert_eq!(verdicts("state/not/there/yet"), [state.clone(), state.clone()]);
    // The beginning of a name is not a directory.
    assert_eq!(verdicts("state-of-affairs"), [None, None]);
    assert_eq!(verdicts("state/workspace/new/file"), [None, None]);
    assert_eq!(verdicts("state/workspace-2"), [state.clone(), state]);
    assert_eq!(verdicts("state/skills/one"), [None, skills]);
}

#[test]
fn no_other_name_leads_around_it() {
    let place = place();
    let base = place.base.clone();
    symlink(base.join("state"), base.join("home/link")).unwrap();
    symlink("../state/config.json", base.join("home/config")).unwrap();
    symlink("config", base.join("home/twice")).unwrap();
    symlink("../state/agents/new", base.join("home/dangling")).unwrap();
    fs::hard_link(base.join("state/config.json"), base.join("home/hard")).unwrap();
    let open = File::open(base.join("state/config.json")).unwrap();
    use std::os::fd::AsRawFd;
    let descriptor = open.as_raw_fd();
    let around = [
        "home/link/config.json".to_owned(),
        "home/config".to_owned(),
        "home/twice".to_owned(),
        "home/dangling".to_owned(),
        "home/hard".to_owned(),
        "home/../state/config.json".to_owned(),
        "home/./..//state/workspace/../config.json".to_owned(),
        format!("/proc/self/root{}/state/config.json", base.display()),
        format!("/proc/self/fd/{descriptor}"),
        format!("/dev/fd/{descriptor}"),
        format!("/proc/{}/fd/{descriptor}", std::process::id()),
    ];
    for path in around {
        for wanted in [PathUse::Read, PathUse::Change] {
            assert!(refusing(&place, &path, wanted).is_some(), "{path}");
        }
    }
    // The workspace is open by every name.
    symlink(base.join("state/workspace"), base.join("home/work")).unwrap();
    assert_eq!(refusing(&place, "home/work/file", PathUse::Change), None);
}

#[test]
fn a_place_that_was_named_by_a_link_is_closed_where_it_is() {
    let place = place();
    symlink("state", place.base.join("alias")).unwrap();
    let closed = ClosedPaths::default().with(&place.base.join("alias"), Opening::Closed);
    let state = place.base.join("state");
    assert_eq!(closed.refusing(&state.join("config.json"), PathUse::Read), Some(state));
}

#[test]
fn a_walk_learns_which_places_are_closed() {
    let place = place();
    let now = place.closed.now();
    let is_closed = |path: &str| {
        let path = place.base.join(path);
        now.is_closed_place(&path, path.symlink_metadata().ok().as_ref())
    };
    assert_eq!(
        ["state", "home/key", "home", "state/skills", "state/workspace"].map(is_closed),
        [true, true, false, false, false]
    );
    fs::hard_link(place.base.join("home/key"), place.base.join("home/other")).unwrap();
    let metadata = |path: &str| place.base.join(path).metadata().unwrap();
    assert!(now.is_closed_file(&metadata("home/other")));
    assert!(!now.is_closed_file(&metadata("home/notes.md")));
}

#[test]
fn what_became_a_link_after_the_check_is_not_opened() {
    let place = place();
    let path = place.base.join("home/notes.md");
    assert!(open_real(&path).is_ok());
    let opened = |path: &Path| open_real(path).map(drop).map_err(|error| error.to_string());
    let compared =
        |path: &Path| open_and_compare(path).map(drop).map_err(|error| error.to_string());
    fs::rename(place.base.join("home"), place.base.join("away")).unwrap();
    symlink("away", place.base.join("home")).unwrap();
    let refused = Err("a part of its path has just become a link".to_owned());
    assert_eq!((opened(&path), compared(&path)), (refused.clone(), refused));
    let last = place.base.join("away/link");
    symlink("notes.md", &last).unwrap();
    assert!(opened(&last).is_err() && compared(&last).is_err());
    assert!(opened(&place.base.join("away")).is_err());
}

#[test]
fn each_link_is_asked_for_once() {
    let home = TempDir::new().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (one, other) = (home.join("one"), home.join("other"));
    fs::create_dir_all(&one).unwrap();
    symlink(&one, home.join("link")).unwrap();
    let mut links = KnownLinks::default();
    let ways = ["link/a", "link/missing/b", "link/missing/../a", "no/such", "no/such/place"];
    for way in ways {
        assert_eq!(links.real_path(&home.join(way)).unwrap(), real_path(&home.join(way)).unwrap());
    }
    // What was answered before is not asked again, and neither is anything below what does not exist.
    fs::remove_file(home.join("link")).unwrap();
    symlink(&other, home.join("link")).unwrap();
    symlink(&other, one.join("a")).unwrap();
    fs::create_dir_all(home.join("no")).unwrap();
    symlink(&other, home.join("no/such")).unwrap();
    assert_eq!(links.real_path(&home.join("link/b")).unwrap(), one.join("b"));
    assert_eq!(links.real_path(&home.join("link/a/c")).unwrap(), one.join("a/c"));
    assert_eq!(links.real_path(&home.join("no/such/x")).unwrap(), home.join("no/such/x"));
    assert_eq!(real_path(&home.join("link/b")).unwrap(), other.join("b"));
}
