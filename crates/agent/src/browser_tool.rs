//! The browser tool of a session, made from the config. No process is started before the first page is opened.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_browser::{BrowserOptions, BrowserTool, Programs, is_installed};
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
    let environment = &session.home.environment;
    let path = environment.get("PATH").unwrap_or_default();
    let named = config.program.as_ref().map(PathBuf::from);
    let is_offered =
        config.enabled.unwrap_or_else(|| named.is_some() || is_installed(OsStr::new(path)));
    if !is_offered {
        return Ok(None);
    }
    let rules = address_rules(&session.config).map_err(|problem| {
        AgentError::config(format!(
            "tools.web.fetch.allowHosts: {problem}; `myclaw config check` shows the place"
        ))
    })?;
    let chromium = config.executable_path.as_deref().or(environment.get(CHROMIUM_VARIABLE));
    let options = BrowserOptions {
        programs: Programs {
            agent_browser: named,
            chromium: chromium.map(PathBuf::from),
            path: path.into(),
            home: environment.os_home().map(ToOwned::to_owned),
        },
        guard: AddressGuard::new(rules),
        action_limit: Duration::from_secs(config.timeout_seconds),
        idle_limit: Duration::from_secs(config.idle_minutes * 60),
    };
    Ok(Some(Arc::new(BrowserTool::new(options, session.browser.clone()))))
}
