//! A connection: its encryption, the login, and the session on the server.

use std::time::Duration;

use uuid::Uuid;

use super::XmppOptions;
use super::jid;
use super::sasl::{Login, Mechanism};
use super::xml::{Element, Event, Reader, ns};
use crate::ServerAddress;
use crate::wire::{Security, Wire, WireError};

/// Time for each step of the login.
const STEP: Duration = Duration::from_secs(30);
/// Time to send a stanza.
const SEND: Duration = Duration::from_secs(60);
/// The name of the session. With the same one, the server ends what is left of a session of a killed process.
const RESOURCE: &str = "myclaw";

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmppError {
    /// It failed.
    #[error("the XMPP server {server} {error}")]
    Wire { server: String, error: WireError },
    /// The server does not accept the user with this password.
    #[error("the XMPP server refused the login: {0}")]
    Login(String),
    /// It lacks something, or does what it must not do.
    #[error("the XMPP server {0}")]
    Unusable(String),
    /// It ended the connection; why, and its own word for it.
    #[error("the XMPP server ended the connection: {reason}")]
    Ended { reason: String, condition: String },
}

/// A connection that is logged in.
pub(super) struct Connection {
    wire: Wire,
    reader: Reader,
    /// What has come and was not read yet.
    buffer: Vec<u8>,
    server: String,
    /// What the server offers.
    features: Element,
}

impl Connection {
    /// Connects and logs in.
    pub(super) async fn log_in(options: &XmppOptions) -> Result<Self, XmppError> {
        let server = options.server.to_string();
        let failed = |error| XmppError::Wire { server: server.clone(), error };
        let domain = jid::domain(&options.address).to_owned();
        // The certificate is that of the domain, whatever the name of the machine is (RFC 6120, section 13.7).
        let plain = ServerAddress { security: Security::Plain, ..options.server.clone() };
        let mut wire = Wire::connect(&plain).await.map_err(failed)?;
        let security = options.server.security;
        if security == Security::Tls {
            wire = wire.encrypt(&domain).await.map_err(failed)?;
        }
        let mut this = Self {
            wire,
            reader: Reader::new(),
            buffer: Vec::new(),
            server: server.clone(),
            features: Element::default(),
        };
        this.open(options).await?;
        if security == Security::StartTls {
            if this.features.get("starttls", ns::TLS).is_none() {
                return Err(XmppError::Unusable("offers no TLS".to_owned()));
            }
            this.write(&Element::new("starttls", ns::TLS)).await?;
            if !this.stanza().await?.is("proceed", ns::TLS) {
                return Err(XmppError::Unusable("refuses TLS".to_owned()));
            }
            if !this.buffer.is_empty() {
                let early = WireError::Broken("it sent something before the handshake".to_owned());
                return Err(failed(early));
            }
            this.wire = this.wire.encrypt(&domain).await.map_err(failed)?;
            this.open(options).await?;
        }
        this.authenticate(options, security != Security::Plain).await?;
        this.open(options).await?;
        Ok(this)
    }

    /// Begins a stream, and reads what the server offers in it.
    async fn open(&mut self, options: &XmppOptions) -> Result<(), XmppError> {
        self.reader = Reader::new();
        self.buffer.clear();
        let domain = jid::domain(&options.address);
        let header = format!(
            "<?xml version='1.0'?><stream:stream to='{domain}' version='1.0' xml:lang='en' xmlns='{}' xmlns:stream='{}'>",
            ns::CLIENT,
            ns::STREAM
        );
        self.write_text(&header).await?;
        match self.next(STEP).await? {
            Event::Stream => {}
            _ => return Err(XmppError::Unusable("does not speak XMPP".to_owned())),
        }
        self.features = self.stanza().await?;
        match self.features.is("features", ns::STREAM) {
            true => Ok(()),
            false => Err(XmppError::Unusable("does not say what it offers".to_owned())),
        }
    }

    async fn authenticate(
        &mut self,
        options: &XmppOptions,
        is_encrypted: bool,
    ) -> Result<(), XmppError> {
        let offered = self.features.get("mechanisms", ns::SASL);
        let offered: Vec<&str> = offered
            .iter()
            .flat_map(|mechanisms| &mechanisms.children)
            .map(|mechanism| mechanism.text.trim())
            .collect();
        let mechanism = Mechanism::choose(&offered, is_encrypted).ok_or_else(|| {
            XmppError::Unusable(format!("offers no login that can be used, only {offered:?}"))
        })?;
        let nonce = Uuid::new_v4().simple().to_string();
        let user = jid::local(&options.address);
        let mut login = Login::new(mechanism, user, &options.password, nonce);
        let auth = Element::new("auth", ns::SASL).with("mechanism", mechanism.name());
        self.write(&auth.say(&login.first())).await?;
        loop {
            let said = self.stanza().await?;
            match said.name.as_str() {
                "challenge" if said.namespace == ns::SASL => {
                    let answer = login.answer(&said.text).map_err(XmppError::Login)?;
                    self.write(&Element::new("response", ns::SASL).say(&answer)).await?;
                }
                "success" if said.namespace == ns::SASL => {
                    return login.check(said.text.trim()).map_err(XmppError::Login);
                }
                _ => {
                    let reason = said.reason(ns::SASL);
                    return match said.get("temporary-auth-failure", ns::SASL) {
                        Some(_) => Err(XmppError::Unusable(format!("cannot log in now: {reason}"))),
                        None => Err(XmppError::Login(reason)),
                    };
                }
            }
        }
    }

