//! Contents in object storage: a service or server with the protocol of Amazon S3 or of Azure.
//!
//! The crate `object_store` signs requests and reads answers. The connections are those of this program: its TLS, and the
//! proxies that the environment names.

mod bucket;
mod connector;

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_session::{
    BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, checked_blob_name as checked,
};
use myclaw_store_postgres::wait_on;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use tokio::runtime::Handle;

use self::bucket::Bucket;
use crate::ClusterError;
use crate::address::{Setting, kept_text};

/// How long nobody asks after a failure, so that a storage that is away does not hold up each turn.
const PAUSE: Duration = Duration::from_secs(15);
/// Bytes of a part: larger contents are sent and read in parts, so that none is in memory as a whole.
const PART_BYTES: usize = 8 * 1024 * 1024;

const SETTING: Setting = Setting {
    name: "gateway.blobs",
    what: "the address of the object storage",
    places: "gateway.blobs",
};

/// Contents in a bucket.
#[derive(Debug)]
pub(crate) struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// The bucket and the prefix, for people.
    place: String,
    /// What to do without a key, if there is none: it is asked for where a machine of the vendor's has it.
    without_key: Option<&'static str>,
    runtime: Handle,
    /// Until when nobody asks.
    down: Mutex<Option<Instant>>,
}

/// The bucket that the config names; `None` if contents are in the database. Blocks.
///
/// # Errors
/// The address cannot be read.
pub(crate) fn objects_of(
    home: &Home,
    config: &Config,
    runtime: Handle,
) -> Result<Option<Arc<ObjectBlobs>>, ClusterError> {
    let Some(written) = &config.gateway.blobs else { return Ok(None) };
    let address = kept_text(home, written, &SETTING)?;
    let variable = |name: &str| home.environment.get(name).map(str::to_owned);
    let objects = ObjectBlobs::new(address.expose_secret().trim(), &variable, runtime)
        .map(|objects| objects.of_tenant(config))
        .map_err(|why| ClusterError::Config(format!("gateway.blobs: {why}")))?;
    Ok(Some(Arc::new(objects)))
}

impl ObjectBlobs {
    fn new(
        address: &str,
        variable: &dyn Fn(&str) -> Option<String>,
        runtime: Handle,
    ) -> Result<Self, String> {
        let Bucket { store, prefix, place, without_key } = Bucket::at(address, variable)?;
        Ok(Self { store, prefix, place, without_key, runtime, down: Mutex::default() })
    }

    /// The same below a prefix of the tenant's.
    fn of_tenant(self, config: &Config) -> Self {
        let [prefix, place] =
            [&self.prefix, &self.place].map(|name| crate::of_tenant(name, config, '/'));
        Self { prefix, place, ..self }
    }

    /// The bucket and the prefix, for people.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Writes, reads and removes a small content.
    pub(crate) fn check(&self) -> Result<(), String> {
        let limits = BlobLimits { each: 16, together: None };
        let name = format!("check-{}", crate::start_id());
        let checked = self.put(&name, &mut &b"check"[..], limits).and_then(|blob| {
            self.open(&blob)?.read_all()?;
            self.remove(&blob)
        });
        checked.map(drop).map_err(|error| match error {
            BlobError::Missing => {
                format!("the object storage {} has no such bucket; make it", self.place)
            }
            error => {
                format!("{error}; check that it runs, gateway.blobs, and the rights of its key")
            }
        })
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        Ok(Path::from(format!("{}/{}", self.prefix, checked(name)?)))
    }

    /// Waits for an answer. After a failure nobody asks for a moment; the log says when it begins and when it is over.
    fn call<T>(&self, work: impl Future<Output = object_store::Result<T>>) -> Result<T, BlobError> {
        if self.down.lock().is_some_and(|until| Instant::now() < until) {
            let why = format!("the object storage {} could not be used a moment ago", self.place);
            return Err(io::Error::other(why).into());
        }
        let answer = wait_on(&self.runtime, work);
        let failure = match &answer {
            Ok(_) | Err(Error::NotFound { .. }) => None,
            Err(error) => Some(match self.without_key {
                Some(key) => format!("{}; without a role of this machine, {key}", in_words(error)),
                None => in_words(error),
            }),
        };
        let until = failure.is_some().then(|| Instant::now() + PAUSE);
        let was_down = std::mem::replace(&mut *self.down.lock(), until).is_some();
        match &failure {
            Some(why) if !was_down => tracing::warn!(
                "the object storage {} cannot be used ({why}); what is new goes into the database until it can be used \
                 again; check that it runs, gateway.blobs, and the rights of its key",
                self.place
            ),
            None if was_down => {
                tracing::info!("the object storage {} can be used again", self.place)
            }
            _ => {}
        }
        answer.map_err(|_| match failure {
            None => BlobError::Missing,
            Some(why) => {
                io::Error::other(format!("the object storage {}: {why}", self.place)).into()
            }
        })
    }

