use myclaw_testkit::ObjectStorage;

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
        ("s3://key@bucket/prefix", "a key without its secret"),
        (
            "s3://bucket/prefix?endpoint=https://minio.example.org",
            "no key for https://minio.example.org",
        ),
    ] {
        let refused = ObjectBlobs::new(address, &|_| None, runtime.handle().clone());
        let said = refused.unwrap_err();
        assert!(said.contains(problem) && said.contains("s3://"), "{address} gave: {said}");
    }
}
