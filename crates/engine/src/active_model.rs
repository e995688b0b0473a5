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
    /// Where the size of the context window comes from.
    pub window: WindowSource,
}

/// Where the size of a model's context window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// From the catalog, or guessed. A model with too small a window is refused.
    Known,
    /// Given by the user or the caller. A small window is used, with a warning.
    Stated,
}

impl ActiveModel {
    /// Creates `model` with `profiles`, or with one keyless profile named `default` if there are no profiles. The
    /// window counts as stated, because the caller supplies the model.
    pub fn new(model: Model, mut profiles: Vec<AuthProfile>) -> Self {
        if profiles.is_empty() {
            profiles.push(AuthProfile::keyless());
        }
        Self { model, profiles, window: WindowSource::Stated }
    }

    /// The model as `provider/model`, as users write it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }
}
