//! Takes URLs apart and puts them together, like Go's `net/url`.

use biplane_go::fmt::quote_bytes;
use memchr::{memchr, memrchr};

use super::args::{made, map, text};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{Map, Text, Value};

pub(super) fn functions() -> Vec<Func> {
    vec![
        Func::new("urlParse", &[Type::String], Type::DICT, |call, args| {
            call.reserve(text(args, 0).len() as u64 * 2)?;
            let parsed = parse(text(args, 0));
            let url = parsed.map_err(|why| Failure::new(format!("unable to parse url: {why}")))?;
            Ok(Value::dict(url.members().map(|(key, part)| (Text::from(key), Value::text(part)))))
        }),
        Func::new("urlJoin", &[Type::DICT], Type::String, url_join),
    ]
}

/// The parts of a URL, percent-decoded except for query and opaque part.
#[derive(Debug, Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    /// Encoded again.
    user: Option<Vec<u8>>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

impl Url {
    fn members(self) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        let hostname = hostname(&self.host).to_vec();
        [
            ("scheme", self.scheme),
            ("host", self.host),
            ("hostname", hostname),
            ("path", self.path),
            ("query", self.query),
            ("opaque", self.opaque),
            ("fragment", self.fragment),
            ("userinfo", self.user.unwrap_or_default()),
        ]
        .into_iter()
    }
}

/// The part of a URL, which decides what is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

impl Part {
    /// Whether a byte stands for itself.
    fn allows(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            return true;
        }
        match self {
            Self::Path => b"$&+,/:;=@".contains(&byte),
            Self::User => b"$&+,;=".contains(&byte),
            Self::Host | Self::Zone => b"!$&'()*+,;=:[]<>\"".contains(&byte),
            Self::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
        }
    }
}

fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if part.allows(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let bad = |escape: &[u8]| Err(format!("invalid URL escape {}", quote_bytes(escape)));
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            let host = matches!(part, Part::Host | Part::Zone);
            if host && first.is_ascii() && !part.allows(*first) {
                return Err(format!("invalid character {} in host name", quote_bytes(&[*first])));
            }
            out.push(*first);
            rest = tail;
            continue;
        }
        let escape = rest.get(..3).unwrap_or(rest);
        let Some(byte) = decoded(escape) else { return bad(escape) };
        let forbidden = match part {
            Part::Host => byte < 0x80 && escape != b"%25",
            Part::Zone => escape != b"%25" && byte != b' ' && !Part::Host.allows(byte),
            _ => false,
        };
        if forbidden {
            return bad(escape);
        }
        out.push(byte);
        rest = rest.get(3..).unwrap_or_default();
    }
    Ok(out)
}

/// The byte of an escape.
fn decoded(escape: &[u8]) -> Option<u8> {
    let [b'%', high, low] = escape else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// What is before and after the first occurrence of a byte.
fn cut(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match memchr(byte, text).and_then(|at| text.split_at_checked(at)) {
        Some((before, after)) => (before, after.get(1..).unwrap_or_default()),
        None => (text, b""),
    }
}

fn parse(text: &[u8]) -> Result<Url, String> {
    let (body, fragment) = cut(text, b'#');
    let fail = |whole: &[u8], why: String| format!("parse {}: {why}", quote_bytes(whole));
    let mut url = parse_body(body).map_err(|why| fail(body, why))?;
    url.fragment = unescape(fragment, Part::Fragment).map_err(|why| fail(text, why))?;
    Ok(url)
}

fn parse_body(text: &[u8]) -> Result<Url, String> {
    if text.iter().any(u8::is_ascii_control) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = text.to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = cut(rest, b'?');
    url.query = query.to_vec();
    if !rest.starts_with(b"/") {
        if !scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (!scheme.is_empty() || !rest.starts_with(b"///")) && rest.starts_with(b"//") {
        let after = rest.get(2..).unwrap_or_default();
        let end = memchr(b'/', after).unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        rest = path;
        (url.user, url.host) = parse_authority(authority)?;
    }
    url.path = unescape(rest, Part::Path)?;
    Ok(url)
}

/// The scheme, if there is one, and the rest.
fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok(cut(text, b':')),
            _ => break,
        }
    }
    Ok((b"", text))
}

fn parse_authority(authority: &[u8]) -> Result<(Option<Vec<u8>>, Vec<u8>), String> {
    let Some(at) = memrchr(b'@', authority) else { return Ok((None, parse_host(authority)?)) };
    let (user, host) = authority.split_at(at);
    let host = parse_host(host.get(1..).unwrap_or_default())?;
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    if !user.iter().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = cut(user, b':');
    let mut encoded = escape(&unescape(name, Part::User)?, Part::User);
    if user.contains(&b':') {
        encoded.push(b':');
        encoded.extend(escape(&unescape(password, Part::User)?, Part::User));
    }
    Ok((Some(encoded), host))
}

fn valid_port(text: &[u8]) -> bool {
    match text.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    }
}

fn check_port(text: &[u8]) -> Result<(), String> {
    if valid_port(text) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote_bytes(text)))
}

