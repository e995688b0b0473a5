//! HTTP clients, and messages about their failures.
//!
//! A client is made when the first request needs it, because loading the system's certificates is most of its cost, and
//! a model server on this machine needs none. One client keeps its connection between calls, so that a whole run goes
//! over one.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use myclaw_proxy::{Way, through_environment, way_to};
use parking_lot::Mutex;
use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use url::Url;

#[cfg_attr(unix, path = "http/unix.rs")]
#[cfg_attr(windows, path = "http/windows.rs")]
mod system;

use crate::wire::{host_label, is_link_local, is_loopback};
use crate::{ErrorClass, ModelError, Repeat, Trouble, Variables};

/// How long an idle connection is kept: a tool may run for minutes between two calls.
const IDLE_CONNECTION: Duration = Duration::from_secs(600);

/// Most clients that are kept, one for each way of connecting: more than are ever in use. The oldest is removed first.
const MAX_CLIENTS: usize = 8;

/// Most redirects that are followed, to the same host only: a key must not be sent elsewhere.
const MAX_REDIRECTS: usize = 3;

/// How requests are made.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// The `user-agent` header; empty means none.
    pub user_agent: String,
    /// PEM files with certificate authorities to trust besides the system's.
    pub extra_ca_files: Vec<PathBuf>,
    /// A Unix socket that all connections go to, whatever the address says.
    pub unix_socket: Option<PathBuf>,
    /// Where credentials of cloud providers are looked for (AWS profiles, Google's application default credentials).
    pub variables: Variables,
}

/// Makes *ring* the cryptography library of this process. Another call does nothing.
pub fn install_crypto_provider() {
    // An error means that one is installed already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The clients in use.
#[derive(Debug, Default)]
pub struct Clients {
    options: HttpOptions,
    made: Mutex<Vec<(ClientKind, Client)>>,
}

/// A way of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClientKind {
    transport: Transport,
    route: Route,
    connect_limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Without TLS; no certificates are loaded.
    Plain,
    Tls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// Without a proxy, to this machine or to a service of the cloud that it runs in.
    Direct,
    /// Through a proxy if the environment names one.
    Environment,
}

impl Clients {
    pub(crate) fn new(options: HttpOptions) -> Self {
        Self { options, made: Mutex::default() }
    }

    /// Where credentials of cloud providers are looked for.
    pub fn variables(&self) -> &Variables {
        &self.options.variables
    }

    /// A client for `url` that gives up connecting after `connect_limit`.
    pub async fn client(&self, url: &Url, connect_limit: Duration) -> Result<Client, ModelError> {
        let kind = ClientKind {
            transport: if url.scheme() == "https" { Transport::Tls } else { Transport::Plain },
            route: match self.options.unix_socket.is_some() || is_direct(url) {
                true => Route::Direct,
                false => Route::Environment,
            },
            connect_limit,
        };
        if let Some(client) = self.existing(kind) {
            return Ok(client);
        }
        let client = match kind.transport {
            Transport::Plain => self.builder(kind).tls_certs_only([]).build(),
            Transport::Tls => {
                let builder = self.builder(kind);
                let files = self.options.extra_ca_files.clone();
                // Reading certificates blocks.
                let task = tokio::task::spawn_blocking(move || {
                    let builder = builder.tls_certs_merge(read_certificates(&files)?);
                    Ok(builder.build())
                });
                task.await.map_err(|error| cannot_set_up(&error))??
            }
        }
        .map_err(|error| cannot_set_up(&error))?;
        Ok(self.keep(kind, client))
    }

    fn existing(&self, kind: ClientKind) -> Option<Client> {
        let made = self.made.lock();
        made.iter().find(|(made_kind, _)| *made_kind == kind).map(|(_, client)| client.clone())
    }

    /// Keeps `client`, unless another task was faster, whose client is then used.
    fn keep(&self, kind: ClientKind, client: Client) -> Client {
        let mut made = self.made.lock();
        if let Some((_, other)) = made.iter().find(|(made_kind, _)| *made_kind == kind) {
            return other.clone();
        }
        if made.len() == MAX_CLIENTS {
            made.remove(0);
        }
        made.push((kind, client.clone()));
        client
    }

