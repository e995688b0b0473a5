//! `myclaw models show`: all that is known about one model, and where each figure comes from.

use myclaw_agent::{
    Home,
    config_check::load_checked,
    models::configured_model,
    selection::{apply_served_facts, local_base_url, unknown_provider},
};
use myclaw_config::{Config, ModelDefinition};
use myclaw_llm::{
    BUILTIN_PROVIDER, InputKind, KeyNeed, LocalFacts, Model, ModelCatalog, ModelRef, Price,
    ThinkingLevel, parse_model_ref, provider_info,
};
use serde::Serialize;

use crate::args::ModelArgs;
use crate::commands::cluster::with_shared_keys;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::models::{KeySource, KeyState, default_keys};
use myclaw_front::print::{Printer, columns, without_login};
use myclaw_front::runtime::block_on;

/// Prints all that is known about the model.
pub(super) fn run(args: &ModelArgs) -> Result<(), CliError> {
    let reference =
        parse_model_ref(&args.model).map_err(|error| CliError::usage(error.to_string()))?;
    let home = find_home()?;
    let config = load_checked(&home.environment)?.config;
    let home = with_shared_keys(home, &config)?;
    let mut known = Known::new(&reference, &config, &home)?;
    known.model.base_url = without_login(&known.model.base_url);
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&known.as_json())?;
    } else {
        printer.safe_lines(columns(&known.rows()))?;
    }
    printer.finish()
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    /// The config file.
    Config,
    /// The catalog of this program.
    Catalog,
    /// The server on this machine that runs the model.
    Server,
    /// Unknown to all of them.
    Guess,
}

impl Origin {
    fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Catalog => "catalog",
            Self::Server => "server",
            Self::Guess => "guess",
        }
    }
}

/// Where the figures come from, one by one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Origins {
    api: Origin,
    base_url: Origin,
    context_window: Origin,
    max_output: Origin,
    input: Origin,
    price: Origin,
    thinking: Origin,
}

impl Origins {
    fn new(reference: &ModelRef, config: &Config) -> Self {
        let own = config.models.providers.get(&reference.provider);
        let configured =
            config.provider.as_ref().filter(|provider| provider.name == reference.provider);
        let definition =
            own.and_then(|own| own.models.iter().find(|model| model.id == reference.id));
        let is_known = ModelCatalog::builtin().find(&reference.provider, &reference.id).is_some();
        let or_guess = |is_known: bool| if is_known { Origin::Catalog } else { Origin::Guess };
        let from = |is_set: bool| if is_set { Origin::Config } else { or_guess(is_known) };
        // The properties of a provider are known even if the model is not.
        let of_provider = |is_set: bool| {
            let is_known = provider_info(&reference.provider).is_some();
            if is_set { Origin::Config } else { or_guess(is_known) }
        };
        let says = |field: fn(&ModelDefinition) -> bool| definition.is_some_and(field);
        Self {
            api: of_provider(
                says(|model| model.api.is_some()) || own.is_some_and(|own| own.api.is_some()),
            ),
            base_url: of_provider(
                own.is_some_and(|own| own.base_url.is_some())
                    || configured.is_some_and(|provider| provider.base_url.is_some()),
            ),
            context_window: from(says(|model| model.context_window.is_some())),
            max_output: from(says(|model| model.max_output.is_some())),
            input: from(says(|model| model.input.is_some())),
            price: from(says(|model| model.price.is_some())),
            thinking: from(says(|model| {
                model.reasoning.is_some() || model.thinking_levels.is_some()
            })),
        }
    }

    /// Notes which figures came from a server on this machine.
    fn take(&mut self, facts: &LocalFacts) {
        if facts.context_window.or(facts.largest_window).is_some() {
            self.context_window = Origin::Server;
        }
        if facts.takes_images.is_some() && self.input != Origin::Config {
            self.input = Origin::Server;
        }
    }
}

/// One model with its provider, key and thinking levels.
struct Known {
    model: Model,
    origins: Origins,
    key: KeySource,
    is_allowed: bool,
}

