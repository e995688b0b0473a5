//! Loads the file into a [`Config`]: read, parse, substitute, check, in this order. So a missing variable is reported
//! before an unknown key.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_files::formats::CONFIG;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::diagnose;
use crate::locate::Target;
use crate::lookup::{SubstitutionLookup, Workspaces};
use crate::paths::CONFIG_PATH_VARIABLE;
use crate::strict::typed;
use crate::substitute::{substitute, substitute_tree};
use crate::validate::Finding;
use crate::{Config, ConfigError, ConfigPath, Environment, Paths, semantics, tree};

/// Largest config file that is read. A thorough one has a few KiB.
const MAX_BYTES: u64 = 1024 * 1024;
/// Most mistakes that are reported at once; nobody reads more.
pub(crate) const MAX_ISSUES: usize = 20;

/// A config and its origin.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The config, with [`Config::paths`] filled in.
    pub config: Arc<Config>,
    /// The config file; absolute.
    pub path: PathBuf,
    /// Whether the file exists; if not, the config is the built-in defaults.
    pub found: bool,
    /// The text it was read from, to show mistakes in it.
    text: Arc<SecretString>,
}

/// A mistake that only the program can detect, such as the name of an unknown provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The value that is wrong.
    pub path: ConfigPath,
    /// The problem. Must not quote a value that could be a secret.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Loaded {
    /// The error that shows `mistakes` with their positions in the file.
    pub fn refuse(&self, mistakes: Vec<Mistake>) -> ConfigError {
        let text = self.text.expose_secret();
        let findings = mistakes.into_iter().map(|Mistake { path, message, help }| Finding {
            path,
            target: Target::Value,
            message,
            help,
        });
        diagnose::findings(&self.path, without_mark(text), findings.collect())
    }
}

/// Reads the config file without a cache; see [`crate::ConfigCache`].
///
/// # Errors
/// [`ConfigError::NotFound`] or [`ConfigError::NamedFileNotFound`] if there is no file; any other [`ConfigError`] if
/// the path cannot be determined, the file cannot be read, or it contains a mistake.
pub fn load_config(environment: &Environment) -> Result<Loaded, ConfigError> {
    load(environment, Paths::resolve(environment)?)
}

/// Reads the config file, or returns the built-in defaults if there is no file.
///
/// # Errors
/// As [`load_config`], except for a missing file that `MYCLAW_CONFIG_PATH` does not name.
pub fn load_or_default(environment: &Environment) -> Result<Loaded, ConfigError> {
    let paths = Paths::resolve(environment)?;
    match load(environment, paths.clone()) {
        Err(ConfigError::NotFound { path }) => {
            let config = Config { paths: Some(paths), ..Config::default() };
            let (config, text) = (Arc::new(config), Arc::default());
            Ok(Loaded { config, path, found: false, text })
        }
        loaded => loaded,
    }
}

pub(crate) fn load(environment: &Environment, paths: Paths) -> Result<Loaded, ConfigError> {
    let path = paths.config_file().to_path_buf();
    let text = read(&path).map_err(|error| match error {
        // A user who names a file does not want the built-in defaults.
        ConfigError::NotFound { path } if environment.path(CONFIG_PATH_VARIABLE).is_some() => {
            ConfigError::NamedFileNotFound { path }
        }
        error => error,
    })?;
    load_text(text, environment, paths)
}

/// Loads text as if the config file had it.
pub(crate) fn load_text(
    text: String,
    environment: &Environment,
    paths: Paths,
) -> Result<Loaded, ConfigError> {
    let path = paths.config_file().to_path_buf();
    let mut config = parse(without_mark(&text), environment, &paths)?;
    config.paths = Some(paths);
    let text = Arc::new(SecretString::from(text));
    Ok(Loaded { config: Arc::new(config), path, found: true, text })
}

/// Removes a byte order mark, which some editors write at the beginning of a file.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn parse(text: &str, environment: &Environment, paths: &Paths) -> Result<Config, ConfigError> {
    let file = paths.config_file();
    let mut tree = tree::parse(text).map_err(|failure| diagnose::syntax(file, text, failure))?;
    // This comes first: what a newer program can read may be a mistake for this one.
    if let Some(found) = tree["format"].as_u64().filter(|found| *found > CONFIG.newest.into()) {
        return Err(ConfigError::Newer { path: file.to_owned(), found });
    }
    // A reference may also be spelled with escapes. Text without `${` and without escapes has no reference.
    if text.contains("${") || text.contains('\\') {
        let lookup =
            SubstitutionLookup::new(environment, paths, workspaces(&tree, environment, paths));
        let missing = substitute_tree(&mut tree, MAX_ISSUES, &lookup);
        if let [first, ..] = missing.as_slice() {
            return Err(diagnose::missing_variables(first, &missing, file, text, paths, &lookup));
        }
    }
    match typed(&tree) {
        Ok(config) => {
            let findings = semantics::check(&config);
            if findings.is_empty() {
                Ok(config)
            } else {
                Err(diagnose::findings(file, text, findings))
            }
        }
        Err(misfit) => Err(diagnose::invalid(file, text, &tree, misfit)),
    }
}

/// The workspaces that the config names, before references are replaced. No `.env` is read from these directories.
fn workspaces(tree: &Value, environment: &Environment, paths: &Paths) -> Workspaces {
    let agents = &tree["agents"];
    let listed = agents["list"].as_array().into_iter().flatten().map(|entry| &entry["workspace"]);
    let named = [&tree["agent"]["workspaceDir"], &agents["defaults"]["workspace"]];
    let resolve = |text: &str| {
        let text = substitute(text, |name| environment.get(name)).ok()?;
        paths.resolve_in_config(&text).ok()
    };
    let directories: Option<Vec<_>> =
        named.into_iter().chain(listed).filter_map(Value::as_str).map(resolve).collect();
    directories.map_or(Workspaces::Unknown, Workspaces::Known)
}

pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
    // The file type is checked first, since opening a named pipe would wait for its other end.
    let metadata = std::fs::metadata(path).map_err(|error| explain_missing(path, error))?;
    if !metadata.is_file() {
        return Err(ConfigError::NotAFile { path: path.to_path_buf(), kind: kind_of(&metadata) });
    }
    if metadata.len() > MAX_BYTES {
        return Err(ConfigError::TooLarge { path: path.to_path_buf(), limit: MAX_BYTES });
    }
    let unreadable = |source| ConfigError::Unreadable { path: path.to_path_buf(), source };
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ConfigError::TooLarge { path: path.to_path_buf(), limit: MAX_BYTES });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigError::NotUtf8 { path: path.to_path_buf(), line }
    })
}

fn explain_missing(path: &Path, error: io::Error) -> ConfigError {
    let path = path.to_path_buf();
    if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
        return ConfigError::Unreadable { path, source: error };
    }
    match std::fs::read_link(&path) {
        Ok(target) => ConfigError::DanglingLink { path, target },
        Err(_) => ConfigError::NotFound { path },
    }
}

fn kind_of(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() { "a directory" } else { "a device, pipe or socket" }
}
