//! Connects a port of the confined process's own loopback interface with the proxy's Unix socket, because programs look
//! for an HTTP proxy at a host and a port.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Failure;
use crate::PROXY_ADDRESS;

/// More connections at one time are closed at once.
const MOST_CONNECTIONS: usize = 128;

/// Listens; serves once the command runs.
pub(crate) struct Relay {
    listener: TcpListener,
    socket: PathBuf,
}

impl Relay {
    pub(crate) fn listen(socket: &Path) -> Result<Self, Failure> {
        let listener = TcpListener::bind(PROXY_ADDRESS)
            .map_err(|error| format!("cannot listen for the proxy at {PROXY_ADDRESS}: {error}"))?;
        Ok(Self { listener, socket: socket.to_owned() })
    }

    /// Serves in the background for as long as this process lives.
    pub(crate) fn serve(self) -> Result<(), Failure> {
        let open = Arc::new(AtomicUsize::new(0));
        let work = move || {
            for client in self.listener.incoming().flatten() {
                if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                    open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (socket, of_thread) = (self.socket.clone(), Arc::clone(&open));
                let work = move || {
                    // The client sees a closed connection.
                    drop(connect(&client, &socket));
                    of_thread.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().spawn(work).is_err() {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        thread::Builder::new()
            .spawn(work)
            .map(drop)
            .map_err(|error| format!("cannot start the relay to the proxy: {error}"))
    }
}

fn connect(client: &TcpStream, socket: &Path) -> io::Result<()> {
    let proxy = UnixStream::connect(socket)?;
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || {
            drop(copy(client, &proxy));
            drop(proxy.shutdown(Shutdown::Write));
        })?;
        drop(copy(&proxy, client));
        drop(client.shutdown(Shutdown::Write));
        Ok(())
    })
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<u64> {
    io::copy(&mut from, &mut to)
}
