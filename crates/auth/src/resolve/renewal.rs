//! Logins as keys: renewed when they expire, by one process at a time, and kept in the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use myclaw_config::KeySource;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::KeyError;
use crate::login::{RenewLogin, RenewableLogin, RenewedLogin};
use crate::store::Login;
use crate::{AuthProfile, AuthStoreError};

/// A token is renewed this long before it expires, so that it does not expire during a request.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The logins of this process.
#[derive(Debug, Clone, Default)]
pub(super) struct Logins {
    renewer: Option<Arc<dyn RenewLogin>>,
    known: Arc<Mutex<HashMap<String, Known>>>,
}

/// The state of a login that is newer than the list read from the store.
#[derive(Debug, Default)]
struct Known {
    /// The token that replaced the listed one.
    token: Option<Token>,
    /// The token that the provider refused last.
    refused: Option<SecretString>,
}

/// A token and its expiry time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone)]
struct Token {
    access: SecretString,
    expires: Option<u64>,
}

impl Token {
    /// Whether it is still valid after `margin`.
    fn lasts(&self, now_ms: u64, margin: Duration) -> bool {
        let soon = now_ms.saturating_add(u64::try_from(margin.as_millis()).unwrap_or(u64::MAX));
        self.expires.is_none_or(|end| end > soon)
    }

    fn is(&self, other: Option<&SecretString>) -> bool {
        other.is_some_and(|other| other.expose_secret() == self.access.expose_secret())
    }
}

impl Logins {
    pub(super) fn renewed_by(renewer: Arc<dyn RenewLogin>) -> Self {
        Self { renewer: Some(renewer), known: Arc::default() }
    }

    /// The token of a login, renewed if it has expired or is about to.
    ///
    /// # Errors
    /// The token has expired and cannot be renewed.
    pub(super) async fn token(
        &self,
        profile: &AuthProfile,
        login: &RenewableLogin,
        now_ms: u64,
        cancel: &CancellationToken,
    ) -> Result<SecretString, KeyError> {
        let (token, refused) = self.current(profile, login);
        let is_refused = token.is(refused.as_ref());
        if !is_refused && token.lasts(now_ms, EXPIRY_MARGIN) {
            return Ok(token.access);
        }
        match self.renew(login, refused.as_ref(), now_ms, cancel).await {
            Ok(renewed) => Ok(renewed.access),
            // The old token can be used until it expires.
            Err(error) if is_refused || !token.lasts(now_ms, Duration::ZERO) => Err(error),
            Err(_) => Ok(token.access),
        }
    }

    /// Marks the token as refused, so that the login is renewed before its next use; returns whether it can be.
    pub(super) fn refuse(&self, profile: &AuthProfile) -> bool {
        let Some(login) = profile.login.as_ref().filter(|_| self.renewer.is_some()) else {
            return false;
        };
        let (token, _) = self.current(profile, login);
        self.known.lock().entry(key(login)).or_default().refused = Some(token.access);
        true
    }

    /// The token to use, and the last refused one.
    fn current(
        &self,
        profile: &AuthProfile,
        login: &RenewableLogin,
    ) -> (Token, Option<SecretString>) {
        let known = self.known.lock();
        let known = known.get(&key(login));
        let token = known.and_then(|known| known.token.clone()).unwrap_or_else(|| {
            let access = match &profile.source {
                Some(KeySource::Literal(access)) => access.clone(),
                _ => SecretString::default(),
            };
            // A login that was never used has no token yet.
            let expires =
                if access.expose_secret().is_empty() { Some(0) } else { profile.expires_at };
            Token { access, expires }
        });
        (token, known.and_then(|known| known.refused.clone()))
    }

    /// Gets a token that is neither about to expire nor refused: one that another process has fetched meanwhile, else a
    /// new one. Many servers accept a refresh token only once. So the server is asked only when the answer can be
    /// stored, and then the answer is awaited and stored even if the caller is gone.
    async fn renew(
        &self,
        login: &RenewableLogin,
        refused: Option<&SecretString>,
        now_ms: u64,
        cancel: &CancellationToken,
    ) -> Result<Token, KeyError> {
        let expired = || KeyError::Expired { profile: login.name.clone() };
        let Some(renewer) = &self.renewer else { return Err(expired()) };
        let _lock = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(KeyError::Aborted),
            lock = login.store.hold_logins() => lock.map_err(unrenewed)?,
        };
        let found = in_background(login, |login| login.store.login(&login.name)).await?;
        let Some(Login { access, expires, renewal }) = found else { return Err(expired()) };
        if let Some(access) = access {
            let token = Token { access, expires };
            if !token.is(refused) && token.lasts(now_ms, EXPIRY_MARGIN) {
                self.remember(login, &token);
                return Ok(token);
            }
        }
        let reserved = in_background(login, |login| login.store.reserve()).await?;
        let renewed = renewer.renew(&renewal).await.map_err(unrenewed)?;
        let RenewedLogin { access, refresh, expires_in } = renewed;
        let life = expires_in.map(|life| u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
        let expires = life.map(|life| now_ms.saturating_add(life));
        let token = Token { access: access.clone(), expires };
        let kept = in_background(login, move |login| {
            login.store.keep_login(reserved, &login.name, access, refresh, expires)
        });
        let kept = kept.await;
        // If it could not be stored after all, a notice says so, and this process uses it.
        self.remember(login, &token);
        kept.map(|()| token)
    }

    fn remember(&self, login: &RenewableLogin, token: &Token) {
        self.known.lock().entry(key(login)).or_default().token = Some(token.clone());
    }
}

/// Includes the store, because two agents may have a login of the same name.
fn key(login: &RenewableLogin) -> String {
    format!("{}\n{}", login.store.describe(), login.name)
}

fn unrenewed(why: impl std::fmt::Display) -> KeyError {
    KeyError::NotRenewed { why: why.to_string() }
}

/// Runs blocking file work off the async thread.
async fn in_background<T: Send + 'static>(
    login: &RenewableLogin,
    work: impl FnOnce(&RenewableLogin) -> Result<T, AuthStoreError> + Send + 'static,
) -> Result<T, KeyError> {
    let login = login.clone();
    let done = tokio::task::spawn_blocking(move || work(&login)).await;
    done.map_err(unrenewed)?.map_err(unrenewed)
}
