use std::fs;
use std::os::unix::fs::symlink;

use myclaw_engine::TurnId;
use tempfile::TempDir;

use super::*;

/// A workspace `work` next to a directory `outside`, in a temporary directory whose own path has no links.
struct Place {
    _directory: TempDir,
    base: PathBuf,
    context: ToolContext,
}

fn place(workspace_only: bool) -> Place {
    let directory = TempDir::new().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("work/src")).unwrap();
    fs::create_dir_all(base.join("outside")).unwrap();
    fs::create_dir_all(base.join("artifacts")).unwrap();
    fs::write(base.join("work/src/main.rs"), "").unwrap();
    fs::write(base.join("outside/secret.txt"), "").unwrap();
    let context = ToolContext {
        working_directory: base.join("work"),
        artifact_directory: base.join("artifacts"),
        max_result_chars: 50_000,
        workspace_only,
        closed: Default::default(),
        turn: TurnId::generate(),
    };
    Place { _directory: directory, base, context }
}

fn real(place: &Place, given: &str) -> PathBuf {
    resolve_path(&place.context, given, Access::Read).unwrap().real
}

fn refusal(place: &Place, given: &str, access: Access) -> String {
    resolve_path(&place.context, given, access).unwrap_err().to_string()
}

#[test]
fn forms_of_a_path_lead_to_the_same_file() {
    let place = place(true);
    let main = place.base.join("work/src/main.rs");
    let absolute = main.to_str().unwrap().to_owned();
    let url = format!("file://{absolute}");
    for given in [
        "src/main.rs",
        "./src//main.rs",
        "src/../src/main.rs",
        "@src/main.rs",
        " src/main.rs ",
        &absolute,
        &url,
    ] {
        let resolved = resolve_path(&place.context, given, Access::Write).unwrap();
        assert_eq!(
            (resolved.real, resolved.shown.as_str()),
            (main.clone(), "src/main.rs"),
            "{given}"
        );
    }
    assert_eq!(resolve_path(&place.context, ".", Access::Read).unwrap().shown, ".");
}

#[test]
fn a_name_that_starts_with_an_at_sign_is_kept_where_it_exists() {
    let place = place(true);
    fs::create_dir(place.base.join("work/@types")).unwrap();
    assert_eq!(real(&place, "@types"), place.base.join("work/@types"));
}

#[test]
fn home_is_expanded_only_as_a_whole_part() {
    let place = place(false);
    let home = real_path(&std::env::home_dir().unwrap()).unwrap();
    assert_eq!(real(&place, "~"), home);
    assert_eq!(real(&place, "~/x"), home.join("x"));
    assert_eq!(real(&place, "~x"), place.base.join("work/~x"));
}

#[test]
fn what_does_not_exist_yet_resolves() {
    let place = place(true);
    assert_eq!(real(&place, "new/deep/file.txt"), place.base.join("work/new/deep/file.txt"));
    assert_eq!(real(&place, "new/../file.txt"), place.base.join("work/file.txt"));
    symlink("later/target.txt", place.base.join("work/dangling")).unwrap();
    assert_eq!(real(&place, "dangling"), place.base.join("work/later/target.txt"));
}

#[test]
fn the_workspace_cannot_be_left() {
    let place = place(true);
    symlink("../outside", place.base.join("work/link")).unwrap();
    symlink(place.base.join("outside/not-there"), place.base.join("work/dangling")).unwrap();
    symlink("link/secret.txt", place.base.join("work/chain")).unwrap();
    let absolute = place.base.join("outside/secret.txt");
    let sibling = place.base.join("work-2/x");
    for given in [
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "new/../../outside/secret.txt",
        "link/secret.txt",
        "link/../work/src/../../outside",
        "dangling",
        "chain",
        "~",
        "/",
        absolute.to_str().unwrap(),
        sibling.to_str().unwrap(),
    ] {
        let text = refusal(&place, given, Access::Read);
        assert!(text.contains("outside the workspace"), "{given}: {text}");
        assert!(text.contains(place.base.join("work").to_str().unwrap()), "{given}: {text}");
    }
    // A parent of a link is the parent of where it leads, as for the kernel.
    assert_eq!(real(&place, "link/../work/src"), place.base.join("work/src"));
}

#[test]
fn an_open_workspace_lets_paths_leave() {
    let place = place(false);
    let resolved = resolve_path(&place.context, "../outside/secret.txt", Access::Write).unwrap();
    let secret = place.base.join("outside/secret.txt");
    assert_eq!(resolved.shown, secret.to_str().unwrap());
    assert_eq!(resolved.real, secret);
}

#[test]
fn side_files_may_be_read_but_not_written() {
    let place = place(true);
    let file = place.base.join("artifacts/output.log");
    let given = file.to_str().unwrap();
    assert_eq!(resolve_path(&place.context, given, Access::Read).unwrap().real, file);
    assert!(refusal(&place, given, Access::Write).contains("outside the workspace"));
}

