//! The targets of the attempts: files, servers, and a process that is not confined.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};

use myclaw_exec::{ChildSpec, EnvironmentPolicy};
use myclaw_files::canonical;
pub(super) use myclaw_files::variables::ATTEMPT_API_KEY as SECRET_VARIABLE;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{AttemptOutcome, BLOCKED, REACHED, calls};
use crate::{Confinement, Level, Limits, Sandbox, SandboxError};

/// The secret that must not be readable inside.
pub(super) const SECRET: &str = "secret-3f9a1c77";

/// Limits that the attempts exceed.
pub(super) const LIMITS: Limits = Limits {
    memory: Some(256 << 20),
    processes: Some(24),
    file_size: Some(4 << 20),
    open_files: Some(64),
    cpu_seconds: Some(10),
};

/// The addresses of the targets, for an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Scene {
    pub outside: PathBuf,
    pub workspace: PathBuf,
    /// A directory that may be read inside.
    pub readable: PathBuf,
    pub victim: i32,
    /// Address of the secret in the victim's memory.
    pub secret_address: usize,
    pub tcp_port: u16,
    pub udp_port: u16,
    pub abstract_name: String,
    /// Id of a System V segment.
    pub shared_memory: i32,
}

/// Why the attempts could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EscapeError {
    /// The level is not available.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A file, server or process that the attempts aim at could not be made.
    #[error("the attempts to escape cannot be prepared: {0}")]
    Prepare(#[from] io::Error),
}

/// Holds everything that the attempts aim at.
pub(super) struct Stage {
    scene: Scene,
    program: PathBuf,
    hidden: Vec<OsString>,
    confinement: Confinement,
    victim: Child,
    _directory: TempDir,
    _inherited: File,
    _servers: (TcpListener, UdpSocket, UnixListener, UnixListener, UnixDatagram, UnixListener),
}

impl Scene {
    pub(super) fn secret_file(&self) -> PathBuf {
        self.outside.join("secret")
    }

    pub(super) fn readable_file(&self) -> PathBuf {
        self.readable.join("file")
    }

    /// A file of `/proc` about the victim.
    pub(super) fn of_victim(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.victim.to_string()).join(name)
    }
}

impl Stage {
    pub(super) fn has_protected(&self) -> bool {
        !self.confinement.protected.is_empty()
    }

    pub(super) fn build(
        program: &Path,
        hidden: &[OsString],
        level: Level,
    ) -> Result<Self, EscapeError> {
        let directory = tempfile::tempdir()?;
        let root = canonical(directory.path())?;
        let [outside, workspace, readable, temporary] =
            ["outside", "workspace", "readable", "tmp"].map(|name| root.join(name));
        for made in [&outside, &workspace, &readable, &temporary] {
            fs::create_dir(made)?;
        }
        fs::write(outside.join("secret"), SECRET)?;
        fs::write(outside.join("mode"), "")?;
        fs::write(workspace.join("plain"), "plain")?;
        fs::write(workspace.join("protected"), "protected")?;
        fs::write(readable.join("file"), "")?;
        // Inherited by every process that is started from here.
        let inherited = File::open(outside.join("secret"))?;
        rustix::io::fcntl_setfd(inherited.as_fd(), rustix::io::FdFlags::empty())
            .map_err(io::Error::from)?;
        let abstract_name =
            format!("myclaw-attempt-{}", root.file_name().unwrap_or_default().display());
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let (tcp_port, udp_port) = (tcp.local_addr()?.port(), udp.local_addr()?.port());
        let servers = (
            tcp,
            udp,
            UnixListener::bind(outside.join("socket"))?,
            UnixListener::bind(workspace.join("socket"))?,
            UnixDatagram::bind(outside.join("datagram"))?,
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?,
        );
        let (victim, secret_address) = start_victim(program, hidden)?;
        let scene = Scene {
            outside,
            workspace: workspace.clone(),
            readable: readable.clone(),
            victim: victim.id().cast_signed(),
            secret_address,
            tcp_port,
            udp_port,
            abstract_name,
            shared_memory: calls::make_shared_memory()?,
        };
        let mut confinement = Confinement::new(level, workspace);
        confinement.temporary = Some(temporary);
        confinement.limits = LIMITS;
        confinement.read_only = vec![program.to_owned(), readable];
        confinement.protected = ["protected", "absent"].map(PathBuf::from).to_vec();
        if crate::probe().check(&confinement).is_err() {
            // Bubblewrap alone cannot.
            confinement.protected.clear();
        }
        Ok(Self {
            scene,
            program: program.to_owned(),
            hidden: hidden.to_vec(),
            confinement,
            victim,
            _directory: directory,
            _inherited: inherited,
            _servers: servers,
        })
    }

