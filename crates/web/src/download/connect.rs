//! HTTP clients that connect only to addresses that were checked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::{install_crypto_provider, read_certificates};
use myclaw_proxy::to_server;
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect, retry};
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::{DownloadError, DownloadOptions};
use crate::{AddressGuard, Refusal};

/// Longest wait for a connection. A host that does not answer in this time is down.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Names whose addresses are remembered: more than downloads run at once.
const MAX_PINS: usize = 64;

/// The clients, each made when the first URL needs it: only https needs the system's certificates, whose loading is
/// most of what a client costs.
#[derive(Debug)]
pub(super) struct Connector {
    options: DownloadOptions,
    pins: Arc<Pins>,
    plain: OnceCell<Client>,
    tls: OnceCell<Client>,
}

/// The checked addresses of names. The clients use them in place of a name server, so a client cannot connect to
/// anything else, even if the name server's answer has changed since.
#[derive(Debug, Default)]
struct Pins(Mutex<VecDeque<(String, Vec<SocketAddr>)>>);

impl Connector {
    pub(super) fn new(options: DownloadOptions) -> Self {
        let (plain, tls) = (OnceCell::new(), OnceCell::new());
        Self { options, pins: Arc::default(), plain, tls }
    }

    /// A client that can connect to `url`.
    ///
    /// # Errors
    /// The guard refuses an address of its host, or the client cannot be set up.
    pub(super) async fn client_for(
        &self,
        guard: &AddressGuard,
        url: &Url,
    ) -> Result<Client, DownloadError> {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            guard.check_parsed(url)?;
            return Err(DownloadError::BadRedirect { url: url.as_str().to_owned() });
        };
        let addresses = guard.addresses(&host, port).await?;
        if let Host::Domain(name) = host {
            self.pins.set(name, addresses);
        }
        let client = match url.scheme() {
            "http" => self.plain.get_or_try_init(|| async { plain_client(self.builder()) }).await,
            _ => {
                let files = || self.options.extra_ca_files.clone();
                self.tls.get_or_try_init(|| tls_client(self.builder(), files())).await
            }
        };
        client.cloned()
    }

    fn builder(&self) -> ClientBuilder {
        builder(&self.options)
            .dns_resolver(Arc::clone(&self.pins))
            // A proxy would look the name up itself.
            .no_proxy()
    }
}

/// A client for a service that the owner configured, wherever it is. It goes through the proxy that the environment
/// names, unless the service runs on this machine.
#[derive(Debug)]
pub(crate) struct ServiceClient {
    options: DownloadOptions,
    client: OnceCell<Client>,
}

impl ServiceClient {
    pub(crate) fn new(options: DownloadOptions) -> Self {
        Self { options, client: OnceCell::new() }
    }

    /// The client, made for the first `url`, which is that of all requests.
    ///
    /// # Errors
    /// It cannot be set up.
    pub(crate) async fn client_for(&self, url: &Url) -> Result<Client, DownloadError> {
        let make = || async {
            let builder = to_server(builder(&self.options), url.as_str());
            match url.scheme() {
                "http" => plain_client(builder),
                _ => tls_client(builder, self.options.extra_ca_files.clone()).await,
            }
        };
        self.client.get_or_try_init(make).await.cloned()
    }
}

fn plain_client(builder: ClientBuilder) -> Result<Client, DownloadError> {
    builder.tls_certs_only([]).build().map_err(|error| DownloadError::set_up(&error))
}

async fn tls_client(builder: ClientBuilder, files: Vec<PathBuf>) -> Result<Client, DownloadError> {
    // Reading certificates blocks.
    let task = tokio::task::spawn_blocking(move || {
        let certificates = read_certificates(&files)
            .map_err(|error| DownloadError::SetUp { why: error.message })?;
        let client = builder.tls_certs_merge(certificates).build();
        client.map_err(|error| DownloadError::set_up(&error))
    });
    task.await.map_err(|error| DownloadError::set_up(&error))?
}

/// What all clients have in common. Redirects are followed by our own code or not at all.
fn builder(options: &DownloadOptions) -> ClientBuilder {
    install_crypto_provider();
    Client::builder()
        .user_agent(&options.user_agent)
        .connect_timeout(CONNECT_LIMIT)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .pool_max_idle_per_host(0)
}

impl Pins {
    fn set(&self, name: &str, addresses: Vec<SocketAddr>) {
        let mut pins = self.0.lock();
        pins.retain(|(pinned, _)| pinned != name);
        if pins.len() == MAX_PINS {
            pins.pop_front();
        }
        pins.push_back((name.to_owned(), addresses));
    }

    fn get(&self, name: &str) -> Option<Vec<SocketAddr>> {
        let pins = self.0.lock();
        pins.iter().find(|(pinned, _)| pinned == name).map(|(_, addresses)| addresses.clone())
    }
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let pinned = self.get(name.as_str());
        Box::pin(async move {
            let addresses = pinned.ok_or_else(|| Refusal::NotFound {
                host: name.as_str().to_owned(),
                why: "its address was not checked".to_owned(),
            })?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
