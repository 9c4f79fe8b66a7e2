//! Who may see pages: those who know a token.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::http::Request;

/// The name of the cookie.
pub const COOKIE: &str = "biplane-token";

/// A token that readers must know. The cookie of a browser has a hash of it, which every server
/// with the same token understands.
#[derive(Clone)]
pub struct Token {
    token: String,
    cookie: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Comparing takes the same time wherever texts differ.
fn is_same(a: &str, b: &str) -> bool {
    bool::from(
        Sha256::digest(a.as_bytes()).as_slice().ct_eq(Sha256::digest(b.as_bytes()).as_slice()),
    )
}

impl Token {
    /// A token, as a file has it. `None` if it is empty.
    pub fn new(text: &str) -> Option<Self> {
        let token = text.trim().to_owned();
        let hash = Sha256::digest(format!("biplane pages\0{token}").as_bytes());
        let mut cookie = String::new();
        for byte in &hash {
            let _ = write!(cookie, "{byte:02x}");
        }
        (!token.is_empty()).then_some(Self { token, cookie })
    }

    /// Whether a text is the token.
    pub fn is(&self, text: &str) -> bool {
        is_same(&self.token, text)
    }

    /// What the cookie has.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Whether a request has the token or its cookie.
    pub fn allows(&self, request: &Request) -> bool {
        let header = request.header("authorization");
        let bearer = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map_or("", |(_, token)| token.trim());
        self.is(bearer) || is_same(&self.cookie, request.cookie(COOKIE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_or_its_cookie_is_needed() {
        let token = Token::new("secret-token\n").unwrap();
        let get = || Request::get("/");
        assert!(token.allows(&get().with("authorization", "Bearer secret-token")));
        assert!(token.allows(&get().with("cookie", &format!("a=b; {COOKIE}={}", token.cookie()))));
        for (name, value) in [
            ("authorization", "Bearer other"),
            ("authorization", "Basic secret-token"),
            ("authorization", "Bearer"),
            ("cookie", "biplane-token=secret-token"),
            ("cookie", "biplane-token="),
        ] {
            assert!(!token.allows(&get().with(name, value)), "{name}: {value}");
        }
        assert!(Token::new(" \n").is_none());
        assert!(!token.cookie().contains("secret"));
        assert_eq!(format!("{token:?}"), "Token");
    }
}
