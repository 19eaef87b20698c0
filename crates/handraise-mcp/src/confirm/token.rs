//! Tokens: `mcpu.token.v1.<claims>.<mac>`, and the checks in their order (confirm.md, "Token").

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// What every token begins with.
pub const PREFIX: &str = "mcpu.token.v1.";

/// The longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The largest integer that every reader of JSON holds.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The key that tokens are signed with.
#[derive(Clone)]
pub struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    /// The key of a shared secret: its SHA-256. Whoever has the secret can verify and sign.
    pub fn of_secret(secret: &str) -> Self {
        Self::of_bytes(&Sha256::digest(secret.as_bytes()).into())
    }

    /// A key of 32 random bytes, for one process.
    pub fn of_bytes(bytes: &[u8; 32]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(bytes);
        // HMAC fills shorter keys with zeros up to the block.
        Self(Hmac::new(&block.into()))
    }

    fn mac(&self, signed: &str) -> [u8; 32] {
        self.0.clone().chain_update(signed).finalize().into_bytes().into()
    }
}

/// Keys stay out of logs.
impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(•)")
    }
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The tool.
    pub tool: String,
    /// The account that it acts for, where the rule names one.
    pub account: Option<String>,
    /// What it acts on; empty for something new.
    pub target: String,
    /// The revision of the target that was shown, where there is one.
    pub revision: Option<String>,
    /// The [`payload_hash`](super::payload_hash) of the call.
    pub hash: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: u64,
    /// Random bytes that tell this token from every other.
    pub nonce: [u8; 16],
}

#[derive(Serialize)]
struct Wire<'a> {
    t: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<&'a str>,
    g: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<&'a str>,
    h: &'a str,
    exp: u64,
    n: String,
}

/// The token of some claims. An end beyond what every reader of JSON holds is taken as the last that it does.
pub fn sign(claims: &Claims, key: &TokenKey) -> String {
    let wire = Wire {
        t: &claims.tool,
        a: claims.account.as_deref(),
        g: &claims.target,
        r: claims.revision.as_deref(),
        h: &claims.hash,
        exp: claims.expires_ms.min(MAX_SAFE_INTEGER),
        n: URL_SAFE_NO_PAD.encode(claims.nonce),
    };
    // Strings and numbers have JSON.
    let json = serde_json::to_string(&wire).unwrap_or_default();
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
    let mac = URL_SAFE_NO_PAD.encode(key.mac(&signed));
    format!("{signed}.{mac}")
}

/// The call that a token is brought to.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The account that it acts for.
    pub account: Option<&'a str>,
    /// What it acts on.
    pub target: &'a str,
}

/// What a fresh read says, after the token was brought.
#[derive(Debug, Clone, Copy)]
pub struct Fresh<'a> {
    /// The target's revision.
    pub revision: Option<&'a str>,
    /// The [`payload_hash`](super::payload_hash) of the call with the fresh preview.
    pub hash: &'a str,
}

/// What the store of spent nonces says about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// It was not spent.
    No,
    /// It was.
    Yes,
    /// The store could not be asked. Nothing runs then.
    Unknown,
}

/// Why a token does not let a call run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// Not written as a token is.
    Malformed,
    /// Changed, or signed with another key.
    BadMac,
    /// Its claims are no JSON object of the right members.
    BadClaims,
    /// For another tool.
    OtherTool,
    /// For another account.
    OtherAccount,
    /// For another target.
    OtherTarget,
    /// Its nonce was spent before.
    Reused,
    /// Its time is over.
    Expired,
    /// The target has another revision now.
    RevisionChanged,
    /// The arguments are others, or what is shown is something else now.
    PayloadChanged,
    /// The store of spent nonces did not answer.
    StoreUnavailable,
}

