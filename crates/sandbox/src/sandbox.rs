//! Starting confined processes.

mod rules;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_exec::{Attachment, ChildSpec, ErrorOutput, Exit, Finished, Link, attach};
use myclaw_files::portable::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::rules::{processes_of_root, proxy_socket};
use crate::basis::{Socket, apart, socket_pair};
use crate::container::{Container, Leftover};
use crate::plan::{Plan, Root};
use crate::{Confinement, ContainerEngine, Level, Probe, SandboxError};

/// How long the supervising helper may take to end everything. It needs a quarter of a second for a command that does not
/// end by itself.
const END_GRACE: Duration = Duration::from_secs(2);

/// How long the program for containers may take to look for an image. A service that hangs must not hang its callers.
const IMAGE_LIMIT: Duration = Duration::from_secs(10);

/// Words of podman and docker about an image that is not on this machine.
const IMAGE_IS_MISSING: [&str; 3] = ["image not known", "No such image", "no such image"];

/// The exit code of a helper that could not start the command.
const SETUP_FAILED: i32 = 125;

/// Starts confined processes. Cheap to make and to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    helper: PathBuf,
    hidden: Vec<OsString>,
    probe: Probe,
}

/// A command as it is started: the helper in front of it.
pub(crate) struct Prepared {
    pub(crate) spec: ChildSpec,
    token: String,
    /// The command that removes its container; empty if it has none.
    removal: Vec<String>,
}

impl Sandbox {
    /// `helper` is a program that calls [`enter_and_exec`](crate::enter_and_exec) when it is started with the arguments
    /// `hidden`: usually this program itself.
    pub fn new(helper: impl Into<PathBuf>, hidden: impl IntoIterator<Item = OsString>) -> Self {
        Self { helper: helper.into(), hidden: hidden.into_iter().collect(), probe: crate::probe() }
    }

    /// The abilities of this machine.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Whether the image of a container is on this machine.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] with how to get the image, or with what the program said if it cannot look for it.
    pub async fn check_image(
        &self,
        engine: ContainerEngine,
        image: &str,
    ) -> Result<(), SandboxError> {
        let mut spec = ChildSpec::new(self.probe.engine(engine)?, "/");
        spec.args = ["image", "inspect", "--format={{.Id}}", image].map(OsString::from).to_vec();
        spec.timeout = Some(IMAGE_LIMIT);
        let finished = myclaw_exec::run(spec, &CancellationToken::new(), &mut |_| {}).await?;
        if finished.exit == Exit::Code(0) {
            return Ok(());
        }
        let name = engine.program();
        let said = finished.output.tail.lines().rfind(|line| !line.trim().is_empty());
        let said = said.unwrap_or("it gave no answer").trim();
        if IMAGE_IS_MISSING.iter().any(|words| said.contains(words)) {
            return Err(SandboxError::unavailable(
                format!("{name} does not have the image {image}"),
                format!("get it with `{name} pull {image}`, or name another image"),
            ));
        }
        Err(SandboxError::unavailable(
            format!("{name} cannot look for the image {image} ({said})"),
            format!("make `{name} image inspect {image}` work, or choose another level"),
        ))
    }

