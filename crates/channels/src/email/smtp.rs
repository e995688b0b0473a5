//! A client for SMTP (RFC 5321): one connection, one message.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;

use super::{Credentials, Login};
use crate::SendFailure;
use crate::wire::{Security, ServerAddress, Wire, WireError};

/// Time for an answer (RFC 5321, section 4.5.3.2, names five minutes).
const ANSWER: Duration = Duration::from_secs(5 * 60);
/// Time for the answer to a whole message, which the server may examine first (RFC 5321: ten minutes).
const TAKEN: Duration = Duration::from_secs(10 * 60);
/// Longest line, in bytes.
const MOST_LINE: usize = 4 * 1024;
/// Most lines of an answer.
const MOST_LINES: usize = 100;
/// Pause after a refused login, which only the owner can mend. Servers lock accounts that try often.
const OWNER_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SmtpError {
    /// The connection failed, before the server had the message.
    #[error("the SMTP server {server} {error}")]
    Wire { server: String, error: WireError },
    /// The server does not accept the user with this password or token.
    #[error("the SMTP server refused the login: {0}")]
    Login(Reply),
    /// The server refused a command about the message.
    #[error("the SMTP server refused {command}: {reply}")]
    Refused { command: &'static str, reply: Reply },
    /// The server refused a command before it knew of any message.
    #[error("the SMTP server refused {command}: {reply}")]
    NotServed { command: &'static str, reply: Reply },
    /// It does not offer what is needed.
    #[error("the SMTP server {0}")]
    Unusable(String),
    /// The whole message was sent, and no answer came.
    #[error("the SMTP server {server} {error}, after it got the message")]
    Unknown { server: String, error: WireError },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Three digits. 4 at the start means later, 5 never.
    pub(super) code: u16,
    /// Its lines, for people.
    pub(super) lines: Vec<String>,
}

impl Reply {
    /// Whether the server will never take this message. Codes of the form 52x are about the connection (RFC 5321, section
    /// 4.2.1), and 530 asks for a login (RFC 4954).
    fn is_about_message(&self) -> bool {
        self.code >= 500 && self.code / 10 != 52 && self.code != 530
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.code, self.lines.join(" "))
    }
}

impl From<SmtpError> for SendFailure {
    fn from(error: SmtpError) -> Self {
        let reason = error.to_string();
        match error {
            SmtpError::Unknown { .. } => Self::Unknown { reason },
            SmtpError::Login(_) => Self::Later { after: Some(OWNER_PAUSE), reason },
            SmtpError::Refused { reply, .. } if reply.is_about_message() => Self::Never { reason },
            // The server may be back soon, or the owner may mend its set-up; the reply is not lost until then.
            _ => Self::Later { after: None, reason },
        }
    }
}

/// A connection that is logged in.
pub(super) struct Smtp {
    wire: Wire,
    server: String,
    /// What the server offers: lines of its answer to EHLO, in upper case.
    offers: Vec<String>,
}

impl Smtp {
    /// Connects and logs in.
    pub(super) async fn log_in(
        server: &ServerAddress,
        credentials: &Credentials,
    ) -> Result<Self, SmtpError> {
        // Nothing was said of a message yet, so no answer is about it.
        Self::begin(server, credentials).await.map_err(|error| match error {
            SmtpError::Refused { command, reply } => SmtpError::NotServed { command, reply },
            other => other,
        })
    }

    async fn begin(server: &ServerAddress, credentials: &Credentials) -> Result<Self, SmtpError> {
        let name = server.to_string();
        let failed = |error| SmtpError::Wire { server: name.clone(), error };
        let wire = Wire::connect(server).await.map_err(failed)?;
        let mut smtp = Self { wire, server: server.to_string(), offers: Vec::new() };
        let greeting = smtp.read(ANSWER).await.map_err(failed)?;
        expect("the connection", greeting, 220)?;
        smtp.hello().await?;
        if server.security == Security::StartTls {
            smtp.ask("STARTTLS", "STARTTLS", 220).await?;
            smtp.wire = smtp.wire.encrypt(&server.host).await.map_err(failed)?;
            // What it said before could have come from anybody.
            smtp.hello().await?;
        }
        smtp.authenticate(credentials).await?;
        Ok(smtp)
    }

    /// The largest message that the server takes, in bytes.
    pub(super) fn most_bytes(&self) -> Option<usize> {
        let size = self.offers.iter().find_map(|offer| offer.strip_prefix("SIZE "))?;
        size.trim().parse().ok().filter(|most| *most > 0)
    }

    /// Sends a message.
    pub(super) async fn send(
        mut self,
        from: &str,
        to: &str,
        message: &[u8],
    ) -> Result<(), SmtpError> {
        let size = match self.most_bytes() {
            Some(_) => format!(" SIZE={}", message.len()),
            None => String::new(),
        };
        self.ask("MAIL", &format!("MAIL FROM:<{from}>{size}"), 250).await?;
        self.ask("RCPT", &format!("RCPT TO:<{to}>"), 250).await?;
        self.ask("DATA", "DATA", 354).await?;
        let mut data = stuffed(message);
        let end = data.split_off(data.len() - 5);
        // A second for each 50 KB. Until its end is sent, the server has no message.
        let limit = ANSWER + Duration::from_secs(data.len() as u64 / 50_000);
        let sent = self.wire.write(&data, limit).await;
        sent.map_err(|error| self.failed(error))?;
        let unknown = |server: &str, error| SmtpError::Unknown { server: server.to_owned(), error };
        let sent = self.wire.write(&end, limit).await;
        sent.map_err(|error| unknown(&self.server, error))?;
        let reply = self.read(TAKEN).await.map_err(|error| unknown(&self.server, error))?;
        expect("the message", reply, 250)?;
        // It is sent, whatever becomes of this.
        let _ = self.wire.write(b"QUIT\r\n", ANSWER).await;
        Ok(())
    }

    async fn hello(&mut self) -> Result<(), SmtpError> {
        // The name of this machine is nobody's business; RFC 5321 allows an address.
        let reply = self.ask("EHLO", "EHLO [127.0.0.1]", 250).await?;
        self.offers = reply.lines.iter().skip(1).map(|line| line.to_ascii_uppercase()).collect();
        Ok(())
    }

    async fn authenticate(&mut self, credentials: &Credentials) -> Result<(), SmtpError> {
        let offered = self.offers.iter().find_map(|offer| offer.strip_prefix("AUTH "));
        let offered = offered.unwrap_or_default().to_owned();
        let offers = |name: &str| offered.split_ascii_whitespace().any(|other| other == name);
        match &credentials.login {
            Login::Token(_) => {
                self.answer_challenges("AUTH XOAUTH2", vec![credentials.xoauth2()]).await
            }
            Login::Password(_) if offers("PLAIN") => {
                self.answer_challenges("AUTH PLAIN", vec![credentials.plain()]).await
            }
            Login::Password(password) if offers("LOGIN") => {
                let password = password.expose_secret().to_owned();
                self.answer_challenges("AUTH LOGIN", vec![credentials.user.clone(), password]).await
            }
            Login::Password(_) => Err(SmtpError::Unusable(format!(
                "{} offers no login with a password; check smtp.port and smtp.security",
                self.server
            ))),
        }
    }

    /// Gives the answers one after the other.
    async fn answer_challenges(
        &mut self,
        command: &'static str,
        answers: Vec<String>,
    ) -> Result<(), SmtpError> {
        let mut answers = answers.into_iter().map(|answer| STANDARD.encode(answer));
        let mut line = command.to_owned();
        loop {
            let reply = self.say(&line).await.map_err(|error| self.failed(error))?;
            match reply.code {
                235 => return Ok(()),
                // After the last one, the server says in this way why it refuses.
                334 => line = answers.next().unwrap_or_default(),
                400..500 => return Err(SmtpError::Refused { command, reply }),
                _ => return Err(SmtpError::Login(reply)),
            }
        }
    }

    async fn ask(
        &mut self,
        name: &'static str,
        line: &str,
        wanted: u16,
    ) -> Result<Reply, SmtpError> {
        let reply = self.say(line).await.map_err(|error| self.failed(error))?;
        expect(name, reply, wanted)
    }

    async fn say(&mut self, line: &str) -> Result<Reply, WireError> {
        self.wire.write(format!("{line}\r\n").as_bytes(), ANSWER).await?;
        self.read(ANSWER).await
    }

    async fn read(&mut self, limit: Duration) -> Result<Reply, WireError> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            self.wire.read_line(&mut line, MOST_LINE, limit).await?;
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let (code, goes_on, text) =
                reply_line(&line).ok_or_else(|| WireError::Broken(format!("it said `{line}`")))?;
            lines.push(text.to_owned());
            if !goes_on {
                return Ok(Reply { code, lines });
            }
            if lines.len() >= MOST_LINES {
                return Err(WireError::TooLong(MOST_LINES * MOST_LINE));
            }
        }
    }

    fn failed(&self, error: WireError) -> SmtpError {
        SmtpError::Wire { server: self.server.clone(), error }
    }
}

