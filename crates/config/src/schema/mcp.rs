//! Servers of the Model Context Protocol, whose tools the agent uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize};

use super::MAX_SECONDS;
use super::sandbox::{ConfinementLimits, SandboxNetwork};
use super::values::{self, NonBlankText};
use super::web::HostEntry;

/// Seconds that a call may take: as long as most clients wait, and a hung server is noticed.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;
/// Seconds without calls after which a server ends: most work on a task is done by then, and a start takes a second.
const DEFAULT_IDLE_SECONDS: u64 = 300;

/// Servers of the Model Context Protocol, whose tools the agent uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpConfig {
    /// The servers by name. The tools of `files` are `files__read` and so on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, McpServerConfig>,
    /// Whether the model gets two tools in place of those of the servers: one that finds them, and one that runs a script
    /// which calls them. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_mode: Option<bool>,
}

/// One server: a program on this machine, or an address.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// The program that is started: a name in `PATH`, or a path.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub command: Option<String>,
    /// Its arguments. Absolute paths among them may be read in its sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables for it, in addition to the usual ones. Better references such as `"${GITHUB_TOKEN}"` than keys.
    #[serde(
        deserialize_with = "variables",
        serialize_with = "values::secret_map::serialize",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// The directory in which it starts, which it may change. Default: one of its own in the state directory.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub cwd: Option<String>,
    /// Its address, in place of a program: `https://…` or `http://…`.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub url: Option<String>,
    /// Headers of each request to that address. Better references such as `"Bearer ${GITHUB_TOKEN}"` than keys.
    #[serde(
        deserialize_with = "variables",
        serialize_with = "values::secret_map::serialize",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// How `myclaw mcp login` logs in there, if the server does not say all of it.
    pub auth: McpAuth,
    /// Whether it is used. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Seconds that a call may take without a sign of progress; at most 86400 (a day). Default: 60.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, MAX_SECONDS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub timeout_seconds: Option<u64>,
    /// Seconds without calls after which it ends; at most 86400 (a day). Default: 300.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, MAX_SECONDS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub idle_seconds: Option<u64>,
    /// Which of its tools are offered, by the names that it gives them.
    pub tools: McpToolRules,
    /// What the program may do. It is confined unless `enabled` is false.
    pub sandbox: McpSandbox,
}

/// How to log in at a server with an address.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpAuth {
    /// The id of this program at the authorization server. Default: it registers itself.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub client_id: Option<String>,
    /// The secret that belongs to that id, if it has one. Better a reference such as `"${CLIENT_SECRET}"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub client_secret: Option<SecretString>,
    /// The address of a document that describes this program, for servers that take it in place of an id.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub client_metadata_url: Option<String>,
    /// What the login should permit, words with blanks between them. Default: what the server asks for.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub scope: Option<String>,
    /// The port of this machine at which the answer of the login arrives. Default: any free one.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, 65_535>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
}

impl PartialEq for McpAuth {
    fn eq(&self, other: &Self) -> bool {
        let plain = |of: &Self| {
            let Self { client_id, client_secret, client_metadata_url, scope, port } = of.clone();
            let secret = client_secret.map(|secret| secret.expose_secret().to_owned());
            (client_id, secret, client_metadata_url, scope, port)
        };
        plain(self) == plain(other)
    }
}

/// Which tools of a server are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpToolRules {
    /// The only ones: names, in which `*` stands for any characters. Leave it out for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Those that are not offered, written as in `allow`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// What the program of a server may do. It may read the programs of the system, its own installation and the paths among its
/// arguments, change `cwd`, and reach nothing, unless these keys say more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpSandbox {
    /// Whether it is confined. Default: true. Otherwise it may do whatever you may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What may be reached over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// The only hosts that may be reached with the network `allowlist`, written as in
    /// `agents.defaults.sandbox.confinement.allowHosts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<NonBlankText>>")]
    pub allow_hosts: Option<Vec<HostEntry>>,
    /// More files and directories that may be read and executed. May begin with `~`; a relative path starts at the
    /// directory of this file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// More files and directories that may be changed, written as in `readOnly`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_write: Vec<String>,
    /// What may be used up.
    pub limits: ConfinementLimits,
}

impl PartialEq for McpServerConfig {
    fn eq(&self, other: &Self) -> bool {
        let plain = |of: &Self| {
            let Self {
                command,
                args,
                cwd,
                url,
                auth,
                enabled,
                timeout_seconds,
                idle_seconds,
                tools,
                sandbox,
                ..
            } = of.clone();
            let seconds = (timeout_seconds, idle_seconds);
            (command, args, cwd, url, auth, enabled, seconds, tools, sandbox)
        };
        let variables = |of: &Self| -> Vec<(String, String)> {
            let plain = |(name, value): (&String, &SecretString)| {
                (name.clone(), value.expose_secret().to_owned())
            };
            of.env.iter().chain(&of.headers).map(plain).collect()
        };
        plain(self) == plain(other) && variables(self) == variables(other)
    }
}

/// Variables, which may be empty.
fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, SecretString>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(variables.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect())
}

impl McpServerConfig {
    /// Whether it is used.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Seconds that a call may take.
    pub fn call_seconds(&self) -> u64 {
        self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)
    }

    /// Seconds without calls after which it ends.
    pub fn idle_seconds(&self) -> u64 {
        self.idle_seconds.unwrap_or(DEFAULT_IDLE_SECONDS)
    }

    /// Whether it does not say what the server is, so that it only changes another entry.
    fn is_change(&self) -> bool {
        self.command.is_none() && self.url.is_none()
    }

    /// This entry with what another one for the same name changes.
    fn changed_by(&self, own: &Self) -> Self {
        if !own.is_change() {
            return own.clone();
        }
        let mut changed = self.clone();
        changed.enabled = own.enabled.or(self.enabled);
        changed.timeout_seconds = own.timeout_seconds.or(self.timeout_seconds);
        changed.idle_seconds = own.idle_seconds.or(self.idle_seconds);
        changed.tools.allow = own.tools.allow.clone().or_else(|| self.tools.allow.clone());
        changed.tools.deny.extend(own.tools.deny.iter().cloned());
        changed
    }
}

impl McpConfig {
    /// The servers of these and of an agent's own.
    pub(crate) fn with(&self, own: &Self) -> BTreeMap<String, McpServerConfig> {
        let mut servers = self.servers.clone();
        for (name, entry) in &own.servers {
            let changed = servers.get(name).map(|server| server.changed_by(entry));
            servers.insert(name.clone(), changed.unwrap_or_else(|| entry.clone()));
        }
        servers
    }

    /// The variables and headers in it, each of which may hold a secret.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.servers.values().flat_map(|server| {
            let named = server.env.iter().chain(&server.headers);
            let secret = server.auth.client_secret.as_ref().map(|secret| ("client_secret", secret));
            named.map(|(name, value)| (name.as_str(), value)).chain(secret)
        })
    }
}
