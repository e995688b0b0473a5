//! Takes connections.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Most connections at the same time: all WebSockets, and half as many requests. Further ones wait until one ends.
const MOST_CONNECTIONS: usize = 3_072;
/// Longest time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// Pause after a connection could not be taken, for example because the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until `stop` fires.
pub(super) async fn accept(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // It fails only if the semaphore is closed, which nobody does.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = stop.cancelled() => break,
        };
        let stream = match taken {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Small frames leave at once.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // A connection that breaks concerns its client only.
            let _ = connection.with_upgrades().await;
            drop(place);
        });
    }
    // Requests that were begun are still answered, while the gateway closes.
    std::future::pending::<()>().await;
}
