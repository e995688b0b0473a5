//! `myclaw init`.

use myclaw_agent::{
    Home,
    selection::{SelectionSource, Wanted, select},
};
use myclaw_config::{
    Config, ConfigError, StarterModel, load_or_default, starter_config, write_config_if_missing,
};
use myclaw_files::create_private_directory;
use myclaw_llm::provider_info;

use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::Printer;
use myclaw_front::runtime;

/// The next step if only the built-in model was found.
const SET_A_KEY: &str = "Set ANTHROPIC_API_KEY (or another provider's), or start a model server such as Ollama.\n     \
                         Until then builtin/demo answers, a small built-in model.";

/// Writes the starter config and the workspace, and prints the next steps.
pub(crate) fn run() -> Result<(), CliError> {
    let home = find_home()?;
    let starter = match home.paths.config_file().exists() {
        // An existing file is not changed.
        true => String::new(),
        false => starter(&home)?,
    };
    let scaffold = write_config_if_missing(&home.paths, &starter)?;
    let loaded = load_or_default(&home.environment);
    let agent = loaded.and_then(|loaded| loaded.config.resolve_agent(None));
    let first_step = match &agent {
        Ok(agent) if scaffold.created && agent.model.is_none() => Some(SET_A_KEY.to_owned()),
        Ok(_) => None,
        Err(error) => Some(first_step(error, &home)),
    };
    let workspace = agent.map_or_else(|_| home.paths.workspace_dir(None), |agent| agent.workspace);
    let existed = workspace.is_dir();
    create_private_directory(&workspace).map_err(|error| {
        CliError::failure(format!("cannot make the workspace {}: {error}", workspace.display()))
    })?;

    let mut printer = Printer::stdout();
    let state = |created: bool| if created { "written" } else { "there already, unchanged" };
    printer.line(format_args!(
        "config:    {} ({})",
        scaffold.path.display(),
        state(scaffold.created)
    ))?;
    printer.line(format_args!("workspace: {} ({})", workspace.display(), state(!existed)))?;
    printer.line("")?;
    printer.line("Next:")?;
    for (number, step) in
        (1..).zip(first_step.into_iter().chain([
            "myclaw config check".to_owned(),
            "myclaw run \"List the files here\"".to_owned(),
        ]))
    {
        printer.line(format_args!("  {number}. {step}"))?;
    }
    printer.finish()
}

/// A starter config with the model that answers on this machine today, so that nothing changes by writing it.
fn starter(home: &Home) -> Result<String, CliError> {
    let config = Config { paths: Some(home.paths.clone()), ..Config::default() };
    let stored =
        config.resolve_agent(None).map(|agent| home.stored_keys(&agent)).unwrap_or_default();
    let wanted = Wanted { requested: None, configured: None, fallbacks: &[], stored: &stored };
    let selection = runtime::block_on(select(&config, &home.environment, wanted))??;
    let name = selection.reference.to_string();
    let (provider, model) = (&selection.reference.provider, &selection.reference.id);
    Ok(starter_config(match &selection.source {
        SelectionSource::Builtin => StarterModel::Unset,
        SelectionSource::KeyVariable(variable) => {
            StarterModel::WithKey { provider, model, variable }
        }
        SelectionSource::LocalServer { base_url } if !is_usual(provider, base_url) => {
            StarterModel::Served { name: &name, provider, base_url }
        }
        _ => StarterModel::Named(&name),
    }))
}

/// Whether requests to a provider go to this address without a config.
fn is_usual(provider: &str, base_url: &str) -> bool {
    provider_info(provider).is_some_and(|info| info.base_url == base_url)
}

/// The next step if the config file prevents a turn.
fn first_step(error: &ConfigError, home: &Home) -> String {
    let ConfigError::MissingEnvVar { var, .. } = error else {
        return "Correct the config file; the next command says where.".to_owned();
    };
    format!(
        "Set {var}, for example in {}, or put another provider into the config file,\n     \
         or remove `provider` from it to use what is found on this machine.",
        home.paths.state_dir().join(".env").display()
    )
}
