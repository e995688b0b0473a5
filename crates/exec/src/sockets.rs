//! Unix sockets.

pub use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
pub use tokio::net::{UnixListener, UnixStream};
