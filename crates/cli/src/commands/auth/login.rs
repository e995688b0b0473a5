//! `myclaw auth login`: a person logs in on the vendor's page, while this program waits for the answer.

use std::fs;

use myclaw_agent::{
    models::{configured_model, meant_provider},
    provider_login::{
        LoginStep, ProviderLogin, ProviderLoginError, providers_with_logins, read_client_file,
    },
};
use myclaw_auth::{CredentialType, StoredProfile};
use myclaw_config::SecretString;
use myclaw_llm::{HttpProvider, ModelError, ModelRef, provider_info};
use myclaw_llm_cloud::copilot::{CopilotHosts, LoginError, finish_login, start_login};
use tokio_util::sync::CancellationToken;

use super::Keys;
use super::keep::{IfTaken, has_profile, is_taken, keep, profile_name};
use crate::args::auth::LoginArgs;
use crate::commands::mcp::{open_browser, pasted};
use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::note;
use myclaw_front::runtime;
use myclaw_front::terminal::escaped;

/// The provider that has nothing but a login.
pub(super) const PROVIDER: &str = "github-copilot";

/// The vendors that keep the logins of their plans for their own programs, and the page on which they say so (read in
/// November 2026).
const NOT_PERMITTED: [(&str, &str); 1] = [(
    "anthropic",
    "Anthropic does not permit logins with a Claude plan in other programs (code.claude.com/docs/en/legal-and-compliance)",
)];

/// Logs in and keeps that.
pub(super) fn run(args: &LoginArgs, agent: Option<&str>) -> Result<(), CliError> {
    let keys = Keys::without_store(agent)?;
    let provider = args.provider.as_str();
    check(provider)?;
    let name = profile_name(provider, &args.profile)?;
    // A login takes the user minutes, so errors must be found before.
    let known = keys.store.load().ok();
    if !args.replace && known.as_ref().is_some_and(|file| has_profile(file, &name)) {
        return Err(is_taken(&name));
    }
    let profile = if provider == PROVIDER {
        let token = sign_in(&keys, args.github.as_deref())?;
        StoredProfile::with_key(provider, CredentialType::Token, token)
    } else {
        let stored = || known.iter().flat_map(|file| file.profiles());
        let ours = || stored().filter(|(_, stored)| stored.provider == provider);
        let given = ours().find(|(known, stored)| *known == name && stored.host.is_some());
        let (client_id, client_secret) = client(args)?;
        log_in(
            &keys,
            ProviderLogin {
                provider: provider.to_owned(),
                client_id,
                client_secret,
                tenant: args.tenant.clone(),
                server: args.server.clone(),
                port: args.port,
                given_client: given.and_then(|(_, stored)| stored.client()).map(str::to_owned),
                host: ours().find_map(|(_, stored)| stored.host.clone()),
            },
        )?
    };
    keep(&keys, provider, &name, &profile, IfTaken::of(args.replace))
}

/// Refuses a provider without a login.
pub(super) fn check(provider: &str) -> Result<(), CliError> {
    let has_login =
        |name: &str| providers_with_logins().chain([PROVIDER]).any(|known| known == name);
    if has_login(provider) {
        return Ok(());
    }
    let forbidden = |name: &str| NOT_PERMITTED.iter().find(|(vendor, _)| *vendor == name);
    if let Some((_, why)) = forbidden(provider) {
        return Err(CliError::usage(format!("{why}; `myclaw auth add {provider}` takes a key")));
    }
    if let Some(meant) = meant_provider(provider)
        && (has_login(meant) || forbidden(meant).is_some())
    {
        return Err(CliError::usage(format!(
            "{provider} is {meant} here: `myclaw auth login {meant}`"
        )));
    }
    let all: Vec<&str> = providers_with_logins().chain([PROVIDER]).collect();
    Err(CliError::usage(format!(
        "{provider} has no login here; `myclaw auth add {provider}` takes its key. There are logins at: {}",
        all.join(", ")
    )))
}

/// The id and the secret of the owner's application.
fn client(args: &LoginArgs) -> Result<(Option<String>, Option<SecretString>), CliError> {
    let Some(path) = &args.client_file else { return Ok((args.client_id.clone(), None)) };
    let unusable =
        |why: String| CliError::usage(format!("the file {} cannot be used: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let (id, secret) = read_client_file(&text).map_err(unusable)?;
    Ok((Some(id), Some(secret)))
}

/// Shows what to do and waits until it is done. All messages go to standard error, so that they are seen without a terminal too.
fn log_in(keys: &Keys, login: ProviderLogin) -> Result<StoredProfile, CliError> {
    let provider = login.provider.clone();
    let http = HttpProvider::new(keys.home.http_options());
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    let failed = |error: ProviderLoginError| match error {
        ProviderLoginError::Usage(why) => CliError::usage(why),
        ProviderLoginError::Failed(why) => CliError::model(
            "auth",
            format!("no login at {provider}: {why}; `myclaw auth login {provider}` begins another"),
        ),
        ProviderLoginError::Aborted => given_up(),
    };
    runtime::block_on(armed.unless_quit(async {
        let begun = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(given_up()),
            begun = login.begin(&http) => begun.map_err(&failed)?,
        };
        match &begun.step {
            LoginStep::Page(page) => {
                note(format_args!(
                    "open this page in a browser:\n\n    {}\n\nwaiting for its answer. If the browser runs on another machine, \
                     paste the address of the page that it ends at; Ctrl-C gives up",
                    escaped(page.as_str())
                ));
                open_browser(page.as_str());
            }
            LoginStep::Code { page, code, life } => note(format_args!(
                "open {} and type this code:\n\n    {}\n\nwaiting until that is done, for at most {} min; Ctrl-C gives up",
                escaped(page),
                escaped(code),
                life.as_secs().div_ceil(60)
            )),
        }
        begun.finish(&http, Box::pin(pasted()), &cancel).await.map_err(&failed)
    }))?
}

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
            LoginError::Denied(_) | LoginError::Expired => CliError::model(
                "auth",
                format!("{error}; `myclaw auth login {PROVIDER}` begins another"),
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
