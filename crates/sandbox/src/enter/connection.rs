//! Passes the descriptor at which the calls of the command wait to the process that answers them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::Failure;
use super::broker::Broker;
use crate::plan::BrokerRules;

/// Made before the command's process. Each of the two processes uses one end and drops the other.
pub(crate) struct Connection {
    broker: Broker,
    here: OwnedFd,
    there: OwnedFd,
}

impl Connection {
    pub(crate) fn new(rules: &BrokerRules) -> Result<Self, Failure> {
        let broker = Broker::new(rules)?;
        let (here, there) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(failed)?;
        Ok(Self { broker, here, there })
    }

    /// In the command's process.
    pub(crate) fn hand_over(self, listener: &OwnedFd) -> Result<(), Failure> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        let listeners = [listener.as_fd()];
        message.push(SendAncillaryMessage::ScmRights(&listeners));
        sendmsg(&self.there, &[IoSlice::new(&[0])], &mut message, SendFlags::NOSIGNAL)
            .map_err(failed)
            .map(drop)
    }

    /// In the supervising process. A command that failed before it handed anything over reports that by itself.
    pub(crate) fn serve(self) -> Result<(), Failure> {
        let Self { broker, here, there } = self;
        drop(there);
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        recvmsg(&here, &mut [IoSliceMut::new(&mut byte)], &mut message, flags).map_err(failed)?;
        let listener = message.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        listener.map_or(Ok(()), |listener| broker.start(listener))
    }
}

fn failed(error: rustix::io::Errno) -> Failure {
    format!("cannot pass on the calls of the command: {error}")
}
