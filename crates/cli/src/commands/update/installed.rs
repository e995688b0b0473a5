//! The copy that install.sh has installed: its program, and the one that was there before.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use myclaw_agent::Home;
use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{
    Durability, LockError, LockKind, LockWait, NewFile, lock, private_options, sync_directory,
};
use myclaw_front::exit::CliError;

/// Below the place of installation.
const OWN: &str = "share/myclaw";
/// The program before the last update.
const PREVIOUS: &str = "share/myclaw/previous";
/// A program that is about to become the previous one.
const NEXT: &str = "share/myclaw/previous.new";
/// Held by the one update that runs.
const LOCK: &str = "share/myclaw/update.lock";
/// Longest wait for the script of an update that was killed.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(30));
/// A file that is being written.
const UNFINISHED: &str = "share/myclaw/update.new";
/// The list of what install.sh removes.
const MANIFEST: &str = "share/myclaw/manifest";
/// How packages are updated, by a part of the path of their program.
const MANAGERS: [(&str, &str); 6] = [
    ("/node_modules/", "npm install -g ./myclaw-VERSION.tgz ./myclaw-linux-….tgz"),
    ("/uv/", "uv tool install --force ./myclaw-VERSION-py3-none-….whl"),
    ("/Cellar/", "brew upgrade myclaw"),
    ("/homebrew/", "brew upgrade myclaw"),
    ("/.cargo/", "cargo install --path crates/cli --locked"),
    ("/target/", "git pull && cargo build"),
];

/// A place of installation.
pub(super) struct Installed {
    to: PathBuf,
}

impl Installed {
    /// The one that this program is in.
    pub(super) fn find(home: &Home) -> Result<Self, CliError> {
        let program = std::env::current_exe()
            .map_err(|error| CliError::failure(format!("cannot find this program: {error}")))?;
        // Another update may have replaced it since this one was started.
        let program = place_of(&program);
        let to = program.parent().and_then(Path::parent).map(Path::to_owned);
        if let Some(to) = to.filter(|to| program.ends_with("bin/myclaw") && is_ours(to)) {
            return Ok(Self { to });
        }
        let command = manager(&program, home);
        Err(CliError::usage(format!(
            "{} was not installed by install.sh, so `myclaw update` does not change it; update it with `{command}` \
             (docs/use/install.md)",
            program.display()
        )))
    }

    /// Keeps a second update away, and has install.sh remove all that an update leaves. The lock is held as long as any process
    /// has the file open.
    pub(super) fn lock(&self) -> Result<File, CliError> {
        let path = self.to.join(LOCK);
        let failed = |error: io::Error| unusable("lock", &path, &error);
        let options = private_options().read(true).write(true).create(true).open(&path);
        let held = options.map_err(failed)?;
        lock(&held, LockKind::Exclusive, LOCK_WAIT).map_err(|error| match error {
            LockError::Held { .. } => {
                CliError::failure("another `myclaw update` runs; wait for it")
            }
            LockError::Io { source, .. } => failed(source),
        })?;
        let mut list = self.read(MANIFEST)?;
        let before = list.len();
        for name in [PREVIOUS, NEXT, LOCK, UNFINISHED] {
            let line = format!("f {name}");
            if !list.lines().any(|known| known == line) {
                list = format!("{}\n{line}\n", list.trim_end());
            }
        }
        if list.len() != before {
            self.write(MANIFEST, list.as_bytes(), 0o644)?;
        }
        self.settle()?;
        Ok(held)
    }

    /// The directory that install.sh was given.
    pub(super) fn to(&self) -> &Path {
        &self.to
    }

    /// The program.
    pub(super) fn program(&self) -> PathBuf {
        self.to.join("bin/myclaw")
    }

    /// The program before.
    pub(super) fn previous(&self) -> PathBuf {
        self.to.join(PREVIOUS)
    }

    /// The key that has signed it, as PEM.
    pub(super) fn key(&self) -> Result<String, CliError> {
        self.read("share/myclaw/release-key.pem")
    }

