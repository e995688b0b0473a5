//! The provider for each model.

use myclaw_llm::{Model, Provider};

/// Finds the provider for a model. Implement it to use a recorded provider, an in-process model or a custom provider
/// with an engine.
pub trait Providers: Send + Sync {
    /// Returns the provider of `model`. Called for every model call, so it must be cheap, and it must always return the
    /// same provider for the same model.
    fn provider(&self, model: &Model) -> &dyn Provider;
}

/// One provider for every model.
impl<P: Provider> Providers for P {
    fn provider(&self, _model: &Model) -> &dyn Provider {
        self
    }
}
