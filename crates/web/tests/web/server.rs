//! A web server whose answers are bytes, so that a test can answer anything.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is sent back.
pub(crate) enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then the last of them again and again until the client has gone.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, then nothing more until the client has gone.
    Stalled(Vec<u8>),
}

/// An answer with this status, these header lines and this body.
pub(crate) fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for header in headers {
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    Reply::Bytes(bytes)
}

/// A page of this type.
pub(crate) fn page(content_type: &str, body: impl AsRef<[u8]>) -> Reply {
    reply("200 OK", &[&format!("content-type: {content_type}")], body)
}

/// A redirect.
pub(crate) fn redirect(target: &str) -> Reply {
    reply("302 Found", &[&format!("location: {target}")], "")
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Each request: its first line and headers, and its body.
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that answers the path of each request with `answer`.
    pub(crate) async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    pub(crate) async fn start_at(
        address: &str,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, open) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (seen, answer, counted) = (Arc::clone(&requests), Arc::new(answer), Arc::clone(&open));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    serve(stream, &seen, &*answer).await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, requests, open, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until `condition` holds.
    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..3_000 {
            if condition(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}");
    }

    /// Waits until no connection is left.
    pub(crate) async fn wait_until_unused(&self) {
        self.wait_until("no connection left", |server| server.open.load(Ordering::SeqCst) == 0)
            .await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> Reply + Send + Sync),
) {
    let Some(request) = read_request(&mut stream).await else { return };
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    requests.lock().unwrap().push(request);
    let (start, mut repeated) = match answer(&path) {
        Reply::Bytes(bytes) => {
            // A client may stop reading at any time.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            return;
        }
        Reply::Endless(start, repeated) => (start, Some(repeated)),
        Reply::Stalled(start) => (start, None),
    };
    if stream.write_all(&start).await.is_err() {
        return;
    }
    match repeated.take() {
        Some(repeated) => while stream.write_all(&repeated).await.is_ok() {},
        None => {
            let mut rest = [0; 64];
            while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}
