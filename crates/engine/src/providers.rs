//! Who stands behind a model.

use myclaw_llm::{Model, Provider};

/// Finds the provider that answers for a model. Implement it to put a recorded provider, an in-process model or a
/// provider of your own behind an engine.
pub trait Providers: Send + Sync {
    /// The provider of `model`. It is asked for every model call, so it must be cheap and always give the same one for
    /// the same model.
    fn provider(&self, model: &Model) -> &dyn Provider;
}

/// One provider for every model.
impl<P: Provider> Providers for P {
    fn provider(&self, _model: &Model) -> &dyn Provider {
        self
    }
}
