//! `myclaw doctor`: what is configured, what is missing, and what to do next.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write as _};
use std::path::Path;
use std::sync::Arc;

use myclaw_agent::permissions::unanswered_questions;
use myclaw_agent::speech::{speaker, speech_obstacles, transcriber};
use myclaw_agent::{
    FailureClass, Home, browser_obstacle,
    config_check::load_checked,
    exhausted_today,
    key_lookup::find_program,
    selection::{LOCAL_SERVERS_VARIABLE, Selection, SelectionSource, Wanted, local_probe, select},
};
use myclaw_config::{Config, ConfigError, ResolvedAgent};
use myclaw_hooks::{UnusableCommand, unusable_commands};
use myclaw_llm::{LocalCandidate, LocalFinding, survey_local};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::commands::cluster::with_shared_keys;
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;
use myclaw_front::terminal::{Paint, Size, Style};

mod agents;
mod channels;
mod gateway;
mod keys;
mod mcp;
mod moved;
mod packages;
mod sandbox;
mod security;
mod sources;
mod system;
mod update;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// No problem.
    Ok,
    /// A turn can run, but something is missing.
    Warn,
    /// No turn can run before this is fixed.
    Fail,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The exit code that it causes.
    #[serde(skip)]
    exit: Exit,
}

impl Check {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, message: message.into(), next: None, exit: Exit::Success }
    }

    fn warn(check: &'static str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: Status::Warn, next: Some(next.into()), ..Self::ok(check, message) }
    }

    fn fail(check: &'static str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: Status::Fail, exit: Exit::Failure, ..Self::warn(check, message, next) }
    }

    /// Sets the exit code, for problems that the config file may cause.
    fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Prints the report.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CliError> {
    let home = find_home()?;
    if args.security {
        return security::run(args, &home);
    }
    let checks = examine(&with_its_keys(home))?;
    let mut printer = Printer::stdout();
    let paint = Paint::for_stream(&io::stdout());
    for check in &checks {
        if args.json {
            printer.json(check)?;
        } else {
            print_check(check, paint, &mut printer)?;
        }
    }
    printer.finish()?;
    match checks.iter().find(|check| check.status == Status::Fail) {
        None => Ok(()),
        Some(failed) => {
            let mut error = CliError::failure(
                "no turn can run yet; the lines marked `fail` say what to do first",
            );
            error.exit = failed.exit;
            Err(error)
        }
    }
}

/// The home with the keys that its config means. Where they cannot be reached, a gateway cannot either, and the rest is worth
/// knowing.
fn with_its_keys(home: Home) -> Home {
    let Ok(loaded) = load_checked(&home.environment) else { return home };
    with_shared_keys(home.clone(), &loaded.config).unwrap_or_else(|error| {
        note(format_args!("myclaw: {}", error.message));
        home
    })
}

fn print_check(check: &Check, paint: Paint, printer: &mut Printer) -> Result<(), CliError> {
    let (word, style) = match check.status {
        Status::Ok => ("ok  ", Style::Good),
        Status::Warn => ("warn", Style::Warning),
        Status::Fail => ("fail", Style::Bad),
    };
    let line = printer.fitting(&format!("{word}  {:<10} {}", check.check, check.message));
    let rest = line.strip_prefix(word).unwrap_or(&line);
    printer.line(format_args!("{}{rest}", paint.paint(style, word)))?;
    if let Some(next) = &check.next {
        printer.safe_lines([format!("{:17}-> {next}", "")])?;
    }
    Ok(())
}

