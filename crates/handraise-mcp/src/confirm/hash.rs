//! What a token binds: the hash over what is shown and what runs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::canonical::{Canonical, Dialect, Unbindable, canonical};

/// The argument that brings a token, which is no part of what runs.
pub const ARGUMENT: &str = "confirmToken";

/// The hash of a call: base64url of SHA-256 over the canonical text of `{"args": …, "payload": …}`.
///
/// `payload` is JSON of what the approval is about; `arguments` is the call's arguments, whose `confirmToken` does not
/// count.
pub fn payload_hash(payload: &str, arguments: &str) -> Result<String, Unbindable> {
    hash_of(payload, &canonical(arguments.as_bytes(), Some(ARGUMENT), Dialect::DoubledDollar)?)
}

/// The hash of a call whose arguments are canonical already, without what does not count.
pub fn hash_of(payload: &str, arguments: &Canonical) -> Result<String, Unbindable> {
    let payload = canonical(payload.as_bytes(), None, Dialect::DoubledDollar)?;
    let mut digest = Sha256::new();
    for part in [r#"{"args":"#, arguments.as_str(), r#","payload":"#, payload.as_str(), "}"] {
        digest.update(part);
    }
    Ok(URL_SAFE_NO_PAD.encode(digest.finalize()))
}

/// The payload of a call through the gateway, as JSON: an approval for one upstream, one definition of the tool and one
/// preview is worth nothing for another.
///
/// `tool_digest` is a digest of the tool's listed definition, `preview` the preview's result as JSON, if there is one.
pub fn gateway_payload(upstream: &str, tool_digest: &str, preview: Option<&RawValue>) -> String {
    #[derive(Serialize)]
    struct Payload<'a> {
        aud: &'a str,
        tool: &'a str,
        preview: Option<&'a RawValue>,
    }
    // Strings and JSON have JSON.
    serde_json::to_string(&Payload { aud: upstream, tool: tool_digest, preview }).unwrap_or_default()
}
