//! The starter config file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::{Durability, NewFile, create_private_directory};
use serde_json::Value;

use crate::{ConfigError, Paths};

/// The beginning and end of the provider section in [`STARTER_CONFIG`], and the names in it.
const PROVIDER_BEGIN: &str = "  provider: {\n";
const PROVIDER_END: &str = "\n  },";
const STARTER_PROVIDER: &str = "\"anthropic\"";
const STARTER_MODEL: &str = "\"claude-sonnet-4-6\"";
const STARTER_KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";

/// A commented starter file with one provider.
pub const STARTER_CONFIG: &str = include_str!("../templates/myclaw.json5");

/// The model that a starter file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StarterModel<'a> {
    /// No model: the program keeps choosing one itself.
    Unset,
    /// `provider/model`, which needs no key or whose key is kept elsewhere.
    Named(&'a str),
    /// A model of a server on this machine that is not at its provider's usual address.
    Served {
        /// `provider/model`.
        name: &'a str,
        /// The provider's name.
        provider: &'a str,
        /// The base URL for requests.
        base_url: &'a str,
    },
    /// A model whose key is in a variable.
    WithKey {
        /// The provider's name.
        provider: &'a str,
        /// The model's id there.
        model: &'a str,
        /// The variable.
        variable: &'a str,
    },
}

/// [`STARTER_CONFIG`] with another model. The parts that the model does not need are commented out.
pub fn starter_config(model: StarterModel<'_>) -> String {
    let (before, rest) = STARTER_CONFIG.split_once(PROVIDER_BEGIN).unwrap_or((STARTER_CONFIG, ""));
    let (provider, after) = rest.split_once(PROVIDER_END).unwrap_or((rest, ""));
    let provider = match model {
        StarterModel::WithKey { provider: name, model, variable } => {
            let provider = provider.replace(STARTER_KEY_VARIABLE, variable);
            let quoted = |text: &str| Value::from(text).to_string();
            let provider = provider
                .replace(STARTER_MODEL, &quoted(model))
                .replace(STARTER_PROVIDER, &quoted(name));
            return format!("{before}{PROVIDER_BEGIN}{provider}{PROVIDER_END}{after}");
        }
        StarterModel::Named(_) | StarterModel::Served { .. } | StarterModel::Unset => provider,
    };
    let commented = format!("{PROVIDER_BEGIN}{provider}{PROVIDER_END}");
    let commented: String = commented
        .lines()
        .map(|line| format!("  // {}\n", line.strip_prefix("  ").unwrap_or(line)))
        .collect();
    let answers =
        |name: &str| format!("  agents: {{ defaults: {{ model: {} }} }},\n\n", Value::from(name));
    let named = match model {
        StarterModel::Named(name) => answers(name),
        StarterModel::Served { name, provider, base_url } => format!(
            "{}  // Where its server is.\n  models: {{ providers: {{ {}: {{ baseUrl: {} }} }} }},\n\n",
            answers(name),
            Value::from(provider),
            Value::from(base_url),
        ),
        _ => String::new(),
    };
    format!("{before}{named}{}{after}", commented.trim_end())
}

/// The result of [`scaffold_config_if_missing`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// The config file.
    pub path: PathBuf,
    /// Whether it was written now; otherwise it existed and is unchanged.
    pub created: bool,
}

/// Writes the starter file, readable by its owner only, unless the path exists. The file appears whole or not at all,
/// and a file that another process writes at the same time is never replaced. Also creates the state directory.
///
/// # Errors
/// [`ConfigError::Unwritable`].
pub fn scaffold_config_if_missing(paths: &Paths) -> Result<Scaffold, ConfigError> {
    write_config_if_missing(paths, STARTER_CONFIG)
}

/// Like [`scaffold_config_if_missing`], with this text.
///
/// # Errors
/// [`ConfigError::Unwritable`].
pub fn write_config_if_missing(paths: &Paths, text: &str) -> Result<Scaffold, ConfigError> {
    let path = paths.config_file();
    let directory = path.parent().unwrap_or(paths.state_dir());
    for directory in [paths.state_dir(), directory] {
        create_private_directory(directory)
            .map_err(|source| ConfigError::Unwritable { path: directory.to_path_buf(), source })?;
    }
    let created = create(path, directory, text)
        .map_err(|source| ConfigError::Unwritable { path: path.to_path_buf(), source })?;
    Ok(Scaffold { path: path.to_path_buf(), created })
}

fn create(path: &Path, directory: &Path, text: &str) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let mut file = NewFile::in_directory(directory, ".myclaw.")?;
    file.write_all(text.as_bytes())?;
    match file.put_at_free(path, Durability::Synced) {
        Ok(_) => Ok(true),
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failure) => Err(failure),
    }
}