fn examine(home: &Home) -> Result<Vec<Check>, CliError> {
    let (mut checks, config) = check_config(home);
    let agent = config.resolve_agent(None).ok();
    // If the config file has a mistake, the checks of the model are skipped: their result would be a guess.
    let is_config_usable = checks.iter().all(|check| check.status != Status::Fail);
    let (others, servers) = runtime::block_on(async {
        let mut others = Vec::new();
        if is_config_usable {
            checks.extend(check_answers(agent.as_ref(), &config, home).await);
            others = agents::check_others(agent.as_ref(), &config, home).await;
        }
        if is_config_usable {
            others.extend(sandbox::check(&config, home).await);
            others.extend(sandbox::check_state_directory(&config, home).await);
            others.extend(channels::check(&config, home).await);
            others.extend(gateway::check(&config, home));
            others.extend(gateway::check_heartbeats(&config));
            let unanswered = unanswered_questions(&config).into_iter();
            others.extend(unanswered.map(|(what, next)| Check::warn("approvals", what, next)));
        }
        (others, check_local_servers(home).await)
    })?;
    checks.extend(keys::check_files(&config, agent.as_ref(), home));
    checks.extend(servers);
    checks.push(check_workspace(agent.as_ref(), home));
    checks.extend(system::check());
    checks.extend(moved::check(home));
    checks.extend(update::check(home));
    checks.extend(others);
    checks.push(check_directory(
        "sessions",
        &home.paths.sessions_dir(),
        myclaw_files::variables::STATE_DIR,
    ));
    checks.extend(check_torn_ends(home));
    checks.extend(check_hooks(&config, home));
    checks.extend(check_speech(&config));
    if is_config_usable {
        checks.extend(mcp::check(&config, home));
        checks.extend(packages::check(home));
    }
    checks.push(check_program("bash", without_bash()));
    checks.push(check_program("git", "many tasks in repositories need it"));
    checks.push(check_browser(&config, home));
    checks.push(check_terminal());
    Ok(checks)
}

/// Checks what an agent needs for an answer: a model, its keys, and something left of the day's budget.
async fn check_answers(agent: Option<&ResolvedAgent>, config: &Config, home: &Home) -> Vec<Check> {
    let configured = agent.and_then(|agent| agent.model.as_deref());
    let stored = agent.map(|agent| home.stored_keys(agent)).unwrap_or_default();
    let fallbacks = agent.map_or(&[][..], |agent| &agent.fallbacks);
    let wanted = Wanted { requested: None, configured, fallbacks, stored: &stored };
    match select(config, &home.environment, wanted).await {
        Ok(model) => {
            let mut checks = check_model(&model);
            checks.extend(agent.and_then(|agent| check_budget(agent, &model, home, config)));
            checks.extend(keys::check_keys(&model, config, &stored, home));
            checks
        }
        Err(error) => {
            let is_configured = error.class == FailureClass::Config;
            let exit = if is_configured { Exit::Config } else { Exit::Failure };
            let next = "change the variable or the config file; `myclaw models list` shows the known models";
            vec![Check::fail("model", error.message, next).with_exit(exit)]
        }
    }
}

/// Checks for the programs of the browser tool, which a machine need not have.
fn check_browser(config: &Config, home: &Home) -> Check {
    const NAME: &str = "browser";
    let enabled = config.tools.browser.enabled;
    match browser_obstacle(config, &home.environment) {
        Some(missing) if enabled == Some(true) => {
            Check::warn(NAME, missing, "install it, or set `tools.browser.enabled` to false")
        }
        Some(missing) => Check::ok(NAME, format!("none: {missing}")),
        None if enabled == Some(false) => Check::ok(NAME, "none, as the config file says"),
        None => Check::ok(NAME, "agent-browser and Chromium are installed"),
    }
}

/// Checks for the programs of `speech` and `transcription`. Servers are not asked: each request costs money.
fn check_speech(config: &Config) -> Vec<Check> {
    const NAME: &str = "speech";
    let obstacles = speech_obstacles(config);
    let is_set = [speaker(config).is_some(), transcriber(config).is_some()];
    if obstacles.is_empty() && is_set.contains(&true) {
        let what = match is_set {
            [true, true] => "send_voice speaks, and voice notes are transcribed",
            [true, false] => "send_voice speaks; voice notes are not transcribed",
            _ => "voice notes are transcribed; there is no send_voice",
        };
        return vec![Check::ok(NAME, what)];
    }
    let next = "install the program, or correct `command`; docs/use/speech.md has examples";
    let check = |(section, problem): (&str, String)| {
        Check::warn(NAME, format!("{section}.command: {problem}"), next)
    };
    obstacles.into_iter().map(check).collect()
}

/// Checks for damaged ends of transcripts that were moved aside after a crash.
fn check_torn_ends(home: &Home) -> Option<Check> {
    let moved = home.catalog().moved_aside(None).ok()?;
    let first = moved.first()?;
    let bytes: u64 = moved.iter().map(|moved| moved.bytes).sum();
    let message = format!(
        "damaged ends of transcripts were moved aside, {bytes} bytes in all; files: {}, the first is {}",
        moved.len(),
        first.path.display()
    );
    let next = "look into these files if you miss something, and delete them when you do not";
    Some(Check::warn("sessions", message, next))
}