/// The code of a line, whether another one follows, and its text.
fn reply_line(line: &str) -> Option<(u16, bool, &str)> {
    let (code, rest) = line.split_at_checked(3)?;
    let code = code.parse().ok().filter(|code| (200..600).contains(code))?;
    match rest.chars().next() {
        None => Some((code, false, "")),
        Some(' ') => Some((code, false, &rest[1..])),
        Some('-') => Some((code, true, &rest[1..])),
        Some(_) => None,
    }
}

fn expect(command: &'static str, reply: Reply, wanted: u16) -> Result<Reply, SmtpError> {
    // 251 and 252 are as good as 250.
    match reply.code / 10 == wanted / 10 {
        true => Ok(reply),
        false => Err(SmtpError::Refused { command, reply }),
    }
}

/// A message in the form of DATA: lines end with CR LF, a dot at the start of one is doubled, and a dot ends it.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(message.len() + message.len() / 50 + 5);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // A lone CR could be read as the end of a line, and what follows as a command. A dot can stand behind one.
        let mut bytes = line.iter().filter(|byte| **byte != b'\r').peekable();
        if bytes.peek() == Some(&&b'.') {
            data.push(b'.');
        }
        data.extend(bytes);
        data.extend_from_slice(b"\r\n");
    }
    data.truncate(data.len().saturating_sub(2));
    data.extend_from_slice(b"\r\n.\r\n");
    data
}

