//! The keys of providers: where they come from, the store of auth profiles, and the cooldown of a key that failed.
//!
//! An [`AuthProfile`] names a key without containing it: [`KeyResolver`] fetches the key when a call is about to be
//! made. [`AuthStore`] is the store of one agent: the file `auth-profiles.json`, unless a program
//! gives another. [`arrange`] merges the profiles of several
//! sources into one list. This crate knows nothing of models' answers, engines or sessions: a model is a name here, and
//! a failure a [`FailureReason`].
#![forbid(unsafe_code)]

mod error;
mod lock;
mod login;
mod mark;
mod order;
mod profile;
mod resolve;
mod stats;
mod store;

pub use error::AuthStoreError;
pub use login::{
    NewLogin, RenewLogin, RenewableLogin, Renewal, RenewalAnswer, RenewalError, RenewedLogin,
};
pub use order::{Arranged, OrderRules, arrange};
pub use profile::{AuthProfile, CredentialType, ProfileOrigin, Validity, replacing_command};
pub use resolve::{KeyError, KeyResolver};
pub use stats::{CooldownRules, Failure, FailureReason, FailureScope, ModelStats, UsageStats};
pub use store::{
    AuthFile, AuthStore, KeepKeys, KeyChange, LoginsHeld, Reservation, STORE_FILE, StoredProfile,
    is_private,
};
