//! `myclaw config get`, `set`, `unset` and `edit`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_agent::{
    AgentError, Home,
    config_write::{ConfigWriteError, WrittenConfig, change_config, replace_config},
};
use myclaw_config::{
    Config, ConfigChange, ConfigFile, ConfigPath, Environment, MASKED, Mistake, json5_value,
    unknown_key,
};
use myclaw_files::private_options;
use serde_json::Value;

use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;

/// The editor if neither `VISUAL` nor `EDITOR` names one.
const DEFAULT_EDITOR: &str = "vi";

/// Prints a value of the file.
pub(super) fn get(key: &str) -> Result<(), CliError> {
    let path = path_of(key)?;
    let file = read(&find_home()?)?;
    let values = file.values().map_err(AgentError::from)?;
    let value = match values.get(&path) {
        Some(value) if file.found() => value,
        _ if path.is_root() => &Value::Object(serde_json::Map::new()),
        _ => &default_of(&path, &file)?,
    };
    let mut printer = Printer::stdout();
    match value {
        Value::String(text) => printer.copied_lines(text.lines())?,
        value => printer.copied_lines([format!("{value:#}")])?,
    }
    printer.finish()
}

/// The value that counts because the file has none.
fn default_of(path: &ConfigPath, file: &ConfigFile) -> Result<Value, CliError> {
    if let Some(Mistake { path, help, .. }) = unknown_key(path) {
        let help = help.map(|help| format!("; {help}")).unwrap_or_default();
        return Err(CliError::usage(format!("the config has no key `{path}`{help}")));
    }
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    match path.find(&defaults) {
        Some(value) if !value.is_null() => {
            note(format_args!(
                "myclaw: {path} is not in {}; this is the default",
                file.path().display()
            ));
            Ok(value.clone())
        }
        _ => Err(CliError::failure(format!(
            "{path} is not in {}; docs/use/config.md says what applies then",
            file.path().display()
        ))),
    }
}

/// Sets a value.
pub(super) fn set(key: &str, value: &str) -> Result<(), CliError> {
    let path = path_of(key)?;
    let home = find_home()?;
    let file = read(&home)?;
    let parsed = json5_value(value).unwrap_or_else(|| Value::String(value.to_owned()));
    let change = |value| [ConfigChange::Set { path: path.clone(), value }];
    let mut written = attempt(&home, &file, (&path, value), &change(parsed.clone()));
    // 5 may be meant as the text "5", as in the name of a chat.
    if written.is_err() && !parsed.is_string() && !parsed.is_array() && !parsed.is_object() {
        let as_text =
            attempt(&home, &file, (&path, value), &change(Value::String(value.to_owned())));
        written = as_text.or(written);
    }
    report(&file, written?)
}

/// Removes a value.
pub(super) fn unset(key: &str) -> Result<(), CliError> {
    let path = path_of(key)?;
    let home = find_home()?;
    let file = read(&home)?;
    if !file.found() || !file.has(&path).map_err(AgentError::from)? {
        return Err(CliError::failure(format!("{path} is not in {}", file.path().display())));
    }
    let changes = [ConfigChange::Unset { path }];
    let written = runtime::block_on(change_config(&home, &file, &changes))?;
    report(&file, written?)
}

/// Lets the user edit a copy of the file, which replaces it if it has no mistakes.
pub(super) fn edit() -> Result<(), CliError> {
    let home = find_home()?;
    let file = read(&home)?;
    let draft = Draft::new(&file)?;
    run_editor(&home.environment, &draft.0)?;
    let text = std::fs::read_to_string(&draft.0)
        .map_err(|error| CliError::failure(format!("{}: {error}", draft.0.display())))?;
    let changed = file.with_text(text);
    if changed == file {
        note("nothing was changed");
        return Ok(());
    }
    let written = runtime::block_on(replace_config(&home, &file, changed))?;
    match written {
        Ok(written) => report(&file, written),
        Err(error) => {
            let kept = draft.keep();
            let error = AgentError::from(error);
            Err(CliError {
                message: format!(
                    "{}\nthe config file is as it was; what you wrote is in {}",
                    error.message,
                    kept.display()
                ),
                ..error.into()
            })
        }
    }
}

fn attempt(
    home: &Home,
    file: &ConfigFile,
    (path, text): (&ConfigPath, &str),
    changes: &[ConfigChange],
) -> Result<WrittenConfig, CliError> {
    let changed = file.with(changes).map_err(ConfigWriteError::from).map_err(AgentError::from)?;
    // A mistake is reported as such: a text in the wrong place is masked like a secret.
    changed.load(&home.environment).map_err(AgentError::from)?;
    let secrets = changed.values().map_err(AgentError::from)?.secrets;
    // The placeholder stands for the secret that is there already.
    let is_given = !text.contains(MASKED);
    if let Some(secret) = secrets.iter().find(|secret| is_given && secret.is_within(path)) {
        return Err(CliError::usage(format!(
            "{secret} is a secret, which would stay in the history of the shell and in the file; put it into the \
             environment or {} and write '${{NAME}}' here, or store a key with `myclaw auth add`",
            home.paths.state_dir().join(".env").display()
        )));
    }
    let written = runtime::block_on(replace_config(home, file, changed))?;
    Ok(written.map_err(AgentError::from)?)
}

fn path_of(key: &str) -> Result<ConfigPath, CliError> {
    key.parse().map_err(|error| CliError::usage(format!("{key}: {error}")))
}

fn read(home: &Home) -> Result<ConfigFile, CliError> {
    Ok(ConfigFile::read(&home.paths).map_err(AgentError::from)?)
}

fn report(before: &ConfigFile, written: WrittenConfig) -> Result<(), CliError> {
    for warning in written.warnings {
        note(format_args!("myclaw: warning: {warning}"));
    }
    let state = if written.file == *before { "unchanged" } else { "written" };
    let mut printer = Printer::stdout();
    printer.line(format_args!("{}: {state}", written.file.path().display()))?;
    printer.finish()
}

/// A private copy of the file, which is removed in the end.
struct Draft(PathBuf);

impl Draft {
    fn new(file: &ConfigFile) -> Result<Self, CliError> {
        let directory = file.path().parent().unwrap_or(Path::new("."));
        let path = directory.join(format!("config-draft-{}.json5", std::process::id()));
        let failed = |error| CliError::failure(format!("cannot write {}: {error}", path.display()));
        myclaw_files::create_private_directory(directory).map_err(failed)?;
        let opened = private_options().write(true).create(true).truncate(true).open(&path);
        opened.and_then(|mut out| out.write_all(file.text().as_bytes())).map_err(failed)?;
        Ok(Self(path))
    }

    /// Leaves the copy where it is.
    fn keep(self) -> PathBuf {
        let path = self.0.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The error is ignored: the file is private.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run_editor(environment: &Environment, file: &Path) -> Result<(), CliError> {
    let named = |name| environment.get(name).filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or(DEFAULT_EDITOR);
    // The variable may hold arguments, as in `code --wait`.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file);
    let status = command
        .status()
        .map_err(|error| CliError::failure(format!("`{editor}` cannot be started: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(CliError::failure(format!("`{editor}` ended with {status}; the config file is unchanged")))
}
