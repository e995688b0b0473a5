use std::convert::Infallible;

use tempfile::TempDir;

use super::*;

/// A vector of length 1 that depends on the text.
fn vector(text: &str) -> Vector {
    let angle = text.len() as f32;
    Box::new([angle.cos(), angle.sin()])
}

/// The texts whose vectors were made for `texts`, named 0, 1, …
fn made(cache: &mut VectorCache, texts: &[&str]) -> Vec<String> {
    let names: Vec<String> = (0..texts.len()).map(|number| number.to_string()).collect();
    let named = names.iter().zip(texts).map(|(name, text)| NamedText { name, text });
    let mut made = Vec::new();
    let (vectors, written) = cache
        .vectors(&named.collect::<Vec<_>>(), |text| {
            made.push(text.to_owned());
            Ok::<_, Infallible>(vector(text))
        })
        .unwrap();
    written.unwrap();
    let expected: Vec<_> = texts.iter().map(|text| vector(text)).collect();
    assert_eq!(
        vectors.iter().map(|vector| Box::from(&**vector)).collect::<Vec<Vector>>(),
        expected
    );
    made
}

#[test]
fn only_changed_texts_are_made_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("made/when/needed/cache.json");
    of_each(&(Arc::new(VectorFile(path)) as Arc<dyn KeepVectors>));
    of_each(&(Arc::new(MemoryVectors::new("a")) as Arc<dyn KeepVectors>));
}

fn of_each(keeper: &Arc<dyn KeepVectors>) {
    let open = |model: &str| VectorCache::kept_by(Arc::clone(keeper), model.to_owned());
    assert_eq!(made(&mut open("m"), &["a", "bb"]), ["a", "bb"]);
    let mut cache = open("m");
    assert_eq!(made(&mut cache, &["a", "bb"]), [""; 0]);
    assert_eq!(made(&mut cache, &["a", "changed", "new"]), ["changed", "new"]);
    assert_eq!(made(&mut open("m"), &["a"]), [""; 0]);
    // What is no longer there is forgotten.
    assert_eq!(made(&mut open("m"), &["a", "changed"]), ["changed"]);
    assert_eq!(made(&mut open("other"), &["a", "changed"]), ["a", "changed"]);
    assert_eq!(made(&mut open("other"), &["a", "changed"]), [""; 0]);
    keeper.remove().unwrap();
    keeper.remove().unwrap();
    assert_eq!(keeper.read(), None);
    assert_eq!(made(&mut open("other"), &["a"]), ["a"]);
}

#[test]
fn a_damaged_file_is_made_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cache.json");
    let open = || VectorCache::open(path.clone(), "m".to_owned());
    made(&mut open(), &["a"]);
    let whole = std::fs::read_to_string(&path).unwrap();
    let hash = hash("a");
    let number = vector("a")[0].to_string();
    for damaged in [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        "[1]".to_owned(),
        whole.replace(&hash, "other"),
        whole.replace(&number, "7.5"),
        whole.replace(&number, "null"),
    ] {
        assert_ne!(damaged, whole);
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(made(&mut open(), &["a"]), ["a"], "{damaged}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn without_a_writable_directory_the_vectors_are_of_use() {
    let path = PathBuf::from("/proc/no-such-directory/cache.json");
    let mut cache = VectorCache::open(path, "m".to_owned());
    let texts = [NamedText { name: "0", text: "a" }];
    let (vectors, written) =
        cache.vectors(&texts, |text| Ok::<_, Infallible>(vector(text))).unwrap();
    assert_eq!((vectors.len(), written.is_err()), (1, true));
}
