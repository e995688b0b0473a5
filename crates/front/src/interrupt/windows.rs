//! Windows: Ctrl-C counts as SIGINT, Ctrl-Break as SIGTERM, and a console that is closed as SIGHUP.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};

pub(super) const SIGHUP: i32 = 1;
pub(super) const SIGINT: i32 = 2;
pub(super) const SIGTERM: i32 = 15;
/// Nobody sends it.
pub(super) const SIGUSR2: i32 = 12;

/// There is no such limit.
pub fn survive_file_size_limit() {}

/// Adds signals, which does nothing.
pub(super) struct Handle;

impl Handle {
    pub(super) fn add_signal(&self, _signal: i32) -> io::Result<()> {
        Ok(())
    }
}

/// What has arrived.
pub(super) struct Signals(Receiver<i32>);

impl Signals {
    pub(super) fn new(wanted: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let wanted: Vec<i32> = wanted.into_iter().collect();
        let (sender, receiver) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listen = move || runtime.block_on(pass_on(&wanted, &sender));
        thread::Builder::new().name("console".to_owned()).spawn(listen)?;
        Ok(Self(receiver))
    }

    pub(super) fn handle(&self) -> Handle {
        Handle
    }

    pub(super) fn wait(&mut self) -> std::option::IntoIter<i32> {
        self.0.recv().ok().into_iter()
    }

    pub(super) fn pending(&mut self) -> std::vec::IntoIter<i32> {
        self.0.try_iter().collect::<Vec<i32>>().into_iter()
    }
}

async fn pass_on(wanted: &[i32], to: &Sender<i32>) -> io::Result<()> {
    let (mut interrupt, mut end, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    loop {
        let signal = tokio::select! {
            Some(()) = interrupt.recv() => SIGINT,
            Some(()) = end.recv() => SIGTERM,
            Some(()) = close.recv() => SIGHUP,
        };
        if wanted.contains(&signal) && to.send(signal).is_err() {
            return Ok(());
        }
    }
}
