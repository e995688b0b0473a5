//! PgBouncer between the stores and the server: each transaction may go over another connection. `MYCLAW_PGBOUNCER` names the
//! directory that its packages were unpacked into.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use myclaw_testkit::PostgresServer;

/// So few connections to the server that the transactions of one client go over several.
const CONNECTIONS: usize = 6;
const PATIENCE: Duration = Duration::from_secs(20);
/// Ends the program with this process, as it cannot do by itself.
const KEEPER: &str = r#""$@" </dev/null >/dev/null & read -r _; kill $!"#;

struct Pooler {
    port: u16,
    /// A shell, which waits for the end of its standard input.
    _keeper: Child,
}

/// The port on which transactions are spread over few connections to the server; `None` without the program.
pub(crate) fn pooler(server: &PostgresServer) -> Option<u16> {
    static POOLER: OnceLock<Option<Pooler>> = OnceLock::new();
    let pooler = POOLER.get_or_init(|| {
        let package = std::env::var_os("MYCLAW_PGBOUNCER").map(PathBuf::from);
        let package = package.filter(|package| package.join("usr/sbin/pgbouncer").exists());
        if package.is_none() {
            let why = "MYCLAW_PGBOUNCER names no PgBouncer; scripts/test sets it";
            myclaw_testkit::skip_without(why);
        }
        Some(Pooler::start(&package?, server))
    });
    pooler.as_ref().map(|pooler| pooler.port)
}

impl Pooler {
    fn start(package: &Path, server: &PostgresServer) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap().keep();
        let url = server.url("any");
        let (login, _) = url.split_once("//").unwrap().1.split_once('@').unwrap();
        let (user, password) = login.split_once(':').unwrap();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={user} password={password}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\nmax_client_conn = 500\n\
             server_idle_timeout = 2\n",
            server.port()
        );
        let file = directory.join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        // It refuses to be the superuser, and the other user reads this.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let libraries = fs::read_dir(package.join("usr/lib")).unwrap();
        let libraries: Vec<PathBuf> = libraries.map(|entry| entry.unwrap().path()).collect();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.args(["setpriv", "--reuid", "nobody", "--clear-groups"]);
        }
        command.arg(package.join("usr/sbin/pgbouncer")).arg("--quiet").arg(&file);
        command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap()).current_dir("/");
        let keeper = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "PgBouncer does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Self { port, _keeper: keeper }
    }
}