    /// Makes an attempt without a sandbox: as any child process.
    pub(super) fn bare(&mut self, name: &str) -> Result<AttemptOutcome, EscapeError> {
        let output = Command::new(&self.program)
            .args(self.arguments(name)?)
            .current_dir(&self.scene.workspace)
            .env(SECRET_VARIABLE, SECRET)
            .stdin(Stdio::null())
            .output()?;
        Ok(outcome(&output))
    }

    /// Makes an attempt inside a sandbox.
    pub(super) fn confined(
        &mut self,
        sandbox: &Sandbox,
        name: &str,
    ) -> Result<AttemptOutcome, EscapeError> {
        let mut spec = ChildSpec::new(&self.program, &self.scene.workspace);
        spec.args = self.arguments(name)?;
        let secret = (OsString::from(SECRET_VARIABLE), OsString::from(SECRET));
        spec.environment =
            EnvironmentPolicy::filtered(std::env::vars_os().chain([secret]), &[SECRET_VARIABLE]);
        let spec = sandbox.prepare(spec, &self.confinement)?.spec;
        let output = Command::new(&spec.program)
            .args(&spec.args)
            .current_dir(&spec.directory)
            .env_clear()
            .envs(spec.environment.iter())
            .stdin(Stdio::null())
            .output()?;
        Ok(outcome(&output))
    }

    fn arguments(&self, name: &str) -> Result<Vec<OsString>, EscapeError> {
        let scene = serde_json::to_string(&self.scene).map_err(io::Error::from)?;
        let mut arguments = self.hidden.clone();
        arguments.extend([name.into(), scene.into()]);
        Ok(arguments)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        calls::remove_shared_memory(self.scene.shared_memory);
        drop(self.victim.kill());
        drop(self.victim.wait());
    }
}

/// An attempt counts as refused only if it reports so itself.
fn outcome(output: &Output) -> AttemptOutcome {
    let last = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).trim_end().lines().last().unwrap_or_default().to_owned()
    };
    match (output.status.code(), output.status.signal()) {
        (Some(code), _) if code == i32::from(REACHED) => AttemptOutcome::Reached,
        (Some(code), _) if code == i32::from(BLOCKED) => {
            AttemptOutcome::Blocked(last(&output.stderr))
        }
        (Some(code), _) => {
            AttemptOutcome::Failed(format!("exit code {code}: {}", last(&output.stderr)))
        }
        (None, signal) => {
            AttemptOutcome::Failed(format!("ended by signal {}", signal.unwrap_or_default()))
        }
    }
}

/// A process with the secret in its environment and in its memory; and the address of the latter.
fn start_victim(program: &Path, hidden: &[OsString]) -> io::Result<(Child, usize)> {
    let mut victim = Command::new(program)
        .args(hidden)
        .args(["victim", SECRET])
        .env(SECRET_VARIABLE, SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = victim.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    match line.trim().parse() {
        Ok(address) => Ok((victim, address)),
        Err(_) => {
            victim.kill()?;
            victim.wait()?;
            Err(io::Error::other("the process to attack did not start"))
        }
    }
}

/// Waits to be attacked, until the standard input is closed.
pub(super) fn be_a_victim() -> ExitCode {
    calls::give_up_after_seconds(600);
    // Where the system lets only parents look into a process, this one makes an exception.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
    let secret = SECRET.to_owned();
    println!("{}", secret.as_ptr() as usize);
    drop(io::stdin().read(&mut [0]));
    drop(secret);
    ExitCode::SUCCESS
}
