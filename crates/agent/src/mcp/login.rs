//! Logins at servers behind addresses: stored as keys are, and renewed by one process at a time.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_auth::{
    AuthProfile, AuthStore, KeyError, KeyResolver, NewLogin, Renewal, StoredProfile,
};
use myclaw_config::{ExposeSecret as _, SecretString};
use myclaw_engine::{Clock as _, KnownSecrets, SystemClock};
use myclaw_mcp::Login;
use myclaw_mcp::oauth::{Begun, LoggedIn, LoginOptions, begin};
use tokio_util::sync::CancellationToken;

use super::ConfiguredServer;
use crate::blocking::blocking;
use crate::providers::key_resolver;
use crate::{AgentError, FailureClass};

impl ConfiguredServer {
    /// Begins a login; `scope` is what it should permit, if not what the config or the server says.
    ///
    /// # Errors
    /// The server has no address, or one cannot log in there.
    pub async fn begin_login(&self, scope: Option<String>) -> Result<Begun, AgentError> {
        let failed = |why: String| {
            AgentError::new(
                FailureClass::Mcp,
                format!("no login at the server {}: {why}", self.name),
            )
        };
        let Some(url) = &self.config.url else {
            return Err(AgentError::usage(format!(
                "the MCP server {} is a program, which gets its keys from `env`; only servers with `url` have logins",
                self.name
            )));
        };
        let address = self.address(url)?;
        if address.login.is_none() {
            return Err(AgentError::usage(format!(
                "`headers` of the MCP server {0} has a key, `Authorization`, which would be sent in place of a login; take it \
                 out first, `mcp.servers.{0}.headers`",
                self.name
            )));
        }
        let auth = self.config.auth.clone();
        let options = LoginOptions {
            client_id: auth.client_id,
            client_secret: auth.client_secret,
            client_document: auth.client_metadata_url,
            granted: self.granted().await,
            scope: scope.or(auth.scope),
            port: auth.port,
        };
        begin(&address.http, &address.url, &options).await.map_err(failed)
    }

    /// What the login that is there permits.
    async fn granted(&self) -> Option<String> {
        let (store, name) = (self.session.home.stores().keys.of_servers(), self.login_name());
        let file = blocking(move || store.load()).await.ok()?.ok()?;
        let profile = file.profiles().find(|(known, _)| *known == name);
        profile.and_then(|(_, profile)| profile.granted.clone())
    }

    /// Waits for the end of a login and keeps it; who has issued it. `pasted` gives the address that the person was sent to.
    ///
    /// # Errors
    /// There is no login, or it cannot be kept.
    pub async fn finish_login(
        &self,
        begun: Begun,
        pasted: impl Future<Output = Option<String>>,
    ) -> Result<String, AgentError> {
        let home = &self.session.home;
        let http = home.mcp.http(|| myclaw_llm::HttpProvider::new(home.http_options()));
        let logged_in = begun.finish(&http, pasted).await.map_err(|why| {
            AgentError::new(
                FailureClass::Mcp,
                format!("no login at the server {}: {why}", self.name),
            )
        })?;
        let issuer = logged_in.issuer.clone();
        let profile = StoredProfile::with_login(self.login_provider(), stored(logged_in));
        let (store, name) = (home.stores().keys.of_servers(), self.login_name());
        let kept = blocking(move || store.change(|file| file.put(&name, profile.clone()))).await?;
        kept.map_err(|error| {
            AgentError::new(FailureClass::Mcp, format!("the login cannot be kept: {error}"))
        })?;
        Ok(issuer)
    }

    /// Forgets the login; whether there was one. Blocks.
    ///
    /// # Errors
    /// The store cannot be changed.
    pub fn log_out(&self) -> Result<bool, AgentError> {
        let store = self.session.home.stores().keys.of_servers();
        if !store.exists() {
            return Ok(false);
        }
        let removed = store.change(|file| file.remove(&self.login_name()));
        removed.map(|(was_there, _)| was_there).map_err(|error| {
            AgentError::new(FailureClass::Mcp, format!("the login cannot be removed: {error}"))
        })
    }

