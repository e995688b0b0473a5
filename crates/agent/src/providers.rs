//! The engine as the program uses it: models behind HTTP and the built-in one, keys from the environment and from
//! logins that are renewed over the network.

use std::sync::Arc;

use myclaw_auth::{KeyResolver, RenewLogin, Renewal, RenewalAnswer, RenewalError, RenewedLogin};
use myclaw_engine::{Engine, Providers};
use myclaw_llm::oauth::{TokenRequest, renew_login};
use myclaw_llm::{Api, DemoProvider, ErrorClass, HttpOptions, HttpProvider, Model, Provider};

/// An engine for models behind HTTP and for the built-in one. It opens no connection yet; keep it for several runs, so
/// that the connection to a model's server is kept between them.
pub fn engine(options: HttpOptions) -> Engine {
    Engine::new(HttpProviders::new(options.clone()), key_resolver(options))
}

/// Providers behind HTTP, and the built-in one.
pub struct HttpProviders {
    http: HttpProvider,
    builtin: DemoProvider,
}

impl HttpProviders {
    /// Requests are made as `options` say.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            http: HttpProvider::new(options).with_access(myclaw_llm_cloud::access()),
            builtin: DemoProvider,
        }
    }
}

impl Providers for HttpProviders {
    fn provider(&self, model: &Model) -> &dyn Provider {
        match model.api {
            Api::AnthropicMessages
            | Api::OpenaiCompletions
            | Api::OpenaiResponses
            | Api::GoogleGenerativeAi
            | Api::BedrockConverse => &self.http,
            Api::Builtin => &self.builtin,
        }
    }
}

/// A resolver of keys that looks variables up among those of `options`, and renews logins with requests made as
/// `options` say.
pub fn key_resolver(options: HttpOptions) -> KeyResolver {
    let resolver = KeyResolver::new(options.variables.iter());
    resolver.with_renewer(Arc::new(HttpRenewer(HttpProvider::new(options))))
}

/// Renews logins over HTTP.
#[derive(Debug)]
struct HttpRenewer(HttpProvider);

impl RenewLogin for HttpRenewer {
    fn renew<'a>(&'a self, renewal: &'a Renewal) -> RenewalAnswer<'a> {
        Box::pin(async move {
            let request = TokenRequest {
                token_url: &renewal.token_url,
                client_id: &renewal.client_id,
                client_secret: renewal.client_secret.as_ref(),
                secret_in_header: renewal.secret_in_header,
                scope: renewal.scope.as_deref(),
                resource: renewal.resource.as_deref(),
                refresh_token: &renewal.refresh_token,
            };
            match renew_login(&self.0, &request).await {
                Ok(tokens) => Ok(RenewedLogin {
                    access: tokens.access,
                    refresh: tokens.refresh,
                    expires_in: tokens.expires_in,
                }),
                Err(error) if error.class == ErrorClass::Auth => {
                    Err(RenewalError::Refused(error.message))
                }
                Err(error) => Err(RenewalError::Failed(error.message)),
            }
        })
    }
}
