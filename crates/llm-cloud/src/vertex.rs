//! Access to Vertex AI: exchanges Google Cloud's credentials for a token, and builds the address from project and
//! location.
//!
//! An API key of Vertex AI (express mode) needs neither: it goes into its header, and the service knows the project.

mod credentials;
mod token;

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::ExposeSecret;
use url::Url;

use credentials::Credentials;
use futures_util::future::BoxFuture;
use myclaw_llm::access::{
    Access, Caller, Clients, Credential, GOOGLE_KEY_HEADER, GoogleService, VERTEX_HOST,
    VERTEX_MULTI_REGION, VERTEX_REGIONAL_HOST,
};
use myclaw_llm::wire::EncodedRequest;
use myclaw_llm::{Api, ErrorClass, Model, ModelError, ModelRequest, Variables};
use token::{Slot, TokenCache};

/// The location if none is named: Google chooses a region with free capacity.
const GLOBAL: &str = "global";

/// Locations that span several regions; their host names have another form.
const MULTI_REGIONS: [&str; 2] = ["us", "eu"];

/// The version of the API if the address names none.
const API_VERSION: &str = "v1";

/// The path of the models below a location.
const PUBLISHER: [&str; 2] = ["publishers", "google"];

/// The header that names the project that pays for requests of a user's own account.
const QUOTA_PROJECT_HEADER: &str = "x-goog-user-project";

/// Access to Vertex AI. It keeps tokens between calls.
#[derive(Debug, Default)]
pub struct Vertex {
    tokens: TokenCache,
}

/// The credentials of a token, and the project and location that it is used for.
#[derive(Debug)]
struct Grant {
    slot: Arc<Slot>,
    serial: u64,
    origin: String,
    project: String,
    location: String,
}

impl Access for Vertex {
    fn serves(&self, model: &Model) -> bool {
        model.api == Api::GoogleGenerativeAi && GoogleService::of(model) == GoogleService::Vertex
    }

    fn caller<'a>(
        &'a self,
        clients: &'a Clients,
        request: &'a ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Caller, ModelError>> {
        Box::pin(self.find_caller(clients, request))
    }
}

impl Vertex {
    /// Finds credentials, and determines the token and the address.
    async fn find_caller(
        &self,
        clients: &Clients,
        request: &ModelRequest<'_>,
    ) -> Result<Caller, ModelError> {
        let variables = clients.variables();
        let Some(found) = credentials::find(request.api_key, variables).await? else {
            let base_url = address(&request.model.base_url, None, GLOBAL)?;
            return Ok(Caller { model: Some(at(request.model, base_url)), ..Caller::default() });
        };
        let slot = self.tokens.slot(found.identity);
        let token = slot.token(|| token::exchange(clients, &found)).await?;
        let project = variables
            .get("GOOGLE_CLOUD_PROJECT")
            .or_else(|| variables.get("GCLOUD_PROJECT"))
            .or_else(|| found.credentials.project())
            .or(token.project.as_deref())
            .ok_or_else(|| {
                auth_error("no Google Cloud project: set GOOGLE_CLOUD_PROJECT to its id")
            })?
            .to_owned();
        let location = location(&request.model.base_url, variables);
        let base_url = address(&request.model.base_url, Some(&project), &location)?;
        let bearer = format!("Bearer {}", token.secret.expose_secret());
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header_value(&bearer)?);
        if let Credentials::User(user) = &found.credentials
            && let Some(project) = &user.quota_project
        {
            headers.insert(QUOTA_PROJECT_HEADER, header_value(project)?);
        }
        Ok(Caller {
            model: Some(at(request.model, base_url)),
            token: Some(token.secret),
            headers,
            credential: Some(Box::new(Grant {
                slot,
                serial: token.serial,
                origin: found.origin,
                project,
                location,
            })),
        })
    }
}

impl Credential for Grant {
    /// The token goes into a header of its own, not into that of an API key.
    fn sign(&self, mut encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        encoded.headers.remove(GOOGLE_KEY_HEADER);
        Ok(encoded)
    }

