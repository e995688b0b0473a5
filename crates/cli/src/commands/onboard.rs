//! `myclaw onboard`: the first set-up, step by step. Each step tries what it was told before it writes anything, and
//! writes all of it or nothing. What works already stays as it is, unless an option names something else.

mod asking;
mod channel;

use std::path::{Path, PathBuf};

use asking::{Asker, Default};
use myclaw_agent::{
    AgentError, Home,
    config_check::load_checked,
    config_write::{WrittenConfig, change_config},
    selection::environment_key,
    setup::{NewModel, SetupError, default_agent_key, set_up_model, usable_model},
};
use myclaw_config::{ConfigChange, ConfigFile, KeySource, SecretString};
use myclaw_files::create_private_directory;
use myclaw_llm::{KeyNeed, provider_info};

use super::auth::{checked_key, read_key};
use super::cluster::with_shared_keys;
use super::gateway::install_service;
use super::system::HAS_SERVICES;
use crate::args::OnboardArgs;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::note;
use myclaw_front::runtime;

/// Most attempts of a person at one step.
const MOST_ATTEMPTS: usize = 5;

/// Does the steps in order.
pub(crate) fn run(args: &OnboardArgs) -> Result<(), CliError> {
    let asker = Asker::new(args.yes);
    // A file with mistakes is not made worse: `config check` says what to do first.
    load_checked(&find_home()?.environment)?;
    model(args, &asker)?;
    workspace(args, &asker)?;
    channel::set_up(args, &asker)?;
    service(args, &asker)?;
    let home = find_home()?;
    say(format_args!("config      {}", home.paths.config_file().display()));
    say("next        myclaw                      talk with the agent here");
    say("            myclaw gateway              serve the web UI and the channels");
    Ok(())
}

fn say(line: impl std::fmt::Display) {
    note(line);
}

/// The model that answers, and its key.
fn model(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    let home = find_home()?;
    let home = with_shared_keys(home.clone(), &load_checked(&home.environment)?.config)?;
    let usable = runtime::block_on(usable_model(&home))?;
    if args.provider.is_none() {
        match (&usable, asker.is_quiet()) {
            (Ok(Some(model)), true) => {
                say(format_args!("model       {model}, as before"));
                return Ok(());
            }
            (Ok(Some(model)), false) => {
                if asker.confirm(&format!("{model} can be used. Keep it?"), Default::Yes)? {
                    say(format_args!("model       {model}, as before"));
                    return Ok(());
                }
            }
            (_, true) => {
                return Err(CliError::usage(
                    "no model can be used yet: name one with --provider, and its key with --key-env or --key-stdin",
                ));
            }
            (Err(problem), false) => say(format_args!("myclaw: {problem}")),
            (Ok(None), false) => say("No model can be used yet."),
        }
    }
    for attempt in 1..=MOST_ATTEMPTS {
        let wanted = WantedModel::of(args, asker, &home)?;
        say(format_args!("trying {} …", wanted.provider));
        let file = ConfigFile::read(&home.paths).map_err(AgentError::from)?;
        let new = NewModel {
            provider: &wanted.provider,
            model: wanted.model.as_deref(),
            base_url: wanted.base_url.as_deref(),
            key: wanted.key,
        };
        match runtime::block_on(set_up_model(&home, &file, new))? {
            Ok(done) => {
                let took = done.took.as_millis();
                say(format_args!("model       {}, answered in {took} ms", done.reference));
                if let Some(store) = done.store {
                    say(format_args!("key         kept in {store}"));
                }
                return Ok(());
            }
            Err(error) if asker.is_quiet() || attempt == MOST_ATTEMPTS => return Err(of(error)),
            // Nothing has changed: ask again.
            Err(error) => say(format_args!("myclaw: {error}")),
        }
    }
    Ok(())
}

fn of(error: SetupError) -> CliError {
    let message = error.to_string();
    match error {
        SetupError::Unusable { .. } => CliError::usage(message),
        SetupError::NoAnswer { class, .. } => CliError::model(class, message),
        SetupError::Config(error) => AgentError::from(error).into(),
        SetupError::Store(_) => CliError::failure(message),
    }
}

/// What the options say, or else the answers.
struct WantedModel {
    provider: String,
    model: Option<String>,
    base_url: Option<String>,
    key: Option<KeySource>,
}

