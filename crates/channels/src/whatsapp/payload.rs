//! What WhatsApp delivers, in our words.

use serde::Deserialize;
use serde_json::Value;

use crate::form::file_name;
use crate::passage::note;
use crate::{Chat, ChatKind, FileOf, Passage, PassageKind, Sender};

/// The body of a webhook. Fields that this program does not use are left out.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    #[serde(default)]
    pub(super) entry: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(default)]
    pub(super) changes: Vec<Change>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Change {
    #[serde(default)]
    pub(super) field: String,
    #[serde(default)]
    pub(super) value: Value,
}

/// The value of a change of the field `messages`. What one of several messages holds must not spoil the others, so they
/// are read one by one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) metadata: Metadata,
    pub(super) contacts: Vec<Contact>,
    pub(super) messages: Vec<Value>,
    pub(super) statuses: Vec<Value>,
    /// Failures that belong to no message.
    pub(super) errors: Vec<VendorError>,
}

/// The number that was written to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) display_phone_number: String,
    pub(super) phone_number_id: String,
}

/// A person who wrote.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Contact {
    profile: Profile,
    wa_id: Option<String>,
    user_id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Profile {
    name: Option<String>,
    username: Option<String>,
}

/// A failure in the words of the vendor.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct VendorError {
    pub(super) code: u32,
    pub(super) title: String,
    pub(super) message: String,
    pub(super) error_data: ErrorData,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorData {
    pub(super) details: String,
}

impl VendorError {
    /// The most exact of its texts.
    pub(super) fn reason(&self) -> &str {
        let texts = [&self.error_data.details, &self.message, &self.title];
        texts.into_iter().find(|text| !text.is_empty()).map_or("no reason was given", |text| text)
    }
}

/// What became of a message of ours.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) recipient_id: String,
    /// What the request that sent it said.
    pub(super) biz_opaque_callback_data: Option<String>,
    pub(super) errors: Vec<VendorError>,
}

/// A message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    /// The phone number; missing if the person hides it.
    from: Option<String>,
    /// The id of a person who has a name instead of a number.
    from_user_id: Option<String>,
    group_id: Option<String>,
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    text: Body,
    image: Option<Media>,
    audio: Option<Media>,
    video: Option<Media>,
    document: Option<Media>,
    sticker: Option<Media>,
    location: Option<Location>,
    contacts: Vec<Card>,
    interactive: Value,
    button: Button,
    order: Value,
    reaction: Value,
    system: Value,
    /// The advertisement by which the person came here.
    referral: Value,
    pub(super) context: Context,
    errors: Vec<VendorError>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Body {
    body: String,
}

/// A file that WhatsApp keeps for a while.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Media {
    pub(super) id: String,
    pub(super) mime_type: Option<String>,
    filename: Option<String>,
    /// Whether it was spoken into the app.
    voice: bool,
    caption: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Location {
    latitude: f64,
    longitude: f64,
    name: Option<String>,
    address: Option<String>,
}

