//! A release: its signed list of digests, and its install.sh, which is on the list.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_files::{OwnedDirectory, hex};
use myclaw_front::exit::CliError;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};

use super::installed::Installed;

const LIST: &str = "SHA256SUMS";
const SIGNATURE: &str = "SHA256SUMS.sig";
const SCRIPT: &str = "install.sh";
/// Begins the name of the temporary directory.
const TEMPORARY: &str = "myclaw-update-";
/// Largest file that is downloaded here; install.sh gets the archive itself.
const MOST_BYTES: u64 = 4 << 20;
/// Options as in install.sh.
const CURL: [&str; 12] = [
    "--proto",
    "=https",
    "--fail",
    "--silent",
    "--show-error",
    "--location",
    "--connect-timeout",
    "20",
    "--speed-limit",
    "1",
    "--speed-time",
    "20",
];
/// Options as in install.sh. wget would follow a redirect to an address without https.
const WGET: [&str; 5] =
    ["--no-verbose", "--max-redirect=0", "--timeout=20", "--tries=1", "--output-document"];
/// What comes before the 32 bytes of an Ed25519 key in a public key (RFC 8410).
const KEY_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A release whose list has the right signature.
pub(super) struct Release<'a> {
    installed: &'a Installed,
    place: String,
    version: String,
    /// Where its script is, which has the digest of the list.
    directory: OwnedDirectory,
}

impl<'a> Release<'a> {
    /// Gets the list and checks it with the key of the installed version.
    pub(super) fn find(installed: &'a Installed, from: Option<&str>) -> Result<Self, CliError> {
        let place = match from.map(str::to_owned).or_else(|| installed.origin()) {
            Some(place) if !place.is_empty() => place.trim_end_matches('/').to_owned(),
            _ => {
                return Err(CliError::usage(
                    "name the directory or the https:// address of the release with --from",
                ));
            }
        };
        if place.contains("://") && !place.starts_with("https://") {
            return Err(CliError::usage(format!(
                "{place} is no place of a release; --from is a directory, or an address that begins with https://"
            )));
        }
        let directory =
            OwnedDirectory::create(&std::env::temp_dir(), TEMPORARY).map_err(|error| {
                CliError::failure(format!("cannot make a temporary directory: {error}"))
            })?;
        let missing = |name: &str, why: String| {
            let hint = match name {
                LIST => "; --from names the directory or the address of a release",
                SIGNATURE => ", and without it the list of digests has no signature",
                _ => "",
            };
            CliError::failure(format!(
                "cannot get {name} from {place}: {why}{hint}. Nothing was changed"
            ))
        };
        let get = |name: &str| {
            let to = directory.path().join(name);
            get(&place, name, &to).map_err(|why| missing(name, why))
        };
        let list = get(LIST)?;
        let signature = get(SIGNATURE)?;
        let key = UnparsedPublicKey::new(&ED25519, public_key(&installed.key()?)?);
        key.verify(&list, &signature).map_err(|_| {
            CliError::failure(
                "the signature of SHA256SUMS is wrong: the list of digests was changed, or another key has signed it than the \
                 installed version. Nothing was changed",
            )
        })?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let script = get(SCRIPT)?;
        let found = hex(digest(&SHA256, &script).as_ref());
        if !lines(&list).any(|(known, name)| name == SCRIPT && known == found) {
            return Err(CliError::failure(format!(
                "{SCRIPT} in {place} has another digest than the signed list. Nothing was changed"
            )));
        }
        let version = version(&list).ok_or_else(|| {
            CliError::failure(format!(
                "{LIST} in {place} has no archive of one version. Nothing was changed"
            ))
        })?;
        Ok(Self { installed, place, version, directory })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Has the script install it, which checks the archive too. The script has the lock of the update: it goes on if this
    /// process is killed, and keeps the next update away until it ends.
    pub(super) fn install(&self, lock: &File) -> Result<(), CliError> {
        let failed = |error: io::Error| CliError::failure(format!("sh cannot be run: {error}"));
        let ended = Command::new("sh")
            .arg(self.directory.path().join(SCRIPT))
            .arg("--from")
            .arg(&self.place)
            .arg("--to")
            .arg(self.installed.to())
            .stdin(Stdio::from(lock.try_clone().map_err(failed)?))
            .output()
            .map_err(failed)?;
        match ended.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&ended.stderr);
                let last = said.lines().last().unwrap_or("install.sh failed without a message");
                Err(CliError::failure(last.trim_start_matches("install.sh: ").to_owned()))
            }
        }
    }
}