fn check_config(home: &Home) -> (Vec<Check>, Arc<Config>) {
    const NAME: &str = "config";
    let loaded = match load_checked(&home.environment) {
        Ok(loaded) => loaded,
        Err(error) => {
            let (message, next) = describe(&error, home);
            let config = Config { paths: Some(home.paths.clone()), ..Config::default() };
            let check = Check::fail(NAME, message, next).with_exit(Exit::Config);
            return (vec![check], Arc::new(config));
        }
    };
    let path = loaded.path.display();
    let message = match loaded.found {
        true => path.to_string(),
        false => format!("none at {path}; built-in defaults hold"),
    };
    (vec![Check::ok(NAME, message)], loaded.config)
}

/// The first mistake in one line, and what to do about it.
fn describe(error: &ConfigError, home: &Home) -> (String, String) {
    let message = error.to_string();
    let first = message.lines().next().unwrap_or_default().to_owned();
    match error {
        ConfigError::MissingEnvVar { var, .. } => (
            first,
            format!(
                "set {var}, for example in {}, or take out of the config file what refers to it",
                home.paths.state_dir().join(".env").display()
            ),
        ),
        _ => (first, "`myclaw config check` shows where and how".to_owned()),
    }
}

fn check_model(model: &Selection) -> Vec<Check> {
    let name = model.reference.to_string();
    let choice = match &model.source {
        SelectionSource::Builtin => Check::warn(
            "model",
            format!(
                "{name}, a small built-in planner: no other model is configured or listens here"
            ),
            "set ANTHROPIC_API_KEY (or another provider's), start Ollama, or run `myclaw init`",
        ),
        SelectionSource::Request | SelectionSource::ConfigFile => {
            Check::ok("model", format!("{name}, as the config file says"))
        }
        SelectionSource::StoredKey => {
            Check::ok("model", format!("{name}, because there is a key for its provider"))
        }
        SelectionSource::KeyVariable(variable) => {
            Check::ok("model", format!("{name}, because {variable} is set"))
        }
        SelectionSource::LocalServer { base_url } => {
            Check::ok("model", format!("{name}, from the server at {base_url}"))
        }
    };
    let unusable = model.unusable.iter().map(|problem| {
        Check::warn("fallback", problem.as_str(), "correct it, or take it out of the config file")
    });
    let window = model
        .window_note()
        .map(|note| Check::warn("window", note, "`ollama ps` shows the window of a loaded model"));
    std::iter::once(choice).chain(unusable).chain(window).collect()
}

async fn check_local_servers(home: &Home) -> Vec<Check> {
    const NAME: &str = "servers";
    let probe = match local_probe(&home.environment) {
        Ok(probe) => probe,
        Err(error) => {
            return vec![Check::warn(NAME, error.message, "correct or unset the variable")];
        }
    };
    let findings = survey_local(&probe).await;
    let checks: Vec<Check> = findings
        .iter()
        .filter_map(|(candidate, finding)| check_server(NAME, candidate, finding))
        .collect();
    if !checks.is_empty() {
        return checks;
    }
    let names: Vec<&str> =
        findings.iter().map(|(candidate, _)| candidate.provider.as_str()).collect();
    let message = if names.is_empty() {
        format!("not looked for, as {LOCAL_SERVERS_VARIABLE} says")
    } else {
        format!("no model server listens on this machine ({})", names.join(", "))
    };
    vec![Check::ok(NAME, message)]
}

/// The check of one address where a model server may listen.
fn check_server(
    name: &'static str,
    candidate: &LocalCandidate,
    finding: &LocalFinding,
) -> Option<Check> {
    let LocalCandidate { provider, address } = candidate;
    Some(match finding {
        LocalFinding::NothingListens => return None,
        LocalFinding::NotAModelServer => Check::ok(
            name,
            format!("something listens at {address}, but it gave no list of models in time"),
        ),
        LocalFinding::NoModels => Check::warn(
            name,
            format!("{provider} at {address} has no model that can chat"),
            "load or pull one, for example `ollama pull qwen3`",
        ),
        LocalFinding::Server(found) => {
            Check::ok(name, format!("{provider} at {address} offers {}", found.models.join(", ")))
        }
    })
}

