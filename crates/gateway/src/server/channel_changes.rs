//! Channels in the config over HTTP: which kinds there are and what each needs, and to add, repair, try and remove one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::{AgentError, Home};
use myclaw_config::{
    ChannelAccounts, ChannelPeople, ChannelsConfig, ConfigChange, ConfigFile, ConfigPath,
    DEFAULT_ACCOUNT, MASKED, SecretString,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Server;
use super::answer::error_object;
use super::config::{Refusal, home, read_file};
use super::request::Body;
use crate::GatewayError;
use crate::channel_draft::{
    ChannelDraft, ChannelDraftError, DraftKind, Probed, channel_removal, find_channel, probed,
};
use crate::connect::channels_of;
use crate::device_link::DeviceLink;
use crate::qr::qr_code;

/// Most variables of the same name with a number that are looked at.
const MOST_VARIABLES: usize = 100;

/// Held while a channel is tried and written: two at once would write the same file with variables.
static KEEPING: Mutex<()> = Mutex::const_new(());

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/channels/kinds", get(kinds))
        .route("/api/channels/{change}", post(change))
}

/// A channel to add, repair, try or remove.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChannelBody {
    /// The version of the config file that `GET /api/channels/kinds` named.
    version: String,
    channel: String,
    #[serde(default)]
    account: String,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    allow_from: Vec<String>,
    /// What a phone scans that is being linked.
    #[serde(default)]
    address: String,
}

