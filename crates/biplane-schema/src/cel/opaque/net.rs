//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use biplane_go::fmt::quote;

/// An IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(IpAddr);

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Ip {
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, String> {
        if let Some((before, zone)) = text.split_once('%')
            && !zone.is_empty()
            && before.parse::<Ipv6Addr>().is_ok()
        {
            return Err(format!("IP address {} with zone value is not allowed", quote(text)));
        }
        let address = address(text).map_err(|reason| {
            format!(
                "IP Address {0} parse error during conversion from string: ParseAddr({0}): {reason}",
                quote(text)
            )
        })?;
        if is_mapped(address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(Self(address))
    }

    pub(in crate::cel) fn size(self) -> usize {
        if self.0.is_ipv4() { 4 } else { 16 }
    }

    pub(in crate::cel) fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    pub(in crate::cel) fn is(self, what: &str) -> bool {
        match (what, self.0) {
            ("isUnspecified", ip) => ip.is_unspecified(),
            ("isLoopback", ip) => ip.is_loopback(),
            ("isLinkLocalMulticast", IpAddr::V4(ip)) => {
                matches!(ip.octets(), [224, 0, 0, _])
            }
            ("isLinkLocalMulticast", IpAddr::V6(ip)) => {
                ip.octets().first() == Some(&0xff)
                    && ip.octets().get(1).is_some_and(|b| b & 0x0f == 0x02)
            }
            ("isLinkLocalUnicast", IpAddr::V4(ip)) => ip.is_link_local(),
            ("isLinkLocalUnicast", IpAddr::V6(ip)) => ip.is_unicast_link_local(),
            ("isGlobalUnicast", ip) => {
                !(ip == IpAddr::V4(Ipv4Addr::BROADCAST)
                    || ip.is_unspecified()
                    || ip.is_loopback()
                    || ip.is_multicast()
                    || self.is("isLinkLocalUnicast"))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Cidr {
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, String> {
        let wrapped = |reason: String| {
            format!("network address parse error during conversion from string: {reason}")
        };
        let failed = |reason: &str| {
            wrapped(wrapped(format!("netip.ParsePrefix({}): {reason}", quote(text))))
        };
        let Some((address, bits)) = text.rsplit_once('/') else { return Err(failed("no '/'")) };
        let address = self::address(address)
            .map_err(|reason| failed(&format!("ParseAddr({}): {reason}", quote(address))))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let plain = bits.bytes().all(|b| b.is_ascii_digit())
            && !bits.is_empty()
            && !(bits.len() > 1 && bits.starts_with('0'));
        let Some(bits) = Some(bits).filter(|_| plain).and_then(|bits| bits.parse::<u32>().ok())
        else {
            return Err(failed(&format!("bad bits after slash: {}", quote(bits))));
        };
        let Some(bits) = u8::try_from(bits).ok().filter(|bits| *bits <= most) else {
            return Err(failed("prefix length out of range"));
        };
        if is_mapped(address) {
            return Err(wrapped(format!(
                "IPv4-mapped IPv6 address {} is not allowed",
                quote(text)
            )));
        }
        Ok(Self { address, bits })
    }

    pub(in crate::cel) fn size(self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    pub(in crate::cel) fn bits(self) -> i64 {
        i64::from(self.bits)
    }

    pub(in crate::cel) fn ip(self) -> Ip {
        Ip(self.address)
    }

    pub(in crate::cel) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        Self { address, bits: self.bits }
    }

    pub(in crate::cel) fn contains(self, ip: Ip) -> bool {
        let other = Self { address: ip.0, bits: self.bits };
        self.address.is_ipv4() == ip.0.is_ipv4() && self.masked() == other.masked()
    }

    pub(in crate::cel) fn contains_network(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.ip())
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// Parses an address. The reasons are Go's for the usual mistakes.
fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    Err(match text.chars().find(|c| matches!(c, '.' | ':' | '%')) {
        Some('.') => v4_reason(text).to_owned(),
        Some(':') if text.matches("::").count() > 1 => {
            let first = text.find("::").unwrap_or_default();
            let second = text.get(first + 2..).and_then(|rest| rest.find("::"));
            let rest = second.and_then(|second| text.get(first + 2 + second + 1..));
            format!("multiple :: in address (at {})", quote(rest.unwrap_or_default()))
        }
        Some(':') => "each group must have 4 or less digits".to_owned(),
        Some('%') => "missing IPv6 address".to_owned(),
        _ => "unable to parse IP".to_owned(),
    })
}

fn v4_reason(text: &str) -> &'static str {
    let fields: Vec<&str> = text.split('.').collect();
    for field in &fields {
        if !field.bytes().all(|b| b.is_ascii_digit()) {
            return "unexpected character";
        }
        if field.len() > 1 && field.starts_with('0') {
            return "IPv4 field has octet with leading zero";
        }
        if field.parse::<u32>().is_ok_and(|value| value > 255) {
            return "IPv4 field has value >255";
        }
        if field.is_empty() {
            return "IPv4 field must have at least one digit";
        }
    }
    if fields.len() > 4 { "IPv4 address too long" } else { "IPv4 address too short" }
}
