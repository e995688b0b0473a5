//! The conformance suite of blob stores: each passes it.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use myclaw_session::{BlobError, BlobLimits, Blobs, FileBlobs, MemoryBlobs, NamedBlob};

const LIMITS: BlobLimits = BlobLimits { each: 100, together: Some(150) };
/// SHA-256 of "hello", from `sha256sum`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn of_each(check: impl Fn(&dyn Blobs)) {
    let home = tempfile::tempdir().unwrap();
    check(&FileBlobs::new(home.path().join("not/yet/there")));
    check(&MemoryBlobs::default());
}

fn put(blobs: &dyn Blobs, name: &str, mut content: &[u8]) -> Result<NamedBlob, BlobError> {
    blobs.put(name, &mut content, LIMITS)
}

fn read(blobs: &dyn Blobs, blob: &NamedBlob) -> Vec<u8> {
    let open = blobs.open(blob).unwrap();
    let bytes = open.bytes;
    let content = open.read_all().unwrap();
    assert_eq!(bytes, content.len() as u64);
    content
}

#[test]
fn a_blob_is_what_was_put_last_under_its_name() {
    of_each(|blobs| {
        let blob = put(blobs, "a-1", b"hello").unwrap();
        assert_eq!(blob, NamedBlob { name: "a-1".to_owned(), digest: Some(HELLO.to_owned()) });
        assert_eq!(read(blobs, &blob), b"hello");
        assert_eq!(put(blobs, "a-1", b"hello").unwrap(), blob, "a repeated call");
        let other = put(blobs, "a-1", b"").unwrap();
        assert_eq!(read(blobs, &other), b"");
        let old = blobs.open(&blob).unwrap().read_all().unwrap_err();
        assert_eq!(old.kind(), io::ErrorKind::InvalidData, "{old}");
        assert_eq!(
            read(blobs, &NamedBlob { digest: None, ..blob }),
            b"",
            "an old row is not checked"
        );
    });
}

#[test]
fn what_is_removed_or_never_was_is_missing() {
    of_each(|blobs| {
        let unknown = NamedBlob { name: "unknown".to_owned(), digest: None };
        assert!(matches!(blobs.open(&unknown), Err(BlobError::Missing)));
        assert!(!blobs.remove(&unknown).unwrap());
        assert_eq!(blobs.sweep(Duration::ZERO).unwrap(), 0);
        let [one, two] = ["one", "two"].map(|name| put(blobs, name, b"x").unwrap());
        let mut open = blobs.open(&one).unwrap();
        assert!(blobs.remove(&one).unwrap());
        assert!(matches!(blobs.open(&one), Err(BlobError::Missing)));
        let mut rest = Vec::new();
        open.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"x", "who has opened it reads it to its end");
        assert_eq!(blobs.sweep(Duration::from_secs(3600)).unwrap(), 0);
        assert_eq!(read(blobs, &two), b"x");
        assert_eq!(blobs.sweep(Duration::ZERO).unwrap(), 1);
        assert!(matches!(blobs.open(&two), Err(BlobError::Missing)));
    });
}

#[test]
fn the_limits_hold_and_what_exceeds_them_changes_nothing() {
    of_each(|blobs| {
        let kept = put(blobs, "kept", &[1; 100]).unwrap();
        for (name, count, expected) in [
            ("kept", 101, "it has more than 100 bytes"),
            ("second", 51, "there is no room for it: all together have at most 150 bytes"),
        ] {
            let error = put(blobs, name, &vec![2; count]).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(read(blobs, &kept), [1; 100]);
        let mut broken = (&[3; 10][..]).chain(Broken);
        assert!(matches!(blobs.put("kept", &mut broken, LIMITS), Err(BlobError::Io(_))));
        assert_eq!(read(blobs, &kept), [1; 100]);
        let same = put(blobs, "kept", &[4; 100]).unwrap();
        assert_eq!(read(blobs, &same), [4; 100], "it takes its own place");
        put(blobs, "second", &[5; 50]).unwrap();
        let free = BlobLimits { together: None, ..LIMITS };
        blobs.put("third", &mut &[6; 100][..], free).unwrap();
    });
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the source broke"))
    }
}

#[test]
fn a_name_leads_nowhere_else() {
    of_each(|blobs| {
        for name in ["", ".", "..", ".hidden", "a/b", "../a", "a\0", "a b", &"a".repeat(129)] {
            assert!(matches!(put(blobs, name, b"x"), Err(BlobError::Io(_))), "{name:?}");
            let blob = NamedBlob { name: name.to_owned(), digest: None };
            assert!(matches!(blobs.open(&blob), Err(BlobError::Io(_))), "{name:?}");
            assert!(matches!(blobs.remove(&blob), Err(BlobError::Io(_))), "{name:?}");
        }
    });
}

#[test]
fn in_files_a_blob_is_a_private_file_and_a_failed_one_leaves_none() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("outgoing");
    let blobs = FileBlobs::new(&directory);
    let blob = put(&blobs, "part-0", b"hello").unwrap();
    put(&blobs, "part-1", &[0; 101]).unwrap_err();
    let names: Vec<_> = fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(names, [PathBuf::from(blobs.describe(&blob))]);
    fs::remove_file(&names[0]).unwrap();
    std::os::unix::fs::symlink(home.path().join("elsewhere"), &names[0]).unwrap();
    fs::write(home.path().join("elsewhere"), "hello").unwrap();
    assert!(blobs.remove(&blob).unwrap());
    assert!(home.path().join("elsewhere").exists());
}