impl Known {
    fn new(reference: &ModelRef, config: &Config, home: &Home) -> Result<Self, CliError> {
        let provider = reference.provider.as_str();
        let is_configured = config.models.providers.contains_key(provider)
            || config.provider.as_ref().is_some_and(|configured| configured.name == provider);
        let info = provider_info(provider);
        if info.is_none() && !is_configured {
            return Err(CliError::usage(unknown_provider(config, provider)));
        }
        let mut active = configured_model(config, reference);
        let mut origins = Origins::new(reference, config);
        if let Some(info) =
            info.filter(|info| info.key == KeyNeed::None && info.name != BUILTIN_PROVIDER)
            && origins.base_url != Origin::Config
        {
            active.model.base_url = local_base_url(info, &home.environment);
        }
        let facts = block_on(apply_served_facts(config, reference, &mut active, None))?;
        facts.inspect(|facts| origins.take(facts));
        Ok(Self {
            origins,
            key: KeySource::find(provider, config, home, &default_keys(home, config)?),
            is_allowed: config.allows_model(provider, &reference.id),
            model: active.model,
        })
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let Self { model, origins, .. } = self;
        let figure = |name: &str, value: String, origin: Origin| {
            vec![name.to_owned(), value, origin.as_str().to_owned()]
        };
        let fact = |name: &str, value: String| vec![name.to_owned(), value];
        let input: Vec<&str> = model.input.iter().copied().map(input_name).collect();
        let mut rows = vec![
            fact("model", format!("{}/{}", model.provider, model.id)),
            figure("wire format", model.api.as_str().to_owned(), origins.api),
            figure("base URL", or_none(&model.base_url), origins.base_url),
            figure("context window", tokens(model.context_window), origins.context_window),
            figure("output limit", tokens(model.max_output), origins.max_output),
            figure("input", input.join(", "), origins.input),
            figure("price", price(model.price), origins.price),
            figure("thinking", self.thinking(), origins.thinking),
            fact("key", self.key.describe()),
        ];
        if model.api.has_thinking_form() && model.reasoning {
            let form = model.quirks.thinking_form.as_str().to_owned();
            rows.insert(8, figure("thinking form", form, origins.thinking));
        }
        if !model.quirks.headers.is_empty() {
            let names: Vec<&str> = model.quirks.headers.iter().map(|(name, _)| name).collect();
            rows.push(figure("headers", names.join(", "), Origin::Config));
        }
        if !self.is_allowed {
            rows.push(fact("allowed", "no: agents.defaults.models does not have it".to_owned()));
        }
        rows
    }

    /// `off (none), low, high`: each level with the provider's word where that differs.
    fn thinking(&self) -> String {
        if !self.model.reasoning {
            return "no".to_owned();
        }
        let level = |level: ThinkingLevel| {
            let word = self.model.thinking_word(level);
            if word == level.as_str() { level.to_string() } else { format!("{level} ({word})") }
        };
        let levels = self.model.offered_thinking_levels();
        levels.into_iter().map(level).collect::<Vec<_>>().join(", ")
    }

    fn as_json(&self) -> KnownJson<'_> {
        KnownJson {
            model: &self.model,
            thinking: self.model.offered_thinking_levels(),
            thinking_form: self.model.quirks.thinking_form.as_str(),
            key: self.key.state(),
            key_source: self.key.describe(),
            allowed: self.is_allowed,
            origins: &self.origins,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KnownJson<'a> {
    #[serde(flatten)]
    model: &'a Model,
    thinking: Vec<ThinkingLevel>,
    thinking_form: &'static str,
    key: KeyState,
    key_source: String,
    allowed: bool,
    origins: &'a Origins,
}

fn input_name(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Text => "text",
        InputKind::Image => "image",
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

fn tokens(count: u64) -> String {
    format!("{count} tokens")
}

/// `$3 in, $15 out, $0.3 cache read, $3.75 cache write per million tokens`.
fn price(price: Option<Price>) -> String {
    let Some(price) = price else { return "unknown".to_owned() };
    if price == Price::default() {
        return "free".to_owned();
    }
    format!(
        "${} in, ${} out, ${} cache read, ${} cache write per million tokens",
        price.input, price.output, price.cache_read, price.cache_write
    )
}
