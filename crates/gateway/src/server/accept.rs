//! Takes connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::front::{Link, household};
use super::strangers::{Bounded, Distance, Place};

/// Most connections at the same time: all WebSockets, and half as many requests. Further ones wait until one ends.
const MOST_CONNECTIONS: usize = 3_072;
/// Longest time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// Pause after a connection could not be taken, for example because the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time for the handshake of a TLS connection.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Most handshakes at the same time, and most of one client: a browser begins six connections at once. Further
/// connections are closed, so that clients that never finish keep no place from others.
const MOST_HANDSHAKES: usize = 512;
const MOST_OF_ONE_CLIENT: usize = 32;
/// First byte of a TLS connection: the type of its handshake records.
const HANDSHAKE_RECORD: u8 = 0x16;
/// The answer to a client that speaks no TLS.
const SPEAK_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error\":{\"class\":\"tls\",\"message\":\"this gateway speaks HTTPS only; begin the address with https://\"}}";

/// Takes connections until `stop` fires.
pub(super) async fn accept(
    server: Arc<Server>,
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let handshakes = Arc::new(Handshakes::default());
    loop {
        // It fails only if the semaphore is closed, which nobody does.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Small frames leave at once.
        let _ = stream.set_nodelay(true);
        let Ok(mut local) = stream.local_addr() else { continue };
        local.set_ip(local.ip().to_canonical());
        let peer = peer.ip().to_canonical();
        let (router, handshakes) = (router.clone(), Arc::clone(&handshakes));
        // Those that are open keep the certificate they began with.
        let front = server.front();
        let certificate =
            front.certificate.as_ref().map(|certificate| Arc::clone(&certificate.server));
        let (most, distance) = match front.is_near(peer) {
            true => (MOST_HANDSHAKES, Distance::Near),
            false => (MOST_OF_ONE_CLIENT, Distance::Far),
        };
        let stranger = server.strangers.enter(household(peer), distance);
        tokio::spawn(async move {
            let ended = stranger.ended.clone();
            let serving = async {
                let is_encrypted = certificate.is_some();
                let link = Link { peer, local, is_encrypted };
                match certificate {
                    None => serve(stream, router, (link, stranger)).await,
                    Some(config) => {
                        if let Some(stream) = handshakes.shake(stream, (peer, most), config).await {
                            serve(stream, router, (link, stranger)).await;
                        }
                    }
                }
            };
            ended.run_until_cancelled(serving).await;
            drop(place);
        });
    }
    // A client that comes now is refused at once, instead of waiting for the end of the process.
    drop(listener);
    // Requests that were begun are still answered, while the gateway closes.
    std::future::pending::<()>().await;
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    (link, place): (Link, Arc<Place>),
) {
    let stream = Bounded { stream, place: Arc::clone(&place) };
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(link);
        request.extensions_mut().insert(Arc::clone(&place));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A connection that breaks concerns its client only.
    let _ = connection.with_upgrades().await;
}

/// The current handshakes, by client.
#[derive(Default)]
struct Handshakes(Mutex<HashMap<IpAddr, usize>>);

impl Handshakes {
    /// The encrypted connection; `None` if the client speaks something else, is too slow, or began too many.
    async fn shake(
        &self,
        stream: TcpStream,
        (peer, most): (IpAddr, usize),
        config: Arc<ServerConfig>,
    ) -> Option<TlsStream<TcpStream>> {
        let _one = self.begin(household(peer), most)?;
        let shaking = tokio::time::timeout(HANDSHAKE_TIME, encrypt(stream, config)).await;
        shaking.ok().flatten()
    }

    fn begin(&self, client: IpAddr, most: usize) -> Option<Handshake<'_>> {
        let mut clients = self.0.lock();
        let all: usize = clients.values().sum();
        if all >= MOST_HANDSHAKES || clients.get(&client).is_some_and(|count| *count >= most) {
            return None;
        }
        *clients.entry(client).or_default() += 1;
        Some(Handshake { handshakes: self, client })
    }
}

/// One handshake, until it is dropped.
struct Handshake<'a> {
    handshakes: &'a Handshakes,
    client: IpAddr,
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        let mut clients = self.handshakes.0.lock();
        if let Some(count) = clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

async fn encrypt(mut stream: TcpStream, config: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first != [HANDSHAKE_RECORD] {
        stream.write_all(SPEAK_TLS).await.ok()?;
        stream.shutdown().await.ok()?;
        // What the client still sends is read, else it might not get the answer.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        return None;
    }
    match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

#[cfg(test)]
mod tests;
