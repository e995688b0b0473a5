//! The browser tool of a session, made from the config. No process is started before the first page is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_browser::{BrowserOptions, BrowserTool, Programs, is_installed};
use myclaw_config::{Config, Environment};
use myclaw_engine::Tool;
use myclaw_web::AddressGuard;

use crate::web_tools::address_rules;
use crate::{AgentError, SessionConfig};

/// Names the Chromium of machines and images that were set up for `agent-browser`.
const CHROMIUM_VARIABLE: &str = "AGENT_BROWSER_EXECUTABLE_PATH";

/// The browser tool, if the config asks for it or its program is installed.
///
/// # Errors
/// A value of the config cannot be used.
pub(crate) fn browser_tool(session: &SessionConfig) -> Result<Option<Arc<dyn Tool>>, AgentError> {
    let config = &session.config.tools.browser;
    let programs = programs(&session.config, &session.home.environment);
    let is_offered = config
        .enabled
        .unwrap_or_else(|| programs.agent_browser.is_some() || is_installed(&programs.path));
    if !is_offered {
        return Ok(None);
    }
    let rules = address_rules(&session.config).map_err(|problem| {
        AgentError::config(format!(
            "tools.web.fetch.allowHosts: {problem}; `myclaw config check` shows the place"
        ))
    })?;
    let options = BrowserOptions {
        programs,
        guard: AddressGuard::new(rules),
        action_limit: Duration::from_secs(config.timeout_seconds),
        idle_limit: Duration::from_secs(config.idle_minutes * 60),
    };
    Ok(Some(Arc::new(BrowserTool::new(options, session.browser.clone()))))
}

/// Why sessions have no browser although the config does not switch it off: which program is missing, and the command
/// that installs it.
pub fn browser_obstacle(config: &Config, environment: &Environment) -> Option<String> {
    match config.tools.browser.enabled {
        Some(false) => None,
        _ => programs(config, environment).missing(),
    }
}

fn programs(config: &Config, environment: &Environment) -> Programs {
    let config = &config.tools.browser;
    let chromium = config.executable_path.as_deref().or(environment.get(CHROMIUM_VARIABLE));
    Programs {
        agent_browser: config.program.as_ref().map(PathBuf::from),
        chromium: chromium.map(PathBuf::from),
        path: environment.get("PATH").unwrap_or_default().into(),
        home: environment.os_home().map(ToOwned::to_owned),
    }
}
