//! The push services of browsers. A notification goes to one of these and nowhere else: what a client names must not make
//! the gateway write to another server.

use axum::http::Uri;

/// The hosts of the services of Chromium, Firefox, Safari and Edge; those that begin with a dot stand for what is below
/// them. From the subscriptions of these browsers; <https://developer.apple.com/documentation/usernotifications/sending-web-push-notifications-in-web-apps-and-browsers>
/// names that of Safari.
const HOSTS: [&str; 4] =
    ["fcm.googleapis.com", ".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"];
/// Longest address, in bytes.
const MOST_BYTES: usize = 2_048;

/// An address at a push service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The scheme, the host and the port.
    pub(super) origin: String,
}

impl Endpoint {
    /// Checks an address. `further` is a service that the owner names, such as `https://push.example.org`; without a port
    /// it stands for all ports.
    pub(super) fn parse(address: &str, further: Option<&str>) -> Result<Self, String> {
        let unusable = || "this is not the address of a push service".to_owned();
        if address.len() > MOST_BYTES {
            return Err(unusable());
        }
        let uri: Uri = address.parse().map_err(|_| unusable())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(unusable)?;
        if authority.as_str().contains('@') {
            return Err(unusable());
        }
        let host = authority.host().to_ascii_lowercase();
        let origin = format!("{scheme}://{}", authority.as_str().to_ascii_lowercase());
        let is_further = further
            .map(|further| further.trim().trim_end_matches('/'))
            .is_some_and(|further| further == origin || further == format!("{scheme}://{host}"));
        let is_known = scheme == "https"
            && authority.port_u16().is_none_or(|port| port == 443)
            && HOSTS.iter().any(|known| match known.strip_prefix('.') {
                Some(_) => host.ends_with(known),
                None => host == *known,
            });
        match is_known || is_further {
            true => Ok(Self { origin }),
            false => Err(format!(
                "{host} is no push service that is known here; MYCLAW_PUSH_SERVICE names a further one"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
