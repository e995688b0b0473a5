//! Clients: one kept HTTP connection, and one WebSocket. They do no more than the load needs.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes asked from the kernel at a time.
const READ_SIZE: usize = 4 * 1024;
/// Longest head of an answer, and longest frame.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Where a server is, and what it wants to see.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A connection with bytes that were read and not used.
struct Buffered {
    stream: TcpStream,
    bytes: Vec<u8>,
    used: usize,
}

impl Buffered {
    async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, bytes: Vec::new(), used: 0 })
    }

    fn unused(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Reads until there are `count` unused bytes.
    async fn fill(&mut self, count: usize) -> io::Result<()> {
        while self.unused().len() < count {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        if self.bytes.len() > MOST_BYTES {
            return Err(io::Error::other("an answer is too long"));
        }
        self.bytes.reserve(READ_SIZE);
        match self.stream.read_buf(&mut self.bytes).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The head of an answer: its status, and the length of its body.
    async fn head(&mut self) -> io::Result<(u16, usize)> {
        let end = loop {
            if let Some(at) = self.unused().windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8_lossy(&self.unused()[..end]).to_ascii_lowercase();
        self.used += end;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, length))
    }
}

/// One kept connection for requests, one after the other.
pub(crate) struct Http {
    connection: Buffered,
    address: Address,
}

impl Http {
    pub(crate) async fn open(address: &Address) -> io::Result<Self> {
        let connection = Buffered::open(address.port).await?;
        Ok(Self { connection, address: address.clone() })
    }

    /// Sends a request. `headers` are further lines, each with its end.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<(u16, Vec<u8>)> {
        let Address { port, token } = &self.address;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.connection.stream.write_all(request.as_bytes()).await?;
        let (status, length) = self.connection.head().await?;
        self.connection.fill(length).await?;
        let body = self.connection.unused()[..length].to_vec();
        self.connection.used += length;
        Ok((status, body))
    }
}

/// A WebSocket.
pub(crate) struct Socket(Buffered);

impl Socket {
    pub(crate) async fn open(address: &Address) -> io::Result<Self> {
        let mut connection = Buffered::open(address.port).await?;
        let Address { port, token } = address;
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: bXljbGF3LWxvYWQtYmVuY2g=\r\n\r\n"
        );
        connection.stream.write_all(request.as_bytes()).await?;
        match connection.head().await? {
            (101, _) => Ok(Self(connection)),
            (status, _) => Err(io::Error::other(format!("a WebSocket was refused with {status}"))),
        }
    }

    /// Sends a text.
    pub(crate) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.write(0x81, text.as_bytes()).await
    }

    /// A frame of a client is masked; the mask is zero, so its payload stays as it is.
    async fn write(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![first];
        match u8::try_from(payload.len()) {
            Ok(length) if length < 126 => frame.push(0x80 | length),
            _ => {
                let length = u16::try_from(payload.len()).map_err(io::Error::other)?;
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.0.stream.write_all(&frame).await
    }

    /// The next text. Pings are answered.
    pub(crate) async fn next(&mut self) -> io::Result<&str> {
        loop {
            self.0.fill(2).await?;
            let (first, short) = (self.0.unused()[0], self.0.unused()[1]);
            let head = match short {
                126 => 4,
                127 => 10,
                _ => 2,
            };
            self.0.fill(head).await?;
            let length = match short {
                126 | 127 => self.0.unused()[2..head]
                    .iter()
                    .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte)),
                short => usize::from(short),
            };
            self.0.fill(head + length).await?;
            let begin = self.0.used + head;
            self.0.used = begin + length;
            match first & 0x0f {
                0x9 => {
                    let payload = self.0.bytes[begin..begin + length].to_vec();
                    self.write(0x8a, &payload).await?;
                }
                0x8 => return Err(io::Error::other("the server closed the WebSocket")),
                _ => {
                    let text = &self.0.bytes[begin..begin + length];
                    return std::str::from_utf8(text).map_err(io::Error::other);
                }
            }
        }
    }
}