    fn builder(&self, kind: ClientKind) -> ClientBuilder {
        install_crypto_provider();
        let builder = Client::builder()
            .connect_timeout(kind.connect_limit)
            .pool_idle_timeout(IDLE_CONNECTION)
            .retry(retry::never())
            .redirect(redirect::Policy::custom(follow_on_same_host))
            .referer(false);
        let builder = match &self.options.unix_socket {
            Some(socket) => system::through_socket(builder, socket),
            None => builder,
        };
        let builder = match kind.route {
            Route::Direct => builder.no_proxy(),
            Route::Environment => through_environment(builder),
        };
        if self.options.user_agent.is_empty() {
            builder
        } else {
            builder.user_agent(&self.options.user_agent)
        }
    }
}

/// Follows only redirects that repeat the request as it is (307, 308), on the same host, port and scheme.
fn follow_on_same_host(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let repeats = matches!(attempt.status().as_u16(), 307 | 308);
    let same_host =
        attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if repeats && same_host && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Reads PEM files with certificates. Blocks.
///
/// # Errors
/// A file cannot be read or holds no certificate.
pub fn read_certificates(files: &[PathBuf]) -> Result<Vec<Certificate>, ModelError> {
    let mut certificates = Vec::new();
    for file in files {
        let unusable = |why: &dyn std::fmt::Display| {
            let message = format!("the certificate file {} is not usable: {why}", file.display());
            ModelError::new(ErrorClass::Unknown, message)
        };
        let pem = std::fs::read(file).map_err(|error| unusable(&error))?;
        let bundle = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(&error))?;
        if bundle.is_empty() {
            return Err(unusable(&"it holds no PEM certificate"));
        }
        certificates.extend(bundle);
    }
    Ok(certificates)
}

fn cannot_set_up(error: &dyn StdError) -> ModelError {
    let message = format!("cannot set up HTTP: {}", innermost(error));
    ModelError::new(ErrorClass::Unknown, message)
}

/// The message about a failed request or a broken answer: which server, what happened, what to do.
pub fn transport_error(error: &reqwest::Error, url: &Url, connect_limit: Duration) -> ModelError {
    failed_at(error, url, connect_limit, "the address")
}

/// The same for a request to a model. Its address is called base URL in the config.
pub(crate) fn model_transport_error(
    error: &reqwest::Error,
    url: &Url,
    connect_limit: Duration,
) -> ModelError {
    failed_at(error, url, connect_limit, "the base URL")
}

fn failed_at(
    error: &reqwest::Error,
    url: &Url,
    connect_limit: Duration,
    address: &str,
) -> ModelError {
    let origin = format!("{}://{}", url.scheme(), host_label(url));
    let peer = Peer::of(url);
    let unreached = |message: String| ModelError {
        trouble: Trouble::Network,
        ..ModelError::new(ErrorClass::Timeout, message)
    };
    match cause(error) {
        Cause::Refused => ModelError {
            repeat: peer.repeat(),
            ..unreached(format!("nothing listens at {}{}", peer.name, peer.advice))
        },
        Cause::UnknownHost(repeat) if peer.is_proxy => ModelError {
            repeat,
            ..unreached(format!("{} cannot be found{}", peer.name, peer.advice))
        },
        Cause::UnknownHost(repeat) => {
            let host = url.host_str().unwrap_or_default();
            // Amazon's hosts have the region in their names.
            let suspect = match host.contains(".amazonaws.com") {
                true => "the AWS region",
                false => address,
            };
            let message =
                format!("the host {host} cannot be found: check {suspect} and the network");
            ModelError { repeat, ..unreached(message) }
        }
        Cause::Tls(why) => ModelError::new(
            ErrorClass::Unknown,
            format!(
                "no secure connection to {origin} ({why}): check the address, the clock and the certificates"
            ),
        ),
        Cause::ConnectTimeout => unreached(format!(
            "no connection to {} within {} s: check the network",
            peer.name,
            connect_limit.as_secs_f32()
        )),
        Cause::Unreachable(why) => {
            unreached(format!("no connection to {origin}{} ({why}): check the network", peer.via()))
        }
        Cause::Broken => unreached(format!(
            "the connection to {origin}{} broke before the answer came",
            peer.via()
        )),
        Cause::Other(why) => unreached(format!("the request to {origin} failed: {why}")),
    }
}

