//! The tool `message`.

use myclaw_agent::speech::speaker;
use myclaw_channels::Action;
use myclaw_config::OtherChats;
use myclaw_delivery::delivery::{ChatPlace, SpeakCall, Speech};
use myclaw_delivery::route::Route;
use myclaw_delivery::rows::{Act, ActOn, PartState};
use myclaw_session::SessionKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Call, CallOrigin};
use crate::GatewayError;

/// Longest question of a poll, and longest answer to choose, in characters (Bot API, sendPoll).
const MOST_QUESTION_CHARS: usize = 300;
const MOST_OPTION_CHARS: usize = 100;
/// Fewest and most answers to choose from.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=10;
/// Longest reaction, in characters: some emoji are made of many.
const MOST_EMOJI_CHARS: usize = 16;

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Doing {
    Send,
    Reply,
    React,
    Edit,
    Unsend,
    Poll,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    action: Doing,
    #[serde(default)]
    text: String,
    #[serde(default)]
    files: Vec<String>,
    emoji: Option<String>,
    message_id: Option<String>,
    question: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    several: bool,
    to: Option<String>,
}

/// The arguments of `send_voice`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VoiceArguments {
    text: String,
    #[serde(default)]
    voice: Option<String>,
}

/// The id under which the text of a voice message is sent that could not be spoken.
pub(super) fn text_of(call: &str) -> String {
    format!("{call}/text")
}

impl Call<'_> {
    /// Speaks a text in the chat of the present turn. If that is not possible, the text is sent, and the result says why.
    pub(super) async fn voice(&self) -> Result<Value, GatewayError> {
        let VoiceArguments { text, voice } = self.arguments()?;
        if text.trim().is_empty() {
            return Err(unusable("the text is empty; say something"));
        }
        let ChatPlace { route, .. } = self.place(None).await?;
        let why = match self.spoken(&text, voice.as_deref(), &route).await {
            Ok(mut value) if value["status"] != "failed" => {
                value["spoken"] = json!(true);
                return Ok(value);
            }
            Ok(value) => value["reason"].as_str().unwrap_or_default().to_owned(),
            Err(GatewayError::Unusable(why)) => why,
            Err(error) => return Err(error),
        };
        if self.cancel.is_cancelled() {
            return Err(unusable("aborted"));
        }
        let (id, speech) = (text_of(self.id), Speech { text, ..Speech::default() });
        let call = SpeakCall { id: &id, turn: &self.turn };
        let sent = self.delivery.speak(self.caller, call, &route, speech, self.cancel.cancelled());
        let mut value = sent.await?;
        value["spoken"] = json!(false);
        value["note"] =
            json!(format!("it was sent as text, because it could not be spoken: {why}"));
        Ok(value)
    }

    /// Sends a text as speech.
    async fn spoken(
        &self,
        text: &str,
        voice: Option<&str>,
        route: &Route,
    ) -> Result<Value, GatewayError> {
        let speaker = speaker(&self.delivery.config());
        let speaker = speaker.ok_or_else(|| unusable("nobody speaks (`speech` in the config)"))?;
        let audio = speaker.speak(text, voice, self.cancel).await;
        let audio = Some(audio.map_err(|error| unusable(error.to_string()))?);
        let call = SpeakCall { id: self.id, turn: &self.turn };
        let speech = Speech { audio, ..Speech::default() };
        let until = self.cancel.cancelled();
        Ok(self.delivery.speak(self.caller, call, route, speech, until).await?)
    }
    pub(super) async fn message(&self) -> Result<Value, GatewayError> {
        let mut arguments: Arguments = self.arguments()?;
        // Some models fill in everything.
        arguments.message_id = arguments.message_id.filter(|id| !id.trim().is_empty());
        arguments.to = arguments.to.filter(|to| !to.trim().is_empty());
        let place = self.place(arguments.to.as_deref()).await?;
        let (route, speech) = match arguments.action {
            Doing::Send | Doing::Reply => self.said(place, arguments).await?,
            Doing::Poll => poll(place, arguments)?,
            Doing::React => self.reaction(place, arguments).await?,
            Doing::Edit | Doing::Unsend => self.change(&place, arguments).await?,
        };
        if let Some(action) = speech.act.as_ref().map(action_of) {
            self.delivery.check_ability(&route, action)?;
        }
        let call = SpeakCall { id: self.id, turn: &self.turn };
        let until = self.cancel.cancelled();
        Ok(self.delivery.speak(self.caller, call, &route, speech, until).await?)
    }

    /// The chat that is meant: that of the present turn, or that of another session.
    async fn place(&self, to: Option<&str>) -> Result<ChatPlace, GatewayError> {
        let Some(to) = to else {
            if self.origin == CallOrigin::Elsewhere {
                return self.chat_of_owner().await;
            }
            return Ok(self.delivery.current_place(self.caller.session_key.as_str()).await?);
        };
        let key = self.reachable(to).await?;
        if key == self.caller.session_key {
            return Ok(self.delivery.current_place(key.as_str()).await?);
        }
        self.check_other_chats()?;
        let route = self.delivery.routes().last(key.as_str()).await?;
        let route = route.filter(Route::leads_somewhere).ok_or_else(|| {
            unusable(format!("nobody has written to the session {to} from a chat yet"))
        })?;
        self.delivery.check_may_write(&key, &route)?;
        Ok(ChatPlace { route, newest: None })
    }

    /// The chat from which the owner wrote to the main session last: a terminal is no chat.
    async fn chat_of_owner(&self) -> Result<ChatPlace, GatewayError> {
        let main = self.delivery.main_session(self.caller.agent.id.as_str())?;
        let last = self.delivery.routes().last(&main).await?;
        let route = last.filter(Route::is_chat).ok_or_else(|| {
            unusable(
                "nobody has written to the main session from a chat yet; say it in your answer",
            )
        })?;
        let key = SessionKey::parse(&main).map_err(|error| unusable(error.to_string()))?;
        self.delivery.check_may_write(&key, &route)?;
        Ok(ChatPlace { route, newest: None })
    }

    fn check_other_chats(&self) -> Result<(), GatewayError> {
        let is_allowed = match self.delivery.config().tools.message.other_chats {
            OtherChats::Off => false,
            OtherChats::Main => self.caller.is_main(),
            OtherChats::All => true,
        };
        is_allowed.then_some(()).ok_or_else(|| {
            unusable(
                "this session writes only to the chat in which it talks (tools.message.otherChats); leave `to` out",
            )
        })
    }

    async fn said(
        &self,
        place: ChatPlace,
        arguments: Arguments,
    ) -> Result<(Route, Speech), GatewayError> {
        let Arguments { action, text, files, message_id, .. } = arguments;
        if text.trim().is_empty() && files.is_empty() {
            return Err(unusable("there is nothing to send; give `text` or `files`"));
        }
        let reply_to = match (action, message_id) {
            (Doing::Reply, Some(id)) => {
                let (_, row) = self.delivery.sent_by(self.caller.session_key.as_str(), &id).await?;
                match row.state {
                    PartState::Sent { id } if row.route == place.route => Some(id),
                    PartState::Sent { .. } => {
                        return Err(unusable("the message is in another chat"));
                    }
                    _ => return Err(unusable("the message that you answer is not sent yet")),
                }
            }
            (Doing::Reply, None) => Some(newest(&place)?),
            _ => None,
        };
        Ok((place.route, Speech { text, files, reply_to, ..Speech::default() }))
    }

    async fn reaction(
        &self,
        place: ChatPlace,
        arguments: Arguments,
    ) -> Result<(Route, Speech), GatewayError> {
        let emoji = arguments.emoji.unwrap_or_default().trim().to_owned();
        if emoji.is_empty() || emoji.chars().count() > MOST_EMOJI_CHARS {
            return Err(unusable("`emoji` is one emoji, such as \u{1f44d}"));
        }
        let (route, on) = match arguments.message_id {
            Some(id) => self.own_message(&place, &id).await?,
            None => {
                let newest = newest(&place)?;
                (place.route, ActOn::Received(newest))
            }
        };
        Ok((route, Speech { text: emoji, act: Some(Act::React { on }), ..Speech::default() }))
    }

    async fn change(
        &self,
        place: &ChatPlace,
        arguments: Arguments,
    ) -> Result<(Route, Speech), GatewayError> {
        let id = arguments.message_id.ok_or_else(|| {
            unusable("`messageId` is missing: an id that this tool returned for a message of yours")
        })?;
        let (route, on) = self.own_message(place, &id).await?;
        let (text, act) = match arguments.action {
            Doing::Edit if arguments.text.trim().is_empty() => {
                return Err(unusable("`text` is missing: the new text of the message"));
            }
            Doing::Edit => (arguments.text, Act::Edit { on }),
            _ => (String::new(), Act::Unsend { on }),
        };
        Ok((route, Speech { text, act: Some(act), ..Speech::default() }))
    }

    /// A message that this session has sent, where it may still write.
    async fn own_message(
        &self,
        place: &ChatPlace,
        id: &str,
    ) -> Result<(Route, ActOn), GatewayError> {
        let (part, row) = self.delivery.sent_by(self.caller.session_key.as_str(), id).await?;
        if row.route != place.route {
            self.check_other_chats()?;
        }
        match row.state {
            PartState::Failed { .. } | PartState::Uncertain => Err(unusable(format!(
                "the message `{id}` was not delivered, so it cannot be changed"
            ))),
            _ => Ok((row.route, ActOn::Sent(part))),
        }
    }
}

