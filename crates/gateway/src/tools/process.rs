//! The tool `gateway`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::session::Call;
use crate::GatewayError;

/// How long the end of the process may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Status,
    Restart,
}

#[derive(Deserialize)]
struct Arguments {
    action: Action,
}

impl Call<'_> {
    pub(super) async fn gateway(&self) -> Result<Value, GatewayError> {
        let Arguments { action } = self.arguments()?;
        self.delivery.check_owner(self.caller.session_key.as_str())?;
        if matches!(action, Action::Status) {
            return self.delivery.state();
        }
        self.delivery.begin_restart(self.caller, self.id).await?;
        // The run ends with the process. The turn goes on in the next one, which knows that it is the next one.
        tokio::select! {
            () = tokio::time::sleep(PATIENCE) => {}
            () = self.cancel.cancelled() => {}
        }
        Err(GatewayError::Internal("the gateway did not restart; tell the owner".to_owned()))
    }
}
