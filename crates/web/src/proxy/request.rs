//! One request to the proxy: where it may go, and what becomes of it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, Uri};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Host;

use super::meter::{Meter, Metered};
use super::{ProxyHosts, Shared};
use crate::Refusal;

/// Port of `http://` addresses that name none.
const HTTP_PORT: u16 = 80;

/// Headers that concern one connection, not the request (RFC 9110, 7.6.1), with those that only proxies get.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

type Body = BoxBody<Bytes, hyper::Error>;

/// A tunnel that begins when the response has been sent.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) server: Metered<TcpStream>,
    pub(super) meter: Meter,
}

/// Why there is no answer from the server that was asked for.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("this is a proxy; ask it for http:// addresses, or for tunnels with CONNECT")]
    NoTarget,
    #[error("{host}:{port} is not on the list of permitted hosts")]
    NotListed { host: String, port: u16 },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot connect to {host}:{port}: {source}")]
    Unreachable { host: String, port: u16, source: io::Error },
    #[error("the server broke off: {0}")]
    Broken(#[from] hyper::Error),
}

impl Failure {
    /// Whether a rule forbids the connection. False for a name that does not exist.
    fn is_by_rule(&self) -> bool {
        match self {
            Self::NotListed { .. } => true,
            Self::Refused(refusal) => !matches!(refusal, Refusal::NotFound { .. }),
            Self::NoTarget | Self::Unreachable { .. } | Self::Broken(_) => false,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NoTarget => StatusCode::BAD_REQUEST,
            Self::NotListed { .. } | Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::Unreachable { .. } | Self::Broken(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Answers one request. A tunnel goes into `slot`.
pub(super) async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    slot: &Mutex<Option<Tunnel>>,
) -> Result<Response<Body>, Infallible> {
    let answered = match *request.method() {
        Method::CONNECT => open_tunnel(request, shared, slot).await,
        _ => forward(request, shared).await,
    };
    Ok(answered.unwrap_or_else(|failure| {
        if failure.is_by_rule() {
            shared.refused(failure.to_string());
        }
        let mut response = text(format!("{failure}\n"));
        *response.status_mut() = failure.status();
        response
    }))
}

async fn open_tunnel(
    mut request: Request<Incoming>,
    shared: &Shared,
    slot: &Mutex<Option<Tunnel>>,
) -> Result<Response<Body>, Failure> {
    let authority = request.uri().authority().ok_or(Failure::NoTarget)?;
    let port = authority.port_u16().ok_or(Failure::NoTarget)?;
    let server = connect(authority, port, shared).await?;
    let meter = Meter::new(shared.rules.limits.bytes);
    let server = Metered::new(server, meter.clone());
    let client = hyper::upgrade::on(&mut request);
    *slot.lock() = Some(Tunnel { client, server, meter });
    Ok(text(String::new()))
}

/// Passes a request on and its response back. Each request has a connection of its own, because the next one may be for
/// another host.
async fn forward(
    mut request: Request<Incoming>,
    shared: &Shared,
) -> Result<Response<Body>, Failure> {
    let uri = request.uri();
    let authority = match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(authority)) => authority.clone(),
        _ => return Err(Failure::NoTarget),
    };
    let port = authority.port_u16().unwrap_or(HTTP_PORT);
    let server = connect(&authority, port, shared).await?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().map_err(|_| Failure::NoTarget)?;
    remove_hop_by_hop(request.headers_mut());
    // The checked host, even if the client names another one; without the credentials that a URL may have.
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    let host = HeaderValue::from_str(host).map_err(|_| Failure::NoTarget)?;
    request.headers_mut().insert(header::HOST, host);

    let limits = shared.rules.limits;
    let meter = Meter::new(limits.bytes);
    let server = TokioIo::new(Metered::new(server, meter.clone()));
    let (mut sender, connection) = http1::handshake(server).await?;
    let stop = shared.stop.clone();
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        tokio::select! {
            // An error of the connection also fails the request or the body of the response, which report it.
            _ = connection => {}
            () = meter.idle(limits.idle) => {}
        }
    }));
    let mut response = sender.send_request(request).await?;
    remove_hop_by_hop(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

/// Connects to a host after all checks, to one of the addresses that were checked.
async fn connect(authority: &Authority, port: u16, shared: &Shared) -> Result<TcpStream, Failure> {
    let rules = &shared.rules;
    let name = authority.host();
    // Parsed as in a URL, so that every spelling of an address is recognised as one.
    let host = Host::parse(name)
        .map_err(|error| Refusal::Unusable { url: name.to_owned(), why: error.to_string() })?;
    let host = match &host {
        Host::Domain(name) => Host::Domain(name.as_str()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    };
    let addresses = match &rules.hosts {
        ProxyHosts::Any => rules.guard.addresses(&host, port).await?,
        ProxyHosts::Only(listed) => {
            // A host that is not listed is not looked up: the lookup itself would send the name to others.
            if !listed.iter().any(|entry| entry.covers(&host, port)) {
                return Err(Failure::NotListed { host: host.to_string(), port });
            }
            rules.guard.addresses(&host, port).await?
        }
    };
    let unreachable =
        |source: io::Error| Failure::Unreachable { host: host.to_string(), port, source };
    match timeout(rules.limits.connect, first_to_accept(&addresses)).await {
        Ok(connected) => connected.map_err(unreachable),
        Err(_) => Err(unreachable(io::ErrorKind::TimedOut.into())),
    }
}

async fn first_to_accept(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Removes the headers that concern the connection, also those that `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn text(text: String) -> Response<Body> {
    Response::new(Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed())
}
