//! Invitations to meetings (RFC 5545), in words.

use mail_parser::{Message, MimeHeaders as _};

use super::flat;
use crate::{Passage, PassageKind};

/// Most events that are shown of a mail.
const MOST_EVENTS: usize = 5;
/// What is shown of one, with words for it.
const SHOWN: [(&str, &str); 7] = [
    ("SUMMARY", "what"),
    ("DTSTART", "from"),
    ("DTEND", "to"),
    ("LOCATION", "where"),
    ("ORGANIZER", "organiser"),
    ("STATUS", "status"),
    ("DESCRIPTION", "description"),
];

/// The events in the calendar parts of a mail.
pub(super) fn events(mail: &Message<'_>) -> Vec<Passage> {
    let is_calendar = |part: &&mail_parser::MessagePart<'_>| {
        let kind = part.content_type();
        kind.is_some_and(|kind| {
            flat::original_type(kind.ctype()).eq_ignore_ascii_case("text")
                && kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case("calendar"))
        })
    };
    let parts = mail.parts.iter().filter(is_calendar);
    let mut texts: Vec<String> = Vec::new();
    for part in parts {
        for text in read(&String::from_utf8_lossy(part.contents())) {
            // The same invitation is often there twice, as a part and as a file.
            if !texts.contains(&text) && texts.len() < MOST_EVENTS {
                texts.push(text);
            }
        }
    }
    texts.into_iter().map(|text| Passage::new(PassageKind::CalendarEvent, None, text)).collect()
}

/// The events of a calendar, each in lines.
fn read(calendar: &str) -> Vec<String> {
    // A line that begins with a space continues the one before.
    let unfolded = calendar.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    let mut method = None;
    let mut events: Vec<Vec<String>> = Vec::new();
    let mut is_within = false;
    for line in unfolded.lines() {
        let Some((head, value)) = line.split_once(':') else { continue };
        let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
        let name = name.to_ascii_uppercase();
        match (name.as_str(), value.trim()) {
            ("METHOD", value) => method = Some(format!("method: {value}")),
            ("BEGIN", "VEVENT" | "VTODO") => {
                is_within = true;
                events.push(method.clone().into_iter().collect());
            }
            ("END", "VEVENT" | "VTODO") => is_within = false,
            (name, value) if is_within && !value.is_empty() => {
                let Some((_, word)) = SHOWN.iter().find(|(known, _)| *known == name) else {
                    continue;
                };
                let zone = parameters.split(';').find_map(|one| one.strip_prefix("TZID="));
                let zone = zone.map(|zone| format!(" ({zone})")).unwrap_or_default();
                let value = value.replace("\\n", "\n").replace("\\,", ",").replace("\\;", ";");
                if let Some(event) = events.last_mut() {
                    event.push(format!("{word}: {value}{zone}"));
                }
            }
            _ => {}
        }
    }
    events.into_iter().map(|lines| lines.join("\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn an_invitation_is_told_in_lines() {
        let calendar = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Lunch\\, with\r\n  Ann\r\n\
                        DTSTART;TZID=Europe/Berlin:20260501T120000\r\nUID:1\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        assert_eq!(
            read(calendar),
            ["method: REQUEST\nwhat: Lunch, with Ann\nfrom: 20260501T120000 (Europe/Berlin)"]
        );
        assert!(read("no calendar").is_empty());
    }
}
