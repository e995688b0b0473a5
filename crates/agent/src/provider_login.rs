//! Logins at providers of models, for what their vendors permit in other programs.

use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_auth::{CredentialType, NewLogin, Renewal, StoredProfile};
use myclaw_config::SecretString;
use myclaw_engine::{Clock as _, SystemClock};
use myclaw_llm::HttpProvider;
use myclaw_llm_cloud::device::{DeviceLogin, DeviceServer, LoginError, finish_login, start_login};
use myclaw_mcp::oauth::known::{
    BegunAtKnown, Exchange, Given, KnownServer, begin_at, claims, description, new_host_id, person,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What stands for this program at OpenAI until it has an id there, and the permission to use a plan.
const OPENAI_NEW_CLIENT: &str = "dynamic_agent_client";
const OPENAI_PLAN: &str = "chatgpt.tokens.use.direct";
const OPENAI_RESOURCE: &str = "https://api.openai.com/v1";

/// The page where a server of OpenID Connect says what it has.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// How one logs in at a provider. The pages that say so were read in November 2026.
#[derive(Debug)]
struct Vendor {
    provider: &'static str,
    name: &'static str,
    server: &'static str,
    way: Way,
    scope: &'static str,
    client: ClientKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A page in the browser, at an address below that of the server, with the place where the code is exchanged.
    Page { authorize: &'static str, token: &'static str, exchange: Exchange },
    /// A page in the browser; the server says where.
    FoundPage,
    /// A code that a person types; the server says where.
    Code,
}

/// How a vendor knows this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientKind {
    /// Not at all.
    None,
    /// It gives an id to each installation.
    Given,
    /// The owner registers it, as this says.
    Own(&'static str),
}

const VENDORS: [Vendor; 5] = [
    // openrouter.ai/docs/guides/overview/auth/oauth
    Vendor {
        provider: "openrouter",
        name: "OpenRouter",
        server: "https://openrouter.ai",
        way: Way::Page { authorize: "/auth", token: "/api/v1/auth/keys", exchange: Exchange::Key },
        scope: "",
        client: ClientKind::None,
    },
    // developers.openai.com/siwc/token-sharing-open-source
    Vendor {
        provider: "openai",
        name: "OpenAI",
        server: "https://auth.openai.com",
        way: Way::Page {
            authorize: "/api/accounts/authorize",
            token: "/api/accounts/oauth/token",
            exchange: Exchange::Tokens,
        },
        scope: "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct",
        client: ClientKind::Given,
    },
    // ai.google.dev/gemini-api/docs/oauth
    Vendor {
        provider: "google",
        name: "Google",
        server: "https://accounts.google.com",
        way: Way::FoundPage,
        scope: "openid email https://www.googleapis.com/auth/cloud-platform \
                https://www.googleapis.com/auth/generative-language.retriever",
        client: ClientKind::Own(
            "make an OAuth client of the type \"Desktop app\" at https://console.cloud.google.com/auth/clients, and give the \
             file that you can download there with --client-file",
        ),
    },
    // learn.microsoft.com/azure/ai-foundry/openai/how-to/managed-identity, learn.microsoft.com/entra/identity-platform/v2-oauth2-device-code
    Vendor {
        provider: "azure-openai",
        name: "Microsoft",
        server: "https://login.microsoftonline.com",
        way: Way::Code,
        scope: "openid profile offline_access https://cognitiveservices.azure.com/.default",
        client: ClientKind::Own(
            "register an application at https://entra.microsoft.com (App registrations) that allows public client flows, and \
             give its id with --client-id and that of its directory with --tenant",
        ),
    },
    // huggingface.co/docs/hub/oauth
    Vendor {
        provider: "huggingface",
        name: "Hugging Face",
        server: "https://huggingface.co",
        way: Way::Code,
        scope: "openid profile inference-api",
        client: ClientKind::Own(
            "make an OAuth app without a secret and with the scope inference-api at \
             https://huggingface.co/settings/applications/new, and give its id with --client-id",
        ),
    },
];

impl Vendor {
    fn exchange(&self) -> Exchange {
        match self.way {
            Way::Page { exchange, .. } => exchange,
            Way::FoundPage | Way::Code => Exchange::Tokens,
        }
    }

    /// What the tokens are for, if the server wants to know.
    fn resource(&self) -> Option<String> {
        (self.client == ClientKind::Given).then(|| OPENAI_RESOURCE.to_owned())
    }
}

/// The providers that have such a login.
pub fn providers_with_logins() -> impl Iterator<Item = &'static str> {
    VENDORS.iter().map(|vendor| vendor.provider)
}

