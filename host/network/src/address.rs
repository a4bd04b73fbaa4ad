//! Which addresses are public.
//!
//! Survives names that point inwards: at this machine, its network, or the metadata service of its cloud (SPEC NET-2). IPv6
//! is closed except for ranges assigned as public, so an unforeseen range is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not the public internet: first address, bits of the prefix, its name. The first match names it.
/// From the IANA special-purpose address registry.
const IPV4: [([u8; 4], u32, &str); 20] = [
    ([169, 254, 169, 254], 32, "a metadata service"),
    // Answers on every virtual machine of one large cloud, though the range is public.
    ([168, 63, 129, 16], 32, "a metadata service"),
    ([0, 0, 0, 0], 32, "unspecified"),
    ([255, 255, 255, 255], 32, "broadcast"),
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared by a carrier"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "for documentation"),
    ([192, 31, 196, 0], 24, "reserved"),
    ([192, 88, 99, 0], 24, "reserved"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "for benchmarks"),
    ([198, 51, 100, 0], 24, "for documentation"),
    ([203, 0, 113, 0], 24, "for documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

/// The same for IPv6. An address outside of these and of `2000::/3` is refused, too.
const IPV6: [(Ipv6Addr, u32, &str); 17] = [
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, "a metadata service"),
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::UNSPECIFIED, 96, "IPv4 in IPv6"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "IPv4 in IPv6"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "IPv4 in IPv6"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard-only"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "IPv4 in IPv6"),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, "for benchmarks"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "IPv4 in IPv6"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "private"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// The name of an address's range if it is not public.
pub(crate) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let fits = |first: [u8; 4], prefix: u32| (bits ^ u32::from_be_bytes(first)).leading_zeros() >= prefix;
    IPV4.iter().find(|(first, prefix, _)| fits(*first, *prefix)).map(|(.., what)| *what)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let within = |first: Ipv6Addr, prefix: u32| (bits ^ first.to_bits()).leading_zeros() >= prefix;
    // A translator of the machine's own network forwards to the IPv4 address in the last 32 bits (RFC 6052).
    if within(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96) {
        let [.., a, b, c, d] = address.octets();
        return not_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let named = IPV6.iter().find(|(first, prefix, _)| within(*first, *prefix)).map(|(.., what)| *what);
    let is_given_out = within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
    named.or((!is_given_out).then_some("reserved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_has_a_name() {
        for (address, what) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "this network"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "shared by a carrier"),
            ("100.127.255.255", "shared by a carrier"),
            ("100.100.100.200", "shared by a carrier"),
            ("127.0.0.1", "loopback"),
            ("127.255.0.9", "loopback"),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "a metadata service"),
            ("168.63.129.16", "a metadata service"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "reserved"),
            ("192.0.2.1", "for documentation"),
            ("192.88.99.1", "reserved"),
            ("192.168.1.1", "private"),
            ("198.18.0.1", "for benchmarks"),
            ("198.19.255.255", "for benchmarks"),
            ("198.51.100.7", "for documentation"),
            ("203.0.113.7", "for documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::127.0.0.1", "IPv4 in IPv6"),
            ("::8.8.8.8", "IPv4 in IPv6"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "a metadata service"),
            ("::ffff:0:127.0.0.1", "IPv4 in IPv6"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b::10.1.2.3", "private"),
            ("64:ff9b:1::8.8.8.8", "IPv4 in IPv6"),
            ("100::1", "discard-only"),
            ("2001::1", "IPv4 in IPv6"),
            ("2001:2::1", "for benchmarks"),
            ("2001:10::1", "reserved"),
            ("2001:20::1", "reserved"),
            ("2001:db8::1", "for documentation"),
            ("2002:7f00:1::1", "IPv4 in IPv6"),
            ("3fff::1", "for documentation"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private"),
            ("fd12::1", "private"),
            ("fd00:ec2::254", "a metadata service"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            assert_eq!(not_public(address.parse().unwrap()), Some(what), "{address}");
        }
    }

    #[test]
    fn neighbours_of_the_ranges_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "8.8.8.8",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert_eq!(not_public(address.parse().unwrap()), None, "{address}");
        }
    }

    /// First and last address of a range, its name, and the names of the addresses before and after it.
    type Range = (&'static str, &'static str, &'static str, Option<&'static str>, Option<&'static str>);

    const RANGES: [Range; 37] = [
        ("0.0.0.0", "0.0.0.0", "unspecified", None, Some("this network")),
        ("0.0.0.1", "0.255.255.255", "this network", Some("unspecified"), None),
        ("10.0.0.0", "10.255.255.255", "private", None, None),
        ("100.64.0.0", "100.127.255.255", "shared by a carrier", None, None),
        ("127.0.0.0", "127.255.255.255", "loopback", None, None),
        ("168.63.129.16", "168.63.129.16", "a metadata service", None, None),
        ("169.254.0.0", "169.254.169.253", "link-local", None, Some("a metadata service")),
        ("169.254.169.254", "169.254.169.254", "a metadata service", Some("link-local"), Some("link-local")),
        ("169.254.169.255", "169.254.255.255", "link-local", Some("a metadata service"), None),
        ("172.16.0.0", "172.31.255.255", "private", None, None),
        ("192.0.0.0", "192.0.0.255", "reserved", None, None),
        ("192.0.2.0", "192.0.2.255", "for documentation", None, None),
        ("192.31.196.0", "192.31.196.255", "reserved", None, None),
        ("192.88.99.0", "192.88.99.255", "reserved", None, None),
        ("192.168.0.0", "192.168.255.255", "private", None, None),
        ("198.18.0.0", "198.19.255.255", "for benchmarks", None, None),
        ("198.51.100.0", "198.51.100.255", "for documentation", None, None),
        ("203.0.113.0", "203.0.113.255", "for documentation", None, None),
        ("224.0.0.0", "239.255.255.255", "multicast", None, Some("reserved")),
        ("240.0.0.0", "255.255.255.254", "reserved", Some("multicast"), Some("broadcast")),
        ("::2", "::ffff:ffff", "IPv4 in IPv6", Some("loopback"), Some("reserved")),
        ("::ffff:0:0:0", "::ffff:0:ffff:ffff", "IPv4 in IPv6", Some("reserved"), Some("reserved")),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "IPv4 in IPv6", Some("reserved"), Some("reserved")),
        ("100::", "100::ffff:ffff:ffff:ffff", "discard-only", Some("reserved"), Some("reserved")),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "IPv4 in IPv6", None, Some("reserved")),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "for benchmarks", Some("reserved"), Some("reserved")),
        ("2001:2:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", Some("for benchmarks"), None),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "for documentation", None, None),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "IPv4 in IPv6", None, None),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "for documentation", None, None),
        ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", None, Some("private")),
        ("fc00::", "fd00:ec2::253", "private", Some("reserved"), Some("a metadata service")),
        (
            "fd00:ec2::255",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "private",
            Some("a metadata service"),
            Some("reserved"),
        ),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local", Some("reserved"), Some("site-local")),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local", Some("link-local"), Some("multicast")),
        // An IPv4 address in the range of a translator is judged as itself.
        ("64:ff9b::0.0.0.1", "64:ff9b::0.255.255.255", "this network", Some("unspecified"), None),
        ("64:ff9b::240.0.0.0", "64:ff9b::255.255.255.254", "reserved", Some("multicast"), Some("broadcast")),
    ];

    #[test]
    fn each_range_ends_where_it_is_said_to() {
        for (first, last, name, before, after) in RANGES {
            let [first, last]: [IpAddr; 2] = [first, last].map(|address| address.parse().unwrap());
            assert_eq!(not_public(first), Some(name), "{first}");
            assert_eq!(not_public(last), Some(name), "{last}");
            if let Some(neighbour) = moved(first, -1) {
                assert_eq!(not_public(neighbour), before, "{neighbour}, before {first}");
            }
            if let Some(neighbour) = moved(last, 1) {
                assert_eq!(not_public(neighbour), after, "{neighbour}, after {last}");
            }
        }
    }

    #[test]
    fn the_first_and_the_last_addresses_of_all_are_named() {
        for (address, name) in [
            ("255.255.255.255", Some("broadcast")),
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("ff00::", Some("multicast")),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("multicast")),
            ("64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", Some("reserved")),
            ("64:ff9b::255.255.255.255", Some("broadcast")),
            ("64:ff9b::1:0:0", Some("reserved")),
            ("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("reserved")),
            ("2000::", None),
            ("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
        ] {
            assert_eq!(not_public(address.parse().unwrap()), name, "{address}");
        }
    }

    /// The address one before or after this one; `None` beyond the first and the last of its family.
    fn moved(address: IpAddr, by: i8) -> Option<IpAddr> {
        match address {
            IpAddr::V4(address) => {
                address.to_bits().checked_add_signed(by.into()).map(|bits| Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(address) => {
                address.to_bits().checked_add_signed(by.into()).map(|bits| Ipv6Addr::from_bits(bits).into())
            }
        }
    }
}
