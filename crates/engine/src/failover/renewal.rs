//! Where the keys of a run come from: logins among them are renewed over the network.

use std::sync::Arc;

use myclaw_auth::{KeyResolver, RenewLogin, Renewal, RenewalAnswer, RenewalError, RenewedLogin};
use myclaw_llm::oauth::{TokenRequest, renew_login};
use myclaw_llm::{ErrorClass, HttpOptions, HttpProvider};

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
                scope: renewal.scope.as_deref(),
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
