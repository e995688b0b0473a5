//! Work through a gateway: which one, and what it is asked and answers.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use myclaw_agent::{FailureClass, Home};
use myclaw_config::{Config, SecretString};
use myclaw_files::variables::GATEWAY_TOKEN as TOKEN_VARIABLE;
use myclaw_gateway_client::{ConnectError, GatewayAddress, GatewaySocket, PlainLink};
use myclaw_session::SessionKey;
use serde_json::Value;

use crate::args::SessionArgs;
use crate::exit::CliError;
use crate::home::{is_shared, load_config};

mod questions;

pub use questions::{params_of, read_question};

/// Largest file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4_096;
/// Session that is meant if none is named.
pub const DEFAULT_SESSION: &str = "main";

/// Options that name a gateway elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct WhichGateway {
    /// Work on a session of this gateway, such as wss://claw.example.org:18789
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File with the token of that gateway; the default is the variable MYCLAW_GATEWAY_TOKEN
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the certificate of that gateway, or of the authority that signed it
    #[arg(long, value_name = "FILE", requires = "url")]
    pub ca: Option<PathBuf>,
    /// Accept ws:// to another machine: a VPN or a tunnel encrypts the whole way
    #[arg(long, requires = "url")]
    pub protected_link: bool,
}

/// Who works on a session.
pub enum Worker {
    /// A gateway.
    Gateway(GatewayAddress),
    /// This program, by this config.
    Here(Arc<Config>),
}

impl WhichGateway {
    /// The gateway that is named, or the one of this state directory.
    ///
    /// # Errors
    /// The address, the token or the certificate cannot be used.
    pub fn address(&self, home: &Home) -> Result<GatewayAddress, CliError> {
        let Some(url) = &self.url else { return Ok(GatewayAddress::own(home)) };
        let token = self.token(home)?;
        let link = PlainLink::of_option(self.protected_link);
        GatewayAddress::remote(url, token, self.ca.as_deref(), link)
            .map_err(|error| CliError::usage(error.to_string()))
    }

    /// Who works on the session of a command: the gateway that is named, the one of this state directory if gateways share its
    /// sessions in a database, or the command itself.
    ///
    /// # Errors
    /// As [`WhichGateway::address`], or the config file has a mistake.
    pub fn worker(&self, home: &Home) -> Result<Worker, CliError> {
        if self.url.is_some() {
            return Ok(Worker::Gateway(self.address(home)?));
        }
        let config = load_config(home)?;
        match is_shared(home, &config) {
            true => Ok(Worker::Gateway(GatewayAddress::own(home))),
            false => Ok(Worker::Here(config)),
        }
    }

    fn token(&self, home: &Home) -> Result<SecretString, CliError> {
        let token = match (&self.token_file, home.environment.get(TOKEN_VARIABLE)) {
            (Some(path), _) => {
                let read = myclaw_files::read_regular(path, MAX_TOKEN_BYTES).map_err(|error| {
                    CliError::usage(format!("{} cannot be read: {error}", path.display()))
                })?;
                String::from_utf8_lossy(&read).trim().to_owned()
            }
            (None, Some(token)) => token.trim().to_owned(),
            (None, None) => String::new(),
        };
        if token.is_empty() {
            return Err(CliError::usage(format!(
                "a gateway elsewhere wants its token: --token-file FILE, or the variable {TOKEN_VARIABLE}; `myclaw gateway \
                 status` on its machine says where the token is"
            )));
        }
        Ok(SecretString::from(token))
    }
}

/// Connects to a gateway.
///
/// # Errors
/// Nothing answers there, or not as a gateway that lets this client in.
pub async fn connect(address: &GatewayAddress) -> Result<GatewaySocket, CliError> {
    address.connect().await.map_err(|error| match error {
        ConnectError::Unreachable(message) => CliError::failure_of_class("not_running", message),
        ConnectError::Refused(message) => CliError::failure_of_class("gateway", message),
    })
}

/// The name or key of the session that is meant.
///
/// # Errors
/// An option asks for what the gateway decides by itself, or no session can have the name.
pub fn session_of(args: &SessionArgs) -> Result<String, CliError> {
    let SessionArgs { session, model, thinking, mode, auth_profile, agent, directory } = args;
    refuse(&[
        ("--model", model.is_some()),
        ("--thinking", thinking.is_some()),
        ("--mode", mode.is_some()),
        ("--auth-profile", auth_profile.is_some()),
        ("--directory", directory.is_some()),
    ])?;
    let name = session.as_deref().unwrap_or(DEFAULT_SESSION);
    let Some(agent) = agent else { return Ok(name.to_owned()) };
    SessionKey::parse_for_agent(agent, name)
        .map(|key| key.to_string())
        .map_err(|error| CliError::usage(error.to_string()))
}

/// Refuses options that do nothing on a session of a gateway, each with whether it is given.
///
/// # Errors
/// One is given.
pub fn refuse(options: &[(&str, bool)]) -> Result<(), CliError> {
    match options.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(CliError::usage(format!(
            "{option} cannot be used on a session of a gateway, which works in its own place and by its own config; leave it \
             out (`myclaw attach` has /model, /thinking and /mode for the session)"
        ))),
    }
}

/// The failure of a message that has ended without an answer; `None` if it has one, or is not over.
pub fn failure_of(outcome: &Value) -> Option<CliError> {
    let text = |name: &str| outcome[name].as_str().unwrap_or_default();
    match text("state") {
        "reported" => Some(reported(text("class"), text("message"))),
        "dropped" => Some(CliError::failure_of_class("dropped", text("reason"))),
        _ => None,
    }
}

/// A failure that the gateway reports, with the exit code that it has here.
fn reported(class: &str, message: &str) -> CliError {
    use FailureClass::{
        Aborted, AllModelsFailed, Busy, Config, EmptyReply, Hook, Internal, Mcp, Model,
        NothingToDo, Packages, QueueFull, Refusal, Sandbox, Session, Usage, WindowTooSmall,
        Workspace,
    };
    const KNOWN: [FailureClass; 26] = [
        Usage,
        Config,
        Session,
        Model("auth"),
        Model("rate_limit"),
        Model("billing"),
        Model("network"),
        Model("timeout"),
        Model("server_error"),
        Model("quota"),
        Model("context_overflow"),
        Model("unknown"),
        AllModelsFailed,
        WindowTooSmall,
        Refusal,
        EmptyReply,
        NothingToDo,
        Workspace,
        Hook,
        Sandbox,
        Mcp,
        Packages,
        QueueFull,
        Busy,
        Aborted,
        Internal,
    ];
    match KNOWN.into_iter().find(|known| known.as_str() == class) {
        Some(known) => {
            CliError { exit: known.into(), class: known.as_str(), message: message.to_owned() }
        }
        None => CliError::failure_of_class("reported", message),
    }
}

#[cfg(test)]
mod tests;
