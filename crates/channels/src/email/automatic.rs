//! Mails that programs wrote. They are never answered: two programs that answer each other do not end.

use mail_parser::Message;

/// Names before the `@` that belong to programs.
const PROGRAMS: [&str; 6] =
    ["mailer-daemon", "postmaster", "noreply", "no-reply", "donotreply", "do-not-reply"];

/// Why a mail is not answered, if a program wrote it (RFC 3834, section 2).
pub(super) fn reason(mail: &Message<'_>, sender: &str, own: &str) -> Option<&'static str> {
    let value = |name: &str| {
        let mut raw = mail.headers_raw();
        raw.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let lower = |name: &str| value(name).map(str::to_ascii_lowercase);
    let local = sender.split('@').next().unwrap_or_default();
    if sender.eq_ignore_ascii_case(own) {
        return Some("it is of this account itself");
    }
    if PROGRAMS.contains(&local.to_ascii_lowercase().as_str()) {
        return Some("its address belongs to a program");
    }
    if value("Return-Path") == Some("<>") || starts(lower("Content-Type"), "multipart/report") {
        return Some("it is a report about another mail");
    }
    if lower("Auto-Submitted")
        .is_some_and(|said| said.split(';').next().map(str::trim) != Some("no"))
    {
        return Some("a program wrote it (Auto-Submitted)");
    }
    let is_bulk = |said: String| matches!(said.as_str(), "bulk" | "list" | "junk" | "auto_reply");
    if lower("Precedence").is_some_and(is_bulk) {
        return Some("it went to many people (Precedence)");
    }
    if value("List-Id").is_some() || value("List-Unsubscribe").is_some() {
        return Some("it came through a mailing list");
    }
    if value("X-Autoreply").is_some() || value("X-Autorespond").is_some() {
        return Some("it is an automatic answer");
    }
    None
}

fn starts(value: Option<String>, start: &str) -> bool {
    value.is_some_and(|value| value.starts_with(start))
}