#[cfg(test)]
mod tests {
    use super::{Reply, SmtpError, reply_line, stuffed};
    use crate::SendFailure;

    #[test]
    fn only_what_a_server_says_of_a_message_is_final() {
        let reply = |code| Reply { code, lines: vec!["no".to_owned()] };
        let refused = |code| SmtpError::Refused { command: "RCPT", reply: reply(code) };
        let down = |code| SmtpError::NotServed { command: "the connection", reply: reply(code) };
        for (error, is_final) in [
            (refused(550), true),
            (refused(552), true),
            (refused(451), false),
            (refused(421), false),
            (refused(521), false),
            (refused(530), false),
            (down(554), false),
            (down(421), false),
            (down(502), false),
        ] {
            let said = error.to_string();
            let failure = SendFailure::from(error);
            assert_eq!(matches!(failure, SendFailure::Never { .. }), is_final, "{said}");
        }
    }

    #[test]
    fn lines_that_begin_with_a_dot_are_no_end() {
        for (message, data) in [
            ("a\r\n.\r\nQUIT\r\n", "a\r\n..\r\nQUIT\r\n.\r\n"),
            ("a\n.b", "a\r\n..b\r\n.\r\n"),
            ("a\r.\rQUIT", "a.QUIT\r\n.\r\n"),
            ("a\n\r.\r\nQUIT", "a\r\n..\r\nQUIT\r\n.\r\n"),
            ("", "\r\n.\r\n"),
        ] {
            assert_eq!(
                String::from_utf8(stuffed(message.as_bytes())).unwrap(),
                data,
                "{message:?}"
            );
        }
    }

    #[test]
    fn answers_are_read_and_nonsense_is_none() {
        assert_eq!(reply_line("250-SIZE 10"), Some((250, true, "SIZE 10")));
        assert_eq!(reply_line("354"), Some((354, false, "")));
        for nonsense in ["", "25", "999 x", "250x", "äöü ", "2ä0 x"] {
            assert_eq!(reply_line(nonsense), None, "{nonsense}");
        }
    }
}