    fn all(&self) -> Result<Vec<ObjectMeta>, BlobError> {
        let prefix = Path::from(self.prefix.as_str());
        // Not what is below it, which belongs to other tenants.
        Ok(self.call(self.store.list_with_delimiter(Some(&prefix)))?.objects)
    }
}

impl Blobs for ObjectBlobs {
    fn put(
        &self,
        name: &str,
        content: &mut dyn Read,
        limits: BlobLimits,
    ) -> Result<NamedBlob, BlobError> {
        let path = self.path(name)?;
        let others = match limits.together {
            None => 0,
            Some(_) => {
                let others = self.all()?.into_iter().filter(|object| object.location != path);
                others.map(|object| object.size).fold(0, u64::saturating_add)
            }
        };
        let mut upload = Upload { objects: self, path: &path, waiting: Vec::new(), parts: None };
        let copied = limits.copy(name, content, others, &mut upload);
        let copied = copied.and_then(|blob| upload.finish().map(|()| blob));
        copied.inspect_err(|_| upload.abort())
    }

    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError> {
        let path = self.path(&blob.name)?;
        let (part, bytes) = self.call(part_of(&*self.store, &path, 0))?;
        let (store, runtime) = (Arc::clone(&self.store), self.runtime.clone());
        let at = part.len() as u64;
        let rest = Rest { store, runtime, path, at, bytes, part: Cursor::new(part) };
        Ok(OpenBlob::new(blob, bytes, rest))
    }

    fn remove(&self, blob: &NamedBlob) -> Result<bool, BlobError> {
        let path = self.path(&blob.name)?;
        match self.call(self.store.head(&path)) {
            Err(BlobError::Missing) => return Ok(false),
            found => found.map(drop)?,
        }
        match self.call(self.store.delete(&path)) {
            Err(BlobError::Missing) => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    fn sweep(&self, max_age: Duration) -> Result<usize, BlobError> {
        let Some(before) = SystemTime::now().checked_sub(max_age) else { return Ok(0) };
        let mut removed = 0;
        for object in self.all()? {
            if SystemTime::from(object.last_modified) < before {
                self.call(self.store.delete(&object.location))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn describe(&self, blob: &NamedBlob) -> String {
        format!("{}/{}", self.place, blob.name)
    }
}

/// A part of an object that begins at `at`, and how many bytes the whole has. No object is empty.
async fn part_of(
    store: &dyn ObjectStore,
    path: &Path,
    at: u64,
) -> object_store::Result<(Bytes, u64)> {
    let range = Some(GetRange::Bounded(at..at + PART_BYTES as u64));
    let found = store.get_opts(path, GetOptions { range, ..GetOptions::default() }).await?;
    let bytes = found.meta.size;
    Ok((found.bytes().await?, bytes))
}

/// Reads an object in parts.
struct Rest {
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
    path: Path,
    at: u64,
    bytes: u64,
    part: Cursor<Bytes>,
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.part.read(buffer)?;
        if count > 0 || self.at >= self.bytes || buffer.is_empty() {
            return Ok(count);
        }
        let part = part_of(&*self.store, &self.path, self.at);
        let (part, _) = wait_on(&self.runtime, part).map_err(io::Error::other)?;
        self.at += part.len() as u64;
        self.part = Cursor::new(part);
        self.part.read(buffer)
    }
}

/// Writes an object: at once, or in parts if it has more than one.
struct Upload<'o> {
    objects: &'o ObjectBlobs,
    path: &'o Path,
    waiting: Vec<u8>,
    parts: Option<Box<dyn MultipartUpload>>,
}

impl Upload<'_> {
    fn send(&mut self) -> Result<(), BlobError> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(self.objects.call(self.objects.store.put_multipart(self.path))?),
        };
        let part = std::mem::take(&mut self.waiting);
        self.objects.call(parts.put_part(part.into()))
    }

    fn finish(&mut self) -> Result<(), BlobError> {
        if self.parts.is_none() {
            let whole = std::mem::take(&mut self.waiting);
            return self.objects.call(self.objects.store.put(self.path, whole.into())).map(drop);
        }
        if !self.waiting.is_empty() {
            self.send()?;
        }
        let completed = self.parts.as_mut().map(|parts| self.objects.call(parts.complete()));
        completed.map_or(Ok(()), |completed| completed.map(drop))
    }

    /// What was sent of an object that is not finished goes.
    fn abort(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            let _ = self.objects.call(parts.abort());
        }
    }
}

impl io::Write for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The last part is sent at the end, because an object of one part is sent at once.
        if self.waiting.len() == PART_BYTES {
            self.send().map_err(io::Error::other)?;
        }
        let taken = &bytes[..bytes.len().min(PART_BYTES - self.waiting.len())];
        self.waiting.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error with its causes, in one line.
fn in_words(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
