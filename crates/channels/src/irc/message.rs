//! Lines of IRC (RFC 2812, and the message tags of IRCv3).

/// A line, as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Tags by name. Values are unescaped.
    pub(super) tags: Vec<(String, String)>,
    /// Who sent it, as `nick!user@host`, or the name of a server.
    pub(super) source: String,
    /// In upper case, or three digits.
    pub(super) command: String,
    pub(super) parameters: Vec<String>,
}

impl Line {
    /// Reads a line; `None` if it has no command.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut rest = text.trim_end_matches(['\r', '\n']);
        let mut line = Self::default();
        if let Some(tagged) = rest.strip_prefix('@') {
            let (tags, after) = tagged.split_once(' ')?;
            line.tags = tags.split(';').map(tag).collect();
            rest = after.trim_start_matches(' ');
        }
        if let Some(sent) = rest.strip_prefix(':') {
            let (source, after) = sent.split_once(' ')?;
            line.source = source.to_owned();
            rest = after.trim_start_matches(' ');
        }
        let (head, last) = match rest.split_once(" :") {
            Some((head, last)) => (head, Some(last)),
            None => (rest, None),
        };
        let mut words = head.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        line.command = words.next()?.to_ascii_uppercase();
        line.parameters = words.chain(last.map(str::to_owned)).collect();
        Some(line)
    }

    pub(super) fn parameter(&self, number: usize) -> &str {
        self.parameters.get(number).map_or("", String::as_str)
    }

    pub(super) fn last(&self) -> &str {
        self.parameters.last().map_or("", String::as_str)
    }

    /// The nickname of the sender.
    pub(super) fn nick(&self) -> &str {
        self.source.split('!').next().unwrap_or_default()
    }

    pub(super) fn tag(&self, name: &str) -> Option<&str> {
        let found = self.tags.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

fn tag(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let mut plain = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some(':') => plain.push(';'),
            Some('s') => plain.push(' '),
            Some('r') => plain.push('\r'),
            Some('n') => plain.push('\n'),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    (name.to_owned(), plain)
}

/// Names are the same in upper and in lower case. On some networks `{}|^` are the lower case of `[]\~` as well; there are
/// others, where these are different people.
pub(super) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether a name is that of a channel.
pub(super) fn is_channel(name: &str) -> bool {
    name.starts_with(['#', '&', '+', '!'])
}

/// Whether a text can stand where a name stands: nothing in it ends the parameter or the line.
pub(super) fn is_name(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || c == ' ' || c == ',';
    !name.is_empty() && !name.starts_with(':') && !name.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line =
            Line::read(b"@account=ann;msgid=a\\sb\\:;x :Ann!a@h PRIVMSG #Team :hello : you\r\n")
                .unwrap();
        assert_eq!((line.nick(), line.command.as_str()), ("Ann", "PRIVMSG"));
        assert_eq!(line.parameters, ["#Team", "hello : you"]);
        assert_eq!(
            (line.tag("account"), line.tag("msgid"), line.tag("x")),
            (Some("ann"), Some("a b;"), None)
        );
        let line = Line::read(b"ping  x  y").unwrap();
        assert_eq!(
            (line.command.as_str(), line.parameters),
            ("PING", vec!["x".to_owned(), "y".to_owned()])
        );
        for nothing in ["", "\r\n", ":a", "@a", "@a :b ", ":a  "] {
            assert_eq!(Line::read(nothing.as_bytes()), None, "{nothing:?}");
        }
    }

    #[test]
    fn names_are_folded_and_checked() {
        assert_eq!(folded("#Te[A]m"), "#te[a]m");
        assert!(
            is_name("ann")
                && !is_name("a b")
                && !is_name(":a")
                && !is_name("a\r\nQUIT")
                && !is_name("")
        );
    }
}
