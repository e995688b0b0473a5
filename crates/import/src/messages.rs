//! Plain lists of messages: one JSON document (`{"messages": […]}` or `[…]`), or one message per line.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Import;
use super::lines::Lines;
use super::message::Converter;
use myclaw_front::exit::CliError;

/// Fields of a document that a session here does not need.
const IDENTITY: [&str; 4] = ["id", "sessionId", "version", "type"];

/// Takes over a document's messages, one in memory at a time.
pub(super) fn document(
    file: &File,
    path: &Path,
    fallback_ts: u64,
    import: &mut Import,
) -> Result<(), CliError> {
    let mut failure = None;
    let mut taker = Taker { import, converter: Converter::new(fallback_ts), failure: &mut failure };
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file));
    let read = (&mut json).deserialize_any(DocumentVisitor(&mut taker)).and_then(|()| json.end());
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => {
            Err(super::cannot_read(path, &io::Error::from(error)))
        }
        (None, Err(error)) => Err(CliError::failure(format!(
            "{} is not a session document: {error}; nothing was imported",
            path.display()
        ))),
    }
}

/// Takes over a message from each line.
pub(super) fn lines(
    file: &File,
    path: &Path,
    fallback_ts: u64,
    import: &mut Import,
) -> Result<(), CliError> {
    let mut converter = Converter::new(fallback_ts);
    let mut lines = Lines::new(file, path);
    while let Some(line) = lines.next()? {
        match serde_json::from_slice::<Value>(line.bytes) {
            Ok(message) => {
                let rows = converter.convert(&message, None, &mut import.left_out);
                import.rows(rows)?;
            }
            Err(_) if !line.is_terminated => import.left_out.add("half a last line"),
            Err(_) => import.left_out.add("damaged line"),
        }
    }
    Ok(())
}

/// Gets the messages as they are read.
struct Taker<'a> {
    import: &'a mut Import,
    converter: Converter,
    /// The error of writing the session, which is not an error of the JSON.
    failure: &'a mut Option<CliError>,
}

impl Taker<'_> {
    fn take<E: Error>(&mut self, message: &Value) -> Result<(), E> {
        let rows = self.converter.convert(message, None, &mut self.import.left_out);
        self.import.rows(rows).map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("the session could not be written")
        })
    }
}

/// The document as a whole.
struct DocumentVisitor<'a, 'b>(&'a mut Taker<'b>);

impl<'de> Visitor<'de> for DocumentVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of messages, or an object with the field `messages`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_messages = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "messages" {
                has_messages = true;
                map.next_value_seed(MessageList(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
                if !IDENTITY.contains(&name.as_str()) {
                    self.0.import.left_out.add_named("field", &name);
                }
            }
        }
        if has_messages { Ok(()) } else { Err(A::Error::missing_field("messages")) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        MessageList(self.0).visit_seq(seq)
    }
}

/// The list of messages.
struct MessageList<'a, 'b>(&'a mut Taker<'b>);

impl<'de> DeserializeSeed<'de> for MessageList<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MessageList<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(message) = seq.next_element::<Value>()? {
            self.0.take(&message)?;
        }
        Ok(())
    }
}