/// What is known of a login before it begins.
#[derive(Debug, Clone, Default)]
pub struct ProviderLogin {
    /// The provider.
    pub provider: String,
    /// The id of this program there, if the owner has registered it.
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// The directory of an organization at Microsoft.
    pub tenant: Option<String>,
    /// The address of the server where one logs in, if it is not the vendor's usual one.
    pub server: Option<String>,
    /// The port of this machine to which the answer of a browser comes; any free one without it.
    pub port: Option<u16>,
    /// The id that the server has given to this program at the login that this one replaces.
    pub given_client: Option<String>,
    /// What stands for this installation at the server since an earlier login.
    pub host: Option<String>,
}

/// Why there is no login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderLoginError {
    /// The command lacks something.
    Usage(String),
    /// The server refused, or could not be reached.
    Failed(String),
    /// The caller aborted.
    Aborted,
}

/// A login that waits for the person.
#[derive(Debug)]
pub struct BegunProviderLogin {
    /// What the person does.
    pub step: LoginStep,
    vendor: &'static Vendor,
    begun: Begun,
    issuer: String,
    token_url: String,
    client_id: String,
    client_secret: Option<SecretString>,
    account_url: Option<String>,
    host: Option<String>,
}

/// What a person does to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Opens this page.
    Page(Url),
    /// Types a code on a page within this time.
    Code {
        /// The page.
        page: String,
        /// The code.
        code: String,
        /// How long it is valid.
        life: Duration,
    },
}

#[derive(Debug)]
enum Begun {
    Page(Box<BegunAtKnown>),
    Code(Box<DeviceLogin>),
}

/// Where things are at a server.
struct Places {
    issuer: String,
    authorize: String,
    token: String,
    device: String,
    account: Option<String>,
}

impl ProviderLogin {
    /// Begins the login.
    ///
    /// # Errors
    /// The command lacks something, or the server cannot be asked.
    pub async fn begin(
        self,
        http: &HttpProvider,
    ) -> Result<BegunProviderLogin, ProviderLoginError> {
        let vendor = VENDORS.iter().find(|vendor| vendor.provider == self.provider);
        let Some(vendor) = vendor else {
            return Err(ProviderLoginError::Usage(format!("{} has no login here", self.provider)));
        };
        let client_id = self.client(vendor)?;
        let places = self.places(http, vendor).await.map_err(ProviderLoginError::Failed)?;
        let host = (vendor.client == ClientKind::Given)
            .then(|| self.host.clone().unwrap_or_else(new_host_id));
        let failed = |why: String| ProviderLoginError::Failed(why);
        let (step, begun) = if vendor.way == Way::Code {
            let url = |text: &str| {
                Url::parse(text).map_err(|_| {
                    failed(format!("{} does not say where one logs in with a code", places.issuer))
                })
            };
            let server = DeviceServer {
                vendor: vendor.name.to_owned(),
                device_url: url(&places.device)?,
                token_url: url(&places.token)?,
                client_id: client_id.clone(),
                scope: vendor.scope.to_owned(),
            };
            let login = start_login(http, server).await.map_err(|error| failed(error.message))?;
            let step = LoginStep::Code {
                page: login.verification_uri.clone(),
                code: login.user_code.clone(),
                life: login.expires_in,
            };
            (step, Begun::Code(Box::new(login)))
        } else {
            let server = self.known_server(vendor, &places, &client_id, host.as_deref());
            let begun = begin_at(server).await.map_err(failed)?;
            (LoginStep::Page(begun.address.clone()), Begun::Page(Box::new(begun)))
        };
        Ok(BegunProviderLogin {
            step,
            vendor,
            begun,
            issuer: places.issuer,
            token_url: places.token,
            client_id,
            client_secret: self.client_secret,
            account_url: places.account,
            host,
        })
    }

