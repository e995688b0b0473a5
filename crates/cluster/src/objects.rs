//! Contents in object storage that speaks the protocol of Amazon S3, as many services and servers do.
//!
//! The crate `object_store` signs requests and reads answers. The connections are those of this program: its TLS, and the
//! proxies that the environment names.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_session::{
    BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, checked_blob_name as checked,
};
use myclaw_store_postgres::wait_on;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, RetryConfig};
use parking_lot::Mutex;
use reqwest::{Client, Url};
use secrecy::ExposeSecret as _;
use tokio::runtime::Handle;

use crate::ClusterError;
use crate::address::{Setting, kept_text};

/// How long a connection, and one request, may take.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(60);
/// How often a request is repeated, and for how long.
const RETRIES: RetryConfig = RetryConfig {
    backoff: object_store::BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.0,
    },
    max_retries: 2,
    retry_timeout: Duration::from_secs(10),
};
/// How long nobody asks after a failure, so that a storage that is away does not hold up each turn.
const PAUSE: Duration = Duration::from_secs(15);
/// The variables with what the address does not say.
const VARIABLES: [(&str, AmazonS3ConfigKey); 8] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_DEFAULT_REGION", AmazonS3ConfigKey::DefaultRegion),
    ("AWS_REGION", AmazonS3ConfigKey::Region),
    ("AWS_ENDPOINT_URL", AmazonS3ConfigKey::Endpoint),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
];

/// Where a key can be.
const KEY: &str =
    "write `s3://KEY:SECRET@bucket/prefix`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

const SETTING: Setting = Setting {
    name: "gateway.blobs",
    what: "the address of the object storage",
    places: "gateway.blobs",
};

/// Contents in a bucket.
#[derive(Debug)]
pub(crate) struct ObjectBlobs {
    store: AmazonS3,
    prefix: String,
    /// The bucket and the prefix, for people.
    place: String,
    /// Without one, it is asked for where a machine of Amazon's has it.
    has_key: bool,
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
        let form = "write it as `s3://bucket/prefix`, with `?endpoint=URL` for another service than Amazon's and `region=NAME`";
        let url = Url::parse(address).map_err(|error| format!("{error}; {form}"))?;
        let bucket = url.host_str().filter(|bucket| url.scheme() == "s3" && !bucket.is_empty());
        let bucket = bucket.ok_or_else(|| format!("expected the address of a bucket; {form}"))?;
        let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(RETRIES);
        for (name, key) in VARIABLES {
            if let Some(value) = variable(name).filter(|value| !value.trim().is_empty()) {
                builder = builder.with_config(key, value.trim());
            }
        }
        let mut endpoint = variable("AWS_ENDPOINT_URL").unwrap_or_default();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "endpoint" => {
                    endpoint = value.clone().into_owned();
                    builder = builder.with_endpoint(value);
                }
                "region" => builder = builder.with_region(value),
                other => return Err(format!("{other:?} is not known; {form}")),
            }
        }
        if let Some(secret) = url.password() {
            builder = builder
                .with_access_key_id(decoded(url.username()))
                .with_secret_access_key(decoded(secret));
        } else if !url.username().is_empty() {
            return Err(format!("there is a key without its secret; {KEY}"));
        }
        let has_key = url.password().is_some()
            || ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"]
                .iter()
                .any(|name| variable(name).is_some());
        if !has_key && !endpoint.is_empty() {
            return Err(format!("there is no key for {endpoint}; {KEY}"));
        }
        // Plain HTTP only where the owner wrote it.
        let store = builder
            .with_allow_http(endpoint.starts_with("http://"))
            .with_http_connector(Connector(endpoint))
            .build()
            .map_err(|error| in_words(&error))?;
        let prefix = url.path().trim_matches('/').to_owned();
        let place = format!("s3://{bucket}/{prefix}");
        Ok(Self { store, prefix, place, has_key, runtime, down: Mutex::default() })
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
            Err(error) if self.has_key => Some(in_words(error)),
            Err(error) => {
                Some(format!("{}; without a role of this machine, {KEY}", in_words(error)))
            }
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
        let mut bytes = Vec::new();
        let blob = limits.copy(name, content, others, &mut bytes)?;
        self.call(self.store.put(&path, bytes.into()))?;
        Ok(blob)
    }

    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError> {
        let path = self.path(&blob.name)?;
        let content = self.call(async { self.store.get(&path).await?.bytes().await })?;
        Ok(OpenBlob::new(blob, content.len() as u64, Cursor::new(content)))
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

/// Makes the client for a service at an address; Amazon's, if it is empty.
#[derive(Debug)]
struct Connector(String);

#[derive(Debug)]
struct Service(Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // An error means that one is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .redirect(reqwest::redirect::Policy::none());
        if self.0.starts_with("http://") {
            // No certificates are needed, and reading those of the system takes time.
            builder = builder.tls_certs_only([]);
        }
        let client = myclaw_proxy::to_server(builder, &self.0).build();
        let client =
            client.map_err(|error| Error::Generic { store: "S3", source: error.into() })?;
        Ok(HttpClient::new(Service(client)))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut asked = reqwest::Request::new(parts.method, url);
        *asked.headers_mut() = parts.headers;
        *asked.body_mut() = Some(body.collect().await?.to_bytes().into());
        let response = self.0.execute(asked).await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut answer = HttpResponse::new(response.bytes().await.map_err(failed)?.into());
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }
}

fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
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

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests;
