//! `myclaw auth test`: one tiny call with each key.

use myclaw_agent::{models::configured_model, setup::try_key, trial::TrialFailure};
use myclaw_llm::{Model, ModelRef, parse_model_ref, provider_info};
use serde::Serialize;

use super::{Found, Keys};
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::runtime;
use myclaw_front::time::now_ms;

/// The keys to try, and the model to try them with.
pub(super) struct Wanted<'a> {
    pub(super) profile: Option<&'a str>,
    pub(super) provider: Option<&'a str>,
    pub(super) model: Option<&'a str>,
}

/// The result for a key.
#[derive(Debug, Serialize)]
struct KeyOutcome {
    provider: String,
    profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    ok: bool,
    /// The class of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    message: String,
}

/// Tries the keys one after the other.
pub(super) fn run(keys: &Keys, wanted: &Wanted<'_>, json: bool) -> Result<(), CliError> {
    let meant = meant(keys, wanted)?;
    if meant.is_empty() {
        note("no keys yet; `myclaw auth add anthropic` keeps one");
        return Ok(());
    }
    let outcomes = runtime::block_on(async {
        let trial = KeyTrial { keys };
        let mut outcomes = Vec::with_capacity(meant.len());
        for found in &meant {
            outcomes.push(trial.attempt(found, wanted.model).await);
        }
        outcomes
    })?;
    print(&outcomes, json)?;
    let failed = outcomes.iter().filter(|outcome| !outcome.ok).count();
    if failed == 0 {
        return Ok(());
    }
    let class = outcomes.iter().find_map(|outcome| outcome.class).unwrap_or("unknown");
    let message = format!("{failed} of {} keys cannot be used", outcomes.len());
    Err(CliError::model(class, message))
}

fn meant(keys: &Keys, wanted: &Wanted<'_>) -> Result<Vec<Found>, CliError> {
    if let Some(name) = wanted.profile {
        return Ok(vec![keys.find(name)?]);
    }
    let providers = match wanted.provider {
        Some(name) => vec![keys.known_provider(name)?],
        None => keys.providers(),
    };
    Ok(providers
        .into_iter()
        .flat_map(|provider| {
            let arranged = keys.of(&provider);
            arranged
                .into_iter()
                .map(move |entry| Found { provider: provider.clone(), profile: entry.profile })
        })
        .collect())
}

fn print(outcomes: &[KeyOutcome], json: bool) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    if json {
        outcomes.iter().try_for_each(|outcome| printer.json(outcome))?;
        return printer.finish();
    }
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .map(|outcome| {
            let word = if outcome.ok { "ok" } else { "fail" };
            vec![
                word.to_owned(),
                outcome.provider.clone(),
                outcome.profile.clone(),
                outcome.message.clone(),
            ]
        })
        .collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

/// The shared parts of the calls.
struct KeyTrial<'a> {
    keys: &'a Keys,
}

impl KeyTrial<'_> {
    async fn attempt(&self, found: &Found, model: Option<&str>) -> KeyOutcome {
        let mut outcome = KeyOutcome {
            provider: found.provider.clone(),
            profile: found.profile.id.clone(),
            model: None,
            ok: false,
            class: None,
            message: String::new(),
        };
        let Some(model) = self.model(&found.provider, model) else {
            outcome.message = format!(
                "no model of {} is known; name one with --provider {} --model MODEL",
                found.provider, found.provider
            );
            return outcome;
        };
        outcome.model = Some(model.id.clone());
        let Keys { home, config, .. } = self.keys;
        let answer = try_key(home, config, &model, Some(&found.profile)).await;
        let (class, message) = match answer {
            Ok(took) => {
                outcome.ok = true;
                outcome.message = format!("{} answered in {} ms", model.id, took.as_millis());
                self.remember_success(found, &model);
                return outcome;
            }
            Err(TrialFailure::Key(why)) => ("auth", why),
            Err(TrialFailure::Call(error)) => (error.name(), error.message),
            Err(TrialFailure::Aborted) => ("aborted", "aborted".to_owned()),
        };
        KeyOutcome { class: Some(class), message, ..outcome }
    }

    /// The model to call: the one named, else one that the config names, else the provider's usual one.
    fn model(&self, provider: &str, named: Option<&str>) -> Option<Model> {
        let config = &self.keys.config;
        let configured = || {
            let reference = parse_model_ref(self.keys.agent.model.as_deref()?).ok()?;
            (reference.provider == provider).then_some(reference.id)
        };
        let of_provider = || {
            let configured = config.provider.as_ref().filter(|own| own.name == provider)?;
            Some(configured.model.clone())
        };
        let own = || Some(config.models.providers.get(provider)?.models.first()?.id.clone());
        let usual = || Some(provider_info(provider)?.default_model?.to_owned());
        let id = named
            .map(str::to_owned)
            .or_else(configured)
            .or_else(of_provider)
            .or_else(own)
            .or_else(usual)?;
        let reference = ModelRef { provider: provider.to_owned(), id };
        Some(configured_model(config, &reference).model)
    }

    /// Ends the cooldown of a key that works.
    fn remember_success(&self, found: &Found, model: &Model) {
        let name = found.store_name();
        if !self.keys.file.usage_stats.contains_key(&name) {
            return;
        }
        let recorded =
            self.keys.store.record(|file| file.record_success(&name, &model.id, now_ms()));
        if let Err(error) = recorded {
            note(format_args!("myclaw: {error}"));
        }
    }
}
