use myclaw_testkit::{AzureStorage, ObjectStorage};

use super::*;

const LIMITS: BlobLimits = BlobLimits { each: 100, together: Some(150) };

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
}

fn objects(address: &str, runtime: &tokio::runtime::Runtime) -> ObjectBlobs {
    ObjectBlobs::new(address, &|_| None, runtime.handle().clone()).unwrap()
}

fn content(objects: &ObjectBlobs, blob: &NamedBlob) -> Result<Vec<u8>, BlobError> {
    Ok(objects.open(blob)?.read_all()?)
}

#[test]
fn a_bucket_keeps_what_the_trait_promises() {
    let Some(storage) = ObjectStorage::start() else { return };
    let runtime = runtime();
    let one = objects(&storage.address("a/b", storage.port()), &runtime);
    let other = objects(&storage.address("a/c", storage.port()), &runtime);
    let put = |name: &str, mut content: &[u8]| one.put(name, &mut content, LIMITS);
    let blob = put("x", b"hello").unwrap();
    assert_eq!(content(&one, &blob).unwrap(), b"hello");
    assert_eq!(storage.names(), ["a/b/x"]);
    // Another prefix has nothing to do with it.
    assert!(matches!(other.open(&blob), Err(BlobError::Missing)));
    other.sweep(Duration::ZERO).unwrap();
    let blob = put("x", b"other").unwrap();
    assert_eq!(content(&one, &blob).unwrap(), b"other");
    assert!(matches!(put("y", &[0; 101]), Err(BlobError::TooLarge { limit: 100 })));
    put("y", &[0; 100]).unwrap();
    assert!(matches!(put("z", &[0; 46]), Err(BlobError::Full { limit: 150 })));
    assert!(put("../z", b"").is_err() && put("", b"").is_err());
    let other = put("x", b"another one").unwrap();
    assert!(content(&one, &blob).unwrap_err().to_string().contains("has changed"));
    assert!(content(&one, &other).is_ok());
    assert!(one.remove(&blob).unwrap());
    assert!(!one.remove(&blob).unwrap(), "it is gone");
    assert!(matches!(one.open(&blob), Err(BlobError::Missing)));
    assert_eq!(one.sweep(Duration::from_secs(60 * 60)).unwrap(), 0);
    // The server's times are whole seconds.
    while one.sweep(Duration::ZERO).unwrap() == 0 {}
    assert_eq!(storage.names(), Vec::<String>::new());
    one.check().unwrap();
}

/// The protocol of Azure, with its vendor's server.
#[test]
#[ignore = "needs Azurite, which takes 360 MB: `npm install azurite`, then AZURITE=node_modules/azurite"]
fn a_container_of_azure_keeps_what_the_trait_promises() {
    let Some(storage) = AzureStorage::start() else { return };
    let runtime = runtime();
    let [one, other] = ["a/b", "a/c"].map(|prefix| objects(&storage.address(prefix), &runtime));
    let put = |name: &str, mut content: &[u8]| one.put(name, &mut content, LIMITS);
    let blob = put("x", b"hello").unwrap();
    assert_eq!((content(&one, &blob).unwrap(), one.all().unwrap().len()), (b"hello".to_vec(), 1));
    assert!(matches!(other.open(&blob), Err(BlobError::Missing)));
    assert_eq!((other.sweep(Duration::ZERO).unwrap(), other.all().unwrap().len()), (0, 0));
    let blob = put("x", b"other").unwrap();
    assert_eq!(content(&one, &blob).unwrap(), b"other");
    assert!(matches!(put("y", &[0; 101]), Err(BlobError::TooLarge { limit: 100 })));
    put("y", &[0; 100]).unwrap();
    assert!(matches!(put("z", &[0; 46]), Err(BlobError::Full { limit: 150 })));
    assert!(one.remove(&blob).unwrap() && !one.remove(&blob).unwrap());
    assert!(matches!(one.open(&blob), Err(BlobError::Missing)));
    one.check().unwrap();
    keeps_large_contents(&one);
    let wrong = storage.address("p").replace("test-container", "other");
    assert!(objects(&wrong, &runtime).check().unwrap_err().contains("make it"));
    let wrong = storage.address("p").replace(":Eby8", ":Abcd");
    let said = objects(&wrong, &runtime).check().unwrap_err();
    assert!(said.contains("the rights of its key") && !said.contains("Abcd"), "{said}");
}

