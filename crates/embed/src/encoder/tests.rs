use tempfile::TempDir;

use super::*;
use crate::similarity;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny")
}

/// Loads the tiny model with other weights.
fn load(weights: &[u8]) -> Result<Embedder, EmbedError> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("model.onnx");
    std::fs::write(&path, weights).unwrap();
    Embedder::load(&path, &tiny().join("vocab.txt"))
}

#[test]
fn words_of_one_meaning_are_similar_and_others_are_not() {
    let embedder = load(&std::fs::read(tiny().join("model.onnx")).unwrap()).unwrap();
    let vector = |text: &str| embedder.embed(text).unwrap();
    let (invoice, bill, music) = (vector("invoice"), vector("bill"), vector("music"));
    assert!(similarity(&invoice, &bill) > 0.999);
    assert!(similarity(&invoice, &music) < 0.8);
    assert_eq!(similarity(&invoice, &music[1..]), 0.0);
}

#[test]
fn a_long_text_is_cut() {
    let embedder = load(&std::fs::read(tiny().join("model.onnx")).unwrap()).unwrap();
    let vector = |times: usize| embedder.embed(&"music ".repeat(times)).unwrap();
    assert_eq!(vector(254), vector(10_000_000));
    assert_ne!(vector(253), vector(254));
}

#[test]
fn damaged_weights_are_an_error_that_names_the_file() {
    let whole = std::fs::read(tiny().join("model.onnx")).unwrap();
    for damaged in [&b""[..], b"no model", &whole[..whole.len() / 2], &whole[..100]] {
        let error = load(damaged).err().unwrap().to_string();
        assert!(error.contains("model.onnx cannot be used: "), "{error}");
        assert!(error.contains("replace it"), "{error}");
    }
    // Other damage may be noticed or not, and ends nothing.
    for at in (0..whole.len()).step_by(251) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        drop(load(&damaged));
    }
}

#[test]
fn a_vocabulary_of_another_model_is_an_error() {
    let directory = TempDir::new().unwrap();
    let vocabulary = directory.path().join("vocab.txt");
    let load =
        || Embedder::load(&tiny().join("model.onnx"), &vocabulary).err().unwrap().to_string();
    assert!(load().contains("vocab.txt cannot be read: "), "{}", load());
    std::fs::write(&vocabulary, "a\nb\n").unwrap();
    assert!(load().contains("it has no line [UNK]"), "{}", load());
    std::fs::write(&vocabulary, b"\xff\xfe").unwrap();
    assert!(load().contains("it is not UTF-8"), "{}", load());
    // Pieces that the weights have no row for.
    let many: String = (0..500).map(|number| format!("word{number}\n")).collect();
    std::fs::write(&vocabulary, format!("{many}[UNK]\n[CLS]\n[SEP]\n")).unwrap();
    assert!(load().contains("model.onnx cannot be used: "), "{}", load());
}
