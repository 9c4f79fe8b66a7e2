//! Parses gRPC targets, the addresses of functions, in the syntax of gRPC names.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A parsed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target as it was written.
    text: String,
    endpoint: Endpoint,
    /// The `:authority` of requests.
    authority: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    /// A host name or an IP address, and a port.
    Host(String, u16),
    /// Addresses that need no resolution.
    Addresses(Vec<SocketAddr>),
    /// A Unix domain socket in the file system.
    Unix(PathBuf),
    /// A Unix domain socket in Linux's abstract namespace.
    Abstract(String),
}

/// One address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
    Abstract(String),
}

/// Go's format: `tcp 127.0.0.1:9443`, `unix /run/function.sock`.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp {address}"),
            Self::Unix(path) => write!(f, "unix {}", path.display()),
            Self::Abstract(name) => write!(f, "unix @{name}"),
        }
    }
}

/// Why a string is not a valid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The target is not a valid URL.
    #[error("parse {url:?}: {reason}")]
    NotAUrl {
        /// The target as a URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The target has no host, or an invalid address.
    #[error("cannot use gRPC target {target:?}: {reason}")]
    NoAddress {
        /// The target.
        target: String,
        /// The reason.
        reason: String,
    },
}

const DEFAULT_PORT: u16 = 443;
const SCHEMES: [&str; 6] = ["dns", "passthrough", "unix", "unix-abstract", "ipv4", "ipv6"];

impl Target {
    /// Parses a target. A string without a known scheme is a name to resolve.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (scheme, rest, url) = match text.split_once(':') {
            Some((scheme, rest)) if SCHEMES.contains(&scheme) => (scheme, rest, text.to_owned()),
            _ => ("dns", text, format!("dns:///{text}")),
        };
        check_url(&url)?;
        let fail = |reason: &str| TargetError::NoAddress {
            target: text.to_owned(),
            reason: reason.to_owned(),
        };
        let (server, name) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').ok_or_else(|| fail("missing address"))?,
            None => ("", rest),
        };
        if !server.is_empty() {
            return Err(fail("resolving through a server of its own is not supported"));
        }
        let (endpoint, authority) = match scheme {
            "unix" => {
                // The third slash of `unix:///path` belongs to the path.
                let path =
                    if rest.starts_with("//") { format!("/{name}") } else { name.to_owned() };
                if path.trim_matches('/').is_empty() {
                    return Err(fail("missing path"));
                }
                (Endpoint::Unix(path.into()), "localhost".to_owned())
            }
            "unix-abstract" => (Endpoint::Abstract(name.to_owned()), "localhost".to_owned()),
            "ipv4" | "ipv6" => {
                let addresses = name.split(',').map(|address| ip(address, scheme == "ipv6"));
                let addresses: Option<Vec<_>> = addresses.collect();
                let addresses = addresses.ok_or_else(|| fail("not a list of IP addresses"))?;
                let first = addresses.first().ok_or_else(|| fail("missing address"))?;
                let authority = first.to_string();
                (Endpoint::Addresses(addresses), authority)
            }
            _ => {
                let default = (scheme == "dns").then_some(DEFAULT_PORT);
                let (host, port) = host_and_port(name, default).map_err(fail)?;
                let authority = if name.starts_with(':') {
                    format!("localhost{name}")
                } else {
                    name.to_owned()
                };
                (Endpoint::Host(host, port), authority)
            }
        };
        Ok(Self { text: text.to_owned(), endpoint, authority })
    }

    /// Returns the target as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the name that the server's certificate must be valid for.
    pub(crate) fn server_name(&self) -> &str {
        let authority = self.authority.as_str();
        if let Some((host, _)) = authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            return host;
        }
        match authority.rsplit_once(':') {
            Some((host, _)) if !host.contains(':') => host,
            _ => authority,
        }
    }

    /// Resolves all current addresses of the target.
    pub(crate) async fn resolve(&self) -> std::io::Result<Vec<Address>> {
        Ok(match &self.endpoint {
            Endpoint::Unix(path) => vec![Address::Unix(path.clone())],
            Endpoint::Abstract(name) => vec![Address::Abstract(name.clone())],
            Endpoint::Addresses(list) => list.iter().copied().map(Address::Tcp).collect(),
            Endpoint::Host(host, port) => {
                let found = tokio::net::lookup_host((host.as_str(), *port)).await?;
                let mut addresses: Vec<_> = found.map(Address::Tcp).collect();
                let mut seen = std::collections::BTreeSet::new();
                addresses.retain(|address| seen.insert(address.to_string()));
                addresses
            }
        })
    }
}

fn ip(text: &str, v6: bool) -> Option<SocketAddr> {
    let address: SocketAddr = match text.parse() {
        Ok(address) => address,
        Err(_) => {
            (text.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok()?, DEFAULT_PORT).into()
        }
    };
    (address.is_ipv6() == v6).then_some(address)
}

