//! The bucket that an address names.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::{ObjectStore, RetryConfig};
use reqwest::Url;

use super::connector::Connector;
use super::in_words;

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
/// The variables with what the address does not say. One of the first of each is a key.
const AMAZON: [(&str, AmazonS3ConfigKey); 8] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_DEFAULT_REGION", AmazonS3ConfigKey::DefaultRegion),
    ("AWS_REGION", AmazonS3ConfigKey::Region),
    ("AWS_ENDPOINT_URL", AmazonS3ConfigKey::Endpoint),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
];
const AZURE: [(&str, AzureConfigKey); 7] = [
    ("AZURE_STORAGE_ACCOUNT_KEY", AzureConfigKey::AccessKey),
    ("AZURE_CLIENT_SECRET", AzureConfigKey::ClientSecret),
    ("AZURE_FEDERATED_TOKEN_FILE", AzureConfigKey::FederatedTokenFile),
    ("AZURE_STORAGE_SAS_TOKEN", AzureConfigKey::SasKey),
    ("AZURE_STORAGE_ACCOUNT_NAME", AzureConfigKey::AccountName),
    ("AZURE_CLIENT_ID", AzureConfigKey::ClientId),
    ("AZURE_TENANT_ID", AzureConfigKey::AuthorityId),
];

/// Where a key can be.
const AMAZON_KEY: &str =
    "write `s3://KEY:SECRET@bucket/prefix`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
const AZURE_KEY: &str = "write `az://ACCOUNT:KEY@container/prefix`, or set AZURE_STORAGE_ACCOUNT_NAME and \
    AZURE_STORAGE_ACCOUNT_KEY";
const FORM: &str = "write it as `s3://bucket/prefix` or `az://container/prefix`, with `?endpoint=URL` for another \
    service than the vendor's and, for S3, `region=NAME`";

/// A place for contents.
pub(super) struct Bucket {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: String,
    /// The bucket and the prefix, for people.
    pub(super) place: String,
    /// What to do without a key, if there is none.
    pub(super) without_key: Option<&'static str>,
}

/// The parts of an address.
struct Named<'v> {
    bucket: String,
    /// The user and the password.
    key: Option<(String, String)>,
    endpoint: String,
    region: Option<String>,
    variable: &'v dyn Fn(&str) -> Option<String>,
}

impl Named<'_> {
    /// What is set of these variables, and whether one of the first `keys` is.
    fn set<K: Copy>(&self, known: &[(&str, K)], keys: usize) -> (Vec<(K, String)>, bool) {
        let value = |name: &str| (self.variable)(name).filter(|value| !value.trim().is_empty());
        let set =
            known.iter().filter_map(|(name, key)| Some((*key, value(name)?.trim().to_owned())));
        let has_key = known.iter().take(keys).any(|(name, _)| value(name).is_some());
        (set.collect(), has_key || self.key.is_some())
    }

    fn allows_http(&self) -> bool {
        // Plain HTTP only where the owner wrote it.
        self.endpoint.starts_with("http://")
    }

    fn amazon(mut self) -> Result<(Arc<dyn ObjectStore>, bool), String> {
        if self.endpoint.is_empty() {
            self.endpoint = (self.variable)("AWS_ENDPOINT_URL").unwrap_or_default();
        }
        let (set, has_key) = self.set(&AMAZON, 2);
        if !has_key && !self.endpoint.is_empty() {
            return Err(format!("there is no key for {}; {AMAZON_KEY}", self.endpoint));
        }
        let mut builder = AmazonS3Builder::new().with_bucket_name(&self.bucket);
        for (key, value) in set {
            builder = builder.with_config(key, value);
        }
        if !self.endpoint.is_empty() {
            builder = builder.with_endpoint(&self.endpoint);
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some((id, secret)) = &self.key {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        }
        let builder = builder.with_retry(RETRIES).with_allow_http(self.allows_http());
        let built = builder.with_http_connector(Connector(self.endpoint)).build();
        Ok((Arc::new(built.map_err(|error| in_words(&error))?), has_key))
    }

    fn azure(self) -> Result<(Arc<dyn ObjectStore>, bool), String> {
        let (set, has_key) = self.set(&AZURE, 4);
        let mut builder = MicrosoftAzureBuilder::new().with_container_name(&self.bucket);
        for (key, value) in set {
            builder = builder.with_config(key, value);
        }
        if !self.endpoint.is_empty() {
            builder = builder.with_endpoint(self.endpoint.clone());
        }
        if let Some((account, key)) = &self.key {
            builder = builder.with_account(account).with_access_key(key);
        }
        let builder = builder.with_retry(RETRIES).with_allow_http(self.allows_http());
        let built = builder.with_http_connector(Connector(self.endpoint)).build();
        let built = built.map_err(|error| format!("{}; {AZURE_KEY}", in_words(&error)))?;
        Ok((Arc::new(built), has_key))
    }
}

impl Bucket {
    /// The bucket at an address. `variable` gives what the environment says.
    pub(super) fn at(
        address: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let url = Url::parse(address).map_err(|error| format!("{error}; {FORM}"))?;
        let vendor = url.scheme();
        let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
        let bucket = bucket.filter(|_| matches!(vendor, "s3" | "az"));
        let bucket = bucket.ok_or_else(|| format!("expected the address of a bucket; {FORM}"))?;
        let (mut endpoint, mut region) = (String::new(), None);
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "endpoint" => endpoint = value.into_owned(),
                "region" if vendor == "s3" => region = Some(value.into_owned()),
                other => return Err(format!("{other:?} is not known; {FORM}")),
            }
        }
        let key = match (url.username(), url.password()) {
            (user, Some(secret)) => Some((decoded(user), decoded(secret))),
            ("", None) => None,
            (_, None) => {
                let key = if vendor == "az" { AZURE_KEY } else { AMAZON_KEY };
                return Err(format!("there is a key without its secret; {key}"));
            }
        };
        let prefix = url.path().trim_matches('/').to_owned();
        let place = format!("{vendor}://{bucket}/{prefix}");
        let named = Named { bucket: bucket.to_owned(), key, endpoint, region, variable };
        let ((store, has_key), key) = match vendor {
            "az" => (named.azure()?, AZURE_KEY),
            _ => (named.amazon()?, AMAZON_KEY),
        };
        Ok(Self { store, prefix, place, without_key: (!has_key).then_some(key) })
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
