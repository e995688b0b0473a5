//! Failures of the database, and what a caller can do about them.

use myclaw_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why something was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What is wrong and what to do, in words that follow the name of the server.
    pub(crate) problem: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The connection broke, or the server is about to start or to stop: another attempt may succeed.
    Passing,
    /// The server refuses, and would again.
    Final,
    /// The same, for a reason that nobody foresaw: a statement does not fit the tables.
    Refused,
}

impl Failure {
    pub(crate) fn passing(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), kind: Kind::Passing }
    }

    pub(crate) fn lasting(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), kind: Kind::Final }
    }

    pub(crate) fn is_passing(&self) -> bool {
        self.kind == Kind::Passing
    }

    /// For callers who have nothing in the database because of it.
    pub(crate) fn into_error(self, server: &str) -> StoreError {
        StoreError::Database { server: server.to_owned(), problem: self.problem }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(refusal) = error.as_db_error() else { return of_connection(&error) };
        let (code, said) = (refusal.code(), refusal.message());
        let state = code.code();
        // Classes are the first two digits: https://www.postgresql.org/docs/current/errcodes-appendix.html
        match code {
            &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                Self::lasting(format!(
                    "refuses the login ({said}); check the user and the password in its address"
                ))
            }
            &SqlState::INVALID_CATALOG_NAME => Self::lasting(format!(
                "cannot be used ({said}); create it with createdb, or correct its name in the address"
            )),
            &SqlState::INSUFFICIENT_PRIVILEGE => Self::lasting(format!(
                "cannot be used ({said}); the user of its address needs the right to create a schema, or to own \
                 that of the tenant"
            )),
            &SqlState::UNDEFINED_TABLE
            | &SqlState::UNDEFINED_COLUMN
            | &SqlState::INVALID_SCHEMA_NAME => Self::lasting(format!(
                "does not have the tables of this program any more ({said}); restore it from a backup, or restart \
                 the program to create them anew"
            )),
            &SqlState::READ_ONLY_SQL_TRANSACTION => Self::passing(STANDBY),
            &SqlState::TOO_MANY_CONNECTIONS => Self::passing(format!(
                "has no connection left ({said}); raise max_connections, or start fewer programs"
            )),
            // This program stood still in the middle of a transaction, of which nothing was made.
            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
                Self::passing(format!("has ended a connection ({said}); it is tried again"))
            }
            &SqlState::DISK_FULL => Self::lasting(format!("has no space left ({said}); free some")),
            _ if ["08", "40", "55", "57"].iter().any(|class| state.starts_with(class)) => {
                Self::passing(format!("does not answer now ({said}); it is tried again"))
            }
            _ => Self {
                problem: format!("refuses a statement of this program ({said}, {state})"),
                kind: Kind::Refused,
            },
        }
    }
}

const STANDBY: &str = "takes no writes: it is a standby or read-only; name the primary in the address, or all servers, \
    separated by commas";

fn of_connection(error: &Error) -> Failure {
    // The innermost cause says most: "connection refused" below "error connecting to server".
    let mut cause: &dyn std::error::Error = error;
    let mut is_tls = false;
    while let Some(inner) = cause.source() {
        cause = inner;
        is_tls |= cause.is::<rustls::Error>();
    }
    if let Some(inner) = cause.downcast_ref::<std::io::Error>()
        && let Some(inner) = inner.get_ref()
    {
        is_tls |= inner.is::<rustls::Error>();
        cause = inner;
    }
    let said = cause.to_string();
    if is_tls {
        return Failure::lasting(format!(
            "cannot prove who it is ({said}); correct its certificate, or name the certificate of its authority \
             with sslrootcert in the address"
        ));
    }
    let text = error.to_string();
    match (text.as_str(), said.as_str()) {
        (_, "server does not support TLS") => Failure::lasting(
            "does not encrypt connections; set ssl = on there, or sslmode=disable in the address if the network \
             is protected in another way",
        ),
        (_, "database does not allow writes") => Failure::passing(STANDBY),
        (_, "password missing") => {
            Failure::lasting("asks for a password; add it to the address, behind the user")
        }
        _ => Failure::passing(format!(
            "cannot be reached ({said}); check that it runs, and its address"
        )),
    }
}
