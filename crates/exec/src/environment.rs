//! Which variables a child sees: names from a list, never one that looks like a secret.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use myclaw_files::portable::{SYSTEM_VARIABLES, variable_name};
use myclaw_files::variables;

/// Names that everyday programs need and that carry no secret.
const PASSED_NAMES: &[&str] = &[
    // who and where
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "LD_LIBRARY_PATH",
    // language, time, terminal
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "LOCPATH",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "COLUMNS",
    "EDITOR",
    "VISUAL",
    // desktop and agents (sockets, not the secrets behind them)
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "GNUPGHOME",
    // network: names of hosts; values with a password in them are dropped
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    // build tools and language managers
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "AR",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOPROXY",
    "GOFLAGS",
    "GOCACHE",
    "GOMODCACHE",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "JDK_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "KOTLIN_HOME",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PIPX_HOME",
    "POETRY_HOME",
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "NODE_PATH",
    "NODE_ENV",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "NPM_CONFIG_PREFIX",
    "npm_config_cache",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "BUNDLE_PATH",
    "HOMEBREW_PREFIX",
    "HOMEBREW_CELLAR",
    "HOMEBREW_REPOSITORY",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "KUBECONFIG",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    variables::HOME,
    variables::STATE_DIR,
    variables::CONFIG_PATH,
];

/// Families of such names.
const PASSED_PREFIXES: &[&str] =
    &["LC_", "XDG_", "PYENV_", "CONDA_", "ASDF_", "MISE_", "GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Parts of names that look like a secret; matched anywhere, in any case.
const SECRET_PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
    "PRIVATE",
    "BEARER",
    "AUTH",
    "SIGNATURE",
    "WEBHOOK",
];

/// Names that match [`SECRET_PARTS`] but hold no secret: an address of an agent, and names of people.
const NO_SECRETS: &[&str] =
    &["SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

/// Keep programs from prompting and from paging their output. Both would wait forever in a child.
const FIXED: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GCM_INTERACTIVE", "never"),
    // Without a terminal ssh would open a window to ask for a password, if there is a desktop.
    ("SSH_ASKPASS_REQUIRE", "never"),
    // `true` accepts the message that git proposes; an interactive editor would wait forever.
    ("GIT_EDITOR", "true"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
];

/// Four files in a directory are a repository without `.git`, and git obeys its config, which may start programs. With this,
/// git takes such a directory only for one where a command names it (`--git-dir`, `GIT_DIR`).
const EXPLICIT_REPOSITORIES: [(&str, &str); 3] = [
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
];
/// Longest config of git that is read.
const MAX_GIT_CONFIG_BYTES: u64 = 1 << 20;

/// The variables of a child. Made once and shared: a clone costs a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentPolicy {
    variables: Arc<BTreeMap<OsString, OsString>>,
}

impl EnvironmentPolicy {
    /// This process's own variables as far as they are on the built-in list, plus a few fixed ones for programs without
    /// a user (`PAGER=cat`, `GIT_TERMINAL_PROMPT=0`, …) and git's setting `safe.bareRepository=explicit`, unless the user's
    /// or the machine's config of git names that.
    pub fn inherited() -> Self {
        // A process does not change its variables.
        static WITHOUT_RULE: LazyLock<Arc<BTreeMap<OsString, OsString>>> =
            LazyLock::new(|| Arc::new(kept(std::env::vars_os(), &[])));
        static WITH_RULE: LazyLock<EnvironmentPolicy> =
            LazyLock::new(|| EnvironmentPolicy::with_rule(BTreeMap::clone(&WITHOUT_RULE)));
        if has_own_rule_for_repositories(&WITHOUT_RULE) {
            return Self { variables: Arc::clone(&WITHOUT_RULE) };
        }
        WITH_RULE.clone()
    }

    /// Like [`EnvironmentPolicy::inherited`], from the given variables, with more names to pass. A name that looks
    /// like a secret is not passed even when it is in `also_pass`, nor is a URL with a password in it.
    pub fn filtered(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        also_pass: &[&str],
    ) -> Self {
        let kept = kept(variables, also_pass);
        if has_own_rule_for_repositories(&kept) {
            return Self { variables: Arc::new(kept) };
        }
        Self::with_rule(kept)
    }

