//! The gateway's certificate.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use myclaw_agent::Home;
use myclaw_config::{Config, TlsConfig};
use myclaw_files::portable::PermissionsExt as _;
use myclaw_gateway_client::tls::{chain_in, fingerprint, provider, read_file};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{Error, InconsistentKeys, ServerConfig};

use crate::GatewayError;

mod validity;

pub(crate) use validity::Validity;

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

fn refused(message: String) -> GatewayError {
    GatewayError::Certificate(message)
}