fn poll(place: ChatPlace, arguments: Arguments) -> Result<(Route, Speech), GatewayError> {
    let Arguments { question, options, several, .. } = arguments;
    let text = question.unwrap_or_default();
    let is_between = |text: &str, most: usize| {
        let count = text.trim().chars().count();
        (1..=most).contains(&count)
    };
    if !is_between(&text, MOST_QUESTION_CHARS) {
        return Err(unusable(format!("`question` has 1 to {MOST_QUESTION_CHARS} characters")));
    }
    let are_short = options.iter().all(|option| is_between(option, MOST_OPTION_CHARS));
    if !OPTIONS.contains(&options.len()) || !are_short {
        return Err(unusable(format!(
            "`options` has {} to {} answers of 1 to {MOST_OPTION_CHARS} characters",
            OPTIONS.start(),
            OPTIONS.end()
        )));
    }
    let act = Some(Act::Poll { options, several });
    Ok((place.route, Speech { text, act, ..Speech::default() }))
}

/// The channel's id of the person's newest message.
fn newest(place: &ChatPlace) -> Result<String, GatewayError> {
    place.newest.clone().ok_or_else(|| {
        unusable(
            "no message of this chat is being answered; give `messageId`, or use the action `send`",
        )
    })
}

fn action_of(act: &Act) -> Action {
    match act {
        Act::React { .. } => Action::React,
        Act::Edit { .. } => Action::Edit,
        Act::Unsend { .. } => Action::Unsend,
        Act::Poll { .. } => Action::Poll,
    }
}

fn unusable(message: impl Into<String>) -> GatewayError {
    GatewayError::Unusable(message.into())
}
