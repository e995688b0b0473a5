//! What kind of address an IP address is, by the special-purpose registries of IANA (RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The services of clouds for their machines, which hand out credentials and configuration to every caller: metadata of
/// AWS, Google, Azure and others, with those for containers of AWS; Azure's WireServer; Alibaba; Oracle's older one;
/// Tencent; Scaleway.
const METADATA_V4: [Ipv4Addr; 8] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(169, 254, 42, 42),
];
/// The same on IPv6: AWS, and its containers; Google; Oracle; Akamai.
const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1),
];

/// What kind of address an IP address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// On the public internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The shared network of a carrier (RFC 6598), which some VPNs use as well.
    Shared,
    /// The local link.
    LinkLocal,
    /// The metadata service of a cloud.
    Metadata,
    /// Multicast or broadcast.
    Multicast,
    /// The unspecified address; a connection to it reaches this machine.
    Unspecified,
    /// Set aside, for documentation, tests, tunnels or the future.
    Reserved,
}

impl fmt::Display for AddressKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "an address of this machine",
            Self::Private => "an address of a private network",
            Self::Shared => "an address of a carrier's or VPN's network",
            Self::LinkLocal => "an address of the local link",
            Self::Metadata => "the metadata service of a cloud",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "the unspecified address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// What kind of address `address` is. An IPv6 address that carries an IPv4 address is of that address's kind.
pub fn address_kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Metadata;
    }
    match address.octets() {
        [0, 0, 0, 0] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::Shared,
        [169, 254, ..] => AddressKind::LinkLocal,
        [224..=239, ..] => AddressKind::Multicast,
        // "This network", which Linux treats as this machine.
        [0, ..] => AddressKind::Unspecified,
        // Protocol assignments, documentation, 6to4 relays, benchmarks, and what is reserved, with the broadcast
        // address.
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&address) {
        return AddressKind::Metadata;
    }
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // IPv4-mapped, IPv4-compatible, translated (RFC 2765) and NAT64 addresses end with an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => kind_v4(embedded(high, low)),
        // The network decides where NAT64 of a local network has the IPv4 address (RFC 6052), so each place counts.
        [0x64, 0xff9b, 1, a, b, c, d, e] => strictest(&[
            [a.to_be_bytes(), [low_byte(b), high_byte(c)]].concat(),
            [[low_byte(a), low_byte(b)], c.to_be_bytes()].concat(),
            [[low_byte(b), high_byte(c)], [low_byte(c), high_byte(d)]].concat(),
            [d.to_be_bytes(), e.to_be_bytes()].concat(),
        ]),
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        // 6to4 addresses have the IPv4 address after the prefix.
        [0x2002, high, low, ..] => kind_v4(embedded(high, low)),
        // ISATAP addresses (RFC 5214) have it at the end, after a prefix that may be public.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low]
            if kind_v4(embedded(high, low)) != AddressKind::Public =>
        {
            kind_v4(embedded(high, low))
        }
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Teredo and other protocol assignments, and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressKind::Reserved
        }
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// The kind that matters most among those of IPv4 addresses that a local network may carry; its public ones count as its
/// own.
fn strictest(addresses: &[Vec<u8>]) -> AddressKind {
    let kinds = addresses.iter().filter_map(|bytes| {
        let octets: [u8; 4] = bytes.as_slice().try_into().ok()?;
        Some(kind_v4(Ipv4Addr::from(octets)))
    });
    let never = [AddressKind::Metadata, AddressKind::LinkLocal, AddressKind::Loopback];
    let found: Vec<AddressKind> = kinds.collect();
    let strict = never.into_iter().find(|kind| found.contains(kind));
    strict.unwrap_or(AddressKind::Private)
}

fn low_byte(segment: u16) -> u8 {
    let [_, low] = segment.to_be_bytes();
    low
}

fn high_byte(segment: u16) -> u8 {
    let [high, _] = segment.to_be_bytes();
    high
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}
