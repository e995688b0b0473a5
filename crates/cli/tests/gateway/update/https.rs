//! A release on a server with a certificate, which `openssl s_server` serves: each of its files is a whole answer of HTTP.

use std::process::{Child, Stdio};

use super::*;

/// What the server has instead of a file.
#[derive(Clone, Copy)]
enum Fault {
    Missing,
    /// A page in the place of every file, as where one has to sign in to the network.
    Page,
    CutOff,
    ToHttp,
    /// It never sends a byte.
    Stalls,
}

/// A certificate authority for tests, and a server that it vouches for.
struct Server {
    child: Child,
    directory: PathBuf,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Server {
    /// Serves what is in the place.
    fn of(place: &Place) -> Self {
        let directory = place.bench.home.path().join("server");
        fs::create_dir_all(&directory).unwrap();
        for entry in fs::read_dir(&place.release).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len());
            let answer = [head.as_bytes(), &bytes].concat();
            fs::write(directory.join(path.file_name().unwrap()), answer).unwrap();
        }
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            command.current_dir(&directory).args(arguments.split(' ')).stderr(Stdio::null());
            assert!(command.status().unwrap().success(), "openssl {arguments}");
        };
        fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=test"));
        openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=server"));
        openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -days 2 -out server.pem",
        );
        let mut command = Command::new("openssl");
        command.current_dir(&directory).stdin(Stdio::null()).stderr(Stdio::null());
        command.args("s_server -accept 127.0.0.1:0 -cert server.pem -key server.key".split(' '));
        let log = directory.join("log");
        let child = command.arg("-HTTP").stdout(fs::File::create(&log).unwrap()).spawn().unwrap();
        let port = || {
            let said = fs::read_to_string(&log).unwrap();
            Some(said.split_once("ACCEPT 127.0.0.1:")?.1.split_once('\n')?.0.to_owned())
        };
        until("the server", || port().is_some());
        let address = format!("https://127.0.0.1:{}", port().unwrap());
        Self { child, directory, address }
    }

    fn has(&self, fault: Fault, name: &str) {
        let path = self.directory.join(name);
        let answer = match fault {
            Fault::Missing => {
                "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<h1>Sorry</h1>"
            }
            Fault::Page => {
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 16\r\n\r\n<h1>Sign in</h1>"
            }
            Fault::CutOff => "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nbegin",
            Fault::ToHttp => {
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
            }
            Fault::Stalls => {
                fs::remove_file(&path).unwrap();
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
                return;
            }
        };
        fs::write(path, answer).unwrap();
    }

    fn update(&self, place: &Place) -> Command {
        let mut command = place.command(&["update", "--from", &self.address]);
        command.env("CURL_CA_BUNDLE", self.directory.join("ca.pem"));
        command
    }
}

/// A release, and the names of its archive and of its other files.
fn published() -> (Place, String) {
    let place = Place::new();
    place.publish(&newer(), &script(&newer()));
    let archive = place.archive().file_name().unwrap().to_str().unwrap().to_owned();
    (place, archive)
}

