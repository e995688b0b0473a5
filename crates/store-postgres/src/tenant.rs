//! Whose tables a store has: each tenant of a database has a schema of its own.

use std::borrow::Cow;
use std::sync::Arc;

use myclaw_files::tenants;

/// The schema of the tenant `main`. The statements of this crate name it, and no other.
pub(crate) const MAIN_SCHEMA: &str = "myclaw";

/// A tenant of a database.
#[derive(Clone, Default)]
pub(crate) struct Tenant {
    /// The name and the schema of another one than `main`.
    other: Option<Arc<(String, String)>>,
}

impl Tenant {
    /// The tenant with this name.
    ///
    /// # Errors
    /// It is no name of a tenant.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        if !tenants::is_name(name) {
            return Err(format!("{name:?} is no name of a tenant; expected {}", tenants::EXPECTED));
        }
        let schema = || format!("{MAIN_SCHEMA}_{name}");
        let other = (name != tenants::MAIN).then(|| Arc::new((name.to_owned(), schema())));
        Ok(Self { other })
    }

    pub(crate) fn name(&self) -> &str {
        self.other.as_deref().map_or(tenants::MAIN, |(name, _)| name)
    }

    pub(crate) fn is_main(&self) -> bool {
        self.other.is_none()
    }

    /// A statement about the tables, and the channel of notifications, of this tenant. All statements go through here, so none
    /// reaches another tenant.
    pub(crate) fn statement<'s>(&self, of_main: &'s str) -> Cow<'s, str> {
        let Some((_, schema)) = self.other.as_deref() else { return Cow::Borrowed(of_main) };
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let (mut own, mut done) = (String::with_capacity(of_main.len() + 256), 0);
        for (at, found) in of_main.match_indices(MAIN_SCHEMA) {
            let (before, after) = (&of_main[..at], &of_main[at + found.len()..]);
            own.push_str(&of_main[done..at]);
            let is_word = !before.bytes().next_back().is_some_and(is_part)
                && !after.bytes().next().is_some_and(is_part);
            own.push_str(if is_word { schema } else { found });
            done = at + found.len();
        }
        own.push_str(&of_main[done..]);
        Cow::Owned(own)
    }
}

#[cfg(test)]
mod tests;
