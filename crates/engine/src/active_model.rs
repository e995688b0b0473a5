//! A model that may answer, with its keys.

use myclaw_auth::AuthProfile;
use myclaw_llm::Model;

/// A model and the keys to try for it, in order.
#[derive(Debug, Clone)]
pub struct ActiveModel {
    /// The model, with the address that requests go to.
    pub model: Model,
    /// Auth profiles, tried in this order. Never empty after [`ActiveModel::new`].
    pub profiles: Vec<AuthProfile>,
    /// How the size of the context window is known.
    pub window: WindowSource,
}

/// How the size of a model's context window is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// From the catalog, or guessed. One that is too small for the work is refused.
    Known,
    /// The user or the caller stated it. One that is small is used, with a warning.
    Stated,
}

impl ActiveModel {
    /// `model` with `profiles`, or with one keyless profile named `default` if there are none. The model is the
    /// caller's own, so its window counts as stated.
    pub fn new(model: Model, mut profiles: Vec<AuthProfile>) -> Self {
        if profiles.is_empty() {
            profiles.push(AuthProfile::keyless());
        }
        Self { model, profiles, window: WindowSource::Stated }
    }

    /// `provider/model`, as users write it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }
}