/// One sentence, and nothing has changed.
fn refused(place: &Place, command: &mut Command, parts: &[&str]) {
    let output = RunningChild::run(command);
    output.assert_code(1);
    let said = output.stderr();
    for part in parts.iter().copied().chain(["Nothing was "]) {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(place.version(), VERSION);
    assert!(!place.to.join("share/myclaw/previous.new").exists());
}

/// Whether the programs are here that this needs.
fn can_download() -> bool {
    let is_there = Command::new("curl").arg("--version").output().is_ok();
    if !is_there {
        skip_without("curl");
    }
    is_there && can_install()
}

#[test]
fn a_release_comes_over_https_and_a_bad_download_changes_nothing() {
    if !can_download() {
        return;
    }
    let (place, archive) = published();
    let server = Server::of(&place);
    // A way back from before, which a failed update must not take.
    let previous = place.to.join("share/myclaw/previous");
    fs::write(&previous, script("0.0.1")).unwrap();
    fs::set_permissions(&previous, fs::Permissions::from_mode(0o755)).unwrap();

    let mut untrusted = server.update(&place);
    untrusted.env_remove("CURL_CA_BUNDLE");
    refused(&place, &mut untrusted, &["cannot get SHA256SUMS from https://", "certificate"]);
    for (fault, what) in [
        (Fault::Missing, "404"),
        (Fault::CutOff, "bytes remaining"),
        (Fault::ToHttp, "the server redirects to an address that does not begin with https://"),
    ] {
        for name in ["SHA256SUMS", "SHA256SUMS.sig", "install.sh", &archive] {
            let path = server.directory.join(name);
            let whole = fs::read(&path).unwrap();
            server.has(fault, name);
            let cannot = format!("cannot get {name} from https://");
            refused(&place, &mut server.update(&place), &[&cannot, what]);
            fs::write(path, whole).unwrap();
        }
    }
    for (name, what) in [
        ("SHA256SUMS", "the signature of SHA256SUMS is wrong"),
        ("SHA256SUMS.sig", "the signature of SHA256SUMS is wrong"),
        ("install.sh", "install.sh in https://"),
        (&archive, "another digest than the signed list"),
    ] {
        let path = server.directory.join(name);
        let whole = fs::read(&path).unwrap();
        server.has(Fault::Page, name);
        refused(&place, &mut server.update(&place), &[what]);
        fs::write(path, whole).unwrap();
    }
    let mut through_proxy = server.update(&place);
    through_proxy.env("https_proxy", "http://127.0.0.1:9");
    refused(&place, &mut through_proxy, &["cannot get SHA256SUMS from https://", "port 9"]);
    let path = server.directory.join(&archive);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    refused(&place, &mut server.update(&place), &["another digest than the signed list"]);
    assert_eq!(fs::read(&previous).unwrap(), script("0.0.1"), "the way back is still there");

    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    RunningChild::run(&mut server.update(&place)).assert_code(0);
    assert_eq!(place.version(), newer());
    let from = fs::read_to_string(place.to.join("share/myclaw/from")).unwrap();
    assert_eq!(from.trim(), server.address);
}

#[test]
fn a_server_that_sends_nothing_is_given_up() {
    if !can_download() {
        return;
    }
    let stalls = |name: &str| {
        let (place, archive) = published();
        let name = if name == "archive" { &archive } else { name };
        let server = Server::of(&place);
        server.has(Fault::Stalls, name);
        let parts = [&format!("cannot get {name} from https://"), "sends nothing more"];
        refused(&place, &mut server.update(&place), &parts);
    };
    // Each waits for twenty seconds.
    std::thread::scope(|scope| {
        for name in ["SHA256SUMS", "archive"] {
            scope.spawn(move || stalls(name));
        }
    });
}

#[test]
fn without_curl_wget_follows_no_redirect() {
    if !can_download() || Command::new("wget").arg("--version").output().is_err() {
        return;
    }
    let (place, archive) = published();
    let server = Server::of(&place);
    // All programs but curl.
    let programs = place.bench.home.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name() != "curl" {
                let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
            }
        }
    }
    let trust = format!("ca_certificate = {}/ca.pem\n", server.directory.display());
    let update = || {
        let mut command = server.update(&place);
        command.env("PATH", &programs);
        command
    };
    refused(&place, &mut update(), &["SHA256SUMS", "the certificate of the server is not trusted"]);
    place.bench.home.write(".wgetrc", trust);
    for name in ["SHA256SUMS", &archive] {
        let path = server.directory.join(name);
        let whole = fs::read(&path).unwrap();
        server.has(Fault::ToHttp, name);
        refused(&place, &mut update(), &[name, "or redirects, which is followed with curl only"]);
        fs::write(path, whole).unwrap();
    }
    RunningChild::run(&mut update()).assert_code(0);
    assert_eq!(place.version(), newer());
}
