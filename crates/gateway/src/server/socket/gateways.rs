//! What another gateway on the same store asks for: what happens here, and what only the gateway can do that has a session.

use myclaw_delivery::questions::FullAnswer;
use myclaw_delivery::route::Route;
use myclaw_delivery::sharing::desk_of;
use myclaw_engine::Mode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Client;
use super::watched::{Reader, Watched};
use crate::GatewayError;
use crate::hub::Watching;
use crate::peers::MOST_WANTED;

#[derive(Deserialize)]
struct OfSession {
    session: String,
}

#[derive(Deserialize)]
struct SetMode {
    session: String,
    mode: Mode,
}

#[derive(Deserialize)]
struct Listed {
    session: Option<String>,
}

#[derive(Deserialize)]
struct Approved {
    id: String,
    #[serde(flatten)]
    given: FullAnswer,
    by: String,
}

#[derive(Deserialize)]
struct AnsweredInChat {
    code: String,
    #[serde(flatten)]
    given: FullAnswer,
    by: String,
    route: Route,
}

impl Client {
    /// Does what another gateway asks for. What this one cannot do is `null`.
    pub(super) async fn serve_gateway(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, GatewayError> {
        fn read<T: DeserializeOwned>(params: Value) -> Result<T, GatewayError> {
            let read = serde_json::from_value(params);
            read.map_err(|error| GatewayError::Unusable(error.to_string()))
        }
        let delivery = &self.server.delivery;
        match method {
            "watch" => self.show_to_gateway(&read::<OfSession>(params)?.session),
            "unwatch" => {
                let OfSession { session } = read(params)?;
                if self.watched.remove(&session).is_some() {
                    self.server.hub.unwatch(&session, &self.watcher());
                }
                Ok(Value::Null)
            }
            "abort" => Ok(json!(delivery.abort_here(&read::<OfSession>(params)?.session))),
            "approve" => {
                let Approved { id, given, by } = read(params)?;
                Ok(json!(delivery.answer_here(&id, given, by).await?))
            }
            "approve_in_chat" => {
                let AnsweredInChat { code, given, by, route } = read(params)?;
                Ok(json!(delivery.answer_in_chat_here(&code, given, (&route, by)).await?))
            }
            "approvals" => {
                let Listed { session } = read(params)?;
                Ok(json!(delivery.questions().list(session.as_deref())))
            }
            "working" => Ok(json!(delivery.working())),
            "in_use" => {
                let (key, _) = delivery.session(&read::<OfSession>(params)?.session)?;
                Ok(json!(delivery.is_in_use_here(&key).await))
            }
            "mode" => {
                let SetMode { session, mode } = read(params)?;
                let has_it = delivery.ledger().claims().holds(&desk_of(&session));
                if has_it {
                    delivery.set_mode_here(&session, mode).await?;
                }
                Ok(if has_it { json!(true) } else { Value::Null })
            }
            other => {
                let why = format!("this version does not know {other}");
                Err(GatewayError::Unusable(why))
            }
        }
    }

    fn show_to_gateway(&mut self, session: &str) -> Result<Value, GatewayError> {
        if self.watched.len() >= MOST_WANTED && !self.watched.contains_key(session) {
            let why = format!("a gateway watches at most {MOST_WANTED} sessions of another one");
            return Err(GatewayError::Unusable(why));
        }
        let Watching { newest, live, news } = self.server.hub.watch_with(session, self.watcher());
        let claims = std::sync::Arc::clone(self.server.delivery.ledger().claims());
        let desk = desk_of(session);
        let epoch = claims.epoch(&desk);
        let reader = Reader::Gateway(Box::new(move || claims.epoch(&desk)));
        self.watched.insert(session.to_owned(), Watched::new(session, newest, news, reader));
        Ok(json!({"epoch": epoch, "live": live}))
    }
}
