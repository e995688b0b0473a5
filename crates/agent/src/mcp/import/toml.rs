//! The part of TOML that the config of Codex is written in: tables, strings, numbers, lists and inline tables.

use serde_json::{Map, Value, json};

/// Most levels of lists and inline tables.
const MAX_DEPTH: usize = 32;

/// Reads a document. Dates are read as texts.
///
/// # Errors
/// It cannot be read; the line and why.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut root = Map::new();
    let mut table: Vec<String> = Vec::new();
    let mut reader = Reader { text, at: 0 };
    loop {
        reader.skip_blanks();
        let Some(next) = reader.peek() else { return Ok(Value::Object(root)) };
        if next == '[' {
            reader.take('[')?;
            let is_list = reader.accepts('[');
            table = reader.path()?;
            reader.take(']')?;
            if is_list {
                reader.take(']')?;
                // Lists of tables hold nothing about servers; each replaces the one before.
                root.remove(table.first().map_or("", String::as_str));
            }
            insert(&mut root, &table, None)
                .ok_or_else(|| reader.problem("a table has two meanings"))?;
        } else {
            let mut path = table.clone();
            path.extend(reader.path()?);
            reader.skip_spaces();
            reader.take('=')?;
            let value = reader.value(0)?;
            insert(&mut root, &path, Some(value))
                .ok_or_else(|| reader.problem("a key has two meanings"))?;
        }
        reader.skip_spaces();
        if !matches!(reader.peek(), None | Some('\n' | '\r' | '#')) {
            return Err(reader.problem("the line does not end here"));
        }
    }
}

/// Puts a value at a path, or makes the tables of the path.
fn insert(root: &mut Map<String, Value>, path: &[String], value: Option<Value>) -> Option<()> {
    let (last, tables) = match &value {
        Some(_) => path.split_last().map(|(last, tables)| (Some(last), tables))?,
        None => (None, path),
    };
    let mut at = root;
    for name in tables {
        at = at.entry(name.clone()).or_insert_with(|| json!({})).as_object_mut()?;
    }
    if let (Some(last), Some(value)) = (last, value) {
        at.insert(last.clone(), value);
    }
    Some(())
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn accepts(&mut self, wanted: char) -> bool {
        let is_it = self.peek() == Some(wanted);
        if is_it {
            self.at += wanted.len_utf8();
        }
        is_it
    }

    fn take(&mut self, wanted: char) -> Result<(), String> {
        match self.accepts(wanted) {
            true => Ok(()),
            false => Err(self.problem(&format!("expected `{wanted}`"))),
        }
    }

    fn problem(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("line {line}: {what}")
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Skips blanks, line ends and comments.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r' | '\n') => self.at += 1,
                Some('#') => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return,
            }
        }
    }

    /// Keys with dots between them.
    fn path(&mut self) -> Result<Vec<String>, String> {
        let mut path = Vec::new();
        loop {
            self.skip_spaces();
            path.push(match self.peek() {
                Some('"' | '\'') => self.string()?,
                _ => self.bare(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))?,
            });
            self.skip_spaces();
            if !self.accepts('.') {
                return Ok(path);
            }
        }
    }

    fn bare(&mut self, is_part: impl Fn(char) -> bool) -> Result<String, String> {
        let word: String = self.rest().chars().take_while(|char| is_part(*char)).collect();
        if word.is_empty() {
            return Err(self.problem("expected a key or a value"));
        }
        self.at += word.len();
        Ok(word)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(self.problem("the value has too many levels"));
        }
        self.skip_spaces();
        match self.peek() {
            Some('"' | '\'') => Ok(Value::String(self.string()?)),
            Some('[') => self.list(depth),
            Some('{') => self.inline_table(depth),
            _ => {
                let is_part = |char: char| {
                    char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.' | '_' | ':')
                };
                let word = self.bare(is_part)?;
                let plain = word.replace('_', "");
                Ok(match word.as_str() {
                    "true" => json!(true),
                    "false" => json!(false),
                    _ => match (plain.parse::<i64>(), plain.parse::<f64>()) {
                        (Ok(number), _) => json!(number),
                        (_, Ok(number)) => json!(number),
                        _ => Value::String(word),
                    },
                })
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.take('[')?;
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            if self.accepts(']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
            if !self.accepts(',') {
                self.take(']')?;
                return Ok(Value::Array(items));
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, String> {
        self.take('{')?;
        let mut fields = Map::new();
        loop {
            self.skip_blanks();
            if self.accepts('}') {
                return Ok(Value::Object(fields));
            }
            let path = self.path()?;
            self.skip_spaces();
            self.take('=')?;
            let value = self.value(depth + 1)?;
            insert(&mut fields, &path, Some(value))
                .ok_or_else(|| self.problem("a key has two meanings"))?;
            self.skip_blanks();
            if !self.accepts(',') {
                self.take('}')?;
                return Ok(Value::Object(fields));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        for (mark, is_plain) in [("\"\"\"", false), ("'''", true), ("\"", false), ("'", true)] {
            if self.rest().starts_with(mark) {
                self.at += mark.len();
                if mark.len() == 3 {
                    let _ = self.accepts('\n');
                }
                return self.until(mark, is_plain);
            }
        }
        Err(self.problem("expected a string"))
    }

    fn until(&mut self, mark: &str, is_plain: bool) -> Result<String, String> {
        let mut text = String::new();
        loop {
            if self.rest().starts_with(mark) {
                self.at += mark.len();
                return Ok(text);
            }
            match self.next() {
                None => return Err(self.problem("a string does not end")),
                Some('\n') if mark.len() == 1 => return Err(self.problem("a string does not end")),
                Some('\\') if !is_plain => self.escape(&mut text)?,
                Some(char) => text.push(char),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let plain = match self.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(char @ ('"' | '\\')) => char,
            Some('\n') => {
                self.skip_blanks();
                return Ok(());
            }
            Some('u') => self.code(4)?,
            Some('U') => self.code(8)?,
            _ => return Err(self.problem("an escape is unknown")),
        };
        text.push(plain);
        Ok(())
    }

    /// The character with the code of so many digits.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code: String = self.rest().chars().take(digits).collect();
        let char = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
        let char = char.ok_or_else(|| self.problem("an escape is no character"))?;
        self.at += code.len();
        Ok(char)
    }
}
