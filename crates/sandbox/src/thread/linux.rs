//! Confines a thread with Landlock.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{self, Scope};

use super::OpenPaths;
use crate::enter::{Broker, listen, open_only};
use crate::plan::BrokerRules;

pub(super) fn enforce<T: Send>(
    paths: &OpenPaths,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let readable = paths.readable.iter().filter(|path| path.exists()).cloned().collect();
    let rules = BrokerRules::new(
        paths.writable.clone(),
        readable,
        paths.protected.clone(),
        paths.protected_names.clone(),
    );
    if rules.brokered.is_empty() {
        return thread::scope(|scope| {
            run(scope, || {
                open_only(&rules).map_err(io::Error::other)?;
                work()
            })
        });
    }
    let broker = Broker::new(&rules).map_err(io::Error::other)?;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // It gives up rights, so it is a thread of its own. It ends when the thread that works has ended.
        thread::Builder::new().spawn_scoped(scope, move || {
            if let Ok(calls) = receiver.recv() {
                broker.serve(&calls);
            }
        })?;
        run(scope, || {
            open_only(&rules).map_err(io::Error::other)?;
            let calls = listen(&rules).map_err(io::Error::other)?;
            sender.send(calls).map_err(io::Error::other)?;
            work()
        })
    })
}

/// Starts a thread for the work and waits for it.
fn run<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> io::Result<T> + Send + 'scope,
) -> io::Result<T> {
    let thread = thread::Builder::new().spawn_scoped(scope, work)?;
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
