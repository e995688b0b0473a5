//! Finding the programs, and how Chromium is started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use myclaw_exec::{ChildSpec, EnvironmentPolicy};

use crate::error::BrowserError;

/// The program that drives the browser.
const AGENT_BROWSER: &str = "agent-browser";
/// Names under which Chromium is installed, in the order in which they are tried.
const CHROMIUM: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];
/// Where `agent-browser install` puts its own Chromium, in the user's home directory.
const OWN_CHROMIUM: &str = ".agent-browser/browsers";
/// How many directories below it the program is at most: `chrome-VERSION/chrome`, or one directory further down.
const OWN_CHROMIUM_DEPTH: usize = 2;

/// Chromium's arguments, besides those of `agent-browser`.
///
/// The first group leaves the proxy as the only way to the network: no QUIC, no UDP of WebRTC, no lookups of names (the
/// proxy's own address needs none). The second switches off most requests that Chromium makes of its own accord, and
/// bounds its cache. Some remain (sign-in, updates); the proxy checks them like any other request.
const CHROMIUM_ARGUMENTS: [&str; 17] = [
    "--disable-quic",
    // The current name of the option and the former one.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--dns-prefetch-disable",
    "--disable-features=Translate,DnsOverHttps,AsyncDns,MediaRouter,OptimizationHints,\
     AutofillServerCommunication,CertificateTransparencyComponentUpdater,NetworkTimeServiceQuerying",
    "--no-pings",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--allow-browser-signin=false",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--deny-permission-prompts",
    "--homepage=about:blank",
    "--disk-cache-size=104857600",
];

/// Chromium's arguments in the form in which `agent-browser` takes them.
pub(crate) fn chromium_arguments() -> String {
    CHROMIUM_ARGUMENTS.join("\n")
}

/// Where the programs are looked for.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// The `agent-browser` program, if it is not the one in `path`.
    pub agent_browser: Option<PathBuf>,
    /// The Chromium program; `None` searches for one.
    pub chromium: Option<PathBuf>,
    /// Directories to search, as in the variable `PATH`.
    pub path: OsString,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

/// Whether the program that drives the browser is in `path`. Cheap: it looks into each directory once.
pub fn is_installed(path: &OsStr) -> bool {
    in_path(AGENT_BROWSER, path).is_some()
}

impl Programs {
    /// Which program is missing, and the command that installs it.
    pub fn missing(&self) -> Option<String> {
        self.agent_browser().and_then(|_| self.chromium()).err().map(|error| error.to_string())
    }

    pub(crate) fn agent_browser(&self) -> Result<PathBuf, BrowserError> {
        let named = self.agent_browser.as_ref().map(|path| path.as_os_str());
        in_path(named.unwrap_or(OsStr::new(AGENT_BROWSER)), &self.path)
            .ok_or(BrowserError::NoProgram)
    }

    pub(crate) fn chromium(&self) -> Result<PathBuf, BrowserError> {
        if let Some(named) = &self.chromium {
            return in_path(named, &self.path).ok_or(BrowserError::NoChromium);
        }
        let in_path = CHROMIUM.iter().find_map(|name| in_path(name, &self.path));
        let own = || newest_below(&self.home.as_ref()?.join(OWN_CHROMIUM), OWN_CHROMIUM_DEPTH);
        in_path.or_else(own).ok_or(BrowserError::NoChromium)
    }
}

fn in_path(program: impl AsRef<OsStr>, path: &OsStr) -> Option<PathBuf> {
    let environment = EnvironmentPolicy::empty().with("PATH", path);
    let spec = ChildSpec { environment, ..ChildSpec::new(program.as_ref(), "/") };
    spec.resolve_program().ok()
}

/// The program `chrome` in `directory`, of the version that sorts last.
fn newest_below(directory: &Path, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let program = entries.iter().find(|path| path.ends_with("chrome") && path.is_file()).cloned();
    let below = || entries.iter().rev().find_map(|path| newest_below(path, depth.checked_sub(1)?));
    program.or_else(below)
}
