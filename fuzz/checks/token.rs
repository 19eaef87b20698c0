//! Tokens: none that we have not signed is taken, and what a signed one says is read without doubt.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use handraise_mcp::confirm::{Call, Claims, PREFIX, TokenKey, sign, verify};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const KEY: [u8; 32] = [5; 32];

/// Reads bytes as a token, and as the claims of one that is rightly signed.
pub(crate) fn check(bytes: &[u8]) {
    let key = TokenKey::of_bytes(&KEY);
    let call = Call { tool: "send", account: Some("me"), target: "draft-1" };
    if let Ok(token) = str::from_utf8(bytes) {
        assert!(verify(token, &key, call).is_err(), "nobody has signed this");
    }
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let mut block = [0; 64];
    block[..32].copy_from_slice(&KEY);
    let mac: Hmac<Sha256> = Hmac::new(&block.into());
    let mac = mac.chain_update(&signed).finalize().into_bytes();
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac));
    if let Ok(claims) = verify(&token, &key, call) {
        assert_eq!((claims.tool.as_str(), claims.account.as_deref()), (call.tool, call.account));
        assert_eq!(claims.target, call.target);
        assert_eq!(verify(&sign(&claims, &key), &key, call).as_ref(), Ok::<&Claims, _>(&claims));
    }
}
