//! What becomes of a message, by the rules alone. Nothing is stored or said here.

use myclaw_channels::Arrival;
use myclaw_config::{Config, HostBinding, Persona};

use super::access::Access;
use super::bindings::binding_of;
use super::{Command, Router};
use crate::DeliveryError;
use crate::delivery::ChatAnswer;
use crate::route::Route;

/// What becomes of a message that is new.
pub(super) enum Decision<'a> {
    /// The owner answers a question about a tool call.
    Answer(ChatAnswer),
    /// It is kept for the next message of its group that is addressed to the agent.
    Overhear(&'static str),
    /// It gets no answer: the reason, and the text for its sender.
    Drop(String, Option<String>),
    /// Its sender gets a code, which the owner can approve.
    Pair,
    /// What may be missing in the chat is sent again.
    SendAgain,
    /// A group of the host gets it.
    HandOver(&'a HostBinding, Option<Command>),
    /// The gateway does what it says.
    Obey(Command),
    /// The agent answers it.
    Take,
}

impl Router {
    /// Decides about a message.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn decide<'a>(
        &self,
        (config, persona): (&'a Config, &Persona),
        arrival: &mut Arrival,
        route: &Route,
    ) -> Result<Decision<'a>, DeliveryError> {
        if let Some(answer) = self.answer_of_owner(config, persona, (arrival, route)).await? {
            return Ok(Decision::Answer(answer));
        }
        let access = self.access(config, persona, arrival);
        let is_unaddressed = matches!(access, Access::Unaddressed(_));
        let binding = binding_of(config, arrival);
        match access {
            Access::Granted => {}
            // The group decides by its own trigger.
            Access::Unaddressed(_) if binding.is_some() => {}
            Access::Unaddressed(reason) => return Ok(Decision::Overhear(reason)),
            Access::Refused(reason) => return Ok(Decision::Drop(reason, None)),
            Access::Unpaired => return Ok(Decision::Pair),
        }
        if let Some((reason, say)) = Self::refused_answer(persona, (arrival, route)) {
            return Ok(Decision::Drop(reason.to_owned(), say));
        }
        let command = Command::of(arrival, route, persona).filter(|_| !is_unaddressed);
        if command.is_some()
            && let Some(reason) = self.unchanged_command(arrival, route).await?
        {
            return Ok(Decision::Drop(reason, None));
        }
        Ok(match (command, binding) {
            (Some(Command::Again), _) => Decision::SendAgain,
            (command, Some(binding)) => Decision::HandOver(binding, command),
            (Some(command), None) => Decision::Obey(command),
            (None, None) => Decision::Take,
        })
    }
}