#[test]
fn side_files_of_another_machine_are_found_here() {
    let mut place = place(true);
    place.context.artifact_directory = place.base.join("artifacts/side-files/work");
    fs::create_dir_all(place.base.join("artifacts/side-files/work")).unwrap();
    let file = place.base.join("artifacts/side-files/work/out.log");
    fs::write(&file, "").unwrap();
    let there = "/home/other/.myclaw/side-files/work/out.log";
    assert_eq!(resolve_path(&place.context, there, Access::Read).unwrap().real, file);
    assert!(refusal(&place, there, Access::Write).contains("outside the workspace"));
    // Those of another session, and files that are not here, are not meant.
    for given in [
        "/home/other/.myclaw/side-files/more/out.log",
        "/home/other/.myclaw/side-files/work/no.log",
        "/home/other/.myclaw/side-files/work/../../../work/no.log",
    ] {
        assert!(refusal(&place, given, Access::Read).contains("outside the workspace"), "{given}");
    }
}

#[test]
fn a_workspace_that_is_itself_a_link_works() {
    let mut place = place(true);
    symlink(place.base.join("work"), place.base.join("alias")).unwrap();
    place.context.working_directory = place.base.join("alias");
    let given = place.base.join("alias/src/main.rs");
    for given in ["src/main.rs", given.to_str().unwrap()] {
        assert_eq!(resolve_path(&place.context, given, Access::Read).unwrap().shown, "src/main.rs");
    }
}

#[test]
fn paths_that_cannot_be_are_refused() {
    let place = place(false);
    symlink("b", place.base.join("work/a")).unwrap();
    symlink("a", place.base.join("work/b")).unwrap();
    assert!(refusal(&place, "a", Access::Read).contains("circle"));
    assert!(refusal(&place, "", Access::Read).contains("empty"));
    assert!(refusal(&place, "  ", Access::Read).contains("empty"));
    assert!(refusal(&place, "a\0b", Access::Read).contains("NUL"));
}

#[test]
fn a_missing_path_suggests_near_names() {
    let place = place(true);
    for name in ["README.md", "Cargo.toml", "settings.json"] {
        fs::write(place.base.join("work").join(name), "").unwrap();
    }
    for (given, needle) in [
        ("REDME.md", "README.md"),
        ("readme.md", "README.md"),
        ("cargo.lock", "Cargo.toml"),
        ("settings", "settings.json"),
        ("scr/main.rs", "src"),
        ("src/mian.rs", "main.rs"),
    ] {
        let path = resolve_path(&place.context, given, Access::Read).unwrap();
        let text = missing_path(&path).to_string();
        assert!(
            text.starts_with(&format!("{given} does not exist")) && text.contains(needle),
            "{text}"
        );
    }
    // Models make directories up.
    fs::create_dir_all(place.base.join("work/shop/tests")).unwrap();
    fs::write(place.base.join("work/shop/tests/basket.py"), "").unwrap();
    let path = resolve_path(&place.context, "path/to/basket.py", Access::Read).unwrap();
    assert_eq!(
        missing_path(&path).to_string(),
        "path/to/basket.py does not exist; there is shop/tests/basket.py"
    );
    let path = resolve_path(&place.context, "entirely-different", Access::Read).unwrap();
    assert_eq!(
        missing_path(&path).to_string(),
        "entirely-different does not exist; no name near it is similar"
    );
}

#[test]
fn io_failures_say_what_was_tried() {
    let path = ResolvedPath {
        real: "/x".into(),
        shown: "x".into(),
        root: "/".into(),
        closed: Default::default(),
    };
    let denied = io_failure("write", &path, &io::ErrorKind::PermissionDenied.into()).to_string();
    assert!(denied.starts_with("cannot write x: permission denied"), "{denied}");
    let full = io_failure("write", &path, &io::ErrorKind::StorageFull.into()).to_string();
    assert!(full.contains("the disk is full"), "{full}");
}

#[test]
fn a_name_in_another_spelling_leads_to_the_file_that_is_there() {
    let place = place(true);
    let own = place.base.join("work/cafe\u{301}");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("It\u{2019}s.txt"), "").unwrap();
    assert_eq!(real(&place, "caf\u{e9}"), own);
    assert_eq!(real(&place, "caf\u{e9}/It's.txt"), own.join("It\u{2019}s.txt"));
    let written = |given| resolve_path(&place.context, given, Access::Write).unwrap().real;
    assert_eq!(written("caf\u{e9}/new.txt"), own.join("new.txt"), "no second directory");
    assert_eq!(written("caf\u{e9}/It\u{2019}s.txt"), own.join("It\u{2019}s.txt"));
    // A new file with plain quotes does not replace the one with typographic ones.
    assert_eq!(written("caf\u{e9}/It's.txt"), own.join("It's.txt"));
}
