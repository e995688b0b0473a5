//! Groups that answer chats in place of an agent: those of the host of containers.

use myclaw_channels::Arrival;
use myclaw_config::HostBinding;
use myclaw_store::BoxFuture;

use super::Command;
use crate::DeliveryError;
use crate::delivery::Delivery;
use crate::route::Route;

/// What has groups.
pub trait Groups: Send + Sync {
    /// Gives a message to the group of its chat. It is on the disk when this returns.
    ///
    /// # Errors
    /// It may come again later.
    fn take<'a>(
        &'a self,
        delivery: &'a Delivery,
        binding: &'a HostBinding,
        message: (&'a Arrival, &'a Route),
    ) -> BoxFuture<'a, Result<Handed, DeliveryError>>;

    /// Does what a command says, for the group of a chat. The answer is for the sender.
    ///
    /// # Errors
    /// It was not done.
    fn obey<'a>(
        &'a self,
        binding: &'a HostBinding,
        command: Command,
        sender: &'a str,
    ) -> BoxFuture<'a, Result<String, DeliveryError>>;
}

/// What becomes of a message for a group.
pub enum Handed {
    /// The host accepted it.
    Taken {
        /// Whether the agent is addressed.
        is_for_agent: bool,
    },
    /// It gets no answer.
    Dropped {
        /// Why, for the owner.
        reason: String,
        /// The text for its sender.
        say: Option<String>,
    },
}
