//! An S3-compatible server for tests: that of Moto, in Python.

mod azure;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub use azure::AzureStorage;

/// Between two looks whether the server is there.
const PAUSE: Duration = Duration::from_millis(50);
const BUCKET: &str = "test-bucket";

/// Starts a server, for which `command` gets a free port, and waits until it listens.
fn serve(name: &str, command: impl FnOnce(&str) -> Command) -> (u16, Child) {
    // Nobody listens on it any more when the server takes it.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
    let port = port.port();
    let mut command = command(&port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap_or_else(|error| panic!("starting {name}: {error}"));
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = server.try_wait().expect("a process");
        assert!(ended.is_none(), "{name} ended: {ended:?}; is it installed?");
        thread::sleep(PAUSE);
    }
    (port, server)
}

/// A server on a port of its own, with one bucket. It keeps everything in memory, and ends with this value.
#[derive(Debug)]
pub struct ObjectStorage {
    port: u16,
    server: Child,
}

impl ObjectStorage {
    /// Starts a server. `None` if `MYCLAW_MOTO_PYTHON` does not name a Python with `moto`; the test says that it is skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("MYCLAW_MOTO_PYTHON") else {
            crate::skip_without("MYCLAW_MOTO_PYTHON is not set; scripts/test sets it");
            return None;
        };
        let (port, server) = serve("moto.server", |port| {
            let mut command = Command::new(python);
            command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", port]);
            command
        });
        let storage = Self { port, server };
        storage.request("PUT", "");
        Some(storage)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a prefix of its bucket, as `gateway.blobs` has it, over this port.
    pub fn address(&self, prefix: &str, port: u16) -> String {
        format!(
            "s3://key:secret@{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{port}&region=us-east-1"
        )
    }

    /// The names of all objects in the bucket.
    pub fn names(&self) -> Vec<String> {
        let listed = self.request("GET", "?list-type=2");
        let keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        keys.map(|(key, _)| key.to_owned()).collect()
    }

    fn request(&self, method: &str, rest: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server");
        let request = format!(
            "{method} /{BUCKET}{rest} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{method} {rest}: {answer}");
        answer
    }
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
