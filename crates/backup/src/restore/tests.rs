use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::{UNPACKING, check, restore};
use crate::{BackupError, FileRole, Source, create};

fn backup(state: &Path) -> Vec<u8> {
    let source = Source {
        state,
        part_of: &|_| FileRole::Other,
        replaced: BTreeMap::new(),
        left_out: Vec::new(),
        program: "1.2.3",
        with_keys: true,
        with_work: true,
    };
    create(source, Vec::new(), None).expect("a backup").1
}

fn some_state(home: &Path) -> std::path::PathBuf {
    let state = home.join("state");
    fs::create_dir_all(state.join("sessions")).unwrap();
    fs::write(state.join("usage.json"), "{\"usage\":1}").unwrap();
    fs::write(state.join("sessions/a.jsonl"), "{}\n".repeat(1000)).unwrap();
    state
}

/// A backup of these members, as somebody else might make one.
fn forged(members: &[(EntryType, &str, &str, &str)]) -> Vec<u8> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (kind, path, content, target) in members {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        // The library refuses `..`, which somebody else's would not.
        let name = path.as_bytes();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
        let link = target.as_bytes();
        header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link);
        header.set_cksum();
        archive.append(&header, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

const HEAD: (EntryType, &str, &str, &str) =
    (EntryType::Regular, "backup.json", r#"{"format":1,"program":"9"}"#, "");
const END: (EntryType, &str, &str, &str) = (
    EntryType::Regular,
    "contents.json",
    r#"{"madeAt":0,"program":"9","hasKeys":false,"hasWork":false,"leftOut":[],"files":[]}"#,
    "",
);

#[test]
fn what_is_there_stays_unless_it_is_to_be_replaced() {
    let home = TempDir::new().unwrap();
    let bytes = backup(&some_state(home.path()));
    let there = home.path().join("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("mine"), "mine").unwrap();
    let refused = restore(bytes.as_slice(), None, &there, false).expect_err("refused");
    assert!(matches!(refused, BackupError::Occupied(_)), "{refused}");
    assert_eq!(fs::read_to_string(there.join("mine")).unwrap(), "mine");
    let restored = restore(bytes.as_slice(), None, &there, true).expect("restored");
    let before = restored.before.expect("what was there");
    assert_eq!(fs::read_to_string(before.join("mine")).unwrap(), "mine");
    assert!(there.join("usage.json").exists() && !there.join("mine").exists());
}

#[test]
fn a_link_to_the_state_directory_stays_a_link() {
    let home = TempDir::new().unwrap();
    let bytes = backup(&some_state(home.path()));
    let (real, link) = (home.path().join("disk/real"), home.path().join("link"));
    fs::create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    restore(bytes.as_slice(), None, &link, false).expect("restored");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(real.join("usage.json").exists());
}

#[test]
fn a_backup_that_is_cut_or_changed_changes_nothing() {
    let home = TempDir::new().unwrap();
    let bytes = backup(&some_state(home.path()));
    let there = home.path().join("parent/there");
    // The last bytes are padding of the tar format, and the checksum of the compression.
    for cut in (0..bytes.len() - 32).step_by(7) {
        assert!(restore(&bytes[..cut], None, &there, false).is_err(), "cut at {cut}");
    }
    for at in (12..bytes.len() - 8).step_by(5) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        // A changed bit of the padding between members means nothing.
        if restore(changed.as_slice(), None, &there, false).is_ok() {
            assert_eq!(fs::read_to_string(there.join("usage.json")).unwrap(), "{\"usage\":1}");
            fs::remove_dir_all(&there).unwrap();
        }
    }
    let left: Vec<_> = fs::read_dir(there.parent().unwrap()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_that_only_a_newer_version_reads_are_not_put_in_place() {
    let home = TempDir::new().unwrap();
    let state = some_state(home.path());
    let formats =
        |store: u32| format!(r#"{{"program":"9.0.0","since":0,"formats":{{"store":{store}}}}}"#);
    fs::write(state.join("formats.json"), formats(99)).unwrap();
    let bytes = backup(&state);
    check(bytes.as_slice(), None).expect("whole");
    let there = home.path().join("parent/there");
    fs::create_dir_all(&there).unwrap();
    fs::write(there.join("mine"), "mine").unwrap();
    let refused = restore(bytes.as_slice(), None, &there, true).expect_err("refused").to_string();
    for part in [
        "formats.json: the database has format 99",
        "nothing was changed",
        "Install the newer version",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(fs::read_to_string(there.join("mine")).unwrap(), "mine");
    let left = fs::read_dir(there.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "only the directory that was there");
    fs::write(state.join("formats.json"), formats(1)).unwrap();
    restore(backup(&state).as_slice(), None, &there, true).expect("restored");
}

#[test]
fn no_member_leads_out_of_the_directory() {
    let home = TempDir::new().unwrap();
    let there = home.path().join("a/b/there");
    let file = EntryType::Regular;
    for path in
        ["state/../../../evil", "/etc/evil", "evil", "state", "state/./../evil", "../state/evil"]
    {
        let bytes = forged(&[HEAD, (file, path, "evil", ""), END]);
        let refused = restore(bytes.as_slice(), None, &there, false);
        assert!(refused.is_err(), "{path}");
        assert!(!there.exists(), "{path}");
    }
    // A link first, and then a file behind it.
    let out = home.path().join("out");
    fs::create_dir(&out).unwrap();
    let target = out.to_str().unwrap();
    let bytes = forged(&[
        HEAD,
        (EntryType::Symlink, "state/link", "", target),
        (file, "state/link/evil", "evil", ""),
        END,
    ]);
    assert!(restore(bytes.as_slice(), None, &there, false).is_err());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    for kind in [EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::Block] {
        let bytes = forged(&[HEAD, (kind, "state/special", "", "/etc/passwd"), END]);
        assert!(check(bytes.as_slice(), None).is_err(), "{kind:?}");
    }
}

#[test]
fn a_newer_format_and_other_files_are_refused_in_words() {
    let newer = (EntryType::Regular, "backup.json", r#"{"format":2,"program":"9.1"}"#, "");
    let error = check(forged(&[newer, END]).as_slice(), None).expect_err("refused").to_string();
    assert!(error.contains("9.1") && error.contains("install that version"), "{error}");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"hello").unwrap();
    for other in [b"".to_vec(), b"hello".to_vec(), b"PK\x03\x04".repeat(20), gzip.finish().unwrap()]
    {
        assert!(check(other.as_slice(), None).is_err(), "{other:?}");
    }
    let error = check(forged(&[HEAD]).as_slice(), None).expect_err("refused").to_string();
    assert!(error.contains("cut off"), "{error}");
}

#[test]
fn what_a_killed_restore_has_left_is_removed_by_the_next() {
    let home = TempDir::new().unwrap();
    let bytes = backup(&some_state(home.path()));
    let left = home.path().join(format!("{UNPACKING}old"));
    fs::create_dir_all(left.join("state")).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
    restore(bytes.as_slice(), None, &home.path().join("there"), false).expect("restored");
    assert!(!left.exists());
}
