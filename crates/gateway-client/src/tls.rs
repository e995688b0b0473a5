//! Certificates: how the gateway's own clients recognise it, and what both sides read of the files.

use std::path::Path;
use std::sync::Arc;

use myclaw_files::{hex, read_regular};
use ring::digest::{SHA256, digest};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::ClientError;

/// Largest PEM file that is read, in bytes. A chain of certificates has some thousand.
const MAX_BYTES: u64 = 1024 * 1024;

/// The certificates in a PEM file, at least one. Blocks.
///
/// # Errors
/// The file of the key `key` cannot be read, or holds none.
pub fn chain_in(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let pem = read_file(key, path)?;
    let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&pem).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        let path = path.display();
        refused(format!(
            "{key}: {path} holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)"
        ))
    })
}

/// Reads a PEM file. Blocks.
///
/// # Errors
/// It cannot be read.
pub fn read_file(key: &str, path: &Path) -> Result<Vec<u8>, ClientError> {
    read_regular(path, MAX_BYTES).map_err(|error| {
        refused(format!("{key}: {} cannot be read: {error}; correct the path", path.display()))
    })
}

fn refused(message: String) -> ClientError {
    ClientError::Certificate(message)
}

/// The implementation of the ciphers.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// What is compared of a certificate: its hash.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let hash = digest(&SHA256, certificate);
    hex(hash.as_ref())
}

/// How a program of this user connects: with exactly the certificates that the running gateway has told it about,
/// whoever signed them and whatever names they have.
///
/// # Errors
/// TLS cannot be set up.
pub fn pinned(fingerprints: Vec<String>) -> Result<Arc<ClientConfig>, ClientError> {
    client(Pins { fingerprints, others: None, provider: provider() })
}

/// How a program elsewhere connects: with the certificates in a PEM file, and those that they sign; without a file, with
/// those that the system trusts. Blocks.
///
/// # Errors
/// The file cannot be used.
pub fn trusting(ca: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let provider = provider();
    let Some(ca) = ca else {
        let system =
            rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(|error| {
                refused(format!("the system's certificates cannot be read: {error}"))
            })?;
        let others = Some(Arc::new(system) as Arc<dyn ServerCertVerifier>);
        return client(Pins { fingerprints: Vec::new(), others, provider });
    };
    let chain = chain_in("--ca", ca)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(chain.iter().cloned());
    let signed = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
    let signed =
        signed.build().map_err(|error| refused(format!("--ca: {}: {error}", ca.display())))?;
    let fingerprints = chain.iter().map(|certificate| fingerprint(certificate)).collect();
    client(Pins { fingerprints, others: Some(signed), provider })
}

fn client(pins: Pins) -> Result<Arc<ClientConfig>, ClientError> {
    let versions = ClientConfig::builder_with_provider(Arc::clone(&pins.provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Internal(error.to_string()))?;
    let client = versions.dangerous().with_custom_certificate_verifier(Arc::new(pins));
    Ok(Arc::new(client.with_no_client_auth()))
}

/// Accepts certificates by their hash. One that its owner named is right whatever it says about itself.
#[derive(Debug)]
struct Pins {
    fingerprints: Vec<String>,
    /// Who decides about all others.
    others: Option<Arc<dyn ServerCertVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.fingerprints.contains(&fingerprint(certificate)) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.others {
            Some(others) => others.verify_server_cert(certificate, intermediates, name, ocsp, now),
            None => Err(Error::General("it is another certificate".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
