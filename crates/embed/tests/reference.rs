//! The tokenizer and the encoder compared with the reference: Hugging Face's tokenizer and ONNX Runtime.
//!
//! The first tests need nothing: their results of the reference are in `data/tiny`. The others need the packages of
//! `tests/third-party/requirements.txt`; `MYCLAW_MINILM_PYTHON` names a Python that has them, as `scripts/test` does. Without
//! it these tests say that they were skipped.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use myclaw_embed::{Embedder, Vocabulary, Weights, similarity};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// How far a score may be from the reference's. A model that quantises the numbers between its layers enlarges each
/// rounding: even the reference's own scores differ by up to 0.007 with and without its optimisations.
const TOLERANCES: [(&str, f32); 3] = [("int8", 0.01), ("full", 0.01), ("dynamic", 0.03)];

/// Texts that tokenizers disagree on.
const NASTY: [&str; 24] = [
    "",
    " \t\r\n\u{a0}\u{3000} ",
    "Send an invoice to a customer.",
    "UNWANTED running, isn't it?",
    "Café RÉSUMÉ naïve Ångström ǅ İstanbul ΣΊΣΥΦΟΣ ẞ ﬁne",
    "cafe\u{301} e\u{323}\u{302} \u{1e9b}\u{323}",
    "中文字符 mixed with東京 and かな カナ 한국어",
    "\u{20000}\u{2f800}豈 ideographs beyond the first plane",
    "zero\u{200b}width\u{200d}joiner\u{feff} soft\u{ad}hyphen nul\0 bell\u{7} \u{fffd}",
    "line\u{2028}separator\u{2029}paragraph\u{85}next\u{b}tab\u{c}feed",
    "punct!#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ …—“”«»¿¡·、。〜",
    "symbols €£¥ © ® ™ ° ± × ÷ √ ∞ ≠ → ☃ 😀👍🏽👨‍👩‍👧",
    "[CLS] [SEP] [PAD] [MASK] [UNK] ##ing",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "https://example.org/a_b?c=d&e=%20#f user@example.org C:\\dir\\x.txt",
    "1234567890 3.14159 1,000,000 -42 1e10 0x7f ½ ² Ⅷ",
    "عَرَبِيّ עִבְרִית हिन्दी ไทย தமிழ் ქართული",
    "snake_case camelCase kebab-case SCREAMING_SNAKE",
    "a\u{300}\u{301}\u{302}\u{303}\u{304} \u{1d11e} \u{e000} \u{378}",
    "“Quoted”—dashed…ellipsis’s",
    "\u{202e}right to left\u{202c}",
    "Ǆungla Ⱥ Ω Å K ſ ʼn",
    "the the the the the the the the",
    "x",
];

#[derive(Deserialize)]
struct Golden {
    text: String,
    tokens: Vec<i32>,
    vector: Vec<f32>,
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny")
}

fn golden() -> Vec<Golden> {
    serde_json::from_slice(&std::fs::read(tiny().join("golden.json")).unwrap()).unwrap()
}

fn load(directory: &Path) -> Embedder {
    let weights = Weights { directory: directory.to_owned(), source: None };
    weights.load(&|line| panic!("nothing is downloaded: {line}")).unwrap()
}

#[test]
fn the_pieces_are_those_of_the_reference() {
    let vocabulary = Vocabulary::load(&tiny().join("vocab.txt")).unwrap();
    for Golden { text, tokens, .. } in golden() {
        assert_eq!(vocabulary.encode(&text, 256), tokens, "{text:?}");
    }
}

#[test]
fn the_vectors_are_those_of_the_reference() {
    let embedder = load(&tiny());
    for Golden { text, vector, .. } in golden() {
        let own = embedder.embed(&text).unwrap();
        let furthest = own.iter().zip(&vector).map(|(own, other)| (own - other).abs());
        assert!(furthest.fold(0.0, f32::max) < 1e-4, "{text:?}: {own:?} {vector:?}");
        assert_eq!(own.len(), vector.len());
    }
}

/// A Python with the packages.
struct Reference {
    python: PathBuf,
    models: TempDir,
}

impl Reference {
    fn find() -> Option<Self> {
        let Some(python) = std::env::var_os("MYCLAW_MINILM_PYTHON").map(PathBuf::from) else {
            myclaw_testkit::skip_without("MYCLAW_MINILM_PYTHON is not set; scripts/test sets it");
            return None;
        };
        Some(Self { python, models: TempDir::new().unwrap() })
    }

    fn command(&self) -> Command {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/minilm.py");
        let mut command = Command::new(&self.python);
        command.arg(script);
        command
    }

    /// The directory of a model of that kind.
    fn model(&self, kind: &str) -> PathBuf {
        let directory = self.models.path().join(kind);
        let status = self.command().args(["model", kind]).arg(&directory).status().unwrap();
        assert!(status.success());
        directory
    }

    /// What it says about each text.
    fn ask<T: DeserializeOwned>(&self, question: &str, model: &Path, texts: &[String]) -> Vec<T> {
        let mut child = self
            .command()
            .arg(question)
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines: String =
            texts.iter().map(|text| serde_json::to_string(text).unwrap() + "\n").collect();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }
}

/// The nasty texts, and a long one that is cut.
fn texts() -> Vec<String> {
    let long = "A sentence that is repeated until it is too long for the model. ".repeat(40);
    NASTY.into_iter().map(str::to_owned).chain([long, "x".repeat(300)]).collect()
}

#[test]
fn all_texts_have_the_pieces_of_the_reference() {
    let Some(reference) = Reference::find() else { return };
    let model = reference.model("int8");
    let vocabulary = Vocabulary::load(&model.join("vocab.txt")).unwrap();
    let expected: Vec<Vec<i32>> = reference.ask("tokens", &model, &texts());
    for (text, expected) in texts().iter().zip(expected) {
        assert_eq!(vocabulary.encode(text, 256), expected, "{text:?}");
    }
}

#[test]
fn all_models_have_the_scores_of_the_reference() {
    let Some(reference) = Reference::find() else { return };
    let texts = texts();
    for (kind, tolerance) in TOLERANCES {
        let model = reference.model(kind);
        let expected: Vec<Vec<f32>> = reference.ask("embed", &model, &texts);
        let embedder = load(&model);
        let own: Vec<_> = texts.iter().map(|text| embedder.embed(text).unwrap()).collect();
        let mut furthest = 0.0_f32;
        for (left, text) in texts.iter().enumerate() {
            for right in 0..texts.len() {
                let expected = similarity(&expected[left], &expected[right]);
                let difference = (similarity(&own[left], &own[right]) - expected).abs();
                assert!(
                    difference < tolerance,
                    "{kind}: {difference}: {text:?} {:?}",
                    texts[right]
                );
                furthest = furthest.max(difference);
            }
        }
        println!("{kind}: the scores differ by at most {furthest:.5}");
    }
}
