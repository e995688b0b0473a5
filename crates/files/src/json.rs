//! What is wrong with a JSON file, in words for those who write such files.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Reads a value.
///
/// # Errors
/// The text says which field is wrong, and what is expected.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut text).map_err(|error| {
        let path = error.path().to_string();
        problem(&path, &error.into_inner())
    })?;
    text.end().map_err(|error| problem("", &error))?;
    Ok(value)
}

fn problem(path: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => "it ends before its JSON is complete".to_owned(),
        Category::Syntax | Category::Io => {
            format!("it is not valid JSON (line {line}, column {column})")
        }
        Category::Data => {
            let text = error.to_string();
            let end = format!(" at line {line} column {column}");
            plain(path, text.strip_suffix(&end).unwrap_or(&text))
        }
    }
}

/// The words of the parser in those of the documentation.
fn plain(path: &str, text: &str) -> String {
    let whole = matches!(path, "" | ".");
    let what = if whole { "it".to_owned() } else { format!("`{path}`") };
    if let Some(name) = text.strip_prefix("missing field ") {
        return match whole {
            true => format!("{name} is missing"),
            false => format!("{name} is missing in {what}"),
        };
    }
    // The parser also takes a list of the fields for an object.
    if text.starts_with("invalid length ") && text.contains(", expected struct ") {
        return format!("{what} must be an object, and is a list");
    }
    let is_not_known = text
        .strip_prefix("unknown field ")
        .or_else(|| text.strip_prefix("unknown variant "))
        .and_then(|rest| rest.split_once(", expected "));
    if let Some((name, known)) = is_not_known {
        let known = known.strip_prefix("one of ").unwrap_or(known);
        return format!("{name} is not known here; what can be written is {known}");
    }
    let parts = text
        .strip_prefix("invalid type: ")
        .or_else(|| text.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    match parts {
        Some((found, expected)) => {
            format!("{what} must be {}, and is {}", kind(expected), kind(found))
        }
        None if whole => text.to_owned(),
        None => format!("{what}: {text}"),
    }
}

/// A kind of value, or a value.
fn kind(words: &str) -> String {
    let is = |names: &[&str]| names.iter().any(|name| words.starts_with(name));
    let plain = match words {
        _ if is(&["struct ", "map", "a map", "internally tagged enum ", "adjacently tagged"]) => {
            "an object"
        }
        _ if is(&["sequence", "a sequence"]) => "a list",
        _ if is(&["string ", "a string", "path string"]) => "a text",
        _ if is(&["boolean ", "a boolean"]) => "true or false",
        _ if is(&["integer `-"]) => "a negative number",
        _ if is(&["integer ", "floating point "]) => "a number",
        _ if words.len() <= 5 && is(&["u", "i"]) => "a whole number",
        _ => words,
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::from_json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Letter {
        #[serde(rename = "to")]
        _to: String,
        #[serde(rename = "time", default)]
        _time: Option<u64>,
    }

    #[test]
    fn problems_name_fields_and_no_types_of_the_program() {
        for (text, words) in [
            ("{", "it ends before its JSON is complete"),
            ("{]", "it is not valid JSON (line 1, column 2)"),
            (r#"{"to":"a"} x"#, "it is not valid JSON (line 1, column 12)"),
            ("7", "it must be an object, and is a number"),
            ("[]", "it must be an object, and is a list"),
            ("{}", "`to` is missing"),
            (r#"{"to":5}"#, "`to` must be a text, and is a number"),
            (r#"{"to":null}"#, "`to` must be a text, and is null"),
            (r#"{"to":"a","time":-1}"#, "`time` must be a whole number, and is a negative number"),
            (r#"{"to":"a","time":"1"}"#, "`time` must be a whole number, and is a text"),
            (r#"{"ot":"a"}"#, "`ot` is not known here; what can be written is `to` or `time`"),
        ] {
            assert_eq!(from_json::<Letter>(text.as_bytes()).unwrap_err(), words, "{text}");
        }
        let list = from_json::<Vec<Letter>>(br#"[{"to":"a"},{}]"#).unwrap_err();
        assert_eq!(list, "`to` is missing in `[1]`");
        let list = from_json::<Vec<Letter>>(b"{}").unwrap_err();
        assert_eq!(list, "it must be a list, and is an object");
    }
}