fn check_workspace(agent: Option<&ResolvedAgent>, home: &Home) -> Check {
    let workspace =
        agent.map_or_else(|| home.paths.workspace_dir(None), |agent| agent.workspace.clone());
    check_directory("workspace", &workspace, "agent.workspaceDir in the config file")
}

/// Checks that files can be created in a directory, or the directory itself if it does not exist.
fn check_directory(name: &'static str, directory: &Path, setting: &str) -> Check {
    let Some(existing) = directory.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok())
    else {
        return Check::fail(
            name,
            format!("{} cannot be created: no parent directory exists", directory.display()),
            format!("choose another with {setting}"),
        );
    };
    match try_to_write(existing) {
        Ok(()) if existing == directory => Check::ok(name, directory.display().to_string()),
        Ok(()) => Check::ok(name, format!("{} (made when it is needed)", directory.display())),
        Err(error) => Check::fail(
            name,
            format!("{} cannot be written: {error} ({})", directory.display(), existing.display()),
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    format!("free some space, or choose another with {setting}")
                }
                _ => format!("make it writable, or choose another with {setting}"),
            },
        ),
    }
}

/// Creates a file with some bytes and removes it. An empty file would succeed even on a full disk.
fn try_to_write(directory: &Path) -> io::Result<()> {
    const PROBE: [u8; 4096] = [b'.'; 4096];
    let probe = directory.join(format!(".myclaw-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&probe)?;
    let written = file.write_all(&PROBE).and_then(|()| file.sync_all());
    fs::remove_file(&probe)?;
    written
}

/// Checks that the daily limits are not reached.
fn check_budget(
    agent: &ResolvedAgent,
    selection: &Selection,
    home: &Home,
    config: &Config,
) -> Option<Check> {
    const NAME: &str = "budget";
    match exhausted_today(home, agent, selection.model()) {
        Ok(bound) => bound.map(|bound| {
            let key = config.deciding_key(&agent.id, bound.config_key());
            Check::fail(
                NAME,
                format!("{} (UTC)", bound.reason()),
                format!("try again tomorrow, or raise {key}"),
            )
        }),
        Err(error) => {
            let next = "move the file away; the totals of the day begin at zero then";
            Some(Check::warn(NAME, error.to_string(), next))
        }
    }
}

/// Checks that hook commands can be started. A gate hook that cannot start refuses every call.
fn check_hooks(config: &Config, home: &Home) -> Vec<Check> {
    const NAME: &str = "hooks";
    let count = config.hooks.commands().count();
    if count == 0 {
        return Vec::new();
    }
    let unusable = match unusable_commands(config, &home.paths) {
        Ok(unusable) => unusable,
        Err(error) => {
            return vec![Check::fail(NAME, error.to_string(), "write the path in full")];
        }
    };
    if unusable.is_empty() {
        let commands = if count == 1 { "command" } else { "commands" };
        return vec![Check::ok(NAME, format!("{count} {commands}"))];
    }
    let check = |command: &UnusableCommand| {
        Check::fail(
            NAME,
            format!("{}: {}", command.place, command.error),
            "correct the command in the config file, or take it out; `docs/operate/hooks.md` says more",
        )
        .with_exit(Exit::Config)
    };
    unusable.iter().map(check).collect()
}

fn check_program(name: &'static str, why: &str) -> Check {
    match find_program(name) {
        Some(path) => Check::ok(name, path.display().to_string()),
        None => Check::warn(
            name,
            format!("not found; {why}"),
            format!("install {name} with the system's package manager"),
        ),
    }
}

fn without_bash() -> &'static str {
    match find_program("sh") {
        Some(_) => "the `bash` tool runs commands with sh instead",
        None => "the `bash` tool cannot run commands without it",
    }
}

fn check_terminal() -> Check {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Check::ok("terminal", "none: `myclaw chat` works line by line here");
    }
    let Size { columns, rows } = Size::current();
    let colours = match Paint::for_stream(&io::stdout()) {
        Paint::Styled => "with colours",
        Paint::Plain => "without colours",
    };
    Check::ok("terminal", format!("{columns} by {rows}, {colours}"))
}
