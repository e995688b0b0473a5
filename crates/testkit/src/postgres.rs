//! A PostgreSQL server for tests.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::Signal;

/// The user who runs the server, if that is not the one who runs the tests: PostgreSQL refuses the superuser.
const USER: &str = "nobody";
/// The user of the database, and the password.
const LOGIN: &str = "myclaw:secret";
/// Between two looks whether the server is there or gone.
const PAUSE: Duration = Duration::from_millis(20);

/// A server on a port of its own. It ends with this value or with this process, and its directory is removed then.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    /// A shell, which waits for the end of its standard input.
    keeper: Child,
}

impl PostgresServer {
    /// Starts a server, with these lines at the end of its configuration. `None` if `MYCLAW_POSTGRES` does not name its
    /// programs; the test says that it is skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(configuration: &str) -> Option<Self> {
        let programs =
            std::env::var_os("MYCLAW_POSTGRES").map(|path| PathBuf::from(path).join("bin"));
        let Some(programs) = programs.filter(|path| path.join("initdb").exists()) else {
            crate::skip_without(
                "MYCLAW_POSTGRES names no directory with bin/initdb; scripts/test sets it",
            );
            return None;
        };
        let server = Self::prepare(programs);
        server.create(configuration);
        server.launch();
        Some(server)
    }

    fn prepare(programs: PathBuf) -> Self {
        let directory = tempfile::Builder::new().prefix("myclaw-postgres-").tempdir();
        let directory = directory.expect("a directory").keep();
        // Nobody listens on it any more when the server takes it.
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
        let keeper = keep(&directory, &programs);
        Self { programs, directory, port: port.port(), keeper }
    }

    /// A standby of this server, which then waits for it at each commit. This server stops for a moment.
    ///
    /// # Panics
    /// If one of them does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let standby = Self::prepare(self.programs.clone());
        self.control(&["--mode=fast", "stop"]);
        let mut copy = Command::new("cp");
        copy.arg("-R").arg(self.data()).arg(standby.data());
        assert!(copy.status().expect("cp").success());
        self.configure("synchronous_standby_names = '*'");
        fs::write(standby.data().join("standby.signal"), "").expect("a file");
        let (user, password) = LOGIN.split_once(':').expect("a login");
        standby.configure(&format!(
            "port = {}\nprimary_conninfo = 'host=127.0.0.1 port={} user={user} password={password}'",
            standby.port, self.port
        ));
        self.launch();
        standby.launch();
        standby
    }

    /// Makes a standby take writes. The server that it followed must be gone for good.
    ///
    /// # Panics
    /// If it is no standby.
    pub fn promote(&self) {
        self.control(&["--wait", "promote"]);
    }

    fn control(&self, arguments: &[&str]) {
        let mut command = self.as_user(&self.programs.join("pg_ctl"));
        command.arg("--pgdata").arg(self.data()).args(arguments).stdout(Stdio::null());
        assert!(command.status().expect("pg_ctl").success(), "pg_ctl {arguments:?}");
    }

    /// Adds lines to the configuration, which the next start reads.
    fn configure(&self, lines: &str) {
        let path = self.data().join("postgresql.conf");
        let file = fs::OpenOptions::new().append(true).open(path);
        file.expect("a configuration")
            .write_all(format!("\n{lines}\n").as_bytes())
            .expect("a configuration");
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://{LOGIN}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its directory. The server can read what is there.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The process that starts all others.
    ///
    /// # Panics
    /// If it does not run.
    pub fn process_id(&self) -> u32 {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).expect("a process id");
        text.lines().next().and_then(|line| line.parse().ok()).expect("a process id")
    }

    /// Kills the server as a crash does, and returns when its processes are gone.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&self) {
        let id = self.process_id();
        crate::send_signal(id, Signal::Kill);
        // Its processes notice that it is gone, and end.
        while self.is_up() || Path::new(&format!("/proc/{id}")).exists() {
            thread::sleep(PAUSE);
        }
    }

    /// Starts it again after [`Self::kill`], and returns when it takes connections.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&self) {
        // Processes of the one before may still hold its memory; then it refuses to start.
        for _ in 0..50 {
            let mut command = self.as_user(&self.programs.join("pg_ctl"));
            command.arg("--pgdata").arg(self.data()).arg("--log").arg(self.directory.join("log"));
            let status =
                command.args(["--wait", "--timeout=60", "start"]).stdout(Stdio::null()).status();
            if status.expect("pg_ctl").success() {
                return;
            }
            thread::sleep(PAUSE * 5);
        }
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    fn is_up(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn create(&self, configuration: &str) {
        let (user, password) = LOGIN.split_once(':').expect("a login");
        let file = self.directory.join("password");
        fs::write(&file, password).expect("a file");
        let mut command = self.as_user(&self.programs.join("initdb"));
        command.arg("--pgdata").arg(self.data()).arg(format!("--pwfile={}", file.display()));
        command.args([
            "--username",
            user,
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        let output = command.output().expect("initdb");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.configure(&format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\nmax_connections = 100\n\
             {configuration}",
            self.port
        ));
    }

    /// A command of the user who runs the server, who gets the directory.
    fn as_user(&self, program: &Path) -> Command {
        let mut command = if rustix::process::getuid().is_root() {
            let status = Command::new("chown").args(["-R", USER]).arg(&self.directory).status();
            assert!(status.expect("chown").success());
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.directory).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A process that outlives this one for a moment, and then ends the server and removes its directory.
fn keep(directory: &Path, programs: &Path) -> Child {
    const SCRIPT: &str = r#"read -r _
        [ -e "$1/data/postmaster.pid" ] && kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")" 2>/dev/null
        for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.1; done
        rm -rf "$1""#;
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(directory).current_dir(programs);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a shell")
}
