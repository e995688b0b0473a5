//! The network between a gateway and the database, which a test cuts and mends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;

/// Passes bytes on as long as it is whole.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    is_cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Line::default());
        let of_thread = Arc::clone(&line);
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if of_thread.is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                {
                    let mut open = of_thread.open.lock();
                    open.push(client.try_clone().unwrap());
                    open.push(server.try_clone().unwrap());
                }
                thread::spawn(move || pass(back, forth));
                thread::spawn(move || pass(client, server));
            }
        });
        Self { port, line }
    }

    /// Breaks all connections. New ones are refused until the line is mended.
    pub(crate) fn cut(&self) {
        self.line.is_cut.store(true, Ordering::SeqCst);
        for stream in self.line.open.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.line.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
