//! `GET /holder/proof`: the inbox proves that it knows a token before it is told it (S43).

#![expect(unused_qualifications, reason = "utoipa writes out the paths of parameter types")]

use std::net::{IpAddr, SocketAddr};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
};
use handraise_api::error::{ErrorCode, ErrorResponse};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use utoipa::{IntoParams, ToSchema};

use crate::{access::hex, extract::Query, failure::Failure, inbox::App, peer::Landed};

/// What to prove.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Challenge {
    /// The first eight hexadecimal digits of the token's SHA-256.
    key: String,
    /// 16 to 128 characters that the holder has just made up.
    nonce: String,
}

/// The proof.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Proof {
    /// HMAC-SHA256, in hexadecimal, keyed with the token's SHA-256, of the nonce and the `Host` of the request.
    proof: String,
}

/// Proves that this inbox knows a holder token.
#[utoipa::path(
    get,
    path = "/api/v1/holder/proof",
    tag = "holders",
    params(Challenge),
    responses(
        (status = 200, body = Proof),
        (status = 400, body = ErrorResponse),
        (status = 404, description = "no holder token begins like that", body = ErrorResponse),
    ),
)]
pub(crate) async fn prove(
    State(app): State<App>,
    landed: Option<Extension<Landed>>,
    headers: HeaderMap,
    Query(Challenge { key, nonce }): Query<Challenge>,
) -> Result<Json<Proof>, Failure> {
    let digits = key.len() == 8 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefix = u32::from_str_radix(&key, 16).ok().filter(|_| digits).map(u32::to_be_bytes);
    let prefix =
        prefix.ok_or_else(|| Failure::bad_request("in the query, 'key' takes eight hexadecimal digits"))?;
    if !(16..=128).contains(&nonce.len()) {
        return Err(Failure::bad_request("in the query, 'nonce' takes 16 to 128 characters"));
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // Only for the address that was dialled: another program on this machine could pass the question on from a port of
    // its own, and would be told the token in return for our proof.
    let dialled = host.parse().ok().map(canonical);
    if dialled.is_none() || dialled != landed.map(|Extension(Landed(address))| canonical(address)) {
        let message =
            "an inbox proves itself only for the address and port that it was reached at; dial it there";
        return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, ErrorCode::Misdirected, message));
    }
    // Two tokens that begin alike cannot be told apart before one is sent; 2^32 tokens make one such pair likely.
    let keys = app.access.holder_keys(prefix);
    let Some(key) = keys.first() else { return Err(Failure::not_found("holder token", &key)) };
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .map_err(|error| Failure::internal("a proof could not be made", &error))?;
    mac.update(nonce.as_bytes());
    mac.update(host.as_bytes());
    Ok(Json(Proof { proof: hex(&mac.finalize().into_bytes()) }))
}

/// A listener for both families sees IPv4 as a part of IPv6.
fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}
