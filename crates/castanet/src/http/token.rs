//! Bearer tokens: a secret that clients have to name.

use crate::load::io_error_text;
use hyper::header::{AUTHORIZATION, HeaderMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use subtle::ConstantTimeEq;

/// Bytes that a token has at least: shorter ones can be guessed.
const SHORTEST: usize = 16;
/// Bytes of a random token, before they are written as digits.
const RANDOM_BYTES: usize = 24;
/// Bytes that a token's file may have.
const LONGEST: u64 = 4096;

/// A secret that clients have to name in the header `Authorization`.
pub(crate) struct BearerToken(String);

impl BearerToken {
    /// Reads a token from a file, without the blanks around it.
    ///
    /// # Errors
    /// The file cannot be read, or contains no token.
    pub(crate) fn read(path: &Path) -> Result<BearerToken, String> {
        let mut text = String::new();
        let read =
            File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        let place = path.display();
        read.map_err(|error| format!("{place}: {}", io_error_text(&error)))?;
        let token = text.trim();
        let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
        match is_token && token.len() >= SHORTEST && text.len() as u64 <= LONGEST {
            true => Ok(BearerToken(token.to_owned())),
            false => Err(format!(
                "{place}: a token is one word of at least {SHORTEST} letters, digits and marks; \
                 `openssl rand -hex 32` makes one"
            )),
        }
    }

    /// Chooses a token; returns also its text, for the user.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn random() -> Result<(BearerToken, String), String> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((BearerToken(text.clone()), text))
    }

    /// Whether a request names the token. The time that this takes tells nothing but the length.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let named =
            headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(7));
        named.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && token.ct_eq(self.0.as_bytes()).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn only_the_token_opens() {
        let token = BearerToken("0123456789abcdef".into());
        let opens = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            token.is_in(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
        };
        assert!(opens("Bearer 0123456789abcdef") && opens("bearer 0123456789abcdef"));
        for wrong in
            ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Bearer 0123456789abcdef0"]
        {
            assert!(!opens(wrong), "{wrong}");
        }
        assert!(!opens("Basic 0123456789abcdef") && !token.is_in(&HeaderMap::new()));
    }
}