impl WantedModel {
    fn of(args: &OnboardArgs, asker: &Asker, home: &Home) -> Result<Self, CliError> {
        let (model, base_url) = (args.model.clone(), args.base_url.clone());
        if let Some(provider) = args.provider.clone() {
            let key = given_key(args, &provider)?;
            // A key that no option names is asked for once it turns out to be missing.
            if key.is_some() || asker.is_quiet() || !lacks_key(home, &provider) {
                return Ok(Self { provider, model, base_url, key });
            }
            let key = Some(asked_key(asker, &provider)?);
            return Ok(Self { provider, model, base_url, key });
        }
        let question = "Provider of the model (anthropic, openai, google, openrouter, ollama, …)";
        let provider = asker.ask(question, "anthropic")?;
        let usual = provider_info(&provider).and_then(|info| info.default_model);
        let model = asker.ask("Model", usual.unwrap_or_default())?;
        let base_url = match provider_info(&provider) {
            Some(info) if !info.base_url.is_empty() => None,
            _ => Some(asker.ask("Address of its server, such as https://host/v1", "")?),
        };
        let key = match lacks_key(home, &provider) {
            true => Some(asked_key(asker, &provider)?),
            false => None,
        };
        let model = Some(model).filter(|model| !model.is_empty());
        Ok(Self { provider, model, base_url, key })
    }
}

/// Whether a provider needs a key that is nowhere yet.
fn lacks_key(home: &Home, provider: &str) -> bool {
    let Some(info) = provider_info(provider) else { return true };
    let has_variable = environment_key(info, &home.environment).is_some();
    let is_stored = || {
        let loaded = load_checked(&home.environment).ok();
        let agent = loaded.and_then(|loaded| loaded.config.resolve_agent(None).ok());
        agent.is_some_and(|agent| !home.stored_keys(&agent).profiles_of(provider).is_empty())
    };
    info.key == KeyNeed::Required && !has_variable && !is_stored()
}

fn given_key(args: &OnboardArgs, provider: &str) -> Result<Option<KeySource>, CliError> {
    if let Some(name) = &args.key_env {
        return Ok(Some(KeySource::Environment(name.trim().to_owned())));
    }
    if args.key_stdin {
        return Ok(Some(KeySource::Literal(checked_key(&read_key(provider)?)?)));
    }
    Ok(None)
}

fn asked_key(asker: &Asker, provider: &str) -> Result<KeySource, CliError> {
    let key: SecretString = asker.secret(&format!("Key for {provider} (not shown)"))?;
    Ok(KeySource::Literal(key))
}

/// The directory in which the agent works.
fn workspace(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    let home = find_home()?;
    let loaded = load_checked(&home.environment)?;
    let now = loaded.config.resolve_agent(None).map_err(AgentError::from)?.workspace;
    let wanted = match &args.workspace {
        Some(wanted) => wanted.clone(),
        None => {
            PathBuf::from(asker.ask("Directory in which it works", &now.display().to_string())?)
        }
    };
    let wanted = absolute(&home, &wanted)?;
    let existed = wanted.is_dir();
    create_private_directory(&wanted).map_err(|error| {
        CliError::failure(format!("cannot make the workspace {}: {error}", wanted.display()))
    })?;
    if wanted != now {
        let Some(text) = wanted.to_str() else {
            return Err(CliError::usage("the path of the workspace is not UTF-8; choose another"));
        };
        let file = ConfigFile::read(&home.paths).map_err(AgentError::from)?;
        let path =
            default_agent_key(&file, &loaded.config, "workspace").map_err(AgentError::from)?;
        let change = ConfigChange::Set { path, value: text.into() };
        write(&home, &file, &[change])?;
    }
    let state = if existed { "there already" } else { "made" };
    say(format_args!("workspace   {} ({state})", wanted.display()));
    Ok(())
}

/// `~` is home; a relative path begins where the user is.
fn absolute(home: &Home, path: &Path) -> Result<PathBuf, CliError> {
    let expanded = match (path.strip_prefix("~"), home.paths.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    std::path::absolute(&expanded)
        .map_err(|error| CliError::usage(format!("{} cannot be used: {error}", path.display())))
}

/// Changes the config file if the result has no mistakes.
fn write(home: &Home, file: &ConfigFile, changes: &[ConfigChange]) -> Result<(), CliError> {
    let written = runtime::block_on(change_config(home, file, changes))?;
    warn(&written?);
    Ok(())
}

fn warn(written: &WrittenConfig) {
    for warning in &written.warnings {
        say(format_args!("myclaw: warning: {warning}"));
    }
}

/// The gateway as a service.
fn service(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    let question = "Start the gateway with your session, as a service?";
    if args.install_service || HAS_SERVICES && asker.confirm(question, Default::No)? {
        return install_service();
    }
    Ok(())
}
