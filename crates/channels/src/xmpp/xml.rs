//! XML, as far as XMPP uses it (RFC 6120, section 11): elements, texts and attributes, nothing else.

use std::fmt::Write as _;

use rxml::error::EndOrError;
use rxml::{Event as XmlEvent, Parse as _, Parser};

/// Longest stanza, in bytes. Servers take a quarter of this from their clients.
const MOST_STANZA: usize = 2 * 1024 * 1024;
/// Deepest nesting within a stanza.
const MOST_DEPTH: usize = 64;

/// Names of namespaces.
pub(super) mod ns {
    pub(in crate::xmpp) const CLIENT: &str = "jabber:client";
    pub(in crate::xmpp) const STREAM: &str = "http://etherx.jabber.org/streams";
    pub(in crate::xmpp) const STREAM_ERROR: &str = "urn:ietf:params:xml:ns:xmpp-streams";
    pub(in crate::xmpp) const STANZA_ERROR: &str = "urn:ietf:params:xml:ns:xmpp-stanzas";
    pub(in crate::xmpp) const TLS: &str = "urn:ietf:params:xml:ns:xmpp-tls";
    pub(in crate::xmpp) const SASL: &str = "urn:ietf:params:xml:ns:xmpp-sasl";
    pub(in crate::xmpp) const BIND: &str = "urn:ietf:params:xml:ns:xmpp-bind";
    pub(in crate::xmpp) const SM: &str = "urn:xmpp:sm:3";
    pub(in crate::xmpp) const DELAY: &str = "urn:xmpp:delay";
    pub(in crate::xmpp) const PING: &str = "urn:xmpp:ping";
    pub(in crate::xmpp) const INFO: &str = "http://jabber.org/protocol/disco#info";
    pub(in crate::xmpp) const ITEMS: &str = "http://jabber.org/protocol/disco#items";
    pub(in crate::xmpp) const DATA: &str = "jabber:x:data";
    pub(in crate::xmpp) const RSM: &str = "http://jabber.org/protocol/rsm";
    pub(in crate::xmpp) const MAM: &str = "urn:xmpp:mam:2";
    pub(in crate::xmpp) const FORWARD: &str = "urn:xmpp:forward:0";
    pub(in crate::xmpp) const IDS: &str = "urn:xmpp:sid:0";
    pub(in crate::xmpp) const CARBONS: &str = "urn:xmpp:carbons:2";
    pub(in crate::xmpp) const MUC: &str = "http://jabber.org/protocol/muc";
    pub(in crate::xmpp) const MUC_USER: &str = "http://jabber.org/protocol/muc#user";
    pub(in crate::xmpp) const MUC_OWNER: &str = "http://jabber.org/protocol/muc#owner";
    pub(in crate::xmpp) const CHAT_STATES: &str = "http://jabber.org/protocol/chatstates";
    pub(in crate::xmpp) const CORRECT: &str = "urn:xmpp:message-correct:0";
    pub(in crate::xmpp) const RETRACT: &str = "urn:xmpp:message-retract:1";
    pub(in crate::xmpp) const REACTIONS: &str = "urn:xmpp:reactions:0";
    pub(in crate::xmpp) const REPLY: &str = "urn:xmpp:reply:0";
    pub(in crate::xmpp) const FALLBACK: &str = "urn:xmpp:fallback:0";
    pub(in crate::xmpp) const HINTS: &str = "urn:xmpp:hints";
    pub(in crate::xmpp) const OOB: &str = "jabber:x:oob";
    pub(in crate::xmpp) const OMEMO: &str = "eu.siacs.conversations.axolotl";
    pub(in crate::xmpp) const OMEMO_2: &str = "urn:xmpp:omemo:2";
    pub(in crate::xmpp) const OPENPGP: &str = "urn:xmpp:openpgp:0";
    pub(in crate::xmpp) const UPLOAD: &str = "urn:xmpp:http:upload:0";
}

/// An element. Its own texts are joined; where they stood between the children does not matter in XMPP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) namespace: String,
    attributes: Vec<(String, String)>,
    pub(super) text: String,
    pub(super) children: Vec<Self>,
}

impl Element {
    pub(super) fn new(name: &str, namespace: &str) -> Self {
        Self { name: name.to_owned(), namespace: namespace.to_owned(), ..Self::default() }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn say(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    pub(super) fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    pub(super) fn is(&self, name: &str, namespace: &str) -> bool {
        self.name == name && self.namespace == namespace
    }

    /// The first child of this name.
    pub(super) fn get(&self, name: &str, namespace: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.is(name, namespace))
    }

    /// An attribute without a namespace.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What an error says: its text, else its condition, which is the first child of `namespace`.
    pub(super) fn reason(&self, namespace: &str) -> String {
        let text = self.get("text", namespace).map(|text| text.text.trim().to_owned());
        let condition = self.children.iter().find(|child| child.namespace == namespace);
        text.filter(|text| !text.is_empty())
            .or_else(|| condition.map(|child| child.name.replace('-', " ")))
            .unwrap_or_else(|| "it gives no reason".to_owned())
    }

    /// The element as XML, where `outer` is the namespace around it.
    pub(super) fn to_xml(&self, outer: &str) -> String {
        let mut out = String::new();
        self.write(&mut out, outer);
        out
    }

    fn write(&self, out: &mut String, outer: &str) {
        // Writing to a text does not fail.
        let _ = write!(out, "<{}", self.name);
        if self.namespace != outer {
            let _ = write!(out, " xmlns='{}'", escaped(&self.namespace));
        }
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}='{}'", escaped(value));
        }
        if self.text.is_empty() && self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        let _ = write!(out, ">{}", escaped(&self.text));
        for child in &self.children {
            child.write(out, &self.namespace);
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

/// A text as XML allows it: other characters are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            other if u32::from(other) < 0x20 => {}
            other => out.push(other),
        }
    }
    out
}

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The stream begins.
    Stream,
    /// An element directly within the stream.
    Stanza(Element),
    /// The stream ends.
    End,
}

