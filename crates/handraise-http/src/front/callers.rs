//! Who calls, by proof: the token of a `[[caller]]`, or that nobody else can reach us (S10).

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{head::Head, reply::Refusal};

/// The principal of everybody on loopback while no caller is configured.
const LOCAL: &str = "local";
/// The longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 4096;

/// One `[[caller]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What it is called: the principal of its requests.
    pub name: String,
    /// The SHA-256 of its token.
    pub token_sha256: [u8; 32],
}

/// Those who may call.
#[derive(Debug)]
pub(crate) struct Callers {
    local: Arc<str>,
    known: Vec<(Arc<str>, [u8; 32])>,
}

impl Callers {
    pub(crate) fn new(callers: &[Caller]) -> Self {
        let known = callers.iter().map(|caller| (caller.name.as_str().into(), caller.token_sha256)).collect();
        Self { local: LOCAL.into(), known }
    }

    /// The principal of a request.
    ///
    /// # Errors
    /// [`Refusal::Unauthorized`]: callers are configured, and this is none of them.
    pub(crate) fn identify(&self, head: &Head<'_>) -> Result<Arc<str>, Refusal> {
        if self.known.is_empty() {
            return Ok(Arc::clone(&self.local));
        }
        let token = bearer(head).ok_or(Refusal::Unauthorized)?;
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        // Every caller is compared, so that the time tells nothing about which it is.
        for (name, known) in &self.known {
            if bool::from(digest.ct_eq(known)) {
                found = Some(name);
            }
        }
        found.cloned().ok_or(Refusal::Unauthorized)
    }
}

/// The token of the one `Authorization: Bearer` header.
fn bearer<'a>(head: &Head<'a>) -> Option<&'a [u8]> {
    let mut values = head.all("authorization");
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    let fits = scheme.eq_ignore_ascii_case(b"Bearer ") && (1..=LONGEST_TOKEN).contains(&token.len());
    fits.then_some(token)
}

#[cfg(test)]
mod tests {
    use super::{super::head::Header, *};

    fn identify(callers: &Callers, values: &[&'static str]) -> Result<Arc<str>, Refusal> {
        let header = |value: &&'static str| Header { name: "Authorization", value: value.as_bytes() };
        let headers: Vec<_> = values.iter().map(header).collect();
        callers.identify(&Head::new("POST", "/mcp", &headers))
    }

    #[test]
    fn s10_a_principal_is_whose_token_it_is() {
        let caller = |name: &str, token: &str| Caller {
            name: name.to_owned(),
            token_sha256: Sha256::digest(token).into(),
        };
        let callers = Callers::new(&[caller("ada", "token-a"), caller("bob", "token-b")]);
        assert_eq!(&*identify(&callers, &["Bearer token-a"]).unwrap(), "ada");
        assert_eq!(&*identify(&callers, &["bearer  token-b "]).unwrap(), "bob");
        for wrong in [&["Bearer token-c"][..], &["Bearer "], &["Basic token-a"], &["token-a"], &[]] {
            assert_eq!(identify(&callers, wrong), Err(Refusal::Unauthorized), "{wrong:?}");
        }
        let twice = ["Bearer token-a", "Bearer token-b"];
        assert_eq!(identify(&callers, &twice), Err(Refusal::Unauthorized));
    }

    #[test]
    fn without_callers_everybody_is_one_principal_whatever_they_send() {
        let callers = Callers::new(&[]);
        for headers in [&[][..], &["Bearer anything"]] {
            assert_eq!(&*identify(&callers, headers).unwrap(), LOCAL);
        }
    }
}
