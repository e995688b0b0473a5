//! A network between the store and the server, which breaks when a test wants it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A commit as a simple query of the protocol: `Q`, a length, the text and a zero byte.
pub(crate) const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// What happens to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server does not get it.
    Before,
    /// The server carries it out, and its answer is lost.
    After,
    /// It stays on its way until the test releases it, as from a program that stands still.
    Hold,
}

/// Says what happens to the statement with this number.
pub(crate) type Fate = fn(usize) -> Option<Cut>;

/// Passes bytes on, and breaks connections at some statements.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Such statements so far.
    pub(crate) commits: Arc<AtomicUsize>,
    /// Lets go what is held.
    pub(crate) is_released: Arc<AtomicBool>,
}

impl Proxy {
    /// Breaks the connection at the statements with `mark` for which `cut` gives something; it gets their number.
    pub(crate) fn start(to: u16, mark: &'static [u8], cut: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&commits);
        let is_released = Arc::new(AtomicBool::new(false));
        let released = Arc::clone(&is_released);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, commits) = (client.unwrap(), Arc::clone(&counted));
                let is_released = Arc::clone(&released);
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let (from_server, to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || pass(from_server, to_client));
                thread::spawn(move || judge(client, server, (&commits, &is_released), (mark, cut)));
            }
        });
        Self { port, commits, is_released }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        // Who is not there any more misses the answer. The server still gets what was sent before.
        let _ = to.write_all(&buffer[..length]);
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn judge(
    mut client: TcpStream,
    mut server: TcpStream,
    (commits, is_released): (&AtomicUsize, &AtomicBool),
    (mark, cut): (&[u8], Fate),
) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        let at = bytes.windows(mark.len()).position(|window| window == mark);
        let fate = at.and_then(|_| cut(commits.fetch_add(1, Ordering::SeqCst)));
        let sent = match (fate, at) {
            (Some(Cut::Before), Some(at)) => &bytes[..at],
            _ => bytes,
        };
        if fate == Some(Cut::After) {
            // Its answer must not come back, and the server must get it.
            let _ = client.shutdown(Shutdown::Both);
        }
        while fate == Some(Cut::Hold) && !is_released.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        let is_cut = fate.is_some_and(|fate| fate != Cut::Hold);
        if server.write_all(sent).is_err() || is_cut {
            break;
        }
    }
    // The server sees the end of the stream behind what it got.
    let _ = server.shutdown(Shutdown::Write);
    let _ = client.shutdown(Shutdown::Both);
}
