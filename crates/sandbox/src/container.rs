//! The command line of `podman run` and `docker run`.

mod leftover;

use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(crate) use self::leftover::Leftover;
use crate::{Confinement, ContainerEngine, Network, SandboxError};

/// One container.
pub(crate) struct Container<'a> {
    pub engine: ContainerEngine,
    pub image: &'a str,
    /// Names it, so that it can be removed.
    pub name: &'a str,
    pub confinement: &'a Confinement,
    /// Files of the machine that it needs besides those of the confinement: a proxy's socket, the helper.
    pub needed: Vec<(&'a Path, &'static str)>,
    /// The directory in which the command starts.
    pub directory: &'a Path,
    /// The command's variables, in addition to the image's own.
    pub environment: Vec<(&'a OsStr, &'a OsStr)>,
}

impl Container<'_> {
    /// The arguments up to the command.
    ///
    /// # Errors
    /// [`SandboxError::Demand`] for a path that cannot be named on such a command line.
    pub(crate) fn arguments(&self) -> Result<Vec<OsString>, SandboxError> {
        let limits = &self.confinement.limits;
        let mut arguments: Vec<OsString> = Vec::new();
        if self.engine == ContainerEngine::Podman
            && myclaw_files::portable::process::geteuid().is_root()
        {
            // For root, the other runtime demands a cgroup that it may write to.
            arguments.extend(["--runtime", "runc"].map(OsString::from));
        }
        let fixed = [
            "run",
            "--rm",
            "--interactive",
            "--pull=never",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--tmpfs=/tmp",
        ];
        arguments.extend(fixed.map(OsString::from));
        arguments.push(format!("--name={}", self.name).into());
        if self.confinement.network != Network::Open {
            arguments.push("--network=none".into());
        }
        let flags = [
            ("--memory", limits.memory.map(|value| value.to_string())),
            ("--pids-limit", limits.processes.map(|value| value.to_string())),
            // Without one, podman asks for more rights than this process may give away.
            ("--ulimit", limits.processes.map(|value| format!("nproc={value}:{value}"))),
            ("--ulimit", limits.file_size.map(|value| format!("fsize={value}:{value}"))),
            ("--ulimit", limits.open_files.map(|value| format!("nofile={value}:{value}"))),
            ("--ulimit", limits.cpu_seconds.map(|value| format!("cpu={value}:{value}"))),
        ];
        for (flag, value) in flags {
            arguments.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
        }
        for path in self.confinement.readable() {
            arguments.push(volume(path, "ro")?);
        }
        for path in self.confinement.writable() {
            arguments.push(volume(path, "rw")?);
        }
        for (path, mode) in &self.needed {
            arguments.push(volume(path, mode)?);
        }
        for (name, value) in &self.environment {
            let mut variable = OsString::from("--env=");
            variable.push(name);
            variable.push("=");
            variable.push(value);
            arguments.push(variable);
        }
        let mut directory = OsString::from("--workdir=");
        directory.push(self.directory);
        arguments.extend([directory, self.image.into()]);
        Ok(arguments)
    }

    /// Removes the container, in any state.
    pub(crate) fn removal(&self, program: &str) -> Vec<String> {
        let mut command = vec![program, "rm", "--force"];
        if self.engine == ContainerEngine::Podman {
            // Without this it would wait ten seconds for the command to end by itself.
            command.push("--time=0");
        }
        command.push(self.name);
        command.into_iter().map(str::to_owned).collect()
    }
}

fn volume(path: &Path, mode: &str) -> Result<OsString, SandboxError> {
    match path.to_str() {
        Some(text) if !text.contains([':', ',']) => {
            Ok(format!("--volume={text}:{text}:{mode}").into())
        }
        _ => Err(SandboxError::Demand(format!(
            "{} cannot be passed to a container: its name has a colon, a comma or bytes that are not text",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests;
