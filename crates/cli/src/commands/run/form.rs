//! An answer for programs: one JSON value that fits a schema.

use std::fs;
use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use myclaw_files::canonical;
use myclaw_llm::without_fence;
use serde_json::Value;

use myclaw_front::exit::CliError;
use myclaw_front::terminal::escaped;

/// How often the model may correct its answer.
pub(super) const CORRECTIONS: usize = 2;

/// Largest schema, which the model reads with the message.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Longest reason that the model reads, in characters. Each part of a value that does not fit has a line in it.
const MOST_REASON_CHARS: usize = 4_000;

/// The form that an answer must have.
pub(in crate::commands) struct AnswerForm {
    /// The schema as the file has it.
    text: String,
    schemas: Schemas,
    schema: SchemaIndex,
}

impl AnswerForm {
    /// Reads a schema. References to other files are followed, addresses are not.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = escaped(&path.display().to_string()).into_owned();
        let unusable = |why: String| CliError::usage(format!("--output-schema {name}: {why}"));
        let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        if text.len() > MAX_SCHEMA_BYTES {
            let most = MAX_SCHEMA_BYTES / 1024;
            return Err(unusable(format!("a schema has at most {most} KiB")));
        }
        let parsed: Value = serde_json::from_str(&text)
            .map_err(|error| unusable(format!("not JSON: {error}; write a JSON Schema")))?;
        let path = canonical(path).map_err(|error| unusable(error.to_string()))?;
        Self::compiled(text, &path.to_string_lossy(), parsed).map_err(unusable)
    }

    /// A schema of the program.
    ///
    /// # Errors
    /// It is none.
    pub(in crate::commands) fn of_text(text: &str) -> Result<Self, CliError> {
        let unusable = |error: String| CliError::failure(format!("internal error: {error}"));
        let parsed = serde_json::from_str(text).map_err(|error| unusable(error.to_string()))?;
        Self::compiled(text.to_owned(), "own.json", parsed).map_err(unusable)
    }

    fn compiled(text: String, place: &str, parsed: Value) -> Result<Self, String> {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        let no_schema = |error| format!("not a usable JSON Schema: {error:#}");
        compiler.add_resource(place, parsed).map_err(no_schema)?;
        let schema = compiler.compile(place, &mut schemas).map_err(no_schema)?;
        Ok(Self { text, schemas, schema })
    }

    /// The instruction for the model, which stands below the message.
    pub(super) fn instruction(&self) -> String {
        format!(
            "Answer with one JSON value that fits the JSON Schema below, and with nothing else: no words before or after it, \
             no code block.\n\n{}",
            self.text.trim()
        )
    }

    /// The value in an answer, or why it does not fit.
    pub(super) fn value_in(&self, answer: &str) -> Result<Value, String> {
        let value = serde_json::from_str(without_fence(answer.trim()))
            .map_err(|error| format!("the answer is not one JSON value: {error}"))?;
        match self.schemas.validate(&value, self.schema) {
            Ok(()) => Ok(value),
            Err(error) => Err(format!("the answer does not fit the schema: {error}")),
        }
    }

    /// The message to the model about an answer that does not fit.
    pub(super) fn correction(reason: &str) -> String {
        let reason: String = reason.chars().take(MOST_REASON_CHARS).collect();
        format!("{reason}\n\nAnswer again, with the corrected JSON value and nothing else.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: &str) -> AnswerForm {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), schema).unwrap();
        AnswerForm::read(file.path()).unwrap()
    }

    #[test]
    fn a_value_is_taken_with_and_without_a_code_block() {
        let form = form(
            r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#,
        );
        for answer in [
            "{\"n\": 1}",
            " {\"n\": 1}\n",
            "```json\n{\"n\": 1}\n```",
            "```\n{\"n\": 1}```",
            "```{\"n\": 1}```",
        ] {
            assert_eq!(form.value_in(answer).unwrap()["n"], 1, "{answer}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let form = form(
            r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#,
        );
        let cases = [
            ("{\"n\": \"one\"}", "/n"),
            ("{}", "'n'"),
            ("Here it is: {\"n\": 1}", "not one JSON value"),
            ("{\"n\": 1} {\"n\": 2}", "not one JSON value"),
            ("", "not one JSON value"),
        ];
        for (answer, reason) in cases {
            let error = form.value_in(answer).unwrap_err();
            assert!(error.contains(reason), "{answer}: {error}");
        }
    }
}
