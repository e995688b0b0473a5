//! The network between a gateway and the database, which a test cuts, mends and holds up.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Requests that a fault waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The end of a transaction.
    Commit,
    /// Rows that are added to a log.
    Append,
    /// A transaction about messages that only the holder of a desk may make.
    Answer,
    /// That a message to a chat is sent, after it was.
    Sent,
    /// A session that is taken to work on it.
    Open,
    /// A session that is complete.
    Finish,
    /// Rows of a log that are read from its beginning.
    Forward,
    /// The totals of the day, with what was used meanwhile.
    Totals,
}

impl Mark {
    /// What the bytes of the request contain, all of it.
    fn parts(self) -> &'static [&'static [u8]] {
        match self {
            // A simple query of the protocol: `Q`, a length, the text and a zero byte.
            Self::Commit => &[b"Q\0\0\0\x0bCOMMIT\0"],
            Self::Append => &[b"WITH moved AS"],
            Self::Answer => &[b"incoming", b"desk"],
            Self::Open => &[b"SET epoch = greatest(epoch + 1"],
            Self::Finish => &[b"WITH finished AS"],
            Self::Forward => &[b"least($4, $2 + $3)"],
            Self::Totals => &[b"spending", b"\"microDollars\"", b"COMMIT\0"],
            Self::Sent => &[b"outgoing", b"\"state\":\"sent\"", b"\"channel\":\"telegram\""],
        }
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The database does not get it.
    CutBefore,
    /// The database carries it out, and its answer is lost.
    CutAfter,
    /// Nothing. The test hears of it.
    Pass,
    /// From it on, nothing arrives at the database until the test releases it. Nothing is lost.
    Hold,
}

/// Text of statements that becomes another text. Both have the same length, so the rest of the protocol stays as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rewrite {
    from: &'static str,
    to: &'static str,
}

impl Rewrite {
    /// Spaces fill up the shorter text.
    pub(crate) const fn new(from: &'static str, to: &'static str) -> Self {
        assert!(to.len() <= from.len());
        Self { from, to }
    }

    fn apply(self, bytes: &mut [u8]) {
        let (from, to) = (self.from.as_bytes(), self.to.as_bytes());
        while let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
            let (new, rest) = bytes[at..at + from.len()].split_at_mut(to.len());
            new.copy_from_slice(to);
            rest.fill(b' ');
        }
    }
}

/// Passes bytes on as long as it is whole.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    is_cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    /// What waits for requests with one of these marks, the first one for the first.
    fates: Mutex<(Vec<Mark>, Vec<Fate>)>,
    is_holding: Mutex<bool>,
    released: Condvar,
    rewrites: Mutex<Vec<Rewrite>>,
    /// How long each direction takes, in milliseconds.
    latency_ms: AtomicU64,
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
                // Otherwise small requests wait for the confirmation of those before.
                client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).unwrap();
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                {
                    let mut open = of_thread.open.lock();
                    open.push(client.try_clone().unwrap());
                    open.push(server.try_clone().unwrap());
                }
                let (there, here) = (Arc::clone(&of_thread), Arc::clone(&of_thread));
                thread::spawn(move || there.answers(back, forth));
                thread::spawn(move || here.requests(client, server));
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

    /// The next requests with one of these marks meet these fates. Returns at once.
    pub(crate) fn await_requests(&self, marks: &[Mark], fates: &[Fate]) {
        *self.line.fates.lock() = (marks.to_vec(), fates.iter().rev().copied().collect());
    }

    /// How many fates are still waiting for their request.
    pub(crate) fn waiting(&self) -> usize {
        self.line.fates.lock().1.len()
    }

    /// Ends what [`Fate::Hold`] began, and what still waits for a request.
    pub(crate) fn release(&self) {
        self.line.fates.lock().1.clear();
        self.go_on();
    }

    /// Ends what [`Fate::Hold`] began.
    pub(crate) fn go_on(&self) {
        *self.line.is_holding.lock() = false;
        self.line.released.notify_all();
    }

    /// Changes all statements from now on.
    pub(crate) fn rewrite(&self, rewrite: Rewrite) {
        self.line.rewrites.lock().push(rewrite);
    }
}

impl Proxy {
    /// From now on, bytes take so long in each direction.
    pub(crate) fn delay(&self, latency: Duration) {
        let millis = u64::try_from(latency.as_millis()).unwrap();
        self.line.latency_ms.store(millis, Ordering::SeqCst);
    }
}

impl Line {
    /// Waits as long as bytes are on their way. What was sent meanwhile arrives together with them.
    fn travel(&self) {
        thread::sleep(Duration::from_millis(self.latency_ms.load(Ordering::SeqCst)));
    }

    /// What happens to these bytes, and where the mark is.
    fn fate_of(&self, bytes: &[u8]) -> Option<(Fate, usize)> {
        let mut fates = self.fates.lock();
        if fates.1.is_empty() {
            return None;
        }
        let found = |part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
        let at = fates.0.iter().find_map(|mark| {
            mark.parts()
                .iter()
                .map(|part| found(part))
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .min()
        })?;
        fates.1.pop().map(|fate| (fate, at))
    }

    fn requests(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut buffer = [0; 64 * 1024];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            for rewrite in &*self.rewrites.lock() {
                rewrite.apply(&mut buffer[..length]);
            }
            self.travel();
            let bytes = &buffer[..length];
            let fate = self.fate_of(bytes);
            let sent = match fate {
                Some((Fate::CutBefore, at)) => &bytes[..at],
                _ => bytes,
            };
            match fate {
                Some((Fate::Hold, _)) => *self.is_holding.lock() = true,
                // The answer must not come back, and the server must get the request.
                Some((Fate::CutAfter, _)) => drop(client.shutdown(Shutdown::Both)),
                _ => {}
            }
            {
                let mut is_holding = self.is_holding.lock();
                while *is_holding {
                    self.released.wait(&mut is_holding);
                }
            }
            let is_cut = matches!(fate, Some((Fate::CutBefore | Fate::CutAfter, _)));
            if server.write_all(sent).is_err() || is_cut {
                break;
            }
        }
        // The server sees the end of the stream behind what it got.
        let _ = server.shutdown(Shutdown::Write);
        let _ = client.shutdown(Shutdown::Both);
    }

    fn answers(&self, mut server: TcpStream, mut client: TcpStream) {
        let mut buffer = [0; 64 * 1024];
        while let Ok(length @ 1..) = server.read(&mut buffer) {
            self.travel();
            // Who is not there any more misses the answer. The server still gets what was sent before.
            let _ = client.write_all(&buffer[..length]);
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    }
}