fn host_and_port(name: &str, default: Option<u16>) -> Result<(String, u16), &'static str> {
    if name.is_empty() {
        return Err("missing address");
    }
    let (host, port) = if let Some(rest) = name.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("missing ']' in address")?;
        (host, port.strip_prefix(':'))
    } else {
        match name.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (name, None),
        }
    };
    let port = match (port, default) {
        (Some(""), _) => return Err("missing port after port-separator colon"),
        (Some(port), _) => port.parse().map_err(|_| "invalid port")?,
        (None, Some(port)) => port,
        (None, None) => return Err("missing port in address"),
    };
    Ok((if host.is_empty() { "localhost" } else { host }.to_owned(), port))
}

/// Refuses the URL paths that Go's URL parser refuses.
fn check_url(url: &str) -> Result<(), TargetError> {
    let fail = |reason: String| Err(TargetError::NotAUrl { url: url.to_owned(), reason });
    if url.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return fail("net/url: invalid control character in URL".to_owned());
    }
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        let escape: String = rest.chars().skip(rest[..at].chars().count()).take(3).collect();
        if escape.len() != 3 || !escape.bytes().skip(1).all(|b| b.is_ascii_hexdigit()) {
            return fail(format!("invalid URL escape {escape:?}"));
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, addresses: &str, authority: &str, server_name: &str) {
        let target = Target::parse(text).unwrap();
        let found = match &target.endpoint {
            Endpoint::Host(host, port) => format!("host {host} {port}"),
            Endpoint::Addresses(list) => format!("addresses {list:?}"),
            Endpoint::Unix(path) => format!("unix {}", path.display()),
            Endpoint::Abstract(name) => format!("abstract {name}"),
        };
        assert_eq!(found, addresses, "{text}");
        assert_eq!(target.authority(), authority, "{text}");
        assert_eq!(target.server_name(), server_name, "{text}");
        assert_eq!(target.as_str(), text);
    }

    /// FN-P5, FN-T2
    #[test]
    fn understands_the_names_of_grpc() {
        check("dns:///fn.ns:9443", "host fn.ns 9443", "fn.ns:9443", "fn.ns");
        check("dns:fn.ns:9443", "host fn.ns 9443", "fn.ns:9443", "fn.ns");
        check("localhost:9443", "host localhost 9443", "localhost:9443", "localhost");
        check("fn.ns", "host fn.ns 443", "fn.ns", "fn.ns");
        check(":9443", "host localhost 9443", "localhost:9443", "localhost");
        check("127.0.0.1:1", "host 127.0.0.1 1", "127.0.0.1:1", "127.0.0.1");
        check("[::1]:9443", "host ::1 9443", "[::1]:9443", "::1");
        check("passthrough:///a:1", "host a 1", "a:1", "a");
        check("unix:///run/fn.sock", "unix /run/fn.sock", "localhost", "localhost");
        check("unix:fn.sock", "unix fn.sock", "localhost", "localhost");
        check("unix:/run/fn.sock", "unix /run/fn.sock", "localhost", "localhost");
        check("unix-abstract:fn", "abstract fn", "localhost", "localhost");
        check(
            "ipv4:10.0.0.1:80,10.0.0.2:81",
            "addresses [10.0.0.1:80, 10.0.0.2:81]",
            "10.0.0.1:80",
            "10.0.0.1",
        );
        check("ipv6:[::1]:80", "addresses [[::1]:80]", "[::1]:80", "::1");
    }

    #[test]
    fn says_what_is_wrong_with_a_target() {
        let cases = [
            ("%zz", r#"parse "dns:///%zz": invalid URL escape "%zz""#),
            ("dns:///a%2", r#"parse "dns:///a%2": invalid URL escape "%2""#),
            ("a\nb:1", r#"parse "dns:///a\nb:1": net/url: invalid control character in URL"#),
            ("", r#"cannot use gRPC target "": missing address"#),
            ("a:", r#"cannot use gRPC target "a:": missing port after port-separator colon"#),
            ("a:b", r#"cannot use gRPC target "a:b": invalid port"#),
            (
                "passthrough:///a",
                r#"cannot use gRPC target "passthrough:///a": missing port in address"#,
            ),
            ("ipv4:a:1", r#"cannot use gRPC target "ipv4:a:1": not a list of IP addresses"#),
            ("unix://", r#"cannot use gRPC target "unix://": missing address"#),
            (
                "dns://1.1.1.1/a:1",
                r#"cannot use gRPC target "dns://1.1.1.1/a:1": resolving through a server of its own is not supported"#,
            ),
        ];
        for (text, error) in cases {
            assert_eq!(Target::parse(text).unwrap_err().to_string(), error);
        }
    }
}