impl Rejection {
    /// The code on the wire.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed
            | Self::BadMac
            | Self::BadClaims
            | Self::OtherTool
            | Self::OtherAccount
            | Self::OtherTarget => "TOKEN_INVALID",
            Self::Reused => "TOKEN_REUSED",
            Self::Expired => "TOKEN_EXPIRED",
            Self::RevisionChanged | Self::PayloadChanged => "DRAFT_CHANGED",
            Self::StoreUnavailable => "SPENT_STORE_UNAVAILABLE",
        }
    }

    /// The rejection's one spelling, in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "token-malformed",
            Self::BadMac => "token-bad-mac",
            Self::BadClaims => "token-bad-claims",
            Self::OtherTool => "token-other-tool",
            Self::OtherAccount => "token-other-account",
            Self::OtherTarget => "token-other-target",
            Self::Reused => "token-reused",
            Self::Expired => "token-expired",
            Self::RevisionChanged => "revision-changed",
            Self::PayloadChanged => "payload-changed",
            Self::StoreUnavailable => "spent-store-unavailable",
        }
    }

    /// The reason on the wire, where the code alone does not say it. Why a token is invalid is not told.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::RevisionChanged => Some("revision-changed"),
            Self::PayloadChanged => Some("payload-changed"),
            _ => None,
        }
    }
}

/// Checks 1 to 4: that the token is ours, and for this call.
///
/// The store of spent nonces is pruned before (check 0), by whoever keeps it.
pub fn verify(token: &str, key: &TokenKey, call: Call<'_>) -> Result<Claims, Rejection> {
    let body = token.strip_prefix(PREFIX).filter(|_| token.len() <= MAX_TOKEN_BYTES);
    let (claims, mac) = body.and_then(|body| body.split_once('.')).ok_or(Rejection::Malformed)?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| Rejection::Malformed);
    let (json, mac) = (decode(claims)?, decode(mac)?);
    let right = key.mac(&token[..PREFIX.len() + claims.len()]);
    if !bool::from(right.as_slice().ct_eq(&mac)) {
        return Err(Rejection::BadMac);
    }
    let members = serde_json::from_slice::<Map<String, Value>>(&json).map_err(|_| Rejection::BadClaims)?;
    let claims = Claims::read(&members).ok_or(Rejection::BadClaims)?;
    if claims.tool != call.tool {
        return Err(Rejection::OtherTool);
    }
    if claims.account.as_deref() != call.account {
        return Err(Rejection::OtherAccount);
    }
    if claims.target != call.target {
        return Err(Rejection::OtherTarget);
    }
    Ok(claims)
}

impl Claims {
    fn read(members: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name)?.as_str().map(str::to_owned);
        // What may be missing must be a string where it is not.
        let optional = |name: &str| match members.get(name) {
            None => Some(None),
            Some(value) => value.as_str().map(|text| Some(text.to_owned())),
        };
        Some(Self {
            tool: text("t")?,
            account: optional("a")?,
            target: text("g")?,
            revision: optional("r")?,
            hash: text("h")?,
            expires_ms: members.get("exp")?.as_u64().filter(|end| *end <= MAX_SAFE_INTEGER)?,
            nonce: URL_SAFE_NO_PAD.decode(text("n")?).ok()?.try_into().ok()?,
        })
    }

    /// Checks 5 to 8: that the token is unspent, in time, and about what a fresh read says. The token stays unspent.
    ///
    /// When all hold, the nonce is to be claimed, and [`claimed`] is check 9.
    pub fn check(&self, spent: Spent, now_ms: u64, fresh: Fresh<'_>) -> Result<(), Rejection> {
        match spent {
            Spent::No => {}
            Spent::Yes => return Err(Rejection::Reused),
            Spent::Unknown => return Err(Rejection::StoreUnavailable),
        }
        if now_ms >= self.expires_ms {
            return Err(Rejection::Expired);
        }
        if self.revision.as_deref() != fresh.revision {
            return Err(Rejection::RevisionChanged);
        }
        if self.hash != fresh.hash {
            return Err(Rejection::PayloadChanged);
        }
        Ok(())
    }
}

/// Check 9: whether this call was the one to spend the nonce. `before` is what the store says the nonce was when it was
/// claimed; only [`Spent::No`] lets the call run.
pub const fn claimed(before: Spent) -> Result<(), Rejection> {
    match before {
        Spent::No => Ok(()),
        Spent::Yes => Err(Rejection::Reused),
        Spent::Unknown => Err(Rejection::StoreUnavailable),
    }
}
