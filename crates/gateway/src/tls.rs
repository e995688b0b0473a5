//! The gateway's certificate, and how its own clients recognise it.

use myclaw_agent::files::hex;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use myclaw_agent::Home;
use myclaw_agent::config::{Config, TlsConfig};
use myclaw_agent::files::read_regular;
use ring::digest::{SHA256, digest};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, InconsistentKeys, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::GatewayError;

mod validity;

pub(crate) use validity::Validity;

/// Largest PEM file that is read, in bytes. A chain of certificates has some thousand.
const MAX_BYTES: u64 = 1024 * 1024;

/// A certificate that clients can be shown.
pub(crate) struct Certificate {
    /// For connections that begin now: TLS 1.2 and 1.3.
    pub(crate) server: Arc<ServerConfig>,
    /// When it holds.
    pub(crate) validity: Validity,
    /// The first one of the chain.
    leaf: CertificateDer<'static>,
}

impl Certificate {
    /// Reads the certificate and its key. Blocks.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, the two do not belong together, or the certificate does not hold
    /// at this moment.
    pub(crate) fn read(files: &CertificateFiles) -> Result<Self, GatewayError> {
        let read = Self::read_at_any_time(files)?;
        let (cert, Validity { from, until }) = (files.cert.display(), read.validity);
        let now = Timestamp::now();
        if now > until {
            return Err(refused(format!(
                "the certificate in {cert} was valid until {until}; renew it, and put the new one there"
            )));
        }
        if now < from {
            return Err(refused(format!(
                "the certificate in {cert} is valid from {from} on; wait until then, or check the clock of this machine"
            )));
        }
        Ok(read)
    }

    fn read_at_any_time(files: &CertificateFiles) -> Result<Self, GatewayError> {
        let chain = chain_in("gateway.tls.cert", &files.cert)?;
        let key_file = files.key.display();
        let key = read_file("gateway.tls.key", &files.key)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
            refused(format!(
                "gateway.tls.key: {key_file} holds no private key in PEM form; one that is protected with a password has \
                 to be stored without it (`openssl pkey -in FILE -out {key_file}`)"
            ))
        })?;
        let unusable = |why: &str| {
            let cert = files.cert.display();
            refused(format!("gateway.tls.cert: the certificate in {cert} cannot be used: {why}"))
        };
        let leaf = chain.first().cloned().ok_or_else(|| unusable("it is missing"))?;
        let validity =
            Validity::of(&leaf).ok_or_else(|| unusable("it does not say when it is valid"))?;
        let versions = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| GatewayError::Internal(error.to_string()))?;
        let made = versions.with_no_client_auth().with_single_cert(chain, key);
        let mut server = made.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => refused(format!(
                "gateway.tls: the key in {key_file} does not belong to the certificate in {}; name the pair that was \
                 made together",
                files.cert.display()
            )),
            error => unusable(&error.to_string()),
        })?;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { server: Arc::new(server), validity, leaf })
    }

    /// What the gateway's own clients compare: a hash of the certificate.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(&self.leaf)
    }

    /// Whether it is for a name or an address.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let (Ok(certificate), Ok(name)) =
            (ParsedCertificate::try_from(&self.leaf), ServerName::try_from(name))
        else {
            return false;
        };
        rustls::client::verify_server_name(&certificate, &name).is_ok()
    }
}

/// What `myclaw doctor` says about a certificate.
#[derive(Debug)]
pub struct CertificateReport {
    /// When it ends, in UTC.
    pub until: String,
    /// Whole days until then.
    pub days_left: i64,
    /// The file of its key, if other users of this machine can read it.
    pub open_key: Option<PathBuf>,
}

/// Examines the certificate of the config, if there is one. Blocks.
///
/// # Errors
/// The gateway could not use it.
pub fn examine_certificate(
    home: &Home,
    config: &Config,
) -> Result<Option<CertificateReport>, GatewayError> {
    let Some(tls) = &config.gateway.tls else { return Ok(None) };
    let files = CertificateFiles::of(home, tls)?;
    let until = Certificate::read(&files)?.validity.until;
    let days_left = until.duration_since(Timestamp::now()).as_hours() / 24;
    let mode = std::fs::metadata(&files.key).map_or(0, |found| found.permissions().mode());
    let open_key = (mode & 0o077 != 0).then_some(files.key);
    Ok(Some(CertificateReport { until: until.to_string(), days_left, open_key }))
}

/// Where a certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl CertificateFiles {
    pub(crate) fn of(home: &Home, config: &TlsConfig) -> Result<Self, GatewayError> {
        let path = |key: &str, text: &str| {
            let resolved = home.paths.resolve_in_config(text);
            resolved.map_err(|error| refused(format!("{key}: {error}")))
        };
        Ok(Self {
            cert: path("gateway.tls.cert", &config.cert)?,
            key: path("gateway.tls.key", &config.key)?,
        })
    }
}

/// The certificates in a PEM file, at least one. Blocks.
fn chain_in(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, GatewayError> {
    let pem = read_file(key, path)?;
    let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&pem).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        let path = path.display();
        refused(format!(
            "{key}: {path} holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)"
        ))
    })
}

fn read_file(key: &str, path: &Path) -> Result<Vec<u8>, GatewayError> {
    read_regular(path, MAX_BYTES).map_err(|error| {
        refused(format!("{key}: {} cannot be read: {error}; correct the path", path.display()))
    })
}

fn refused(message: String) -> GatewayError {
    GatewayError::Certificate(message)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let hash = digest(&SHA256, certificate);
    hex(hash.as_ref())
}

/// How a program of this user connects: with exactly the certificates that the running gateway has told it about,
/// whoever signed them and whatever names they have.
pub(crate) fn pinned(fingerprints: Vec<String>) -> Result<Arc<ClientConfig>, GatewayError> {
    client(Pins { fingerprints, others: None, provider: provider() })
}

/// How a program elsewhere connects: with the certificates in a PEM file, and those that they sign; without a file, with
/// those that the system trusts. Blocks.
pub(crate) fn trusting(ca: Option<&Path>) -> Result<Arc<ClientConfig>, GatewayError> {
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

fn client(pins: Pins) -> Result<Arc<ClientConfig>, GatewayError> {
    let versions = ClientConfig::builder_with_provider(Arc::clone(&pins.provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| GatewayError::Internal(error.to_string()))?;
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