/// Reads a stream.
pub(super) struct Reader {
    parser: Parser,
    is_open: bool,
    /// Elements that have begun, the outermost first.
    open: Vec<Element>,
    /// Bytes since the last stanza.
    bytes: usize,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { parser: Parser::default(), is_open: false, open: Vec::new(), bytes: 0 }
    }

    /// The next event of `bytes`, which are cut off as far as they are read; `None` if more are needed.
    ///
    /// # Errors
    /// It is no XML, or more than a stanza may have.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, String> {
        loop {
            let before = bytes.len();
            let parsed = self.parser.parse(bytes, false);
            self.bytes += before - bytes.len();
            if self.bytes > MOST_STANZA || self.open.len() > MOST_DEPTH {
                return Err("a stanza is too large".to_owned());
            }
            match parsed {
                Err(EndOrError::NeedMoreData) => return Ok(None),
                Err(EndOrError::Error(error)) => return Err(error.to_string()),
                Ok(None) => return Ok(Some(Event::End)),
                Ok(Some(XmlEvent::XmlDeclaration(..))) => {}
                Ok(Some(XmlEvent::Text(_, text))) => {
                    if let Some(element) = self.open.last_mut() {
                        element.text.push_str(&text);
                    } else {
                        // White space that keeps the connection open.
                        self.bytes = 0;
                    }
                }
                Ok(Some(XmlEvent::StartElement(_, (namespace, name), attributes))) => {
                    let mut element = Element::new(name.as_str(), namespace.as_str());
                    for ((namespace, name), value) in attributes.iter() {
                        if namespace.as_str().is_empty() {
                            element = element.with(name.as_str(), value);
                        }
                    }
                    if !self.is_open {
                        self.is_open = true;
                        self.bytes = 0;
                        return match element.is("stream", ns::STREAM) {
                            true => Ok(Some(Event::Stream)),
                            false => Err("this is no XMPP".to_owned()),
                        };
                    }
                    self.open.push(element);
                }
                Ok(Some(XmlEvent::EndElement(_))) => {
                    let Some(element) = self.open.pop() else { return Ok(Some(Event::End)) };
                    match self.open.last_mut() {
                        Some(parent) => parent.children.push(element),
                        None => {
                            self.bytes = 0;
                            return Ok(Some(Event::Stanza(element)));
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "<?xml version='1.0'?><s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='jabber:client'>";

    fn read(text: &str) -> Result<Vec<Event>, String> {
        let mut reader = Reader::new();
        let mut events = Vec::new();
        // In pieces of one byte, as a network may deliver them.
        for byte in text.as_bytes().chunks(1) {
            let mut rest = byte;
            while let Some(event) = reader.read(&mut rest)? {
                events.push(event);
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(events)
    }

    #[test]
    fn a_stanza_is_what_was_written() {
        let message = Element::new("message", ns::CLIENT)
            .with("to", "a'b@c")
            .child(Element::new("body", ns::CLIENT).say("x < \"y\" & 'z'\n\u{1}ü"))
            .child(Element::new("store", ns::HINTS));
        let xml = message.to_xml(ns::CLIENT);
        assert!(!xml.contains("jabber:client"), "{xml}");
        let events = read(&format!("{OPEN} \n{xml}</s:stream>")).unwrap();
        let mut expected = message;
        expected.children[0].text = "x < \"y\" & 'z'\nü".to_owned();
        assert_eq!(events, [Event::Stream, Event::Stanza(expected), Event::End]);
    }

    #[test]
    fn what_is_no_xmpp_is_refused() {
        let deep = "<a>".repeat(MOST_DEPTH + 2);
        for (text, words) in [
            ("<html>".to_owned(), "this is no XMPP"),
            (format!("<!DOCTYPE x [<!ENTITY a 'b'>]>{OPEN}"), ""),
            (format!("{OPEN}<a>&b;</a>"), ""),
            (format!("{OPEN}<a></b>"), ""),
            (format!("{OPEN}<?x y?>"), ""),
            (format!("{OPEN}<!-- x -->"), ""),
            (format!("{OPEN}{deep}"), "too large"),
            (format!("{OPEN}<a>{}</a>", "x".repeat(MOST_STANZA)), "too large"),
        ] {
            let found = read(&text).unwrap_err();
            assert!(found.contains(words), "{found}");
        }
    }
}
