//! What this machine can enforce.

use std::path::{Component, Path, PathBuf};

use myclaw_files::portable::may_run;

use crate::basis::may_change;
use crate::{Confinement, ContainerEngine, Level, Network, SandboxError};

/// The first version of Landlock that confines signals and abstract sockets; it is in Linux 6.12.
const LANDLOCK_NEEDED: i32 = 6;

/// Where the controller of processes is, in version 1 and in version 2.
pub(crate) const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Probe {
    /// Version of Landlock in the kernel; 0 if there is none.
    pub landlock: i32,
    /// Whether the kernel filters system calls.
    pub seccomp: bool,
    /// Where `bwrap` is.
    pub bubblewrap: Option<PathBuf>,
    /// Where `podman` is.
    pub podman: Option<PathBuf>,
    /// Where `docker` is.
    pub docker: Option<PathBuf>,
}

/// Looks at the kernel and in `PATH`. It starts no process: a program that is found may still fail.
pub fn probe() -> Probe {
    Probe {
        landlock: landlock_version(),
        seccomp: has_seccomp(),
        bubblewrap: find("bwrap"),
        podman: find("podman"),
        docker: find("docker"),
    }
}

#[cfg(target_os = "linux")]
use crate::system::has_seccomp;
#[cfg(target_os = "linux")]
pub(crate) use crate::system::landlock_version;

#[cfg(not(target_os = "linux"))]
pub(crate) fn landlock_version() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
fn has_seccomp() -> bool {
    false
}

impl Probe {
    /// Whether this machine can enforce what is demanded.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] with what is missing and how to get it, and [`SandboxError::Demand`].
    pub fn check(&self, confinement: &Confinement) -> Result<(), SandboxError> {
        if !confinement.workspace.is_absolute() {
            let workspace = confinement.workspace.display();
            return Err(SandboxError::Demand(format!(
                "the workspace {workspace} is not an absolute path"
            )));
        }
        check_protected(confinement)?;
        match &confinement.level {
            Level::Limits => self.check_supervisor()?,
            Level::Landlock => {
                self.check_supervisor()?;
                self.check_seccomp()?;
                self.check_landlock()?;
            }
            Level::Bubblewrap => {
                self.check_seccomp()?;
                if !confinement.protected_places().is_empty() {
                    self.check_landlock()?;
                }
                self.bwrap()?;
            }
            Level::Container { engine, .. } => {
                self.engine(*engine)?;
            }
        }
        let is_container = matches!(confinement.level, Level::Container { .. });
        if confinement.limits.processes.is_some() && !is_container && !can_bound_processes() {
            return Err(SandboxError::unavailable(
                "the number of processes cannot be limited for root, because no cgroup for it can be made here",
                "run MyClaw as another user, or set no limit on processes",
            ));
        }
        match (&confinement.network, &confinement.level) {
            (Network::Proxy { .. }, Level::Limits) => Err(SandboxError::Demand(
                "resource limits alone close no network, so a proxy would not be the only way out"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Where `bwrap` is.
    pub(crate) fn bwrap(&self) -> Result<&Path, SandboxError> {
        self.bubblewrap.as_deref().ok_or_else(|| {
            SandboxError::unavailable(
                "bwrap is not in PATH",
                "install it (apt install bubblewrap, dnf install bubblewrap)",
            )
        })
    }

    /// Where the program for containers is.
    pub(crate) fn engine(&self, engine: ContainerEngine) -> Result<&Path, SandboxError> {
        let found = match engine {
            ContainerEngine::Podman => &self.podman,
            ContainerEngine::Docker => &self.docker,
        };
        let name = engine.program();
        found.as_deref().ok_or_else(|| {
            let package = if engine == ContainerEngine::Docker { "docker.io" } else { name };
            SandboxError::unavailable(
                format!("{name} is not in PATH"),
                format!("install it (apt install {package})"),
            )
        })
    }

    fn check_supervisor(&self) -> Result<(), SandboxError> {
        if cfg!(target_os = "linux") {
            return Ok(());
        }
        Err(SandboxError::unavailable(
            "this level needs Linux",
            "use a container (podman or docker)",
        ))
    }

    fn check_seccomp(&self) -> Result<(), SandboxError> {
        self.check_supervisor()?;
        if self.seccomp {
            return Ok(());
        }
        Err(SandboxError::unavailable(
            "this kernel does not filter system calls (seccomp)",
            "use a kernel with CONFIG_SECCOMP_FILTER, or a container (podman or docker)",
        ))
    }

    pub(crate) fn check_landlock(&self) -> Result<(), SandboxError> {
        let reason = match self.landlock {
            LANDLOCK_NEEDED.. => return Ok(()),
            0 => "this kernel has no Landlock, or it is switched off".to_owned(),
            version => format!(
                "Landlock in this kernel has version {version}, and signals need version {LANDLOCK_NEEDED}"
            ),
        };
        Err(SandboxError::unavailable(
            reason,
            "use Linux 6.12 or newer with `landlock` in the boot option `lsm=`, or the level bubblewrap (apt install \
             bubblewrap)",
        ))
    }
}

/// A path that leads out of the workspace, or to the workspace itself, would protect something else than it says.
fn check_protected(confinement: &Confinement) -> Result<(), SandboxError> {
    let is_name = |component: Component<'_>| matches!(component, Component::Normal(_));
    let is_path = |path: &Path| {
        let is_elsewhere = confinement.read_write.iter().any(|root| path.starts_with(root));
        let path = path.strip_prefix("/").ok().filter(|_| is_elsewhere).unwrap_or(path);
        !path.as_os_str().is_empty() && path.components().all(is_name)
    };
    let paths = confinement.protected.iter().map(PathBuf::as_path);
    let names = confinement.protected_names.iter().map(Path::new);
    let wrong = paths
        .map(|path| (path, is_path(path)))
        .chain(names.map(|name| (name, is_path(name) && name.components().count() == 1)))
        .find(|(_, is_right)| !is_right);
    wrong.map_or(Ok(()), |(path, _)| {
        Err(SandboxError::Demand(format!(
            "the protected path {:?} is not a path below a directory that may be changed; name it without `.` and `..`, and without a leading slash in \
             the workspace",
            path.display()
        )))
    })
}

/// Whether the number of processes can be bounded. The kernel does not apply the limit of users to root, who needs a
/// cgroup instead.
fn can_bound_processes() -> bool {
    !myclaw_files::portable::process::geteuid().is_root()
        || CGROUP_ROOTS.iter().map(Path::new).any(|root| {
            let offers_it = match std::fs::read_to_string(root.join("cgroup.subtree_control")) {
                Ok(controllers) => controllers.split_whitespace().any(|name| name == "pids"),
                // Version 1 has a directory for each controller.
                Err(_) => root.join("cgroup.procs").exists(),
            };
            offers_it && may_change(root)
        })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file() && may_run(file).is_ok())
}

#[cfg(test)]
mod tests;
