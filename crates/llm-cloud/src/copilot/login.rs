//! The device login at GitHub.

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::device::{self, DeviceLogin, DeviceServer, LoginError};
use myclaw_llm::HttpProvider;
use myclaw_llm::access::is_loopback;
use myclaw_llm::{ErrorClass, ModelError};

/// The id of the application: that of GitHub's own editor plug-ins, because no other may use Copilot.
const CLIENT_ID: &str = "Iv1.b507a08c87ecfe98";

/// The requested scope: to identify the user.
const SCOPE: &str = "read:user";

/// Precedes a company's host in the address of its models.
pub(super) const ENTERPRISE_MODELS: &str = "copilot-api.";

/// Where GitHub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopilotHosts {
    /// Where a person signs in, such as `https://github.com`.
    pub github: String,
}

impl Default for CopilotHosts {
    fn default() -> Self {
        Self { github: "https://github.com".to_owned() }
    }
}

impl CopilotHosts {
    /// A company's own GitHub, such as `company.ghe.com`. Its models are at [`CopilotHosts::models`], which the base URL
    /// of the provider must name. A URL may be given too; without TLS only for this machine.
    ///
    /// # Errors
    /// It is not a valid host name.
    pub fn enterprise(host: &str) -> Result<Self, ModelError> {
        let host = host.trim().trim_end_matches('/');
        let address =
            if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        let is_usable = |url: &Url| {
            let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
            let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            is_safe && is_bare && url.username().is_empty() && url.host_str().is_some()
        };
        match Url::parse(&address) {
            Ok(url) if is_usable(&url) => Ok(Self { github: address }),
            _ => Err(ModelError::new(
                ErrorClass::Unknown,
                format!("{host:?} is not a host of GitHub: write it like company.ghe.com"),
            )),
        }
    }

    /// The GitHub for a base URL of models: that of the company in the URL, if it names one.
    pub fn of_base_url(base_url: &str) -> Self {
        let url = Url::parse(base_url.trim()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        match host.strip_prefix(ENTERPRISE_MODELS) {
            Some(company) => Self { github: format!("https://{company}") },
            None => Self::default(),
        }
    }

    /// The base URL of the models for a token of a company's GitHub.
    pub fn models(&self) -> String {
        let host = self.github.split_once("://").map_or(self.github.as_str(), |(_, host)| host);
        format!("https://{ENTERPRISE_MODELS}{host}")
    }
}

/// Asks GitHub for a code.
///
/// # Errors
/// GitHub cannot be reached, refuses, or sends a response that cannot be used.
pub async fn start_login(
    provider: &HttpProvider,
    hosts: &CopilotHosts,
) -> Result<DeviceLogin, ModelError> {
    let server = DeviceServer {
        vendor: "GitHub".to_owned(),
        device_url: address(&hosts.github, "login/device/code")?,
        token_url: address(&hosts.github, "login/oauth/access_token")?,
        client_id: CLIENT_ID.to_owned(),
        scope: SCOPE.to_owned(),
    };
    device::start_login(provider, server).await
}

/// Waits until the user has typed the code, and returns the GitHub token: the key of the provider `github-copilot`.
///
/// # Errors
/// As [`device::finish_login`].
pub async fn finish_login(
    provider: &HttpProvider,
    login: &DeviceLogin,
    cancel: &CancellationToken,
) -> Result<SecretString, LoginError> {
    device::finish_login(provider, login, cancel).await.map(|granted| granted.access)
}

fn address(github: &str, path: &str) -> Result<Url, ModelError> {
    Url::parse(&format!("{}/{path}", github.trim_end_matches('/'))).map_err(|error| {
        let message = format!("{github:?} is not an address of GitHub: {error}");
        ModelError::new(ErrorClass::Unknown, message)
    })
}