    /// These variables with git's setting.
    fn with_rule(mut variables: BTreeMap<OsString, OsString>) -> Self {
        variables.extend(EXPLICIT_REPOSITORIES.map(|(name, value)| (name.into(), value.into())));
        Self { variables: Arc::new(variables) }
    }

    /// No variable at all.
    pub fn empty() -> Self {
        Self { variables: Arc::default() }
    }

    /// Adds a variable of any name: its value is the caller's own, not an inherited one.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        Arc::make_mut(&mut self.variables).insert(name.into(), value.into());
        self
    }

    /// The value that a child sees.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All names and values that a child sees.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl Default for EnvironmentPolicy {
    fn default() -> Self {
        Self::inherited()
    }
}

/// Hides from other processes what children do not get: the kernel shows the variables that a process was started with
/// to every process of the same user, its own children among them (`/proc/PID/environ`). Variables that are not on the
/// built-in list are moved to other memory, where this process still finds them, and what the kernel shows of them is
/// overwritten. On Linux the process also becomes one that others of the same user can neither trace nor dump.
///
/// Call it first in `main`: variables are moved only while there is no other thread that could read them.
///
/// Not covered: the superuser, who may read all memory, and processes above this one that were started with the same
/// variables.
pub fn hide_environment() {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        // If the kernel refuses, nothing else changes; the variables are still moved.
        let _ =
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        crate::system::move_variables(|name, value| {
            !is_passed(OsStr::from_bytes(name), OsStr::from_bytes(value), &[])
        });
    }
}

/// Those of the variables that a child sees, and the fixed ones.
fn kept(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    also_pass: &[&str],
) -> BTreeMap<OsString, OsString> {
    let named = variables.into_iter().map(|(name, value)| (variable_name(name), value));
    let passed = named.filter(|(name, value)| is_passed(name, value, also_pass));
    let fixed = FIXED.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    passed.chain(fixed).collect()
}

fn is_passed(name: &OsStr, value: &OsStr, also_pass: &[&str]) -> bool {
    let is_listed = |name: &str| {
        PASSED_NAMES.contains(&name)
            || SYSTEM_VARIABLES.contains(&name)
            || also_pass.contains(&name)
            || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    name.to_str().is_some_and(|name| is_listed(name) && !looks_secret(name)) && !has_password(value)
}

/// Whether the user or the machine has decided which repositories without `.git` git takes.
fn has_own_rule_for_repositories(variables: &BTreeMap<OsString, OsString>) -> bool {
    const NAME: &str = "barerepository";
    let directory = |name: &str| variables.get(OsStr::new(name)).map(PathBuf::from);
    let (home, configs) = (directory("HOME"), directory("XDG_CONFIG_HOME"));
    let configs = configs.or_else(|| Some(home.as_ref()?.join(".config")));
    let files = [
        home.map(|home| home.join(".gitconfig")),
        configs.map(|configs| configs.join("git/config")),
        Some(PathBuf::from("/etc/gitconfig")),
    ];
    files.into_iter().flatten().any(|file| {
        let mut text = Vec::new();
        let is_file = std::fs::metadata(&file).is_ok_and(|about| about.is_file());
        let opened = is_file.then(|| std::fs::File::open(&file).ok()).flatten();
        let read = opened.map(|file| file.take(MAX_GIT_CONFIG_BYTES).read_to_end(&mut text));
        // What cannot be read cannot be read by git either.
        matches!(read, Some(Ok(_)))
            && String::from_utf8_lossy(&text).to_ascii_lowercase().contains(NAME)
    })
}

fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    !NO_SECRETS.contains(&upper.as_str()) && SECRET_PARTS.iter().any(|part| upper.contains(part))
}

/// Whether a value is a URL (or a list of them) with `user:password@` in it.
fn has_password(value: &OsStr) -> bool {
    value.to_string_lossy().split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ',', ' ']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests;
