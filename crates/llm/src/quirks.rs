//! The special needs of requests to one model, besides its wire format.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::ThinkingForm;
use crate::wire::compat::CompatOverrides;

/// The special needs of requests to one model, from the catalog and the config. Empty by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quirks {
    /// How it is asked to think.
    pub thinking_form: ThinkingForm,
    /// Headers that go with every request to it.
    pub headers: ExtraHeaders,
    /// The requirements of its host, where they differ from those that its address implies.
    pub compat: CompatOverrides,
    /// What hosts that count the programs that use them are told; `None` for nothing.
    pub attribution: Option<Attribution>,
}

/// Which program asks, for hosts that count that: OpenRouter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// The header `HTTP-Referer`: the site of the program.
    pub url: String,
    /// The header `X-Title`: its name.
    pub title: String,
}

impl Default for Attribution {
    /// A program without a site, by its name.
    fn default() -> Self {
        Self { url: "http://localhost".to_owned(), title: "MyClaw".to_owned() }
    }
}

/// The user's own headers. Values may be secrets, so only names are ever printed.
#[derive(Clone, Default)]
pub struct ExtraHeaders(Vec<(String, SecretString)>);

impl ExtraHeaders {
    /// Name and value of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, SecretString)> for ExtraHeaders {
    fn from_iter<I: IntoIterator<Item = (String, SecretString)>>(headers: I) -> Self {
        Self(headers.into_iter().collect())
    }
}

impl PartialEq for ExtraHeaders {
    fn eq(&self, other: &Self) -> bool {
        let plain = |headers: &Self| -> Vec<(String, String)> {
            headers
                .iter()
                .map(|(name, value)| (name.into(), value.expose_secret().into()))
                .collect()
        };
        plain(self) == plain(other)
    }
}

impl fmt::Debug for ExtraHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