    /// Discards a refused token, so that the next call gets a new one.
    fn may_replace<'a>(&'a self, error: &'a ModelError) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let is_refused = error.status == Some(401);
            if is_refused {
                self.slot.discard(self.serial).await;
            }
            is_refused
        })
    }

    /// A refusal of Vertex AI, with advice. The key is seldom the reason.
    fn explain(&self, mut error: ModelError) -> ModelError {
        let Self { origin, project, location, .. } = self;
        let is_disabled = ["has not been used in project", "it is disabled", "SERVICE_DISABLED"]
            .iter()
            .any(|phrase| error.message.contains(phrase));
        let advice = match error.status {
            Some(403) if is_disabled => {
                format!("enable the API: gcloud services enable {VERTEX_HOST} --project {project}")
            }
            Some(403) => format!(
                "give the account the role `Vertex AI User` in project {project}, or set GOOGLE_CLOUD_PROJECT to another project"
            ),
            Some(401) => format!("the token was refused; check the credentials in {origin}"),
            Some(404) => format!(
                "check the model id, the project ({project}) and whether {location} has the model (GOOGLE_CLOUD_LOCATION)"
            ),
            _ => return error,
        };
        // The advice of `classify` is about keys and base URLs.
        let said = ["; check ", "; enable the API for the project of the key"]
            .iter()
            .find_map(|general| error.message.rsplit_once(general))
            .map_or(error.message.as_str(), |(said, _)| said);
        error.message = format!("{said}; {advice}");
        error
    }
}

/// `model`, reached at `base_url`.
fn at(model: &Model, base_url: String) -> Model {
    Model { base_url, ..model.clone() }
}

/// The location that the host of `base_url` or a variable names.
fn location(base_url: &str, variables: &Variables) -> String {
    let host = Url::parse(base_url.trim()).ok().and_then(|url| url.host_str().map(str::to_owned));
    let (prefix, suffix) = VERTEX_MULTI_REGION;
    let of_host = host.as_deref().and_then(|host| {
        host.strip_suffix(VERTEX_REGIONAL_HOST)
            .or_else(|| host.strip_prefix(prefix)?.strip_suffix(suffix))
    });
    of_host.or_else(|| variables.get("GOOGLE_CLOUD_LOCATION")).unwrap_or(GLOBAL).to_owned()
}

/// The address above the models. An address that names a project or a publisher is used as it is; without a `project`,
/// the service takes it from the key.
fn address(base_url: &str, project: Option<&str>, location: &str) -> Result<String, ModelError> {
    let unusable = |why: &str| {
        let message =
            format!("the base URL is not usable: {why}; write it like https://{VERTEX_HOST}");
        ModelError::new(ErrorClass::Unknown, message)
    };
    let mut url = Url::parse(base_url.trim()).map_err(|error| unusable(&error.to_string()))?;
    let mut segments: Vec<String> = url
        .path_segments()
        .into_iter()
        .flatten()
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
        .collect();
    let names = |segments: &[String], name: &str| segments.iter().any(|segment| segment == name);
    if names(&segments, PUBLISHER[0]) {
        return Ok(base_url.to_owned());
    }
    if segments.is_empty() {
        segments.push(API_VERSION.to_owned());
    }
    if let Some(project) = project.filter(|_| !names(&segments, "projects")) {
        segments.extend(["projects", project, "locations", location].map(str::to_owned));
        if url.host_str() == Some(VERTEX_HOST) {
            url.set_host(Some(&host(location))).map_err(|error| unusable(&error.to_string()))?;
        }
    }
    segments.extend(PUBLISHER.map(str::to_owned));
    url.set_path(&segments.join("/"));
    Ok(url.into())
}

/// The host that serves `location`.
fn host(location: &str) -> String {
    let (prefix, suffix) = VERTEX_MULTI_REGION;
    match location {
        GLOBAL => VERTEX_HOST.to_owned(),
        _ if MULTI_REGIONS.contains(&location) => format!("{prefix}{location}{suffix}"),
        _ => format!("{location}{VERTEX_REGIONAL_HOST}"),
    }
}

fn header_value(text: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| auth_error("the token or the project holds what no HTTP header can carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn auth_error(message: impl Into<String>) -> ModelError {
    ModelError::new(ErrorClass::Auth, message)
}

#[cfg(test)]
mod tests;