    /// The id of this program.
    fn client(&self, vendor: &Vendor) -> Result<String, ProviderLoginError> {
        let usage = |why: String| Err(ProviderLoginError::Usage(why));
        match vendor.client {
            ClientKind::Own(how) => {
                let needs_tenant = vendor.provider == "azure-openai" && self.tenant.is_none();
                match &self.client_id {
                    Some(id) if !needs_tenant => Ok(id.clone()),
                    _ => usage(format!(
                        "a login at {} needs a client of your own: {how}",
                        vendor.name
                    )),
                }
            }
            ClientKind::None | ClientKind::Given if self.client_id.is_some() => {
                usage(format!("{} needs no client of your own: leave it out", vendor.name))
            }
            ClientKind::None => Ok(String::new()),
            // The id of an earlier login here is taken again.
            ClientKind::Given => {
                Ok(self.given_client.clone().unwrap_or_else(|| OPENAI_NEW_CLIENT.to_owned()))
            }
        }
    }

    async fn places(&self, http: &HttpProvider, vendor: &Vendor) -> Result<Places, String> {
        let server = self.server.as_deref().unwrap_or(vendor.server).trim_end_matches('/');
        if let Way::Page { authorize, token, .. } = vendor.way {
            return Ok(Places {
                issuer: server.to_owned(),
                authorize: format!("{server}{authorize}"),
                token: format!("{server}{token}"),
                device: String::new(),
                account: None,
            });
        }
        let tenant = self.tenant.as_deref().filter(|_| vendor.provider == "azure-openai");
        let tenant = tenant.map(|tenant| format!("/{tenant}/v2.0")).unwrap_or_default();
        let described = description(http, &format!("{server}{tenant}{DISCOVERY}")).await?;
        let text = |name: &str| described[name].as_str().unwrap_or_default().to_owned();
        Ok(Places {
            issuer: text("issuer"),
            authorize: text("authorization_endpoint"),
            token: text("token_endpoint"),
            device: text("device_authorization_endpoint"),
            account: Some(text("userinfo_endpoint")).filter(|_| vendor.provider == "huggingface"),
        })
    }

    fn known_server(
        &self,
        vendor: &Vendor,
        places: &Places,
        client_id: &str,
        host: Option<&str>,
    ) -> KnownServer {
        let mut more = Vec::new();
        if let Some(host) = host {
            more.push(("ext_agent_host_id", host.to_owned()));
            if client_id == OPENAI_NEW_CLIENT {
                more.push(("agent_name_hint", "MyClaw".to_owned()));
            }
        }
        if vendor.provider == "google" {
            // Without these, Google gives no token for a renewal.
            more.push(("access_type", "offline".to_owned()));
            more.push(("prompt", "consent".to_owned()));
        }
        let exchange = vendor.exchange();
        let is_given = vendor.client == ClientKind::Given;
        KnownServer {
            issuer: places.issuer.clone(),
            authorize: places.authorize.clone(),
            token: places.token.clone(),
            exchange,
            client_id: client_id.to_owned(),
            client_secret: self.client_secret.clone(),
            gives_id: is_given,
            scope: vendor.scope.to_owned(),
            resource: vendor.resource(),
            more,
            host: if exchange == Exchange::Key { "localhost" } else { "127.0.0.1" },
            path: if is_given { "/auth/callback" } else { "/callback" },
            port: self.port,
        }
    }
}

