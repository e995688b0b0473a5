//! A small HTTP proxy that decides where a program may connect to.
//!
//! Programs that cannot be trusted to check addresses themselves (a browser, a sandboxed command) get this proxy as
//! their only way out. It resolves every name, checks every address with the [`AddressGuard`] and connects to the
//! address that was checked, so a name that changes its address in between (DNS rebinding) gains nothing. It forwards
//! plain requests (`GET http://…`) one by one and opens tunnels (`CONNECT host:port`); it never sees inside a tunnel.
//!
//! There is no password: `agent-browser` loses its pages when a proxy asks for one. While a proxy listens on a port,
//! other programs of this machine can use it too, and reach through it what the rules permit. A socket file is as
//! private as its directory.

mod meter;
mod request;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use myclaw_exec::UnixListener;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{AddressGuard, AllowedHost};

/// Connections at a time. A browser keeps at most 32 to a proxy; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 128;
/// Largest head of a request. Servers refuse larger ones.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Longest wait for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, which happens when no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Refused requests that are remembered. A page can cause any number of them.
const MAX_REFUSALS: usize = 20;

/// Where a proxy listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyAddress {
    /// A port of the loopback interface.
    Port(u16),
    /// A socket file.
    Socket(PathBuf),
}

/// Which hosts a proxy connects to, among those that the guard permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyHosts {
    /// All of them.
    Any,
    /// Only these. An entry without a port covers every port.
    Only(Vec<AllowedHost>),
}

/// The limits of one connection through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Longest wait for the server to accept a connection.
    pub connect: Duration,
    /// A connection on which nothing moves for this long is closed, at the latest after twice this time.
    pub idle: Duration,
    /// Most bytes that a connection to a server carries, in both directions together.
    pub bytes: u64,
}

impl Default for ProxyLimits {
    /// 10 s to connect as for models, 5 min idle (servers of long polls answer within one or two), 1 GiB so that an
    /// endless download does not fill the disk.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            bytes: 1024 * 1024 * 1024,
        }
    }
}

/// What a proxy lets through.
#[derive(Debug, Clone)]
pub struct ProxyRules {
    /// Checks every address.
    pub guard: AddressGuard,
    /// The hosts.
    pub hosts: ProxyHosts,
    /// The bounds of each connection.
    pub limits: ProxyLimits,
}

/// A running proxy. Dropping it closes its address and all its connections.
pub struct Proxy {
    address: ProxyAddress,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What all connections share.
struct Shared {
    rules: ProxyRules,
    stop: CancellationToken,
    refusals: Mutex<VecDeque<String>>,
}

impl Shared {
    /// Remembers that a request was refused, and why.
    fn refused(&self, reason: String) {
        let mut refusals = self.refusals.lock();
        if refusals.contains(&reason) {
            return;
        }
        if refusals.len() == MAX_REFUSALS {
            refusals.pop_front();
        }
        refusals.push_back(reason);
    }
}

impl Proxy {
    /// Starts a proxy on a free port of the loopback interface.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(rules: ProxyRules) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = ProxyAddress::Port(listener.local_addr()?.port());
        Ok(Self::serve(Listener::Port(listener), address, rules))
    }

    /// Starts a proxy on a socket file, which must not exist yet. The caller removes it, usually with its directory.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start_at(socket: &Path, rules: ProxyRules) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        Ok(Self::serve(Listener::Socket(listener), ProxyAddress::Socket(socket.to_owned()), rules))
    }

    fn serve(listener: Listener, address: ProxyAddress, rules: ProxyRules) -> Self {
        let stop = CancellationToken::new();
        let shared =
            Arc::new(Shared { rules, stop: stop.clone(), refusals: Mutex::new(VecDeque::new()) });
        tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _stop: stop.drop_guard() }
    }

    /// Where it listens.
    pub fn address(&self) -> &ProxyAddress {
        &self.address
    }

    /// The reasons why requests were refused since the last call, the oldest first and each one once. At most 20 are
    /// kept.
    pub fn take_refusals(&self) -> Vec<String> {
        let mut refusals = self.shared.refusals.lock();
        refusals.drain(..).collect()
    }
}

enum Listener {
    Port(TcpListener),
    Socket(UnixListener),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Port(listener) => Box::new(listener.accept().await?.0),
            Self::Socket(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// Accepts connections until the proxy stops.
async fn accept(listener: Listener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let stop = shared.stop.clone();
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok(stream) => {
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move {
                        let stop = shared.stop.clone();
                        stop.run_until_cancelled(serve_connection(stream, shared)).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
}

/// Serves the requests of one connection, then the tunnel that it may have become.
async fn serve_connection(stream: Box<dyn Stream>, shared: Arc<Shared>) {
    let tunnel = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&tunnel);
    let idle = shared.rules.limits.idle;
    let service = service_fn(move |request| {
        let (shared, slot) = (Arc::clone(&shared), Arc::clone(&slot));
        async move { request::answer(request, &shared, &slot).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A client that breaks off or does not send HTTP has been answered as far as possible.
    if connection.await.is_err() {
        return;
    }
    let opened = tunnel.lock().take();
    if let Some(request::Tunnel { client, mut server, meter }) = opened
        && let Ok(client) = client.await
    {
        let mut client = TokioIo::new(client);
        tokio::select! {
            // However it ends, both ends are closed.
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            () = meter.idle(idle) => {}
        }
    }
}

#[cfg(test)]
mod tests;