    /// Runs a command to its end, and ends every process that it leaves running. `on_output` gets every piece of output
    /// as it arrives. When the future is dropped, the command is killed with everything it started.
    ///
    /// # Errors
    /// [`SandboxError`] if the confinement cannot be enforced or the command cannot be started. A failing command is
    /// not an error; its result is in [`Finished`].
    pub async fn run(
        &self,
        spec: ChildSpec,
        confinement: &Confinement,
        cancel: &CancellationToken,
        on_output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Finished, SandboxError> {
        self.run_attached(spec, attach(Attachment::None).1, confinement, cancel, on_output).await
    }

    /// Like [`Sandbox::run`], for a command that is written to while it runs, or has a terminal.
    ///
    /// # Errors
    /// As for [`Sandbox::run`].
    pub async fn run_attached(
        &self,
        spec: ChildSpec,
        link: Link,
        confinement: &Confinement,
        cancel: &CancellationToken,
        on_output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Finished, SandboxError> {
        let Prepared { spec, token, removal } = self.prepare(spec, confinement)?;
        let errors = spec.errors;
        let leftover = Leftover::new(removal);
        let finished = myclaw_exec::run_attached(spec, link, cancel, on_output).await?;
        match finished.exit {
            Exit::Code(_) => leftover.forget(),
            Exit::Signal(_) | Exit::TimedOut | Exit::Aborted => leftover.remove().await,
        }
        let printed = match errors {
            ErrorOutput::Apart => &finished.errors.tail,
            ErrorOutput::WithOutput => &finished.output.tail,
        };
        match setup_failure(&confinement.level, finished.exit, printed, &token) {
            Some(failure) => Err(SandboxError::Setup(failure)),
            None => Ok(finished),
        }
    }

    /// Starts a long-lived command with pipes to its input, output and errors. `spec.input`, `spec.timeout`,
    /// `spec.output` and `spec.errors` have no meaning here. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`SandboxError`] if the confinement cannot be enforced. A helper that fails later prints why to its errors and
    /// ends with the code 125.
    pub fn spawn(
        &self,
        spec: ChildSpec,
        confinement: &Confinement,
    ) -> Result<Confined, SandboxError> {
        self.spawn_between(spec, confinement, [Stdio::piped(), Stdio::piped()])
    }

    /// As [`Sandbox::spawn`], with sockets as standard input and output: the other ends are the second and third value.
    ///
    /// What a confined process starts can open the pipes of that process again, by their names in `/proc`: Landlock
    /// does not close pipes. Nobody can open a socket in that way, so its frames cannot be forged.
    ///
    /// # Errors
    /// As for [`Sandbox::spawn`].
    pub fn spawn_with_sockets(
        &self,
        spec: ChildSpec,
        confinement: &Confinement,
    ) -> Result<(Confined, Socket, Socket), SandboxError> {
        let (input, inside_input) = socket_pair().map_err(SandboxError::Start)?;
        let (output, inside_output) = socket_pair().map_err(SandboxError::Start)?;
        let confined = self.spawn_between(spec, confinement, [inside_input, inside_output])?;
        Ok((confined, input, output))
    }

    fn spawn_between(
        &self,
        spec: ChildSpec,
        confinement: &Confinement,
        [input, output]: [Stdio; 2],
    ) -> Result<Confined, SandboxError> {
        let Prepared { spec, token, removal } = self.prepare(spec, confinement)?;
        let mut command = Command::new(&spec.program);
        let child = apart(&mut command)
            .args(&spec.args)
            .current_dir(&spec.directory)
            .env_clear()
            .envs(spec.environment.iter())
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(SandboxError::Start)?;
        Ok(Confined { child, level: confinement.level.clone(), token, removal })
    }

    /// The program that confines, which a container needs for [`Sandbox::guard`].
    pub fn helper(&self) -> &Path {
        &self.helper
    }

    /// What stands before `program` and its arguments in a container that the caller makes, so that it keeps what is protected;
    /// nothing else of the confinement has an effect. All paths are those of the container, and `helper` is where it has the
    /// file of [`Sandbox::helper`]. Empty if nothing is protected.
    ///
    /// # Errors
    /// A path is none, or the kernel has no Landlock.
    pub fn guard(
        &self,
        confinement: &Confinement,
        helper: &Path,
        program: &Path,
    ) -> Result<Vec<OsString>, SandboxError> {
        if confinement.protected_places().is_empty() {
            return Ok(Vec::new());
        }
        self.probe.check(confinement)?;
        self.probe.check_landlock()?;
        let mut plan = Plan { token: token(), supervised_by: Some(0), ..Plan::default() };
        rules::in_a_container(confinement, &mut plan);
        let mut command = vec![helper.into()];
        command.extend(self.hidden.iter().cloned());
        command.extend([encode(&plan)?, program.into()]);
        Ok(command)
    }

    /// A command that confines itself as demanded and then runs `spec`, with the same directory, environment and limits.
    pub(crate) fn prepare(
        &self,
        mut spec: ChildSpec,
        confinement: &Confinement,
    ) -> Result<Prepared, SandboxError> {
        self.probe.check(confinement)?;
        let token = token();
        let mut plan = Plan {
            token: token.clone(),
            supervised_by: Some(std::process::id().cast_signed()),
            temporary: confinement.temporary.clone(),
            ..Plan::default()
        };
        let command = match &confinement.level {
            Level::Limits => {
                plan.cgroup_processes = processes_of_root(confinement);
                plan.limits = Some(confinement.limits.clone());
                own_command(&spec)?
            }
            Level::Landlock => {
                plan.cgroup_processes = processes_of_root(confinement);
                plan.scoped = true;
                plan.relay = proxy_socket(confinement)?;
                plan.own_network = plan.relay.is_some();
                plan.limits = Some(confinement.limits.clone());
                rules::on_the_machine(confinement, &mut plan);
                own_command(&spec)?
            }
            Level::Bubblewrap => {
                plan.cgroup_processes = processes_of_root(confinement);
                self.bubblewrap(&spec, confinement, &token)?
            }
            Level::Container { engine, image } => {
                self.container(&spec, confinement, &mut plan, (*engine, image))?
            }
        };
        spec.args = self.hidden.clone();
        spec.args.push(encode(&plan)?);
        spec.args.extend(command);
        spec.program = self.helper.clone().into();
        Ok(Prepared { spec, token, removal: plan.cleanup })
    }

    /// `bwrap` with a second helper inside, which applies limits and the filter.
    fn bubblewrap(
        &self,
        spec: &ChildSpec,
        confinement: &Confinement,
        token: &str,
    ) -> Result<Vec<OsString>, SandboxError> {
        let mut inner = Plan {
            token: token.to_owned(),
            relay: proxy_socket(confinement)?,
            temporary: confinement.temporary.clone(),
            limits: Some(confinement.limits.clone()),
            filter: Some(rules::filter_in_namespaces()),
            ..Plan::default()
        };
        rules::in_namespaces(confinement, Root::Machine, &mut inner);
        if inner.relay.is_some() || inner.broker.is_some() {
            // The first process of a namespace of its own.
            inner.supervised_by = Some(1);
        }
        let mut command = vec![self.probe.bwrap()?.into(), "bwrap".into()];
        command.extend(crate::bubblewrap::arguments(confinement, &self.helper, &spec.directory));
        command.push(self.helper.clone().into());
        command.extend(self.hidden.iter().cloned());
        command.push(encode(&inner)?);
        command.extend(own_command(spec)?);
        Ok(command)
    }

    /// A container. With a proxy or protected paths, its first process is a helper, which passes connections on to the
    /// proxy's socket and calls to the broker.
    fn container(
        &self,
        spec: &ChildSpec,
        confinement: &Confinement,
        plan: &mut Plan,
        (engine, image): (ContainerEngine, &str),
    ) -> Result<Vec<OsString>, SandboxError> {
        let name = format!("myclaw-{}", plan.token.trim_matches(|c: char| !c.is_ascii_digit()));
        // Nothing in the container starts its first process.
        let mut inner = Plan {
            token: plan.token.clone(),
            supervised_by: Some(0),
            relay: proxy_socket(confinement)?,
            ..Plan::default()
        };
        rules::in_namespaces(confinement, Root::Image, &mut inner);
        let has_helper = inner.relay.is_some() || inner.broker.is_some();
        let mut needed: Vec<(&Path, _)> =
            inner.relay.iter().map(|socket| (socket.as_path(), "rw")).collect();
        if has_helper && !confinement.readable().any(|path| path == self.helper) {
            needed.push((&self.helper, "ro"));
        }
        let container = Container {
            engine,
            image,
            name: &name.replace(' ', "-"),
            confinement,
            needed,
            directory: &spec.directory,
            environment: spec.environment.iter().collect(),
        };
        let program = self.probe.engine(engine)?;
        plan.cleanup = container.removal(&program.to_string_lossy());
        let mut command = vec![program.into(), engine.program().into()];
        command.extend(container.arguments()?);
        if has_helper {
            command.push(self.helper.clone().into());
            command.extend(self.hidden.iter().cloned());
            command.extend([encode(&inner)?, spec.program.clone()]);
        }
        command.push(spec.program.clone());
        command.extend(spec.args.iter().cloned());
        Ok(command)
    }
}

/// A running command with pipes. When it is dropped, it is killed, and the supervising helper's orphans with it.
#[derive(Debug)]
pub struct Confined {
    child: Child,
    level: Level,
    token: String,
    removal: Vec<String>,
}

impl Confined {
    /// The command's standard input; `None` if it was taken.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The command's standard output; `None` if it was taken.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The command's standard error; `None` if it was taken.
    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Process id of the supervising helper; `None` once its end was seen.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the end. Everything that the command started has ended by then as well.
    ///
    /// # Errors
    /// An I/O error.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the command with everything it started: asks first, and forces a quarter of a second later.
    ///
    /// # Errors
    /// An I/O error.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        self.ask();
        match timeout(END_GRACE, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.force();
                let status = self.child.wait().await;
                Leftover::new(std::mem::take(&mut self.removal)).remove().await;
                status
            }
        }
    }

