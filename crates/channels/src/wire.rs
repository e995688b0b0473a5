//! Connections to servers that speak in lines: plain, with TLS from the start, or with TLS later.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time to connect, and for the handshake of TLS.
const CONNECT: Duration = Duration::from_secs(15);

/// When the encryption of a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// With the connection.
    Tls,
    /// With a command, before anything secret is sent. A server that does not offer it is not used.
    StartTls,
    /// Never. Only for servers on this machine.
    Plain,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// Its name, which the certificate must have, or its IP address.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// When the encryption begins.
    pub security: Security,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// There is no connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The server does not show a certificate that is trusted for its name.
    #[error("has no certificate that is trusted: {0}")]
    Certificate(String),
    /// The connection broke.
    #[error("closed the connection: {0}")]
    Broken(String),
    /// Nothing came in time.
    #[error("did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The server sent more than this many bytes.
    #[error("sent more than {0} bytes at once")]
    TooLong(usize),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection.
pub(crate) struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl Wire {
    /// Connects. With [`Security::StartTls`] the connection is not encrypted yet.
    pub(crate) async fn connect(server: &ServerAddress) -> Result<Self, WireError> {
        let unreachable = |error: std::io::Error| WireError::Unreachable(error.to_string());
        let connecting = TcpStream::connect((server.host.as_str(), server.port));
        let tcp = tokio::time::timeout(CONNECT, connecting)
            .await
            .map_err(|_| WireError::Silent(CONNECT))?
            .map_err(unreachable)?;
        // Commands are small and wait for their answers.
        tcp.set_nodelay(true).map_err(unreachable)?;
        let wire = Self::over(tcp);
        match server.security {
            Security::Tls => wire.encrypt(&server.host).await,
            Security::StartTls | Security::Plain => Ok(wire),
        }
    }

    fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)), partial: Vec::new() }
    }

    /// Begins TLS.
    pub(crate) async fn encrypt(self, host: &str) -> Result<Self, WireError> {
        // Whatever came before the handshake was sent by somebody on the way.
        if !self.stream.buffer().is_empty() || !self.partial.is_empty() {
            return Err(WireError::Broken("it sent something before the handshake".to_owned()));
        }
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| WireError::Certificate(format!("`{host}` is no name of a server")))?;
        let config = client_config().map_err(WireError::Certificate)?;
        let handshake = TlsConnector::from(config).connect(name, self.stream.into_inner());
        let stream = tokio::time::timeout(CONNECT, handshake)
            .await
            .map_err(|_| WireError::Silent(CONNECT))?
            .map_err(|error| tls_failure(&error))?;
        Ok(Self::over(stream))
    }

    /// Sends bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8], limit: Duration) -> Result<(), WireError> {
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        let written = tokio::time::timeout(limit, writing).await;
        written.map_err(|_| WireError::Silent(limit))?.map_err(|error| broken(&error))
    }

    /// Appends a line with its end to `buffer`. A call that is dropped loses nothing.
    pub(crate) async fn read_line(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
        limit: Duration,
    ) -> Result<(), WireError> {
        let reading = async {
            while !self.partial.ends_with(b"\n") {
                let room = (most + 1).saturating_sub(self.partial.len());
                if room == 0 {
                    return Err(WireError::TooLong(most));
                }
                let chunk = self.stream.fill_buf().await.map_err(|error| broken(&error))?;
                if chunk.is_empty() {
                    return Err(WireError::Broken("end of data".to_owned()));
                }
                let chunk = &chunk[..chunk.len().min(room)];
                let used =
                    chunk.iter().position(|byte| *byte == b'\n').map_or(chunk.len(), |at| at + 1);
                self.partial.extend_from_slice(&chunk[..used]);
                self.stream.consume(used);
            }
            Ok(())
        };
        tokio::time::timeout(limit, reading).await.map_err(|_| WireError::Silent(limit))??;
        buffer.append(&mut self.partial);
        Ok(())
    }

    /// Appends what has come to `buffer`. A call that is dropped loses nothing.
    pub(crate) async fn read_some(
        &mut self,
        buffer: &mut Vec<u8>,
        limit: Duration,
    ) -> Result<(), WireError> {
        let read = tokio::time::timeout(limit, self.stream.fill_buf()).await;
        let chunk = read.map_err(|_| WireError::Silent(limit))?.map_err(|error| broken(&error))?;
        if chunk.is_empty() {
            return Err(WireError::Broken("end of data".to_owned()));
        }
        let used = chunk.len();
        buffer.extend_from_slice(chunk);
        self.stream.consume(used);
        Ok(())
    }

    /// Appends `count` bytes to `buffer`. The caller has compared `count` with its limit.
    pub(crate) async fn read_exactly(
        &mut self,
        count: usize,
        buffer: &mut Vec<u8>,
        limit: Duration,
    ) -> Result<(), WireError> {
        // Not all at once: a server may announce more than it sends.
        let reading = async {
            let mut rest = (&mut self.stream).take(count as u64);
            rest.read_to_end(buffer).await
        };
        let read =
            tokio::time::timeout(limit, reading).await.map_err(|_| WireError::Silent(limit))?;
        match read.map_err(|error| broken(&error))? {
            read if read == count => Ok(()),
            _ => Err(WireError::Broken("end of data".to_owned())),
        }
    }
}

/// What the owner does about a failed connection to the server in the config at `place`.
pub(crate) fn advice(error: &WireError, place: &str) -> String {
    match error {
        WireError::Certificate(_) => format!(
            "check that {place}.host is the name in its certificate; for one that you signed yourself, name your own \
             authority in the variable SSL_CERT_FILE"
        ),
        _ => format!("check the host, the port and the encryption of {place}, and the network"),
    }
}

fn broken(error: &std::io::Error) -> WireError {
    WireError::Broken(error.to_string())
}

fn tls_failure(error: &std::io::Error) -> WireError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            WireError::Certificate(reason.to_string())
        }
        Some(other) => WireError::Unreachable(format!("no TLS: {other}")),
        None => broken(error),
    }
}

/// Trusts the certificates that the system trusts. Reading its certificates takes time, so it is done once.
fn client_config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let make = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed =
            |error: rustls::Error| format!("the system's certificates cannot be read: {error}");
        let verifier =
            rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(failed)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::new(config))
    };
    CONFIG.get_or_init(make).clone()
}