    /// Where it came from, if install.sh has written that down.
    pub(super) fn origin(&self) -> Option<String> {
        self.read("share/myclaw/from")
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// What the program says that it is. The file `version` may be older, if an update was killed.
    pub(super) fn version(&self) -> Result<String, CliError> {
        version_of(&self.program())
    }

    /// Keeps the present program next to the files of install.sh. [`Self::settle`] makes it the one before.
    pub(super) fn keep_program(&self) -> Result<(), CliError> {
        self.copy(&self.program(), NEXT)
    }

    /// The program that was kept is the one before if another one was installed since. If not, the one before stays what it
    /// was, so an update that fails takes no way back.
    pub(super) fn settle(&self) -> Result<(), CliError> {
        let [previous, next] = [PREVIOUS, NEXT].map(|name| self.to.join(name));
        if !next.exists() {
            return Ok(());
        }
        match version_of(&next) {
            Ok(kept) if kept != self.version()? => self.rename(&next, &previous),
            _ => fs::remove_file(&next).map_err(|error| unusable("remove", &next, &error)),
        }
    }

    /// Puts the program before in the place of the present one, which becomes the one before. Returns its version.
    pub(super) fn swap(&self) -> Result<String, CliError> {
        let [previous, next] = [PREVIOUS, NEXT].map(|name| self.to.join(name));
        let none = "no program from before is kept; `myclaw update` keeps one when it installs a newer version";
        if !previous.exists() {
            return Err(CliError::usage(none));
        }
        let version = version_of(&previous)?;
        // Version 0.2 kept the program of an update that then failed.
        if version == self.version()? {
            return Err(CliError::usage(none));
        }
        self.copy(&self.program(), NEXT)?;
        self.rename(&previous, &self.program())?;
        self.rename(&next, &previous)?;
        // install.sh compares releases with this.
        self.write("share/myclaw/version", format!("{version}\n").as_bytes(), 0o644)?;
        Ok(version)
    }

    fn read(&self, name: &str) -> Result<String, CliError> {
        let path = self.to.join(name);
        fs::read_to_string(&path).map_err(|error| unusable("read", &path, &error))
    }

    /// Copies a program to a name below the place of installation.
    fn copy(&self, from: &Path, name: &str) -> Result<(), CliError> {
        let mut program = File::open(from).map_err(|error| unusable("read", from, &error))?;
        self.write(name, &mut program, 0o755)
    }

    /// Writes a file as a whole.
    fn write(&self, name: &str, mut from: impl Read, mode: u32) -> Result<(), CliError> {
        let path = self.to.join(name);
        let mut write = || {
            let mut file = NewFile::named(&self.to.join(UNFINISHED))?;
            io::copy(&mut from, &mut file)?;
            file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
            file.put_at(&path, Durability::Synced).map(drop)
        };
        write().map_err(|error| unusable("write", &path, &error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), CliError> {
        fs::rename(from, to)
            .and_then(|()| sync_directory(&self.to.join(OWN)))
            .map_err(|error| unusable("write", to, &error))
    }
}

fn is_ours(to: &Path) -> bool {
    ["manifest", "release-key.pem", "version"].iter().all(|name| to.join(OWN).join(name).is_file())
}

/// Where a program is, or was until another one took its place: then Linux adds a word to its path.
pub(super) fn place_of(program: &Path) -> PathBuf {
    let name = program.to_string_lossy();
    name.strip_suffix(" (deleted)").map_or_else(|| program.to_owned(), PathBuf::from)
}

/// The command that updates a copy of a package manager.
fn manager(program: &Path, home: &Home) -> &'static str {
    let name = program.to_string_lossy();
    let known = MANAGERS.iter().find(|(part, _)| name.contains(part));
    let is_of_python = program.ancestors().any(|above| above.join("pyvenv.cfg").exists())
        || home.environment.os_home().is_some_and(|user| program.starts_with(user.join(".local")));
    match known {
        Some((_, command)) => command,
        None if is_of_debian(program) => "sudo apt install ./myclaw_VERSION_….deb",
        None if program.starts_with("/usr/bin") => "sudo dnf install ./myclaw-VERSION-….rpm",
        None if is_of_python => "pip install --upgrade ./myclaw-VERSION-py3-none-….whl",
        None => "sh install.sh",
    }
}

/// Whether a package of Debian has brought the program.
fn is_of_debian(program: &Path) -> bool {
    let found = Command::new("dpkg-query").arg("--search").arg(program).output();
    found.is_ok_and(|found| found.status.success())
}

fn version_of(program: &Path) -> Result<String, CliError> {
    let said = Command::new(program).arg("--version").output();
    let said = said.map_err(|error| unusable("run", program, &error))?;
    let text = String::from_utf8_lossy(&said.stdout);
    text.trim()
        .strip_prefix("myclaw ")
        .filter(|_| said.status.success())
        .map(str::to_owned)
        .ok_or_else(|| {
            CliError::failure(format!(
                "{} does not say its version; install it again with install.sh",
                program.display()
            ))
        })
}

fn unusable(action: &str, path: &Path, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; repeat the command as the user who has installed it",
        _ => "",
    };
    CliError::failure(format!(
        "cannot {action} {}: {error}; the program that was there is still there{hint}",
        path.display()
    ))
}
