//! What a call answers when it fails: a status, and `{"error":{…}}`.

use std::time::Duration;

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use handraise_api::{
    ask::Settlement,
    error::{ErrorBody, ErrorCode, ErrorDetail, ErrorResponse, NotFoundResponse},
};
use handraise_store::{Fault, StoreError};

/// When to ask again for a place that is free only when somebody gives one up: `Retry-After` then promises nothing.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// When to ask again where a holder has too much to do: it works its commands off one after the other.
const BUSY_HOLDER: u64 = 1;

/// A failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    error: ErrorBody,
    /// Set on a 404 of an answer.
    ended: Option<(Option<Box<Settlement>>, bool)>,
    /// `Retry-After`, in seconds.
    retry_after: Option<u64>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: ErrorBody::new(code, message), ended: None, retry_after: None }
    }

    /// 400: the request cannot be read, or asks for something that is not possible.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::BadRequest, message)
    }

    /// 401.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
    }

    /// 403.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, message)
    }

    /// 404 of anything but an answer.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id: String = id.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, format!("there is no {what} '{id}'"))
    }

    /// 404 of an answer: the holder's word, and how the ask had ended.
    pub(crate) fn ended(error: ErrorBody, settlement: Option<Settlement>, recorded: bool) -> Self {
        let ended = Some((settlement.map(Box::new), recorded));
        Self { status: StatusCode::NOT_FOUND, error, ended, retry_after: None }
    }

    /// 422: the holder's (or a permission's) list of what is wrong; the ask is still open.
    pub(crate) fn invalid(error: ErrorBody) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, error, ended: None, retry_after: None }
    }

    /// 422 about one thing.
    pub(crate) fn invalid_one(question_id: &str, rule: &str, message: &str) -> Self {
        let detail =
            ErrorDetail { question_id: question_id.into(), rule: rule.into(), message: message.into() };
        let mut error = ErrorBody::new(ErrorCode::Invalid, "nothing was sent, the ask is still open");
        error.details.push(detail);
        Self::invalid(error)
    }

    /// 429: every place is taken. `until` is how long at most until one is free by itself, where that is known.
    pub(crate) fn full(message: impl Into<String>, until: Option<Duration>) -> Self {
        Self::too_many(ErrorCode::LimitExceeded, message, until.unwrap_or(ASK_AGAIN))
    }

    /// 429: too often, which is over after some time.
    pub(crate) fn slowed_down(message: impl Into<String>, wait: Duration) -> Self {
        Self::too_many(ErrorCode::RateLimited, message, wait)
    }

    fn too_many(code: ErrorCode, message: impl Into<String>, wait: Duration) -> Self {
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        let retry_after = Some(u64::try_from(seconds).unwrap_or(u64::MAX));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, message) }
    }

    /// 503: nothing was written (AC-20a).
    pub(crate) fn holder_not_connected() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::HolderNotConnected,
            "the process that asks is not connected; nothing was sent or queued, the ask is still open",
        )
    }

    /// 504: it was written, and no verdict came.
    pub(crate) fn verdict_unknown() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::VerdictUnknown,
            "the answer was sent and the process that asks has not said yet whether it counted; \
             the inbox shows it as soon as it does",
        )
    }

    /// 500; what happened goes to the log.
    pub(crate) fn internal(what: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = error as &dyn std::error::Error, what, "a call failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            format!("{what}; the log says more"),
        )
    }

    /// An error of a holder about something other than an answer.
    pub(crate) fn of_holder(error: ErrorBody) -> Self {
        let status = match error.code {
            ErrorCode::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::NotFound | ErrorCode::Unseen => StatusCode::NOT_FOUND,
            ErrorCode::BadRequest | ErrorCode::UnknownAction => StatusCode::BAD_REQUEST,
            ErrorCode::RateLimited | ErrorCode::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::HolderNotConnected => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::VerdictUnknown => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::NotOwner
            | ErrorCode::ContentChanged
            | ErrorCode::StaleEpoch
            | ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::Misdirected
            | ErrorCode::Internal => StatusCode::BAD_GATEWAY,
        };
        let retry_after = (status == StatusCode::TOO_MANY_REQUESTS).then_some(BUSY_HOLDER);
        Self { status, error, ended: None, retry_after }
    }
}

impl Failure {
    /// What went wrong, for people.
    pub(crate) fn message(self) -> String {
        self.error.message
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "a call failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, of_store(&error))
    }
}

/// What callers are told of a database that failed. Where it is stands in the log.
pub(crate) const fn of_store(error: &StoreError) -> &'static str {
    let StoreError::Database { fault, .. } = error else { return "the database failed; the log says more" };
    match fault {
        Fault::Full => "the inbox's disk is full; free some space there, then try again",
        Fault::Denied => "the inbox may not write its database; see to its owner and mode, then try again",
        Fault::Damaged => "the inbox's database is damaged; the log says more",
        Fault::Disk => "the inbox's disk fails; the log says more",
        Fault::Locked => "another program keeps the inbox's database locked; try again",
        Fault::Closed => "the inbox's database is closed; the inbox has to be started again",
        Fault::Other => "the database failed; the log says more",
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self { status, error, ended, retry_after } = self;
        let mut response = match ended {
            None => (status, Json(ErrorResponse { error })).into_response(),
            Some((settlement, recorded)) => {
                let settlement = settlement.map(|settlement| *settlement);
                (status, Json(NotFoundResponse { error, settlement, recorded })).into_response()
            }
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
