//! Windows: the channel says that it cannot work there.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{
    Account, AfterInterruption, Capabilities, Channel, DEFAULT_ACCOUNT, Intake, Part, SendFailure,
    State,
};

/// Name of the channel.
pub const SOCKET: &str = "socket";
const REFUSAL: &str =
    "the channel socket needs Linux or macOS; remove channels.socket from the config";

/// How the socket is set up.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Where the socket would be.
    pub path: PathBuf,
}

/// The socket, which there is not.
pub struct SocketChannel {
    account: Account,
}

impl SocketChannel {
    /// Sets the channel up.
    pub fn new(_options: SocketOptions) -> Self {
        Self { account: Account::new(SOCKET, DEFAULT_ACCOUNT) }
    }
}

impl Channel for SocketChannel {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        let after_interruption = AfterInterruption::SendAgain;
        Capabilities { after_interruption, most_file_bytes: None, actions: &[] }
    }

    fn run(self: Arc<Self>, _intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        self.account.set(State::Stopped(REFUSAL.to_owned()));
        Box::pin(async {})
    }

    fn send<'a>(&'a self, _part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async { Err(SendFailure::Later { after: None, reason: REFUSAL.to_owned() }) })
    }
}