/// A visiting card.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Card {
    name: CardName,
    phones: Vec<CardPhone>,
    emails: Vec<CardEmail>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct CardName {
    formatted_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct CardPhone {
    phone: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct CardEmail {
    email: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Button {
    text: Option<String>,
    payload: Option<String>,
}

/// The message that another one answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    pub(super) from: Option<String>,
    pub(super) id: Option<String>,
    forwarded: bool,
    frequently_forwarded: bool,
    referred_product: Value,
}

impl Message {
    /// The id of the person: the phone number, or what WhatsApp gives instead.
    pub(super) fn person(&self) -> Option<&str> {
        let given = |id: &'_ &String| !id.is_empty();
        let number = self.from.as_ref().filter(given);
        number.or(self.from_user_id.as_ref().filter(given)).map(String::as_str)
    }

    pub(super) fn chat(&self, person: &str) -> Chat {
        let (id, kind) = match &self.group_id {
            Some(group) => (group.clone(), ChatKind::Group),
            None => (person.to_owned(), ChatKind::Direct),
        };
        Chat { id, kind, ..Chat::default() }
    }

    pub(super) fn sender(&self, person: &str, contacts: &[Contact]) -> Sender {
        let is_theirs = |contact: &&Contact| {
            [&contact.wa_id, &contact.user_id].into_iter().flatten().any(|id| id == person)
        };
        let profile = contacts.iter().find(is_theirs).map(|contact| contact.profile.clone());
        let Profile { name, username } = profile.unwrap_or_default();
        let handle = username.map(|name| name.trim_start_matches('@').to_owned());
        Sender { id: person.to_owned(), other_id: None, name, handle }
    }

    /// Why it gets no answer, independent of who may write. A reaction under a message asks for no answer, and neither does the news
    /// that a person has another number.
    pub(super) fn is_not_said(&self) -> Option<String> {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match self.kind.as_str() {
            "reaction" => {
                let emoji = text(&self.reaction, "emoji");
                let shown = if emoji.is_empty() { "taken back" } else { &emoji };
                Some(format!("it is a reaction ({shown}) to a message, which asks for no answer"))
            }
            "system" => Some(format!("it is a note of WhatsApp ({})", text(&self.system, "body"))),
            "revoke" => Some("it removes an earlier message".to_owned()),
            "request_welcome" => Some("somebody has opened the chat, and wrote nothing".to_owned()),
            _ => None,
        }
    }

    /// What its sender says with it, and what of it is no text of theirs.
    pub(super) fn content(&self) -> (String, Vec<Passage>) {
        let Context { forwarded, frequently_forwarded, referred_product, .. } = &self.context;
        let mut passages = Vec::new();
        for (kind, value) in
            [(PassageKind::Product, referred_product), (PassageKind::Advertisement, &self.referral)]
        {
            if !value.is_null() {
                passages.push(Passage::new(kind, None, fields_of(value)));
            }
        }
        let kind = match (frequently_forwarded, forwarded) {
            (true, _) => PassageKind::ForwardOfMany,
            (false, true) => PassageKind::Forward,
            (false, false) => return (self.said(), passages),
        };
        passages.insert(0, Passage::new(kind, None, self.said()));
        (String::new(), passages)
    }

    /// To what its file belongs.
    pub(super) fn file_of(&self) -> FileOf {
        match self.context.forwarded || self.context.frequently_forwarded {
            true => FileOf::Passage,
            false => FileOf::Message,
        }
    }

    /// Its file, with a name.
    pub(super) fn file(&self) -> Option<(&Media, String)> {
        let is_spoken = self.audio.as_ref().is_some_and(|audio| audio.voice);
        let all = [
            ("image", &self.image),
            (if is_spoken { "voice" } else { "audio" }, &self.audio),
            ("video", &self.video),
            ("file", &self.document),
            ("sticker", &self.sticker),
        ];
        let (kind, media) =
            all.into_iter().find_map(|(kind, media)| Some((kind, media.as_ref()?)))?;
        let given = media.filename.clone().filter(|name| !name.is_empty());
        let name = given.unwrap_or_else(|| file_name(kind, media.mime_type.as_deref()));
        Some((media, name))
    }

    /// What it says.
    pub(super) fn said(&self) -> String {
        if let Some((media, _)) = self.file() {
            return media.caption.clone().unwrap_or_default();
        }
        match self.kind.as_str() {
            "text" => self.text.body.clone(),
            "location" => self.location.as_ref().map(Location::said).unwrap_or_default(),
            "contacts" => self.contacts.iter().map(Card::said).collect::<Vec<_>>().join("\n"),
            "button" => {
                let Button { text, payload } = self.button.clone();
                text.or(payload).unwrap_or_default()
            }
            "interactive" => self.choice(),
            "order" => note("an order:", [self.order.to_string().as_str()]),
            "unsupported" => {
                let reason = self.errors.first().map_or("no reason was given", VendorError::reason);
                note("a message that WhatsApp does not pass on:", [reason])
            }
            other => note("a message that cannot be shown, of the type", [other]),
        }
    }

    /// What the person chose of a list or of buttons, or filled in.
    fn choice(&self) -> String {
        let text = |pointer: &str| self.interactive.pointer(pointer).and_then(Value::as_str);
        let title = text("/button_reply/title").or_else(|| text("/list_reply/title"));
        match (title, text("/list_reply/description"), text("/nfm_reply/response_json")) {
            (Some(title), Some(more), _) => format!("{title} ({more})"),
            (Some(title), None, _) => title.to_owned(),
            (None, _, Some(form)) => note("a form:", [form]),
            (None, _, None) => note("a choice:", [self.interactive.to_string().as_str()]),
        }
    }
}

/// The texts and numbers of an object, one in a line.
fn fields_of(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten().filter_map(|(name, value)| match value {
        Value::String(text) => Some(format!("{name}: {text}")),
        Value::Number(number) => Some(format!("{name}: {number}")),
        _ => None,
    });
    fields.collect::<Vec<_>>().join("\n")
}

impl Location {
    fn said(&self) -> String {
        let at = format!("{}, {}", self.latitude, self.longitude);
        let place = [Some(&at), self.name.as_ref(), self.address.as_ref()];
        note("location", place.into_iter().flatten().map(String::as_str))
    }
}

impl Card {
    fn said(&self) -> String {
        let phones = self.phones.iter().filter_map(|phone| phone.phone.as_deref());
        let emails = self.emails.iter().filter_map(|email| email.email.as_deref());
        let name = self.name.formatted_name.as_str();
        note("contact", std::iter::once(name).chain(phones).chain(emails))
    }
}

#[cfg(test)]
mod tests;