fn parse_host(host: &[u8]) -> Result<Vec<u8>, String> {
    match memrchr(b'[', host) {
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            // Ports follow the last colon: Go's stricter rule is off in the function.
            if let Some(colon) = memrchr(b':', host) {
                check_port(host.get(colon..).unwrap_or_default())?;
            }
            return unescape(host, Part::Host);
        }
    }
    let Some(close) = memrchr(b']', host) else {
        return Err("missing ']' in host".to_owned());
    };
    let port = host.get(close + 1..).unwrap_or_default();
    check_port(port)?;
    let port = unescape(port, Part::Host)?;
    let name = host.get(1..close).unwrap_or_default();
    let zone = memchr::memmem::find(name, b"%25").unwrap_or(name.len());
    let (address, zone) = name.split_at(zone);
    let mut name = unescape(address, Part::Host)?;
    name.extend(unescape(zone, Part::Zone)?);
    super::address::check_ipv6(&name).map_err(|why| match why {
        Some(why) => format!("invalid host: {why}"),
        None => "invalid IP-literal".to_owned(),
    })?;
    Ok([b"[", name.as_slice(), b"]", port.as_slice()].concat())
}

/// The host without its port and without brackets.
fn hostname(host: &[u8]) -> &[u8] {
    let colon = memrchr(b':', host).filter(|at| valid_port(host.get(*at..).unwrap_or_default()));
    let host = colon.and_then(|at| host.get(..at)).unwrap_or(host);
    match host {
        [b'[', name @ .., b']'] => name,
        host => host,
    }
}

/// A member of the map. A missing one is empty.
fn member(map: &Map, key: &str) -> Result<Vec<u8>, Failure> {
    let Some(value) = map.get(key.as_bytes()) else { return Ok(Vec::new()) };
    match value.underlying() {
        Value::Str(text) => Ok(text.to_vec()),
        Value::Nil => Err(Failure::new(super::args::NIL_POINTER)),
        value => Err(Failure::new(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            value.kind().name()
        ))),
    }
}

fn url_join(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let map = map(args, 0);
    let scheme = member(&map, "scheme")?;
    let host = member(&map, "host")?;
    let path = member(&map, "path")?;
    let query = member(&map, "query")?;
    let opaque = member(&map, "opaque")?;
    let fragment = member(&map, "fragment")?;
    let userinfo = member(&map, "userinfo")?;
    let mut user = None;
    if !userinfo.is_empty() {
        let probe = [b"proto://", userinfo.as_slice(), b"@host"].concat();
        let parsed = parse(&probe)
            .map_err(|why| Failure::new(format!("unable to parse userinfo in dict: {why}")))?;
        user = parsed.user;
    }
    let mut out = Vec::new();
    if !scheme.is_empty() {
        out.extend_from_slice(&scheme);
        out.push(b':');
    }
    if opaque.is_empty() {
        write_hierarchy(&mut out, &scheme, &host, &path, user.as_deref());
    } else {
        out.extend_from_slice(&opaque);
    }
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    if !fragment.is_empty() {
        out.push(b'#');
        out.extend(escape(&fragment, Part::Fragment));
    }
    made(call, out)
}

/// Authority and path.
fn write_hierarchy(
    out: &mut Vec<u8>,
    scheme: &[u8],
    host: &[u8],
    path: &[u8],
    user: Option<&[u8]>,
) {
    if !scheme.is_empty() || !host.is_empty() || user.is_some() {
        if !host.is_empty() || !path.is_empty() || user.is_some() {
            out.extend_from_slice(b"//");
        }
        if let Some(user) = user {
            out.extend_from_slice(user);
            out.push(b'@');
        }
        out.extend(escape(host, Part::Host));
    }
    let path = if path == b"*" { path.to_vec() } else { escape(path, Part::Path) };
    if !path.is_empty() && !path.starts_with(b"/") && !host.is_empty() {
        out.push(b'/');
    }
    if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
        out.extend_from_slice(b"./");
    }
    out.extend(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_urls_apart() {
        let url = parse(b"HTTP://u%40:p@h.x:80/a%20b?q=1#f%20g").unwrap();
        let members: Vec<String> =
            url.members().map(|(_, part)| String::from_utf8(part).unwrap()).collect();
        assert_eq!(members, ["http", "h.x:80", "h.x", "/a b", "q=1", "", "f g", "u%40:p"]);
        for (text, why) in [
            (":x", "missing protocol scheme"),
            ("a:b/c:d", ""),
            ("1:b", "first path segment in URL cannot contain colon"),
            ("http://h:x/", r#"invalid port ":x" after host"#),
            ("http://h/%zz", r#"invalid URL escape "%zz""#),
            ("http://[h]/", r#"invalid host: ParseAddr("h"): unable to parse IP"#),
            ("http://[::1", "missing ']' in host"),
            ("http://a b/", r#"invalid character " " in host name"#),
            ("http://a b@h/", "net/url: invalid userinfo"),
            ("a\nb", "net/url: invalid control character in URL"),
        ] {
            match parse(text.as_bytes()) {
                Ok(_) => assert_eq!(why, "", "GT-S9 {text}"),
                Err(error) => assert!(!why.is_empty() && error.ends_with(why), "GT-S9 {error}"),
            }
        }
    }
}