    /// The login in the form in which requests use it. No file is read yet.
    pub(super) fn login(&self) -> Arc<dyn Login> {
        let home = &self.session.home;
        let resolver = home.server_keys.get_or_init(|| key_resolver(home.http_options())).clone();
        Arc::new(StoredLogin {
            store: home.stores().keys.of_servers(),
            provider: self.login_provider(),
            command: format!("myclaw mcp login {}", self.name),
            known_secrets: Arc::clone(&home.known_secrets),
            resolver,
        })
    }

    /// A login is for one address: after a change of `url` it is not sent.
    fn login_provider(&self) -> String {
        format!("mcp {}", self.config.url.as_deref().unwrap_or_default())
    }

    fn login_name(&self) -> String {
        format!("{} {}", self.name, self.config.url.as_deref().unwrap_or_default())
    }
}

fn stored(login: LoggedIn) -> NewLogin {
    let life = login.expires_in.and_then(|life| u64::try_from(life.as_millis()).ok());
    NewLogin {
        access: login.access,
        expires: life.map(|life| SystemClock.now_ms().saturating_add(life)),
        issuer: login.issuer,
        granted: login.scope,
        renewal: Renewal {
            token_url: login.token_url,
            client_id: login.client_id,
            client_secret: login.client_secret,
            secret_in_header: login.secret_in_header,
            scope: None,
            resource: Some(login.resource),
            refresh_token: login.refresh.unwrap_or_default(),
        },
    }
}

/// The login at one address.
struct StoredLogin {
    store: AuthStore,
    provider: String,
    command: String,
    resolver: KeyResolver,
    known_secrets: Arc<KnownSecrets>,
}

impl StoredLogin {
    /// As the store has it now: another process may have logged in or out.
    async fn profile(&self) -> Result<Option<AuthProfile>, String> {
        let (store, provider) = (self.store.clone(), self.provider.clone());
        let load = move || match store.exists() {
            true => store.load().map(|file| file.profiles_of(&provider).into_iter().next()),
            false => Ok(None),
        };
        let loaded = blocking(load).await.map_err(|error| error.message)?;
        loaded.map_err(|error| self.unusable(&error.to_string()))
    }

    fn unusable(&self, why: &str) -> String {
        format!("the login cannot be used: {why}. Log in again with `{}`", self.command)
    }

    async fn current(&self) -> Result<Option<SecretString>, String> {
        let Some(profile) = self.profile().await? else { return Ok(None) };
        let resolver = self.resolver.clone();
        // A token for a renewal is good once. So its answer is waited for and kept, whoever gives up the request meanwhile.
        let resolving = tokio::spawn(async move {
            let cancel = CancellationToken::new();
            resolver.resolve(&profile, SystemClock.now_ms(), &cancel).await
        });
        let token = resolving.await.map_err(|error| self.unusable(&error.to_string()))?;
        let token = token.map_err(|error| match error {
            KeyError::NotRenewed { why } => self.unusable(&why),
            KeyError::Expired { .. } => self.unusable("it has ended, and it cannot be renewed"),
            other => self.unusable(&other.to_string()),
        })?;
        if let Some(token) = &token {
            self.known_secrets.learn([token.expose_secret()]);
        }
        Ok(token)
    }
}

impl Login for StoredLogin {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>> {
        Box::pin(self.current())
    }

    fn refuse<'a>(&'a self, token: &'a SecretString) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Ok(Some(profile)) = self.profile().await else { return false };
            match self.current().await {
                // Another call has renewed it meanwhile.
                Ok(Some(now)) if now.expose_secret() != token.expose_secret() => true,
                _ => self.resolver.refuse_login(&profile),
            }
        })
    }

    fn command(&self) -> &str {
        &self.command
    }
}