    /// Whether the server acknowledges stanzas and keeps sessions (XEP-0198).
    pub(super) fn has_acknowledgements(&self) -> bool {
        self.features.get("sm", ns::SM).is_some()
    }

    /// Continues the session `id`, of which this side has handled `handled` stanzas. Gives how many the server has, or
    /// `None` if there is no such session any more.
    pub(super) async fn resume(
        &mut self,
        id: &str,
        handled: u32,
    ) -> Result<Option<u32>, XmppError> {
        let handled = handled.to_string();
        let resume = Element::new("resume", ns::SM).with("h", &handled).with("previd", id);
        self.write(&resume).await?;
        let said = self.stanza().await?;
        Ok(match said.is("resumed", ns::SM) {
            true => count_of(&said),
            false => None,
        })
    }

    /// Begins a session. Gives its full address, and its id if it can be resumed.
    pub(super) async fn bind(&mut self) -> Result<(String, Option<String>), XmppError> {
        let resource = Element::new("resource", ns::BIND).say(RESOURCE);
        let bind = Element::new("bind", ns::BIND).child(resource);
        self.write(
            &Element::new("iq", ns::CLIENT).with("type", "set").with("id", "bind").child(bind),
        )
        .await?;
        let said = self.stanza().await?;
        let address = said.get("bind", ns::BIND).and_then(|bind| bind.get("jid", ns::BIND));
        let Some(address) = address.filter(|_| said.attribute("type") == Some("result")) else {
            let reason = said.get("error", ns::CLIENT).map(|error| error.reason(ns::STANZA_ERROR));
            return Err(XmppError::Unusable(format!(
                "gives no session: {}",
                reason.unwrap_or_default()
            )));
        };
        let address = address.text.trim().to_owned();
        if !self.has_acknowledgements() {
            return Ok((address, None));
        }
        self.write(&Element::new("enable", ns::SM).with("resume", "true")).await?;
        let said = self.stanza().await?;
        if !said.is("enabled", ns::SM) {
            return Err(XmppError::Unusable("offers acknowledgements and refuses them".to_owned()));
        }
        let is_kept = matches!(said.attribute("resume"), Some("true" | "1"));
        Ok((address, said.attribute("id").filter(|_| is_kept).map(str::to_owned)))
    }

    /// The next event. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self, limit: Duration) -> Result<Event, XmppError> {
        loop {
            let mut rest = self.buffer.as_slice();
            let event = self.reader.read(&mut rest);
            let used = self.buffer.len() - rest.len();
            self.buffer.drain(..used);
            let event =
                event.map_err(|reason| XmppError::Unusable(format!("sent nonsense: {reason}")));
            match event? {
                Some(Event::Stanza(error)) if error.is("error", ns::STREAM) => {
                    return Err(ended(&error));
                }
                Some(event) => return Ok(event),
                None => {
                    let read = self.wire.read_some(&mut self.buffer, limit).await;
                    read.map_err(|error| self.failed(error))?;
                }
            }
        }
    }

    async fn stanza(&mut self) -> Result<Element, XmppError> {
        match self.next(STEP).await? {
            Event::Stanza(stanza) => Ok(stanza),
            _ => Err(self.failed(WireError::Broken("it ended the stream".to_owned()))),
        }
    }

    pub(super) async fn write(&mut self, stanza: &Element) -> Result<(), XmppError> {
        self.write_text(&stanza.to_xml(ns::CLIENT)).await
    }

    /// Sends XML.
    pub(super) async fn write_text(&mut self, text: &str) -> Result<(), XmppError> {
        let sent = self.wire.write(text.as_bytes(), SEND).await;
        sent.map_err(|error| self.failed(error))
    }

    pub(super) async fn close(&mut self) {
        // The connection ends anyway.
        let _ = self.write_text("</stream:stream>").await;
    }

    pub(super) fn failed(&self, error: WireError) -> XmppError {
        XmppError::Wire { server: self.server.clone(), error }
    }
}

/// The number of handled stanzas that an element names.
pub(super) fn count_of(element: &Element) -> Option<u32> {
    element.attribute("h")?.parse().ok()
}

fn ended(error: &Element) -> XmppError {
    let condition = error.children.iter().find(|child| child.namespace == ns::STREAM_ERROR);
    XmppError::Ended {
        reason: error.reason(ns::STREAM_ERROR),
        condition: condition.map(|child| child.name.clone()).unwrap_or_default(),
    }
}