/// The host that is connected to: the server, or the proxy that the environment names for it.
struct Peer {
    name: String,
    /// Follows the description of the failure. It ends without a full stop, because more may follow.
    advice: &'static str,
    is_proxy: bool,
    is_local: bool,
}

impl Peer {
    fn of(url: &Url) -> Self {
        match proxy_for(url) {
            Some(proxy) => Self {
                name: format!("the proxy {}://{}", proxy.scheme(), host_label(&proxy)),
                advice: ": HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names it; start it, or unset the variable",
                is_proxy: true,
                is_local: is_loopback(&proxy),
            },
            None => Self {
                name: format!("{}://{}", url.scheme(), host_label(url)),
                advice: " (is the server running?)",
                is_proxy: false,
                is_local: is_loopback(url),
            },
        }
    }

    fn via(&self) -> String {
        if self.is_proxy { format!(" through {}", self.name) } else { String::new() }
    }

    /// A retry cannot help if nothing listens at a port of this machine: the user has to start a server.
    fn repeat(&self) -> Repeat {
        if self.is_local { Repeat::Pointless } else { Repeat::MayHelp }
    }
}

/// The proxy that requests to `url` go through, found as the HTTP client finds it.
fn proxy_for(url: &Url) -> Option<Url> {
    if is_direct(url) {
        return None;
    }
    match way_to(url) {
        Way::Direct => None,
        Way::Through(proxy) => Some(proxy),
        Way::System => {
            let target = url.as_str().parse().ok()?;
            let intercepted = Matcher::from_system().intercept(&target)?;
            Url::parse(&intercepted.uri().to_string()).ok()
        }
    }
}

/// Whether no proxy is asked for this server.
fn is_direct(url: &Url) -> bool {
    is_loopback(url) || is_link_local(url)
}

/// Whether the connection ended before any of the answer came.
pub(crate) fn is_broken_connection(error: &reqwest::Error) -> bool {
    matches!(cause(error), Cause::Broken)
}

/// Why there was no answer.
enum Cause {
    Refused,
    UnknownHost(Repeat),
    Tls(String),
    ConnectTimeout,
    Unreachable(String),
    Broken,
    Other(String),
}

fn cause(error: &reqwest::Error) -> Cause {
    if error.is_connect() && error.is_timeout() {
        return Cause::ConnectTimeout;
    }
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(tls) = find_tls(source) {
            return Cause::Tls(tls);
        }
        if source.to_string().starts_with("dns error") {
            return Cause::UnknownHost(repeat_of_lookup(&innermost(source)));
        }
        match source.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::ConnectionRefused) => return Cause::Refused,
            Some(
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe,
            ) => {
                return Cause::Broken;
            }
            _ => {}
        }
        next = source.source();
    }
    match innermost(error) {
        why if error.is_connect() => Cause::Unreachable(why),
        _ if !error.is_builder() && !error.is_redirect() => Cause::Broken,
        why => Cause::Other(why),
    }
}

/// Whether looking a name up again can help: the name server may be silent for a moment, but a name that does not exist
/// stays unknown.
fn repeat_of_lookup(why: &str) -> Repeat {
    match why.to_lowercase().contains("temporary") {
        true => Repeat::Once,
        false => Repeat::Pointless,
    }
}

/// TLS errors hide inside I/O errors, whose chain of sources skips them.
fn find_tls(error: &(dyn StdError + 'static)) -> Option<String> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(tls.to_string());
    }
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    find_tls(inner)
}

/// The last error of the chain: the one that says what happened.
fn innermost(error: &dyn StdError) -> String {
    let mut last = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        last = source.to_string();
        next = source.source();
    }
    last
}
