//! `myclaw models`: the models that can be used.

use std::collections::BTreeMap;

use myclaw_config::{Config, load_or_default};
use myclaw_engine::ModelChoice;
use myclaw_llm::{Catalog, KeyNeed, LocalFinding, Model, ModelRef, provider_info, survey_local};
use serde::Serialize;

use crate::args::{ModelsArgs, ModelsCommand};
use crate::exit::CliError;
use crate::model_choice::{environment_key, local_probe};
use crate::print::{Printer, columns};
use crate::runtime;
use crate::settings::{Home, config_error};
use crate::similar::did_you_mean;

/// Runs one of the commands.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), CliError> {
    let ModelsCommand::List { provider, json } = &args.command;
    let home = Home::find()?;
    let config = load_or_default(&home.environment).map_err(|error| config_error(&error))?.config;
    let mut models = known_models(&config);
    let probe = local_probe(&home.environment)?;
    for (_, finding) in runtime::block_on(survey_local(&probe))? {
        let LocalFinding::Server(server) = finding else { continue };
        for id in server.models {
            let reference = ModelRef { provider: server.provider.clone(), id };
            let mut model = resolve(&config, &reference);
            model.base_url.clone_from(&server.base_url);
            models.insert(reference.to_string(), model);
        }
    }
    if let Some(provider) = provider {
        models.retain(|_, model| model.provider.eq_ignore_ascii_case(provider));
        if models.is_empty() {
            return Err(no_models_of(provider, &config));
        }
    }
    let listed: Vec<ListedModel> =
        models.into_values().map(|model| ListedModel::new(model, &config, &home)).collect();
    let mut printer = Printer::stdout();
    if *json {
        listed.iter().try_for_each(|model| printer.json(model))?;
    } else {
        for line in table(&listed) {
            let line = printer.safe(&line).into_owned();
            printer.line(line)?;
        }
    }
    printer.finish()
}

/// The catalog's models and those of the config file, by `provider/id`.
fn known_models(config: &Config) -> BTreeMap<String, Model> {
    let builtin = Catalog::builtin();
    let catalog = builtin.iter().map(|model| ModelRef { provider: model.provider, id: model.id });
    let own = config.models.providers.iter().flat_map(|(provider, own)| {
        own.models.iter().map(|model| ModelRef { provider: provider.clone(), id: model.id.clone() })
    });
    let default = config
        .provider
        .iter()
        .map(|provider| ModelRef { provider: provider.name.clone(), id: provider.model.clone() });
    catalog
        .chain(own)
        .chain(default)
        .map(|reference| (reference.to_string(), resolve(config, &reference)))
        .collect()
}

/// What is known about a model, the config file's word first.
fn resolve(config: &Config, reference: &ModelRef) -> Model {
    ModelChoice::from_config(config, reference).model
}

fn no_models_of(provider: &str, config: &Config) -> CliError {
    if let Some(info) = provider_info(provider) {
        return CliError::failure(format!(
            "no model of {} is known before its server answers at {}; start it, or name the model as {}/MODEL",
            info.name, info.base_url, info.name
        ));
    }
    let known: Vec<&str> = Catalog::builtin()
        .providers()
        .map(|info| info.name)
        .chain(config.models.providers.keys().map(String::as_str))
        .collect();
    let suggestion = did_you_mean(provider, known.iter().copied());
    CliError::usage(format!(
        "there is no provider `{provider}`{suggestion} Known: {}",
        known.join(", ")
    ))
}

/// A model with what stands between the user and it.
#[derive(Serialize)]
struct ListedModel {
    #[serde(flatten)]
    model: Model,
    key: KeyState,
}

/// Whether a model's provider has a key.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum KeyState {
    Set,
    Missing,
    NotNeeded,
}

impl ListedModel {
    fn new(model: Model, config: &Config, home: &Home) -> Self {
        let provider = model.provider.as_str();
        let is_configured =
            config.provider.as_ref().is_some_and(|configured| configured.name == provider);
        let own = config.models.providers.get(provider);
        let key = match provider_info(provider) {
            _ if is_configured || own.is_some_and(|own| own.api_key.is_some()) => KeyState::Set,
            Some(info) if info.key == KeyNeed::Required => {
                if environment_key(info, &home.environment).is_some() {
                    KeyState::Set
                } else {
                    KeyState::Missing
                }
            }
            _ => KeyState::NotNeeded,
        };
        Self { model, key }
    }
}

fn table(models: &[ListedModel]) -> Vec<String> {
    let head =
        ["MODEL", "CONTEXT", "OUTPUT", "$/M IN", "$/M OUT", "KEY"].map(str::to_owned).to_vec();
    let rows = models.iter().map(|ListedModel { model, key }| {
        let price =
            |dollars: f64| if dollars > 0.0 { format!("{dollars}") } else { "-".to_owned() };
        let key = match key {
            KeyState::Set => "set",
            KeyState::Missing => "missing",
            KeyState::NotNeeded => "not needed",
        };
        vec![
            format!("{}/{}", model.provider, model.id),
            thousands(model.context_window),
            thousands(model.max_output),
            price(model.price.input),
            price(model.price.output),
            key.to_owned(),
        ]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// `200k`, `1048k`, `512`.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 { tokens.to_string() } else { format!("{}k", tokens / 1_000) }
}
