//! The download of a model: checked, resumed, and put in place as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::{LockError, LockFile, LockWait, remove_if_there, sync_directory};
use myclaw_proxy::to_server;
use reqwest::header::RANGE;
use reqwest::{Client, Response, StatusCode, redirect, retry};
use ring::digest::{Context, SHA256};
use url::Url;

/// The repository with the quantised model of the protocol.
const REPOSITORY: &str = "https://huggingface.co/Xenova/all-MiniLM-L6-v2/resolve/main/";
/// Its files, with their SHA-256, in the format of `sha256sum`. They have 23.0 MB and 0.2 MB.
const CHECKSUMS: &str = "\
afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1  onnx/model_quantized.onnx
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3  vocab.txt
";
/// Most bytes of a file.
const MAX_BYTES: u64 = 512 * 1024 * 1024;
/// Most files of a model.
const MAX_FILES: usize = 16;
/// Time limits of a connection and of a pause in the data.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
/// How long to wait for another process that downloads the same files.
const OTHER_PROCESS: Duration = Duration::from_secs(600);
/// Most redirects: the repository is behind one.
const MAX_REDIRECTS: usize = 5;
/// How often progress is reported.
const PROGRESS_STEPS: u64 = 5;

/// From where a model is downloaded.
#[derive(Debug, Clone)]
pub struct Source {
    /// What precedes the names of the files, with a slash at its end.
    base: Url,
    /// The files and what they must contain.
    checksums: Checksums,
}

/// The files of a model with their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Checksums(Vec<(String, String)>);

/// A source that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is not an address of the web.
    #[error("{base:?} is no address of http or https; give what precedes the names of the files")]
    Address {
        /// What was given.
        base: String,
    },
    /// The list of checksums has another format.
    #[error(
        "line {line} of the checksums is not one of sha256sum: write 64 hexadecimal digits, two spaces and a relative path"
    )]
    Checksums {
        /// The first line that is wrong, from 1.
        line: usize,
    },
}

/// Files that could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The server does not answer, or not with the file.
    #[error("{url} cannot be downloaded: {problem}")]
    Server {
        /// The file.
        url: Url,
        /// What happened.
        problem: String,
    },
    /// The file is another one than expected. It was removed.
    #[error("{url} is not the expected file: its SHA-256 is {found} and not {expected}")]
    OtherContent {
        /// The file.
        url: Box<Url>,
        /// The digest of what came.
        found: String,
        /// The digest of the right file.
        expected: String,
    },
    /// The directory cannot be written.
    #[error("the model cannot be stored in {}: {source}", directory.display())]
    Disk {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Checksums {
    /// Reads a list in the format of `sha256sum`.
    fn parse(text: &str) -> Result<Self, SourceError> {
        let mut files = Vec::new();
        for (line, content) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = content.split_once("  ").filter(|(digest, name)| {
                let is_digest =
                    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_digest && is_below(name) && files.len() < MAX_FILES
            });
            let (digest, name) = parsed.ok_or(SourceError::Checksums { line })?;
            files.push((name.to_owned(), digest.to_ascii_lowercase()));
        }
        if files.is_empty() { Err(SourceError::Checksums { line: 1 }) } else { Ok(Self(files)) }
    }
}

/// Whether a path is relative, of plain names, and leads nowhere else as part of an address.
fn is_below(path: &str) -> bool {
    path.split('/').all(|name| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    })
}

impl Source {
    /// The files below `base`, or the model's repository on Hugging Face. `checksums` lists the files and their SHA-256 in
    /// the format of `sha256sum`; without it they are those of the quantised model there.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn new(base: Option<&str>, checksums: Option<&str>) -> Result<Self, SourceError> {
        let base = base.unwrap_or(REPOSITORY);
        let parsed = Url::parse(&format!("{}/", base.trim_end_matches('/')));
        let parsed =
            parsed.ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = parsed.ok_or_else(|| SourceError::Address { base: base.to_owned() })?;
        Ok(Self { base, checksums: Checksums::parse(checksums.unwrap_or(CHECKSUMS))? })
    }

    /// Downloads what is missing in `directory`. Blocks. `say` gets lines about the progress.
    ///
    /// A file appears under its name when all of it was checked. What a download left that was cut off is continued if
    /// the server can do that. Other processes that want the same files wait for this one.
    ///
    /// # Errors
    /// [`DownloadError`].
    pub fn fetch(
        &self,
        directory: &Path,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<(), DownloadError> {
        let disk = |source| DownloadError::Disk { directory: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(disk)?;
        let lock = directory.join(".download.lock");
        let _lock = LockFile::acquire(&lock, LockWait::Until(OTHER_PROCESS)).map_err(|error| {
            disk(match error {
                LockError::Io { source, .. } => source,
                LockError::Held { .. } => {
                    io::Error::other("another process downloads it for too long")
                }
            })
        })?;
        let work = async {
            let client = client(&self.base)?;
            for (name, digest) in &self.checksums.0 {
                let path = directory.join(name);
                if !path.exists() {
                    Transfer {
                        client: &client,
                        url: self.address(name)?,
                        directory,
                        path,
                        digest,
                        say,
                    }
                    .run()
                    .await?;
                }
            }
            Ok(())
        };
        // The caller may be a thread of a runtime, where no other may run.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(disk)?;
                runtime.block_on(work)
            });
            thread.join().unwrap_or_else(|_| Err(disk(io::Error::other("the download failed"))))
        })
    }

    fn address(&self, name: &str) -> Result<Url, DownloadError> {
        self.base.join(name).map_err(|error| DownloadError::Server {
            url: self.base.clone(),
            problem: error.to_string(),
        })
    }
}

