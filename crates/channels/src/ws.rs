//! WebSockets to vendors. They are opened by the HTTP client, so its certificates and proxies hold for them as well.

use std::time::Duration;

use reqwest::{Client, Upgraded, Version};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(15);

/// A WebSocket that is open.
pub(crate) type Socket = WebSocketStream<Upgraded>;

/// Opens the WebSocket at `address`. A message of more than `most` bytes breaks it.
///
/// # Errors
/// It cannot be opened. The text says why, and does not hold the address, which may hold a secret.
pub(crate) async fn connect(client: &Client, address: &str, most: usize) -> Result<Socket, String> {
    let opening = open(client, address, most);
    tokio::time::timeout(CONNECT, opening)
        .await
        .unwrap_or_else(|_| Err(format!("no WebSocket within {} s", CONNECT.as_secs())))
}

async fn open(client: &Client, address: &str, most: usize) -> Result<Socket, String> {
    let address = http_address(address).ok_or("the address is not that of a WebSocket")?;
    let key = generate_key();
    let request = client
        .get(address)
        .version(Version::HTTP_11)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", &key);
    let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
    let status = answer.status().as_u16();
    if status != 101 {
        return Err(format!("the server answers {status} instead of opening a WebSocket"));
    }
    let accepted = answer.headers().get("sec-websocket-accept");
    if accepted
        .is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err("the server opens something that is no WebSocket".to_owned());
    }
    let stream = answer.upgrade().await.map_err(|error| error.without_url().to_string())?;
    let limits = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(limits)).await)
}

/// The address of a WebSocket as one for HTTP.
pub(crate) fn http_address(address: &str) -> Option<String> {
    match address.split_once("://")? {
        ("ws", rest) => Some(format!("http://{rest}")),
        ("wss", rest) => Some(format!("https://{rest}")),
        _ => None,
    }
}
