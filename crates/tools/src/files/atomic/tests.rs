use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn replacing_keeps_the_mode_unless_another_is_wished() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let like = Some(std::fs::metadata(&path).unwrap());
    replace_file(&path, b"new", &Attributes { like: like.clone(), executable: None }).unwrap();
    assert_eq!((std::fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"new"[..], 0o640));
    replace_file(&path, b"run", &Attributes { like, executable: Some(Executable::Yes) }).unwrap();
    assert_eq!(mode(&path), 0o750);
    let like = Some(std::fs::metadata(&path).unwrap());
    replace_file(&path, b"no", &Attributes { like, executable: Some(Executable::No) }).unwrap();
    assert_eq!(mode(&path), 0o640);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("directory");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("inside"), "").unwrap();
    assert!(replace_file(&path, b"new", &Attributes::default()).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_taken_name_is_not_taken_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let staged = stage_file(&path, b"new", &Attributes::default()).unwrap();
    std::fs::write(&path, "meanwhile").unwrap();
    assert_eq!(staged.put_at_free(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), b"meanwhile");
}
