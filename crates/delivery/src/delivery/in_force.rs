//! What delivery takes from the config in force, and what it does when that is replaced.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{Home, SessionConfig, SessionOptions};
use myclaw_config::Config;
use myclaw_engine::CutAnswers;

use super::Delivery;
use super::desk::Desk;
use crate::DeliveryError;
use crate::current::InForce;

impl Delivery {
    /// The config in force.
    pub fn config(&self) -> Arc<Config> {
        self.current.config()
    }

    /// The environment and the directories.
    pub fn home(&self) -> Home {
        self.current.get().home.clone()
    }

    /// Makes the next run of each session use another config, which is in force already. Blocks.
    pub fn use_config(&self, new: &InForce) {
        let limit = Duration::from_secs(new.config.tools.approvals.timeout_seconds);
        self.approvals.questions.set_limit(limit);
        // A desk that is set up meanwhile has the new config.
        let desks: Vec<Arc<Desk>> = self.desks().values().cloned().collect();
        for desk in desks {
            if let Err(error) = desk.session.use_config(new.home.clone(), Arc::clone(&new.config)) {
                let session = desk.session.key().as_str();
                tracing::warn!(session, %error, "the session keeps the config before, and takes no new messages");
            }
        }
    }

    /// What is known of the session with this name or key.
    /// # Errors
    /// The name or the config cannot be used.
    pub fn session_config(&self, name: &str) -> Result<SessionConfig, DeliveryError> {
        let options =
            SessionOptions { session: Some(name.to_owned()), ..SessionOptions::default() };
        let InForce { home, config, .. } = &*self.current.get();
        let mut config = SessionConfig::new(home.clone(), Arc::clone(config), &options)?;
        // Clients and previews show the new beginning in place of the old one.
        config.cut_answers = CutAnswers::Repeated;
        Ok(config)
    }
}
