//! The texts of service files.

use std::fmt::Write as _;

use myclaw_agent::Home;
use myclaw_files::variables;

use super::MARK;
use crate::args::ServiceManager;
use myclaw_front::exit::CliError;

/// Name of the unit.
pub(super) const UNIT: &str = "myclaw-gateway.service";
/// Name of the launchd job.
pub(super) const LABEL: &str = "ai.myclaw.gateway";
/// The variables that decide which gateway this is, and where the tools find programs. Services do not see those of a
/// shell. Keys are not among them: they belong into the key store or the `.env`.
const VARIABLES: [&str; 5] = [
    "PATH",
    variables::HOME,
    variables::STATE_DIR,
    variables::CONFIG_PATH,
    variables::GATEWAY_PORT,
];

/// The service file for this program and this environment.
pub(super) fn text(manager: ServiceManager, home: &Home) -> Result<String, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failure(format!("cannot find this program: {error}")))?;
    let program = one_line("the path of this program", &program.to_string_lossy())?;
    let mut variables = Vec::new();
    for name in VARIABLES {
        let Ok(value) = std::env::var(name) else { continue };
        // A relative path would start somewhere else.
        let value = match name {
            variables::STATE_DIR => home.paths.state_dir().to_string_lossy().into_owned(),
            variables::CONFIG_PATH => home.paths.config_file().to_string_lossy().into_owned(),
            _ => value,
        };
        variables.push((name, one_line(name, &value)?));
    }
    let logs = home.paths.logs_dir().join("gateway.log");
    let logs = one_line("the path of the logs", &logs.to_string_lossy())?;
    Ok(match manager {
        ServiceManager::Systemd => unit(&program, &variables),
        ServiceManager::Launchd => plist(&program, &variables, &logs),
    })
}

fn one_line(what: &str, value: &str) -> Result<String, CliError> {
    match value.chars().any(char::is_control) {
        true => Err(CliError::failure(format!("{what} has a line break; rename it"))),
        false => Ok(value.to_owned()),
    }
}

fn unit(program: &str, variables: &[(&str, String)]) -> String {
    let mut text = format!(
        "# {MARK}; `myclaw gateway uninstall` removes it.\n\
         [Unit]\n\
         Description=MyClaw gateway\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={} gateway\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         # A config file that has to be changed first.\n\
         RestartPreventExitStatus=3\n\
         # Running turns have ten seconds to finish.\n\
         TimeoutStopSec=30\n\
         KillMode=mixed\n\
         UMask=0077\n",
        quoted(&program.replace('$', "$$"))
    );
    for (name, value) in variables {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Environment={}", quoted(&format!("{name}={value}")));
    }
    text.push_str("\n[Install]\nWantedBy=default.target\n");
    text
}

/// A word of a unit file: specifiers, quotes and backslashes are escaped.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

fn plist(program: &str, variables: &[(&str, String)], logs: &str) -> String {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key>{}\n", string(value)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARK}. -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n  \
         <key>Label</key>{}\n  \
         <key>ProgramArguments</key>\n  <array>{}{}</array>\n  \
         <key>RunAtLoad</key><true/>\n  \
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  \
         <key>ThrottleInterval</key><integer>5</integer>\n  \
         <key>ExitTimeOut</key><integer>30</integer>\n  \
         <key>Umask</key><integer>63</integer>\n  \
         <key>StandardErrorPath</key>{}\n  \
         <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n\
         </dict>\n\
         </plist>\n",
        string(LABEL),
        string(program),
        string("gateway"),
        string(logs),
    )
}

/// Text in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
