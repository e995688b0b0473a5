//! Whether the sender of a mail is genuine, as the receiving server says (RFC 8601, `Authentication-Results`).
//!
//! Anybody can write any name into `From`, and any result into such a field as well. Servers put their own above what
//! came, so only the topmost fields of the server that the config names count, up to the next `Received`.

use mail_parser::Message;

const RESULTS: &str = "Authentication-Results";

/// A result in such a field. All texts are in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
struct Finding {
    method: String,
    result: String,
    /// What was compared, such as `header.from` and a domain.
    properties: Vec<(String, String)>,
}

impl Finding {
    fn is(&self, method: &str, result: &str) -> bool {
        self.method == method && self.result == result
    }

    /// The domain of a property: all of it, or what is behind its `@`.
    fn domain(&self, property: &str) -> Option<&str> {
        let (_, value) = self.properties.iter().find(|(name, _)| name == property)?;
        Some(value.rsplit('@').next().unwrap_or(value))
    }
}

/// Checks that the server `server` found the domain `domain` of the sender to be true.
///
/// # Errors
/// It did not; the text says why.
pub(super) fn check(mail: &Message<'_>, server: &str, domain: &str) -> Result<(), String> {
    let findings = findings_of(mail, server);
    let domain = domain.to_ascii_lowercase();
    if findings.is_empty() {
        return Err(format!(
            "nobody has checked its sender: it has no {RESULTS} of {server} (channels.email.authservId)"
        ));
    }
    let is_of = |finding: &Finding, property: &str| finding.domain(property) == Some(&domain);
    if let Some(dmarc) = findings.iter().find(|finding| finding.method == "dmarc") {
        let is_other = dmarc.domain("header.from").is_some_and(|from| from != domain);
        if dmarc.result == "fail" || is_other {
            return Err(format!("its sender is forged: {server} says dmarc={}", dmarc.result));
        }
        if dmarc.result == "pass" {
            return Ok(());
        }
    }
    let is_signed = |finding: &Finding| {
        finding.is("dkim", "pass") && (is_of(finding, "header.d") || is_of(finding, "header.i"))
    };
    let is_sent = |finding: &Finding| finding.is("spf", "pass") && is_of(finding, "smtp.mailfrom");
    match findings.iter().any(|finding| is_signed(finding) || is_sent(finding)) {
        true => Ok(()),
        false => {
            Err(format!("its sender may be forged: {server} did not find that it is of {domain}"))
        }
    }
}

fn findings_of(mail: &Message<'_>, server: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_begun = false;
    for (name, value) in mail.headers_raw() {
        if name.eq_ignore_ascii_case("Received") && is_begun {
            break;
        }
        if name.eq_ignore_ascii_case(RESULTS)
            && let Some(found) = read(value, server)
        {
            is_begun = true;
            findings.extend(found);
        }
    }
    findings
}

/// The results of a field; `None` if it is of another server.
fn read(value: &str, server: &str) -> Option<Vec<Finding>> {
    let plain = without_comments(value).to_lowercase();
    let mut parts = plain.split(';');
    let id = parts.next()?.split_ascii_whitespace().next()?;
    if !id.eq_ignore_ascii_case(server) {
        return None;
    }
    let finding = |part: &str| {
        let joined = part.replace(" =", "=").replace("= ", "=");
        let mut words = joined.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let (method, result) = words.next()?;
        let method = method.split('/').next().unwrap_or(method).to_owned();
        let properties = words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Finding { method, result: result.to_owned(), properties })
    };
    Some(parts.filter_map(finding).collect())
}

/// A field without its comments. What is quoted, which a sender may have chosen, can be neither a result nor the end of
/// one afterwards.
fn without_comments(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for character in value.chars() {
        if std::mem::take(&mut is_escaped) {
            if depth == 0 {
                out.push('?');
            }
            continue;
        }
        match character {
            '\\' if is_quoted || depth > 0 => is_escaped = true,
            '"' if depth == 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ';' | '=' if is_quoted => out.push('?'),
            other if is_quoted && other.is_whitespace() => out.push('?'),
            other if other.is_whitespace() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