impl BegunProviderLogin {
    /// Waits for the person, and gives what the store keeps. `pasted` gives the address that a browser on another machine ended
    /// at.
    ///
    /// # Errors
    /// There is no login.
    pub async fn finish(
        self,
        http: &HttpProvider,
        pasted: BoxFuture<'_, Option<String>>,
        cancel: &CancellationToken,
    ) -> Result<StoredProfile, ProviderLoginError> {
        let Self { vendor, begun, .. } = self;
        let given = match begun {
            Begun::Page(begun) => tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ProviderLoginError::Aborted),
                given = begun.finish(http, pasted) => given.map_err(ProviderLoginError::Failed)?,
            },
            Begun::Code(login) => typed(http, &login, self.client_id, cancel).await?,
        };
        if vendor.client == ClientKind::Given && !permits_plan(&given) {
            return Err(ProviderLoginError::Failed(
                "the login does not permit the use of the ChatGPT plan; log in again, and allow that on OpenAI's page"
                    .to_owned(),
            ));
        }
        let mut who = given.person;
        if let Some(url) = &self.account_url {
            let known = person(http, url, &given.access).await;
            who = if known.is_null() { who } else { known };
        }
        let provider = vendor.provider;
        let mut profile = if vendor.exchange() == Exchange::Key {
            StoredProfile::with_key(provider, CredentialType::ApiKey, given.access)
        } else {
            let life = given.expires_in.and_then(|life| u64::try_from(life.as_millis()).ok());
            let login = NewLogin {
                access: given.access,
                expires: life.map(|life| SystemClock.now_ms().saturating_add(life)),
                issuer: self.issuer,
                granted: given.scope,
                renewal: Renewal {
                    token_url: self.token_url,
                    client_id: given.client_id,
                    client_secret: self.client_secret,
                    secret_in_header: false,
                    scope: None,
                    resource: vendor.resource(),
                    refresh_token: given.refresh.unwrap_or_default(),
                },
            };
            StoredProfile::with_login(provider, login)
        };
        profile.account = account_of(&who);
        profile.plan = plan_of(&who);
        profile.host = self.host;
        Ok(profile)
    }
}

/// Waits until the person has typed the code.
async fn typed(
    http: &HttpProvider,
    login: &DeviceLogin,
    client_id: String,
    cancel: &CancellationToken,
) -> Result<Given, ProviderLoginError> {
    let granted = finish_login(http, login, cancel).await.map_err(|error| match error {
        LoginError::Aborted => ProviderLoginError::Aborted,
        LoginError::Failed(error) => ProviderLoginError::Failed(error.message),
        other => ProviderLoginError::Failed(other.to_string()),
    })?;
    Ok(Given {
        access: granted.access,
        refresh: granted.refresh,
        expires_in: granted.expires_in,
        scope: granted.scope,
        client_id,
        person: granted.id_token.as_deref().map(claims).unwrap_or_default(),
    })
}

/// Whether OpenAI has given this program an id and the plan of the person.
fn permits_plan(given: &Given) -> bool {
    let scopes = given.scope.as_deref().unwrap_or_default();
    given.client_id != OPENAI_NEW_CLIENT && scopes.split(' ').any(|one| one == OPENAI_PLAN)
}

/// Whose login it is, as people know it.
fn account_of(person: &Value) -> Option<String> {
    let names = ["email", "preferred_username", "name", "sub"];
    let text = |name: &&str| person[*name].as_str().filter(|text| !text.trim().is_empty());
    names.iter().find_map(text).map(str::to_owned)
}

/// What the person has paid for, where the vendor says it.
fn plan_of(person: &Value) -> Option<String> {
    let named = person["https://api.openai.com/auth"]["chatgpt_plan_type"].as_str();
    match person["isPro"].as_bool() {
        Some(true) => Some("pro".to_owned()),
        Some(false) => Some("free".to_owned()),
        None => named.map(str::to_owned),
    }
}

/// Reads the file that Google gives to the owner of an OAuth client: the id and the secret of the client.
///
/// # Errors
/// One sentence that says why it is no such file.
pub fn read_client_file(text: &str) -> Result<(String, SecretString), String> {
    let file: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let part = &file["installed"];
    let field = |name: &str| part[name].as_str().filter(|text| !text.is_empty());
    match (field("client_id"), field("client_secret")) {
        (Some(id), Some(secret)) => Ok((id.to_owned(), SecretString::from(secret))),
        _ if file["web"].is_object() => {
            Err("it is of a client of the type \"Web application\"; make one of the type \"Desktop app\"".to_owned())
        }
        _ => Err("it has no `installed.client_id` and `installed.client_secret`".to_owned()),
    }
}

#[cfg(test)]
mod tests;