/// The kinds of channels with what each needs, and the accounts that the config has, without secrets.
async fn kinds(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let home = home().await?;
    let file = read_file(&home).await?;
    let values = file.values().map(|masked| masked.values).unwrap_or_default();
    let is_set = |name: &str| is_in(&home, name);
    let kinds = ChannelsConfig::declared().into_iter().map(|(name, it)| {
        let fields = it.fields.iter().map(|field| {
            json!({"key": field.key, "what": field.what, "isRequired": field.what.is_some(), "isLinked": field.is_linked})
        });
        let secrets = it.secrets.iter().map(|secret| {
            let variable = secret.usual;
            json!({"key": secret.key, "whence": secret.whence, "variable": variable, "isSet": is_set(variable)})
        });
        let accounts = match it.accounts {
            ChannelAccounts::One => "one",
            ChannelAccounts::Further => "further",
            ChannelAccounts::FurtherOfOneApp => "furtherOfOneApp",
            ChannelAccounts::Named => "named",
        };
        let proof = match it.people {
            ChannelPeople::None => None,
            ChannelPeople::Letters => Some("their addresses"),
            ChannelPeople::Chats { proof, .. } => Some(proof),
        };
        json!({
            "name": name, "about": it.about, "accounts": accounts, "people": proof,
            "fields": fields.collect::<Vec<_>>(), "secrets": secrets.collect::<Vec<_>>(),
        })
    });
    let config = server.delivery.config();
    let accounts = channels_of(&home, &config).into_iter().filter_map(|setup| {
        let draft = ChannelDraft::new(setup.channel, &setup.account, DraftKind::Repair)?;
        let own = draft.place().find(&values).cloned().unwrap_or_default();
        let at = |key: &str| own.pointer(&format!("/{}", key.replace('.', "/")));
        let known = draft.declaration().fields.iter().filter_map(|field| {
            let text = match at(field.key)? {
                Value::String(text) if text == MASKED => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((field.key.to_owned(), json!(text)))
        });
        let known: serde_json::Map<String, Value> = known.collect();
        Some(json!({"channel": setup.channel, "account": setup.account, "values": known}))
    });
    Ok(Json(json!({
        "version": file.version(),
        "kinds": kinds.collect::<Vec<_>>(),
        "accounts": accounts.collect::<Vec<_>>(),
    })))
}

async fn change(
    State(server): State<Arc<Server>>,
    Path(change): Path<String>,
    body: Result<Body<ChannelBody>, GatewayError>,
) -> Response {
    let Ok(Body(body)) = body else {
        // The text of the error could quote a secret.
        let why = "send version and channel, and where needed account, values and secrets as texts, and allowFrom";
        return GatewayError::Unusable(why.to_owned()).into_response();
    };
    // A task of its own: a client that goes away does not leave the change half-way.
    let changing = tokio::spawn(async move {
        match change.as_str() {
            "add" => server.keep_channel(body, DraftKind::Add).await,
            "repair" => server.keep_channel(body, DraftKind::Repair).await,
            "test" => server.test_channel(&body).await,
            "remove" => server.remove_channel(&body).await,
            "link" => begin_link(&body).await,
            "linked" => finish_link(&body).await,
            _ => {
                let why = "there are add, repair, test, remove, link and linked";
                Err(ChangeRefusal::Other(GatewayError::NotFound(why.to_owned()).into()))
            }
        }
    });
    match changing.await {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(error) => GatewayError::Internal(error.to_string()).into_response(),
    }
}

/// Why a channel is as it was.
enum ChangeRefusal {
    /// A value is missing or cannot be used.
    Field {
        key: String,
        message: String,
    },
    /// The vendor does not take it.
    Vendor(String),
    Other(Refusal),
}

impl ChangeRefusal {
    fn field(key: &str, message: impl Into<String>) -> Self {
        Self::Field { key: key.to_owned(), message: message.into() }
    }
}

impl<E: Into<Refusal>> From<E> for ChangeRefusal {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl From<ChannelDraftError> for Refusal {
    fn from(error: ChannelDraftError) -> Self {
        match error {
            ChannelDraftError::Config(error) => Self::Write(error),
            ChannelDraftError::Variables { place, reason } => {
                Self::Gateway(GatewayError::File { action: "write", path: place, reason })
            }
            ChannelDraftError::Home(error) => Self::Gateway(error.into()),
        }
    }
}

impl IntoResponse for ChangeRefusal {
    fn into_response(self) -> Response {
        let (class, message, field) = match self {
            Self::Field { key, message } => ("usage", message, Some(key)),
            Self::Vendor(why) => ("channel", why, None),
            Self::Other(refusal) => return refusal.into_response(),
        };
        let mut body = error_object(class, &message);
        body["error"]["field"] = json!(field);
        (StatusCode::BAD_REQUEST, Json(body)).into_response()
    }
}

impl Server {
    /// Tries a channel with its vendor, then writes it.
    async fn keep_channel(
        &self,
        body: ChannelBody,
        kind: DraftKind,
    ) -> Result<Value, ChangeRefusal> {
        let _keeping = KEEPING.lock().await;
        let (home, file) = same_file(&body).await?;
        let draft = drafted(&home, &file, &body, kind)?;
        let probed = draft.probe(&home, &file).await?.map_err(|why| {
            ChangeRefusal::Vendor(format!("it cannot be used: {why}. Nothing was changed"))
        })?;
        let written = draft.keep(&home, &file).await?;
        let mut answer = self.in_force(&home, &written.file).await;
        answer["warnings"] = json!(written.warnings);
        answer["probed"] = described(&probed)?;
        Ok(answer)
    }

    async fn test_channel(&self, body: &ChannelBody) -> Result<Value, ChangeRefusal> {
        let home = home().await?;
        let config = self.delivery.config();
        let setup = find_channel(channels_of(&home, &config), &body.channel, account_of(body));
        let setup = setup.ok_or_else(|| unknown(body))?;
        let probed = probed(&setup).await.map_err(ChangeRefusal::Vendor)?;
        Ok(described(&probed)?)
    }

    async fn remove_channel(&self, body: &ChannelBody) -> Result<Value, ChangeRefusal> {
        let (home, file) = same_file(body).await?;
        let setups = channels_of(&home, &self.delivery.config());
        let path = channel_removal(&setups, &body.channel, account_of(body))
            .ok_or_else(|| unknown(body))?
            .map_err(GatewayError::Unusable)?;
        let change = ConfigChange::Unset { path };
        let written = myclaw_agent::config_write::change_config(&home, &file, &[change]).await;
        let written = written.map_err(Refusal::Write)?;
        Ok(self.in_force(&home, &written.file).await)
    }

    async fn in_force(&self, home: &Home, file: &ConfigFile) -> Value {
        let state = self.reloads.now(home).await;
        json!({
            "version": file.version(),
            "inForce": state.as_ref().map(crate::reloads::ReloadState::is_current),
            "state": state,
        })
    }
}

/// Has the phone of a person scan a code, which makes the channel a further device of its account.
async fn begin_link(body: &ChannelBody) -> Result<Value, ChangeRefusal> {
    let begun = DeviceLink::begin(&body.channel, base_url(body)).await;
    let link = begun.ok_or_else(|| not_linked(body))?.map_err(ChangeRefusal::Vendor)?;
    Ok(json!({"address": link.address, "code": link.code()?}))
}

/// Waits until that is done, and gives the account.
async fn finish_link(body: &ChannelBody) -> Result<Value, ChangeRefusal> {
    let link = DeviceLink::begun(&body.channel, base_url(body), &body.address);
    let account = link.ok_or_else(|| not_linked(body))?.finish().await;
    Ok(json!({"account": account.map_err(ChangeRefusal::Vendor)?}))
}

fn base_url(body: &ChannelBody) -> Option<&str> {
    body.values.get("baseUrl").map(String::as_str)
}

fn not_linked(body: &ChannelBody) -> ChangeRefusal {
    let why = format!("the channel `{}` is not linked to a phone; type its values", body.channel);
    ChangeRefusal::field("channel", why)
}

fn unknown(body: &ChannelBody) -> GatewayError {
    GatewayError::NotFound(format!(
        "the config has no channel `{}` with the account `{}`; read the page again",
        body.channel,
        account_of(body)
    ))
}

fn account_of(body: &ChannelBody) -> &str {
    match body.account.trim() {
        "" => DEFAULT_ACCOUNT,
        name => name,
    }
}

/// The config file, if it is the one that the client has seen.
async fn same_file(body: &ChannelBody) -> Result<(Home, ConfigFile), ChangeRefusal> {
    let home = home().await?;
    let file = read_file(&home).await?;
    match file.version() == body.version {
        true => Ok((home, file)),
        false => Err(Refusal::Other { version: file.version() }.into()),
    }
}

fn described(probed: &Probed) -> Result<Value, GatewayError> {
    let code = probed.address.as_deref().map(qr_code).transpose()?;
    Ok(json!({"found": probed.found, "address": probed.address, "code": code}))
}

/// What a person has given, with everything that the channel needs.
fn drafted(
    home: &Home,
    file: &ConfigFile,
    body: &ChannelBody,
    kind: DraftKind,
) -> Result<ChannelDraft, ChangeRefusal> {
    let account = account_of(body).to_owned();
    let mut draft = ChannelDraft::new(&body.channel, &account, kind).ok_or_else(|| {
        ChangeRefusal::field("channel", format!("there is no channel `{}`", body.channel))
    })?;
    let declaration = *draft.declaration();
    match declaration.accounts {
        ChannelAccounts::One if account != DEFAULT_ACCOUNT => {
            return Err(ChangeRefusal::field(
                "account",
                "this channel has one account; leave its name out",
            ));
        }
        ChannelAccounts::Named if body.account.trim().is_empty() => {
            return Err(ChangeRefusal::field("account", "give it a name, such as mine"));
        }
        _ => {}
    }
    check_place(&draft, file, kind)?;
    let given =
        |key: &str| body.values.get(key).map(|text| text.trim()).filter(|it| !it.is_empty());
    if let Some(stray) =
        body.values.keys().find(|key| !declaration.fields.iter().any(|it| it.key == **key))
    {
        return Err(ChangeRefusal::field(stray, "this channel has no such value"));
    }
    for field in declaration.fields {
        match (given(field.key), field.what) {
            (Some(text), _) => draft.set(field.key, field.value(text)),
            (None, Some(what)) if kind == DraftKind::Add => {
                return Err(ChangeRefusal::field(field.key, format!("it is missing: {what}")));
            }
            (None, _) => {}
        }
    }
    set_secrets(home, file, &mut draft, (&account, &body.secrets), kind)?;
    let people: Vec<&str> =
        body.allow_from.iter().map(|id| id.trim()).filter(|id| !id.is_empty()).collect();
    if !people.is_empty() {
        if kind == DraftKind::Repair || !declaration.takes_people(&account) {
            let why = "people are named when the channel is added, and in its first account";
            return Err(ChangeRefusal::field("allowFrom", why));
        }
        draft.set("allowFrom", json!(people));
    }
    Ok(draft)
}

fn check_place(
    draft: &ChannelDraft,
    file: &ConfigFile,
    kind: DraftKind,
) -> Result<(), ChangeRefusal> {
    let place = draft.place();
    let has = file.has(&place).map_err(|error| GatewayError::Agent(AgentError::from(error)))?;
    match (kind, has) {
        (DraftKind::Add, true) => Err(ChangeRefusal::field(
            "account",
            format!("the config has {place} already; repair it, or give another name"),
        )),
        (DraftKind::Repair, false) => {
            Err(GatewayError::NotFound(format!("the config has no {place}; read the page again"))
                .into())
        }
        _ => Ok(()),
    }
}

fn set_secrets(
    home: &Home,
    file: &ConfigFile,
    draft: &mut ChannelDraft,
    (account, secrets): (&str, &BTreeMap<String, String>),
    kind: DraftKind,
) -> Result<(), ChangeRefusal> {
    let own = draft.declaration().secrets_of(account);
    if let Some(stray) = secrets.keys().find(|key| !own.iter().any(|it| it.key == **key)) {
        return Err(ChangeRefusal::field(stray, "this account has no such secret"));
    }
    for secret in own {
        let text = secrets.get(secret.key).map(|text| text.trim()).filter(|it| !it.is_empty());
        let usual = secret.variable(account);
        match text {
            Some(text) if text.contains(char::is_control) => {
                return Err(ChangeRefusal::field(secret.key, "it is one line; copy it again"));
            }
            Some(text) => {
                let before = match kind {
                    DraftKind::Add => None,
                    DraftKind::Repair => kept_variable(home, file, &draft.place().key(secret.key)),
                };
                let variable = before.or_else(|| free_variable(home, &usual)).ok_or_else(|| {
                    ChangeRefusal::field(
                        secret.key,
                        format!("too many variables begin with {usual}"),
                    )
                })?;
                draft.keep_secret(secret.key, variable, SecretString::from(text));
            }
            None if kind == DraftKind::Repair => {}
            None if is_in(home, &usual) => draft.refer(secret.key, &usual),
            None => {
                return Err(ChangeRefusal::field(
                    secret.key,
                    format!("it is missing. {}", secret.whence),
                ));
            }
        }
    }
    Ok(())
}

fn is_in(home: &Home, variable: &str) -> bool {
    home.environment.get(variable).is_some_and(|text| !text.trim().is_empty())
}

/// The variable that a secret of the config is in, if `.env` of the state directory gives its value.
fn kept_variable(home: &Home, file: &ConfigFile, path: &ConfigPath) -> Option<String> {
    let values = file.values().ok()?.values;
    let name = path.find(&values)?.as_str()?.strip_prefix("${")?.strip_suffix('}')?;
    let is_kept = is_in(home, name) && !home.environment.is_of_process(name);
    is_kept.then(|| name.to_owned())
}

/// A variable that has no value yet: something else may read one that has.
fn free_variable(home: &Home, usual: &str) -> Option<String> {
    let numbered = (2..MOST_VARIABLES).map(|number| format!("{usual}_{number}"));
    let is_free = |name: &String| home.environment.get(name).is_none();
    std::iter::once(usual.to_owned()).chain(numbered).find(is_free)
}