/// Gets a file of a release.
fn get(place: &str, name: &str, to: &Path) -> Result<Vec<u8>, String> {
    let from = match place.starts_with("https://") {
        true => download(&format!("{place}/{name}"), to)?,
        false => Path::new(place).join(name),
    };
    let length = fs::metadata(&from).map_err(|error| error.to_string())?.len();
    if length > MOST_BYTES {
        return Err(format!("it has {length} bytes, and may have {MOST_BYTES}"));
    }
    let bytes = fs::read(&from).map_err(|error| error.to_string())?;
    fs::write(to, &bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Downloads a file as install.sh does, with curl or wget, and never from an address without https. A server that sends nothing for
/// some seconds is given up, and a slow one is not.
fn download(address: &str, to: &Path) -> Result<PathBuf, String> {
    let most = MOST_BYTES.to_string();
    let mut with_curl = Command::new("curl");
    with_curl.args(CURL).args(["--max-filesize", &most, "--output"]).arg(to).arg(address);
    let mut with_wget = Command::new("wget");
    with_wget.args(WGET).arg(to).arg(address);
    for (command, why) in [(&mut with_curl, why_curl as Why), (&mut with_wget, why_wget)] {
        match command.stdin(Stdio::null()).output() {
            Ok(ended) if ended.status.success() => return Ok(to.to_owned()),
            Ok(ended) => {
                let said = String::from_utf8_lossy(&ended.stderr);
                return Err(why(ended.status.code(), said.lines().next().unwrap_or_default()));
            }
            Err(_) => {}
        }
    }
    Err("install curl or wget, or download the files and name their directory with --from"
        .to_owned())
}

/// Why a download has failed: by the exit code of the program, and the first line that it has written.
type Why = fn(Option<i32>, &str) -> String;

fn why_curl(code: Option<i32>, said: &str) -> String {
    match code {
        Some(1) => {
            "the server redirects to an address that does not begin with https://".to_owned()
        }
        Some(28) => "the server does not answer, or sends nothing more".to_owned(),
        // Without "curl: (60) ".
        _ => said.split_once(") ").map_or(said, |(_, why)| why).to_owned(),
    }
}

fn why_wget(code: Option<i32>, said: &str) -> String {
    match code {
        Some(4) => "the server does not answer, or sends nothing more",
        Some(5) => "the certificate of the server is not trusted here",
        Some(8) => "the server has no such file, or redirects, which is followed with curl only",
        _ => said,
    }
    .to_owned()
}

fn public_key(pem: &str) -> Result<Vec<u8>, CliError> {
    let text: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    match bytes.strip_prefix(&KEY_HEAD) {
        Some(key) if key.len() == 32 => Ok(key.to_owned()),
        _ => Err(CliError::failure(
            "the installed release-key.pem is no Ed25519 key; install MyClaw again with install.sh",
        )),
    }
}

/// The digests and names of a list.
fn lines(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.lines().filter_map(|line| line.split_once("  "))
}

/// The one version of the archives of a list.
fn version(list: &str) -> Option<String> {
    let archives = lines(list).filter_map(|(_, name)| {
        let (version, target) = name.strip_prefix("myclaw-")?.split_once('-')?;
        let is_version = version.split('.').count() == 3
            && version.split('.').all(|part| part.parse::<u64>().is_ok());
        (is_version && target.ends_with(".tar.gz")).then(|| version.to_owned())
    });
    let mut versions: Vec<String> = archives.collect();
    versions.dedup();
    <[String; 1]>::try_from(versions).ok().map(|[version]| version)
}
