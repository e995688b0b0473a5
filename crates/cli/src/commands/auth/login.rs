//! The login of GitHub Copilot: a person types a short code on GitHub's page, and this program waits for it.

use myclaw_agent::configured_model;
use myclaw_config::SecretString;
use myclaw_llm::{HttpProvider, ModelError, ModelRef, provider_info};
use myclaw_llm_cloud::copilot::{CopilotHosts, LoginError, finish_login, start_login};
use tokio_util::sync::CancellationToken;

use super::Keys;
use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::note;
use myclaw_front::runtime;
use myclaw_front::terminal::escaped;

/// The provider that has this login.
pub(super) const PROVIDER: &str = "github-copilot";

/// Shows where to type which code, and waits for the token. All messages go to standard error, so that they are seen
/// without a terminal too. Nothing is written.
pub(super) fn sign_in(keys: &Keys, github: Option<&str>) -> Result<SecretString, CliError> {
    let reference = ModelRef { provider: PROVIDER.to_owned(), id: String::new() };
    let base_url = configured_model(&keys.config, &reference).model.base_url;
    let hosts = match github {
        Some(host) => {
            CopilotHosts::enterprise(host).map_err(|error| CliError::usage(error.message))?
        }
        None => CopilotHosts::of_base_url(&base_url),
    };
    let http = HttpProvider::new(keys.home.http_options());
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    let token = runtime::block_on(armed.unless_quit(async {
        let begun = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(given_up()),
            begun = start_login(&http, &hosts) => begun.map_err(|error| failed(&error))?,
        };
        note(format_args!(
            "open {} and type this code:\n\n    {}\n\nwaiting until that is done, for at most {} min; Ctrl-C gives up",
            escaped(&begun.verification_uri),
            escaped(&begun.user_code),
            begun.expires_in.as_secs().div_ceil(60)
        ));
        finish_login(&http, &begun, &cancel).await.map_err(|error| match error {
            LoginError::Aborted => given_up(),
            LoginError::Failed(error) => failed(&error),
            LoginError::Denied | LoginError::Expired => CliError::model(
                "auth",
                format!("{error}; `myclaw auth add {PROVIDER}` begins another login"),
            ),
        })
    }))??;
    let is_default = provider_info(PROVIDER).is_some_and(|info| info.base_url == base_url);
    if is_default && hosts != CopilotHosts::default() {
        note(format_args!(
            "myclaw: set `models.providers.{PROVIDER}.baseUrl` to \"{}\" in the config file: this login is good there",
            hosts.models()
        ));
    }
    Ok(token)
}

fn failed(error: &ModelError) -> CliError {
    let message = format!("the login at GitHub failed: {}", error.message);
    CliError::model(error.name(), message)
}

fn given_up() -> CliError {
    CliError { message: "the login was aborted; nothing is kept".to_owned(), ..CliError::aborted() }
}