fn client(base: &Url) -> Result<Client, DownloadError> {
    // An error means that one is installed already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS))
        .retry(retry::never())
        .referer(false);
    if base.scheme() == "http" {
        // No certificates are needed, and reading those of the system takes time.
        builder = builder.tls_certs_only([]);
    }
    to_server(builder, base.as_str())
        .build()
        .map_err(|error| DownloadError::Server { url: base.clone(), problem: reason(&error) })
}

/// The download of one file.
struct Transfer<'a> {
    client: &'a Client,
    url: Url,
    directory: &'a Path,
    path: PathBuf,
    digest: &'a str,
    say: &'a (dyn Fn(&str) + Sync),
}

impl Transfer<'_> {
    async fn run(&self) -> Result<(), DownloadError> {
        let disk = |source| self.disk(source);
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent).map_err(disk)?;
        }
        let partial = self.path.with_added_extension("partial");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&partial)
            .map_err(disk)?;
        let start = file.metadata().map_err(disk)?.len().min(MAX_BYTES);
        let mut response = self.request(start).await?;
        let mut start = start;
        if start > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            // All of it is there, or more than there is.
            start = 0;
            response = self.request(0).await?;
        }
        let start = match response.status() {
            StatusCode::PARTIAL_CONTENT => start,
            StatusCode::OK => 0,
            status => return Err(self.server(format!("the server answers {status}"))),
        };
        file.set_len(start).map_err(disk)?;
        let mut context = Context::new(&SHA256);
        file.seek(SeekFrom::Start(0)).map_err(disk)?;
        read_into(&mut context, &mut file).map_err(disk)?;
        self.receive(&mut response, start, &mut file, &mut context).await?;
        let found = myclaw_files::hex(context.finish().as_ref());
        if found != *self.digest {
            drop(remove_if_there(&partial));
            let (url, expected) = (Box::new(self.url.clone()), self.digest.to_owned());
            return Err(DownloadError::OtherContent { url, found, expected });
        }
        file.sync_all().map_err(disk)?;
        std::fs::rename(&partial, &self.path).map_err(disk)?;
        sync_directory(self.directory).map_err(disk)
    }

    async fn request(&self, start: u64) -> Result<Response, DownloadError> {
        let mut request = self.client.get(self.url.clone());
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        request.send().await.map_err(|error| self.server(reason(&error)))
    }

    async fn receive(
        &self,
        response: &mut Response,
        start: u64,
        file: &mut File,
        context: &mut Context,
    ) -> Result<(), DownloadError> {
        let whole = response.content_length().map(|rest| start + rest);
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let size =
            whole.map_or("unknown size".to_owned(), |whole| format!("{:.1} MB", megabytes(whole)));
        (self.say)(&format!("downloading {} ({size})", self.url));
        let mut length = start;
        let mut reported = 0;
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.server(reason(&error)))?
        {
            length += chunk.len() as u64;
            if length > MAX_BYTES {
                return Err(self.server(format!("it has more than {MAX_BYTES} bytes")));
            }
            file.write_all(&chunk).map_err(|source| self.disk(source))?;
            context.update(&chunk);
            let step = whole.map_or(0, |whole| length * PROGRESS_STEPS / whole.max(1));
            if step > reported && step < PROGRESS_STEPS {
                reported = step;
                (self.say)(&format!("{:.1} of {size}", megabytes(length)));
            }
        }
        Ok(())
    }

    fn server(&self, problem: String) -> DownloadError {
        DownloadError::Server { url: self.url.clone(), problem }
    }

    fn disk(&self, source: io::Error) -> DownloadError {
        DownloadError::Disk { directory: self.directory.to_owned(), source }
    }
}

fn read_into(context: &mut Context, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => context.update(&buffer[..length]),
        }
    }
}

/// The innermost reason of a failure, which says most.
fn reason(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests;
