//! Roles that a profile or a machine assumes: the credentials that prove the right to it, and the request to AWS's
//! token service.

use secrecy::SecretString;

use super::credentials::{self, Credentials};
use super::profile::Profile;
use super::sts::{Assumption, Sts};
use super::{metadata, no_access};
use myclaw_llm::{ModelError, Variables};

/// Longest chain of roles.
const MAX_CHAIN: usize = 5;

/// Largest web identity that is read, in bytes; real ones have about 2,000.
const MAX_IDENTITY: u64 = 64 * 1024;

/// The source of the credentials that prove the right to a role.
enum Source<'a> {
    /// Another profile, or the same one with its keys.
    Profile(&'a str),
    /// A place outside the config files.
    Place(&'a str),
    /// A token in this file.
    WebIdentity(&'a str),
}

/// The credentials of the role that `profile` assumes; `None` if it assumes none.
///
/// # Errors
/// There are no credentials that prove the right to the role, or AWS refuses.
pub(super) async fn of_profile(
    sts: &Sts<'_>,
    profile: &Profile,
) -> Result<Option<Credentials>, ModelError> {
    if profile.get("role_arn").is_none() {
        return Ok(None);
    }
    let (mut credentials, waiting) = beginning_of_chain(sts, profile).await?;
    for profile in waiting.iter().rev() {
        let arn = profile.get("role_arn").unwrap_or_default();
        credentials = sts.assume(&assumption(profile, arn), &credentials.into()).await?;
    }
    Ok(Some(credentials))
}

/// The credentials that the chain of roles begins with, and the profiles whose roles are still to be assumed, the one
/// that was asked for first.
async fn beginning_of_chain(
    sts: &Sts<'_>,
    profile: &Profile,
) -> Result<(Credentials, Vec<Profile>), ModelError> {
    let mut waiting: Vec<Profile> = Vec::new();
    let mut current = profile.other(profile.name()).unwrap_or_default();
    let credentials = loop {
        let name = current.name().to_owned();
        let Some(arn) = current.get("role_arn") else {
            let found = credentials::from_profile(sts.clients, &current).await?;
            break found.ok_or_else(|| without_credentials(&name))?;
        };
        if waiting.len() == MAX_CHAIN {
            return Err(no_access(format!(
                "the AWS profile {} assumes more than {MAX_CHAIN} roles one from the other: check source_profile",
                profile.name()
            )));
        }
        match source(&current)? {
            Source::WebIdentity(path) => {
                let token = identity(path, "web_identity_token_file").await?;
                break sts.assume(&assumption(&current, arn), &token.into()).await?;
            }
            Source::Place(place) => {
                let found = of_place(sts, place, &name).await?;
                waiting.push(current);
                break found;
            }
            Source::Profile(other) if other == name => {
                let found = credentials::from_profile(sts.clients, &current).await?;
                let found = found.ok_or_else(|| without_credentials(&name))?;
                waiting.push(current);
                break found;
            }
            Source::Profile(other) => {
                let next = current.other(other).ok_or_else(|| {
                    no_access(format!(
                        "the AWS profile {name} names the source_profile {other}, which does not exist: check ~/.aws/config"
                    ))
                })?;
                waiting.push(current);
                current = next;
            }
        }
    };
    Ok((credentials, waiting))
}

/// The credentials of the role that the variables of this machine name, as in a pod of EKS; `None` if they name none.
///
/// # Errors
/// Some of the variables are missing, the token cannot be read, or AWS refuses.
pub(super) async fn of_web_identity(sts: &Sts<'_>) -> Result<Option<Credentials>, ModelError> {
    let variables = sts.clients.variables();
    let Some(path) = variables.get("AWS_WEB_IDENTITY_TOKEN_FILE") else { return Ok(None) };
    let arn = variables.get("AWS_ROLE_ARN").ok_or_else(|| {
        no_access("AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not: set both")
    })?;
    let token = identity(path, "AWS_WEB_IDENTITY_TOKEN_FILE").await?;
    let assumption = Assumption {
        arn,
        session_name: variables.get("AWS_ROLE_SESSION_NAME"),
        ..Assumption::default()
    };
    sts.assume(&assumption, &token.into()).await.map(Some)
}

fn source(profile: &Profile) -> Result<Source<'_>, ModelError> {
    let name = profile.name();
    if profile.get("mfa_serial").is_some() {
        return Err(no_access(format!(
            "the AWS profile {name} assumes a role with a code of an MFA device, which cannot be asked for here: set its credential_process to `aws configure export-credentials --profile {name}` in a profile of its own, or set temporary keys in the environment"
        )));
    }
    let named = [
        profile.get("web_identity_token_file").map(Source::WebIdentity),
        profile.get("source_profile").map(Source::Profile),
        profile.get("credential_source").map(Source::Place),
    ];
    let mut named = named.into_iter().flatten();
    match (named.next(), named.next()) {
        (Some(source), None) => Ok(source),
        _ => Err(no_access(format!(
            "the AWS profile {name} assumes a role and must say from whom: set one of source_profile, credential_source and web_identity_token_file"
        ))),
    }
}

fn assumption<'a>(profile: &'a Profile, arn: &'a str) -> Assumption<'a> {
    Assumption {
        arn,
        session_name: profile.get("role_session_name"),
        external_id: profile.get("external_id"),
        duration_seconds: profile.get("duration_seconds"),
    }
}

async fn of_place(sts: &Sts<'_>, place: &str, profile: &str) -> Result<Credentials, ModelError> {
    let clients = sts.clients;
    let variables: &Variables = clients.variables();
    let found = match place {
        "Environment" => credentials::from_variables(variables)?,
        "EcsContainer" => metadata::of_container(clients).await?,
        "Ec2InstanceMetadata" => metadata::of_instance(clients).await?,
        _ => {
            return Err(no_access(format!(
                "the AWS profile {profile} has the credential_source {place:?}: it must be Environment, EcsContainer or Ec2InstanceMetadata"
            )));
        }
    };
    found.ok_or_else(|| {
        no_access(format!(
            "the AWS profile {profile} takes its credentials from {place}, and there are none"
        ))
    })
}

fn without_credentials(profile: &str) -> ModelError {
    no_access(format!(
        "the AWS profile {profile}, from which a role is assumed, has no credentials: add aws_access_key_id and aws_secret_access_key, single sign-on or a credential_process"
    ))
}

/// The token in a file, read anew each time because it is replaced before it expires.
async fn identity(path: &str, named_by: &str) -> Result<SecretString, ModelError> {
    let unusable = |why: &dyn std::fmt::Display| {
        no_access(format!("the file that {named_by} names ({path}) cannot be used: {why}"))
    };
    let metadata = tokio::fs::metadata(path).await.map_err(|error| unusable(&error))?;
    if metadata.len() > MAX_IDENTITY {
        return Err(unusable(&format_args!("it is larger than {MAX_IDENTITY} bytes")));
    }
    let token = tokio::fs::read_to_string(path).await.map_err(|error| unusable(&error))?;
    match token.trim() {
        "" => Err(unusable(&"it is empty")),
        token => Ok(SecretString::from(token)),
    }
}