    /// Why the command was never started, if `printed`, its errors, show that. `status` is how it ended.
    pub fn setup_failure(&self, status: ExitStatus, printed: &str) -> Option<String> {
        let exit = Exit::Code(status.code()?);
        setup_failure(&self.level, exit, printed, &self.token)
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.cast_signed())
    }

    /// Asks the supervising helper, which ends all other processes.
    fn ask(&self) {
        if let Some(pid) = self.pid() {
            // Its exit status is not collected, so the id is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn force(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Confined {
    /// The helper ends the others within a quarter of a second; the runtime collects it.
    fn drop(&mut self) {
        self.ask();
    }
}

/// The helper's message, if it shows that the command was never started. Other programs that confine have no token, so
/// a command can imitate their message; then its own failure is reported as one of the sandbox.
fn setup_failure(level: &Level, exit: Exit, printed: &str, token: &str) -> Option<String> {
    if let (Exit::Code(SETUP_FAILED), Some((_, message))) = (exit, printed.split_once(token)) {
        return Some(message.trim_end().to_owned());
    }
    let is_theirs = match (level, exit) {
        (Level::Bubblewrap, Exit::Code(1)) => printed.starts_with("bwrap: "),
        (Level::Container { .. }, Exit::Code(SETUP_FAILED)) => {
            ["Error: ", "docker: ", "Unable to find image"]
                .iter()
                .any(|start| printed.starts_with(start))
        }
        _ => false,
    };
    is_theirs.then(|| printed.trim_end().to_owned())
}

/// The program, the name it is started under, and its arguments.
fn own_command(spec: &ChildSpec) -> Result<Vec<OsString>, SandboxError> {
    let mut command = vec![spec.resolve_program()?.into_os_string(), spec.program.clone()];
    command.extend(spec.args.iter().cloned());
    Ok(command)
}

fn encode(plan: &Plan) -> Result<OsString, SandboxError> {
    serde_json::to_string(plan)
        .map(OsString::from)
        .map_err(|error| SandboxError::Demand(error.to_string()))
}

/// Precedes messages of the helper. The command cannot know it.
fn token() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("[sandbox {}-{now}-{count}] ", std::process::id())
}

#[cfg(test)]
mod tests;
