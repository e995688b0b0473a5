//! The permission mode of a session, for clients.

use std::sync::Arc;

use myclaw_engine::Mode;

use super::Delivery;
use crate::DeliveryError;

impl Delivery {
    /// The permission mode of a session.
    ///
    /// # Errors
    /// The name is none of a session, or the session cannot be read.
    pub fn mode(&self, name: &str) -> Result<Mode, DeliveryError> {
        let config = self.session_config(name)?;
        let desk = self.desks().get(config.session_key.as_str()).cloned();
        Ok(desk.map_or_else(|| config.mode.get(), |desk| desk.session.mode()))
    }

    /// Changes the permission mode of a session which this gateway has or nobody.
    ///
    /// # Errors
    /// The name is none of a session, or the mode cannot be stored.
    pub async fn set_mode_here(
        self: &Arc<Self>,
        name: &str,
        mode: Mode,
    ) -> Result<(), DeliveryError> {
        let key = self.session_config(name)?.session_key;
        let desk = self.desk_in(&mut self.desks(), key.as_str())?;
        let changed = desk.session.set_mode(mode).await;
        // A desk without messages is closed again where there are many.
        desk.wake.notify_one();
        Ok(changed?)
    }
}
