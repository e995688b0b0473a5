//! Encrypted connections, with the rustls that the rest of the program uses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use myclaw_store::BoxFuture;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

/// Makes connections encrypted, and verifies whom they lead to.
#[derive(Clone)]
pub(crate) struct Tls(Option<Arc<ClientConfig>>);

/// The same for one host.
pub(crate) struct TlsTo(Result<(TlsConnector, ServerName<'static>), String>);

/// An encrypted connection.
pub(crate) struct Stream(Encrypted<Socket>);

impl Tls {
    /// For connections that are not encrypted.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Trusts the certificates in the PEM file `roots`, or those that the system trusts.
    pub(crate) fn verified(roots: Option<&str>) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |error: rustls::Error| format!("TLS cannot be used: {error}");
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        let config = match roots {
            Some(path) => builder.with_root_certificates(read_roots(path)?).with_no_client_auth(),
            None => {
                let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(failed)?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
                    .with_no_client_auth()
            }
        };
        Ok(Self(Some(Arc::new(config))))
    }
}

fn read_roots(path: &str) -> Result<RootCertStore, String> {
    let failed = |reason: String| {
        format!(
            "the certificates in {path}, which sslrootcert names, cannot be read ({reason}); name a PEM file"
        )
    };
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("it holds none".to_owned()));
    }
    Ok(roots)
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = TlsTo;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsTo> {
        // A host without a name is no failure before somebody wants to encrypt the connection to it.
        let to = || {
            let config = self.0.clone().ok_or("the connection is not to be encrypted")?;
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|_| "the host has no name that a certificate could be for")?;
            Ok((TlsConnector::from(config), name))
        };
        Ok(TlsTo(to().map_err(|why: &str| why.to_owned())))
    }
}

impl TlsConnect<Socket> for TlsTo {
    type Stream = Stream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let (connector, name) = self.0.map_err(io::Error::other)?;
            Ok(Stream(connector.connect(name, stream).await?))
        })
    }
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
