//! Addresses of XMPP: `local@domain/resource`.

/// Longest address, in bytes: each of its three parts has at most 1,023 (RFC 7622).
const MOST_ADDRESS: usize = 3 * 1_023 + 2;

/// An address without its resource, as it is compared.
pub(super) fn bare(address: &str) -> String {
    address.split('/').next().unwrap_or_default().to_lowercase()
}

/// What follows the bare address.
pub(super) fn resource(address: &str) -> Option<&str> {
    address.split_once('/').map(|(_, resource)| resource).filter(|resource| !resource.is_empty())
}

pub(super) fn local(address: &str) -> &str {
    let bare = address.split('/').next().unwrap_or_default();
    bare.split_once('@').map_or("", |(local, _)| local)
}

pub(super) fn domain(address: &str) -> &str {
    let bare = address.split('/').next().unwrap_or_default();
    bare.split_once('@').map_or(bare, |(_, domain)| domain)
}

/// Whether a text can be the address of a person or room.
pub(super) fn is_address(address: &str) -> bool {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "\"&'<>".contains(c);
    let bare = address.split('/').next().unwrap_or_default();
    address.len() <= MOST_ADDRESS
        && !bare.contains(is_odd)
        && matches!(bare.split('@').collect::<Vec<_>>()[..], [local, domain] if !local.is_empty() && !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_three_parts() {
        let address = "Ann@Example.org/a/b";
        assert_eq!(
            (bare(address).as_str(), resource(address), local(address), domain(address)),
            ("ann@example.org", Some("a/b"), "Ann", "Example.org")
        );
        assert_eq!((local("example.org"), domain("example.org")), ("", "example.org"));
        for (text, is_it) in [
            ("a@b", true),
            ("a@b/c d", true),
            ("b", false),
            ("@b", false),
            ("a@", false),
            ("a@b@c", false),
            ("a b@c", false),
            ("", false),
        ] {
            assert_eq!(is_address(text), is_it, "{text}");
        }
    }
}
