//! What an IMAP server says (RFC 3501 and RFC 9051, section 7), as far as this program reads it.
//!
//! A response is lines and literals. [`literal_after`] says how many bytes follow a line, so that a reader knows what
//! belongs to a response; [`parse`] reads a whole one. Both take whatever a server may send.

/// Deepest nesting of lists. What this program asks for has one.
const MOST_DEPTH: usize = 8;
/// Most digits of a number: those of `u32::MAX`.
const MOST_DIGITS: usize = 10;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The server waits for more.
    Continue,
    /// How a command, or the connection, continues.
    Status(StatusLine),
    /// What the server can do, in upper case.
    Capability(Vec<String>),
    /// How many messages the mailbox has.
    Exists(u32),
    /// About a message.
    Fetch(Fetch),
    /// Something that this program does not read.
    Other,
}

/// A response `OK`, `NO`, `BAD`, `BYE` or `PREAUTH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLine {
    /// Names the command; `None` if it is about none.
    pub tag: Option<String>,
    /// What the server thinks of it.
    pub status: Status,
    /// What is said for programs.
    pub code: Option<Code>,
    /// What is said for people.
    pub text: String,
}

/// What a server thinks of a command, or of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is done.
    Ok,
    /// It is refused.
    No,
    /// It is not understood.
    Bad,
    /// The server closes the connection.
    Bye,
    /// The account is logged in already.
    PreAuth,
}

/// A code in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// Changes when the numbers of messages have no meaning any more.
    UidValidity(u32),
    /// The number that the next message gets.
    UidNext(u32),
    /// What the server can do, in upper case.
    Capability(Vec<String>),
    /// Any other one, in upper case.
    Other(String),
}

/// What was asked about a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetch {
    /// Its number in the mailbox, which it keeps.
    pub uid: Option<u32>,
    /// Its bytes.
    pub size: Option<u64>,
    /// When it came, as `17-Jul-1996 02:44:25 -0700`.
    pub date: Option<String>,
    /// The message, or the part of it that was asked for.
    pub body: Option<Vec<u8>>,
}

/// How many bytes follow a line as a literal, after which the response continues.
pub fn literal_after(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\n")?;
    let line = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"}")?;
    let line = line.strip_suffix(b"+").unwrap_or(line);
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = line.split_at(line.len() - digits);
    if digits.is_empty() || digits.len() > MOST_DIGITS || !before.ends_with(b"{") {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads a response with its literals; `None` if it has not the form of one.
pub fn parse(bytes: &[u8]) -> Option<Response> {
    let mut cursor = Cursor { rest: bytes };
    let tag = cursor.atom()?;
    if tag == b"+" {
        return Some(Response::Continue);
    }
    cursor.space()?;
    if tag != b"*" {
        let tag = std::str::from_utf8(tag).ok()?.to_owned();
        let status = status(cursor.atom()?)?;
        return Some(Response::Status(cursor.status_line(Some(tag), status)));
    }
    let word = cursor.atom()?;
    if let Some(status) = status(word) {
        return Some(Response::Status(cursor.status_line(None, status)));
    }
    if word.eq_ignore_ascii_case(b"CAPABILITY") {
        return Some(Response::Capability(words(cursor.line())));
    }
    let Some(number) = number(word) else { return Some(Response::Other) };
    cursor.space()?;
    let kind = cursor.atom()?;
    if kind.eq_ignore_ascii_case(b"EXISTS") {
        return Some(Response::Exists(number));
    }
    if !kind.eq_ignore_ascii_case(b"FETCH") {
        return Some(Response::Other);
    }
    cursor.space()?;
    cursor.fetch().map(Response::Fetch)
}

fn status(word: &[u8]) -> Option<Status> {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    Some(match () {
        () if is("OK") => Status::Ok,
        () if is("NO") => Status::No,
        () if is("BAD") => Status::Bad,
        () if is("BYE") => Status::Bye,
        () if is("PREAUTH") => Status::PreAuth,
        () => return None,
    })
}

fn number(word: &[u8]) -> Option<u32> {
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| is_number)?.parse().ok()
}

