//! The refusals that many calls share, for the contract.

use handraise_api::error::ErrorResponse;
use utoipa::IntoResponses;

/// Of every call that wants a token.
#[expect(dead_code, reason = "only the contract is made of it")]
#[derive(IntoResponses)]
pub(super) enum Refusals {
    /// no token, or one that is not good (any more)
    #[response(status = 401)]
    Unauthorized(ErrorResponse),
    /// another scope, or another site's page
    #[response(status = 403)]
    Forbidden(ErrorResponse),
}

/// Of every call whose path names something.
#[expect(dead_code, reason = "only the contract is made of it")]
#[derive(IntoResponses)]
pub(super) enum Unknown {
    /// there is none of that name
    #[response(status = 404)]
    NotFound(ErrorResponse),
}

/// Of every call that a holder is to carry out.
#[expect(dead_code, reason = "only the contract is made of it")]
#[derive(IntoResponses)]
pub(super) enum Unheard {
    /// the process that it is for is not connected; nothing was sent
    #[response(status = 503)]
    NotConnected(ErrorResponse),
    /// sent, and no word of it yet
    #[response(status = 504)]
    NoWord(ErrorResponse),
}