#[test]
fn large_contents_go_in_parts() {
    let Some(storage) = ObjectStorage::start() else { return };
    let runtime = runtime();
    keeps_large_contents(&objects(&storage.address("p", storage.port()), &runtime));
    assert_eq!(storage.names(), ["p/after"]);
}

/// Gives bytes, and sees how many are asked for at once.
struct Source {
    left: usize,
    most: usize,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.most = self.most.max(buffer.len());
        let count = buffer.len().min(self.left);
        for (at, byte) in buffer[..count].iter_mut().enumerate() {
            *byte = ((self.left - at) % 251) as u8;
        }
        self.left -= count;
        Ok(count)
    }
}

fn keeps_large_contents(objects: &ObjectBlobs) {
    let most = BlobLimits { each: 1 << 30, together: None };
    // Whole parts, one byte more, and one part only.
    for size in [2 * PART_BYTES, 2 * PART_BYTES + 1, PART_BYTES] {
        let mut source = Source { left: size, most: 0 };
        let blob = objects.put("large", &mut source, most).unwrap();
        let mut open = objects.open(&blob).unwrap();
        assert_eq!(open.bytes, size as u64);
        assert_eq!(io::copy(&mut open, &mut io::sink()).unwrap(), size as u64);
        assert!(source.most < PART_BYTES);
        assert!(objects.remove(&blob).unwrap());
    }
    // What is too large leaves nothing.
    let small = BlobLimits { each: PART_BYTES as u64 + 9, together: None };
    let refused = objects.put("large", &mut Source { left: 3 * PART_BYTES, most: 0 }, small);
    assert!(matches!(refused, Err(BlobError::TooLarge { .. })), "{refused:?}");
    objects.put("after", &mut &b"x"[..], small).unwrap();
    let mut names = objects.all().unwrap().into_iter().map(|object| object.location.to_string());
    assert!(names.all(|name| !name.ends_with("large")));
}

#[test]
fn a_bucket_is_asked_again_after_a_moment() {
    let runtime = runtime();
    let gone = objects("s3://k:s@bucket/p?endpoint=http://127.0.0.1:1", &runtime);
    let put = || gone.put("x", &mut &b"x"[..], LIMITS).unwrap_err().to_string();
    assert!(put().contains("the object storage s3://bucket/p: "));
    assert!(put().contains("a moment ago"));
    *gone.down.lock() = Some(Instant::now());
    assert!(!put().contains("a moment ago"));
}

#[test]
fn an_address_that_cannot_be_used_is_refused_with_the_form() {
    let runtime = runtime();
    for (address, problem) in [
        ("bucket/prefix", "s3://bucket/prefix"),
        ("https://bucket/prefix", "expected the address of a bucket"),
        ("s3:///prefix", "expected the address of a bucket"),
        ("s3://bucket?colour=red", "\"colour\" is not known"),
        ("az://container?region=eu", "\"region\" is not known"),
        ("az://container/prefix", "az://ACCOUNT:KEY@container/prefix"),
        ("az://account@container/prefix", "az://ACCOUNT:KEY@container/prefix"),
        ("s3://key@bucket/prefix", "a key without its secret"),
        (
            "s3://bucket/prefix?endpoint=https://minio.example.org",
            "no key for https://minio.example.org",
        ),
    ] {
        let refused = ObjectBlobs::new(address, &|_| None, runtime.handle().clone());
        let said = refused.unwrap_err();
        let has_form = said.contains("s3://") || said.contains("az://");
        assert!(said.contains(problem) && has_form, "{address} gave: {said}");
    }
}
