//! URLs as Go parses them.

use std::collections::BTreeMap;

use biplane_go::fmt::quote;

/// A URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    scheme: String,
    /// Host and port.
    host: String,
    path: String,
    query: String,
}

impl Url {
    /// Parses an absolute URL or an absolute path.
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, String> {
        let failed = |reason: String| format!("parse {}: {reason}", quote(text));
        split(text, true).map_err(failed)?;
        let before_fragment = text.split_once('#').map_or(text, |(before, _)| before);
        let mut url = split(before_fragment, false).map_err(failed)?;
        text.clone_into(&mut url.text);
        Ok(url)
    }

    pub(in crate::cel) fn scheme(&self) -> &str {
        &self.scheme
    }

    pub(in crate::cel) fn host(&self) -> &str {
        &self.host
    }

    pub(in crate::cel) fn hostname(&self) -> &str {
        self.host_and_port().0
    }

    pub(in crate::cel) fn port(&self) -> &str {
        self.host_and_port().1
    }

    fn host_and_port(&self) -> (&str, &str) {
        let (mut host, mut port) = (self.host.as_str(), "");
        if let Some((before, after)) = host.rsplit_once(':')
            && after.bytes().all(|b| b.is_ascii_digit())
        {
            (host, port) = (before, after);
        }
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }

    /// The path with its escapes.
    pub(in crate::cel) fn escaped_path(&self) -> String {
        let valid = |b: u8| b"!$&'()*+,;=:@[]%".contains(&b) || !is_escaped_in_path(b);
        if self.path.bytes().all(valid) {
            return self.path.clone();
        }
        let plain = unescape(&self.path, false).unwrap_or_default();
        let mut escaped = String::new();
        for byte in plain {
            if is_escaped_in_path(byte) {
                escaped.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            } else {
                escaped.push(char::from(byte));
            }
        }
        escaped
    }

    /// The parameters, each with all its values.
    pub(in crate::cel) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for part in self.query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if let (Ok(name), Ok(value)) = (unescape(name, true), unescape(value, true)) {
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                parameters.entry(text(name)).or_default().push(text(value));
            }
        }
        parameters
    }
}

fn is_escaped_in_path(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte))
}

fn split(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        text: String::new(),
        scheme: scheme.to_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
    };
    if text == "*" {
        "*".clone_into(&mut url.path);
        return Ok(url);
    }
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    if (!scheme.is_empty() || (!request && !rest.starts_with("///")))
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, remaining) = after.split_at(end);
        url.host = authority_host(authority)?;
        path = remaining;
    }
    unescape(path, false)?;
    path.clone_into(&mut url.path);
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => {
                let (scheme, rest) = text.split_at(at);
                return Ok((scheme, rest.get(1..).unwrap_or_default()));
            }
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn authority_host(authority: &str) -> Result<String, String> {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.is_some_and(|user| !user.chars().all(allowed)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let port = if let Some(inner) = host.strip_prefix('[') {
        let Some((_, after)) = inner.rsplit_once(']') else {
            return Err("missing ']' in host".to_owned());
        };
        after
    } else {
        host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default()
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':')) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let fits = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    if let Some(wrong) = host.chars().find(|c| !fits(*c)) {
        return Err(format!("invalid character {} in host name", quote(&wrong.to_string())));
    }
    let plain = unescape(host, false)?;
    Ok(String::from_utf8_lossy(&plain).into_owned())
}

fn unescape(text: &str, query: bool) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = text.get(at + 1..at + 3);
                let value = digits
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(value) = value else {
                    let end = (at + 3).min(bytes.len());
                    let shown = String::from_utf8_lossy(bytes.get(at..end).unwrap_or_default());
                    return Err(format!("invalid URL escape {}", quote(&shown)));
                };
                plain.push(value);
                at += 3;
                continue;
            }
            b'+' if query => plain.push(b' '),
            other => plain.push(*other),
        }
        at += 1;
    }
    Ok(plain)
}
fn hex_digit(half: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(half & 15)])
}