fn words(line: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(line).split_ascii_whitespace().map(str::to_ascii_uppercase).collect()
}

/// A value of a list.
enum Value<'a> {
    Atom(&'a [u8]),
    Text(Vec<u8>),
    List,
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn space(&mut self) -> Option<()> {
        self.skip(b' ')
    }

    /// An atom. What is in brackets belongs to it, as in `BODY[HEADER.FIELDS (DATE)]<0>`.
    fn atom(&mut self) -> Option<&'a [u8]> {
        let mut depth = 0_usize;
        let is_end = |byte: &u8| {
            match byte {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                b'\r' | b'\n' => return true,
                b' ' | b'(' | b')' | b'"' | b'{' => return depth == 0,
                _ => {}
            }
            false
        };
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        self.take(end).filter(|atom| !atom.is_empty())
    }

    /// The rest of the line.
    fn line(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let (line, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        line
    }

    fn status_line(&mut self, tag: Option<String>, status: Status) -> StatusLine {
        let line = self.line();
        let line = line.strip_prefix(b" ").unwrap_or(line);
        let coded = line.strip_prefix(b"[").and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b']')?;
            Some((&rest[..end], &rest[end + 1..]))
        });
        let (code, text) = match coded {
            Some((inner, text)) => (code(inner), text),
            None => (None, line),
        };
        StatusLine { tag, status, code, text: String::from_utf8_lossy(text).trim().to_owned() }
    }

    fn fetch(&mut self) -> Option<Fetch> {
        let mut fetch = Fetch::default();
        self.skip(b'(')?;
        loop {
            if self.skip(b')').is_some() {
                return Some(fetch);
            }
            let name = self.atom()?.to_ascii_uppercase();
            self.space()?;
            let value = self.value(0)?;
            match (name.as_slice(), value) {
                (b"UID", Value::Atom(word)) => fetch.uid = number(word),
                (b"RFC822.SIZE", Value::Atom(word)) => fetch.size = number(word).map(u64::from),
                (b"INTERNALDATE", Value::Text(text)) => fetch.date = String::from_utf8(text).ok(),
                (name, Value::Text(text)) if name.starts_with(b"BODY[") => fetch.body = Some(text),
                _ => {}
            }
            if self.rest.first() == Some(&b' ') {
                self.space()?;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        match self.rest.first()? {
            b'"' => self.quoted().map(Value::Text),
            b'{' => self.literal().map(|bytes| Value::Text(bytes.to_vec())),
            b'(' if depth < MOST_DEPTH => {
                self.skip(b'(')?;
                loop {
                    match self.rest.first()? {
                        b')' => break self.skip(b')').map(|()| Value::List),
                        b' ' => self.space()?,
                        _ => drop(self.value(depth + 1)?),
                    }
                }
            }
            b'(' => None,
            _ => self.atom().map(Value::Atom),
        }
    }

    fn quoted(&mut self) -> Option<Vec<u8>> {
        self.skip(b'"')?;
        let mut text = Vec::new();
        loop {
            match self.take(1)? {
                b"\"" => return Some(text),
                b"\\" => text.extend_from_slice(self.take(1)?),
                b"\r" | b"\n" => return None,
                byte => text.extend_from_slice(byte),
            }
        }
    }

    fn literal(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = self.take(end + 1)?;
        self.take(literal_after(line)?)
    }
}

fn code(inner: &[u8]) -> Option<Code> {
    let inner = words(inner);
    let number = || inner.get(1).and_then(|word| word.parse().ok());
    Some(match inner.first()?.as_str() {
        "UIDVALIDITY" => Code::UidValidity(number()?),
        "UIDNEXT" => Code::UidNext(number()?),
        "CAPABILITY" => Code::Capability(inner[1..].to_vec()),
        other => Code::Other(other.to_owned()),
    })
}

#[cfg(test)]
mod tests;
