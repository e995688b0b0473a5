//! The kinds of messages that vendors publish, as data with its source, and the check that each of them is shown, or dropped
//! for a reason.

use serde::Deserialize;
use serde_json::Value;

use crate::{Attachment, Passage};

#[derive(Deserialize)]
struct Kinds {
    source: String,
    kinds: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    event: Value,
    /// What the model is shown, among other things.
    #[serde(default)]
    shown: Vec<String>,
    /// A part of the reason why it is dropped.
    dropped: Option<String>,
    /// Whether it is no message.
    #[serde(default)]
    ignored: bool,
}

/// Checks all kinds of a channel. `read` gives what the model is shown of one, `None` if it is no message, or the reason why it
/// is dropped.
pub(crate) fn check(data: &str, read: impl Fn(&Value) -> Result<Option<String>, String>) {
    let Kinds { source, kinds } = serde_json::from_str(data).expect("kinds with their source");
    assert!(!source.is_empty() && kinds.len() > 10);
    for Kind { name, event, shown, dropped, ignored } in kinds {
        let expected = [!shown.is_empty(), dropped.is_some(), ignored];
        assert_eq!(expected.iter().filter(|is_it| **is_it).count(), 1, "{name}: one of the three");
        match read(&event) {
            Ok(Some(text)) => {
                assert!(!shown.is_empty(), "{name} is shown: {text}");
                for words in shown {
                    assert!(text.contains(&words), "{name} lacks {words:?}: {text}");
                }
            }
            Ok(None) => assert!(ignored, "{name} disappears"),
            Err(reason) => {
                let words = dropped.unwrap_or_else(|| panic!("{name} is dropped: {reason}"));
                assert!(reason.contains(&words), "{name} is dropped for another reason: {reason}");
            }
        }
    }
}

/// What of a message the model is shown.
pub(crate) fn shown(text: &str, passages: &[Passage], files: &[Attachment]) -> String {
    let passages = passages.iter().map(|passage| {
        format!(
            "{} {} {}",
            passage.what,
            passage.author.as_deref().unwrap_or_default(),
            passage.text
        )
    });
    let files = files.iter().filter_map(|file| file.name.clone());
    std::iter::once(text.to_owned()).chain(passages).chain(files).collect::<Vec<_>>().join("\n")
}
