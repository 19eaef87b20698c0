//! The inbox's proof that it knows the token, before it gets it (S43).

use std::io;

use handraise_transport::ids;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::SendRequest,
    header,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::ConnectError;
use crate::{InboxAddress, Token};

/// Most bytes of the proof's body.
const PROOF_BYTES: usize = 4096;

#[derive(Deserialize)]
struct Proof {
    proof: String,
}

/// Lets the inbox prove that it knows the token, without telling it (S43).
pub(super) async fn prove(
    sender: &mut SendRequest<Empty<Bytes>>,
    inbox: &InboxAddress,
    authority: &str,
    token: &Token,
) -> Result<(), ConnectError> {
    let not_proven = || ConnectError::NotProven { inbox: inbox.clone() };
    let nonce = ids::secret()?;
    let key = Sha256::digest(token.as_str().as_bytes());
    let name: String = hex(&key).chars().take(8).collect();
    let request = Request::builder()
        .method(Method::GET)
        .uri(format!("/api/v1/holder/proof?key={name}&nonce={nonce}"))
        .header(header::HOST, authority)
        .body(Empty::new())
        .map_err(|_| not_proven())?;
    let response = sender.send_request(request).await.map_err(|error| ConnectError::Unreachable {
        inbox: inbox.clone(),
        source: io::Error::other(error),
    })?;
    let proof = read_proof(response).await.ok_or_else(not_proven)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| not_proven())?;
    mac.update(nonce.as_bytes());
    mac.update(authority.as_bytes());
    let expected = hex(&mac.finalize().into_bytes());
    if bool::from(expected.as_bytes().ct_eq(proof.as_bytes())) { Ok(()) } else { Err(not_proven()) }
}

async fn read_proof(response: Response<Incoming>) -> Option<String> {
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), PROOF_BYTES).collect().await.ok()?.to_bytes();
    serde_json::from_slice::<Proof>(&body).ok().map(|proof| proof.proof)
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|n| char::from_digit(n.into(), 16))
        .collect()
}
