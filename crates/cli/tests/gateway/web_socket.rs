//! A client over a WebSocket.

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async, connect_async};

use super::*;

pub(super) type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connected WebSocket.
pub(super) struct Socket(pub(super) Stream);

impl Socket {
    pub(super) async fn open(client: &Client) -> Self {
        let mut socket = Self::silent(client, &[]).await.unwrap();
        socket.greet(client).await;
        socket
    }

    async fn greet(&mut self, client: &Client) {
        self.send(&json!({"type": "auth", "token": client.token, "protocol": 1})).await;
        assert_eq!(self.next().await["type"], "hello");
    }

    /// Like [`Socket::open`], with a connection that holds little that is not read.
    pub(super) async fn narrow(client: &Client) -> Self {
        let plain = tokio::net::TcpSocket::new_v4().unwrap();
        plain.set_recv_buffer_size(4_096).unwrap();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], client.port));
        let stream = MaybeTlsStream::Plain(plain.connect(address).await.unwrap());
        let request = format!("ws://127.0.0.1:{}/ws", client.port);
        let mut socket = Self(client_async(request, stream).await.unwrap().0);
        socket.greet(client).await;
        socket
    }

    /// A connection to the path of nodes, which says nothing by itself.
    pub(super) async fn of_node(client: &Client) -> Self {
        let mut request =
            format!("ws://127.0.0.1:{}/node", client.port).into_client_request().unwrap();
        let bearer = format!("Bearer {}", client.token).parse().unwrap();
        request.headers_mut().insert("Authorization", bearer);
        Self(connect_async(request).await.unwrap().0)
    }

    /// A connection that has not said anything.
    pub(super) async fn silent(
        client: &Client,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Error> {
        let mut request = format!("ws://127.0.0.1:{}/ws", client.port).into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        Ok(Self(connect_async(request).await?.0))
    }

    pub(super) async fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame; an object with `closed` at the end of the connection.
    pub(super) async fn next(&mut self) -> Value {
        // Pings do not count.
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let frame = tokio::time::timeout_at(end, self.0.next()).await.expect("a frame");
            match frame {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string());
                    return json!({"closed": reason});
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return json!({"closed": null}),
            }
        }
    }

    /// The next frame that `is` accepts; the others are dropped.
    pub(super) async fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await;
            assert!(frame.get("closed").is_none(), "closed: {frame}");
            if is(&frame) {
                return frame;
            }
        }
    }

    /// The result of a request.
    pub(super) async fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.send(&json!({"type": "request", "id": id, "method": method, "params": params})).await;
        self.until(|frame| frame["type"] == "response" && frame["id"] == id).await
    }
}

pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
