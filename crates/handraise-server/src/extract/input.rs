//! What a call was given: the name in its path, its query, its JSON body. Each that cannot be taken is a 400 that says
//! which part it is, and what would do.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    extract::{FromRequest, FromRequestParts, Path, Request, path::ErrorKind, rejection::PathRejection},
    http::{StatusCode, request::Parts},
};
use handraise_api::error::ErrorCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Value, error::Category};

use super::given::Given;
use crate::{access::Grant, failure::Failure, inbox::App};

/// Largest body: 1 MiB of content (form.md) and room for its JSON escapes.
const LARGEST_BODY: usize = 2 * 1024 * 1024;
/// Largest body of a call that needs no token: a secret and a name. Whoever reaches the port may send one, and many.
const LARGEST_FOREIGN_BODY: usize = 16 * 1024;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// The name or id in the path.
pub(crate) struct Named(pub(crate) String);

impl FromRequestParts<App> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => Err(match error.kind() {
                ErrorKind::InvalidUtf8InPathParam { key } => Failure::bad_request(format!(
                    "'{key}' in the path is no UTF-8 once its %-escapes are read; send it as the inbox gave it out"
                )),
                _ => Failure::bad_request("the path names one thing; send its id as the inbox gave it out"),
            }),
            Err(error) => Err(Failure::internal("the path could not be read", &error)),
        }
    }
}

/// A query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Failure> {
        std::future::ready(
            query(parts.uri.query().unwrap_or_default()).map(Self).map_err(Failure::bad_request),
        )
        .await
    }
}

fn query<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let pairs: Vec<_> = form_urlencoded::parse(text.as_bytes()).collect();
    Given::Query(&pairs).read().map_err(|misfit| misfit.said_of("query"))
}

/// How many entries a page of a list has: 1 to [`Limit::MOST`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(u32);

impl Limit {
    const MOST: u32 = 500;

    /// The one that was asked for, else `default`.
    pub(crate) fn or(limit: Option<Self>, default: u32) -> u32 {
        limit.map_or(default, |Self(limit)| limit)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        let limit = Cow::<str>::deserialize(given)?.parse().ok();
        limit
            .filter(|limit| (1..=Self::MOST).contains(limit))
            .map(Self)
            .ok_or_else(|| D::Error::custom(format_args!("1 to {}", Self::MOST)))
    }
}

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let grant = request.extensions().get::<Arc<Grant>>().cloned();
        let largest = if grant.is_some() { LARGEST_BODY } else { LARGEST_FOREIGN_BODY };
        let body = Limited::new(request.into_body(), largest);
        let collected = tokio::time::timeout(BODY_PATIENCE, body.collect())
            .await
            .map_err(|_| Failure::bad_request("the body did not arrive within 30 s"))?;
        let bytes = collected
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Failure::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        ErrorCode::LimitExceeded,
                        format!("the body is larger than {largest} bytes"),
                    )
                } else {
                    Failure::bad_request("the body broke off")
                }
            })?
            .to_bytes();
        // The token may have been revoked, or have expired, while the body was on its way (S34).
        if grant.is_some_and(|grant| !app.access.is_good(&grant)) {
            return Err(Failure::unauthorized("this token is not good any more; sign in again"));
        }
        read(&bytes).map(Self).map_err(Failure::bad_request)
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let read = serde_json::from_slice(bytes);
    match read {
        // The library takes lists for objects.
        Ok(read) if bytes.trim_ascii_start().starts_with(b"{") => Ok(read),
        read => Err(unread::<T>(bytes, read.err().as_ref())),
    }
}

/// Why a body is not what a call takes.
fn unread<T: DeserializeOwned>(bytes: &[u8], error: Option<&serde_json::Error>) -> String {
    let is_empty = bytes.trim_ascii().is_empty();
    let value = if is_empty { Ok(Value::Null) } else { serde_json::from_slice(bytes) };
    let value = match value {
        Ok(value) => value,
        Err(error) => {
            let what = if error.classify() == Category::Eof { "ends too early" } else { "is no JSON" };
            return format!("the body {what}: see line {}, column {}", error.line(), error.column());
        }
    };
    let given = if is_empty { Given::Nothing } else { Given::Json(&value) };
    if let Err(misfit) = given.read::<T>() {
        return misfit.said_of("body");
    }
    // Read without regard to what stands there twice, it fits.
    let (line, column) = error.map_or((1, 1), |error| (error.line(), error.column()));
    format!("the body has a field twice, the second time at line {line}, column {column}; leave one")
}

#[cfg(test)]
mod tests {
    use handraise_api::{
        access::{CreateToken, LoginRequest, SetFlag},
        ask::{AnswerRequest, BatchRequest, SeenRequest},
        session::{PromptRequest, StartSession},
        words::Source,
    };

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        #[serde(default)]
        after: u64,
        source: Option<Source>,
        cursor: Option<String>,
        limit: Option<Limit>,
    }

    #[track_caller]
    fn refused<T>(read: Result<T, String>) -> String {
        read.err().expect("it is refused")
    }

    #[test]
    fn a_body_that_does_not_fit_is_told_where_and_what_would_do() {
        let token = |body: &str| refused(read::<CreateToken>(body.as_bytes()));
        assert_eq!(
            token(r#"{"scope":"king"}"#),
            "in the body, 'scope' is \"king\"; it takes viewer, operator, admin or holder"
        );
        assert_eq!(
            token(r#"{"scope":7}"#),
            "in the body, 'scope' is a number; it takes viewer, operator, admin or holder"
        );
        assert_eq!(token(r#"{"name":"n"}"#), "in the body, 'scope' is missing");
        assert_eq!(
            token(r#"{"scope":"viewer","expires":"tomorrow"}"#),
            "in the body, 'expires' is \"tomorrow\"; it takes a time as in RFC 3339, such as 2031-01-31T18:00:00Z"
        );
        assert_eq!(
            token(r#"{"scope":"viewer","name":["n"]}"#),
            "in the body, 'name' is a list; it takes a text"
        );
        let batch = |body: &str| refused(read::<BatchRequest>(body.as_bytes()));
        assert_eq!(
            batch(r#"{"submissions":[{"id":"a","answers":[]},{}]}"#),
            "in the body, 'submissions[1].id' is missing"
        );
        assert_eq!(
            batch(r#"{"submissions":[{"id":"a","answers":[],"rejected":"yes"}]}"#),
            "in the body, 'submissions[0].rejected' is a text; it takes true or false"
        );
        assert_eq!(
            batch(r#"{"submissions":{}}"#),
            "in the body, 'submissions' is an object; it takes a list"
        );
        assert_eq!(refused(read::<SetFlag>(b"{}")), "in the body, 'value' is missing");
    }

    /// Misspelt answers would be none, and none accepts a form that takes partial ones.
    #[test]
    fn an_answer_that_is_misspelt_or_missing_is_no_empty_one() {
        let answer = |body: &str| refused(read::<AnswerRequest>(body.as_bytes()));
        for (body, said) in [
            ("{}", "'answers' is missing"),
            (r#"{"rejected":true}"#, "'answers' is missing"),
            (r#"{"answers":null}"#, "'answers' is null; it takes a list"),
            (
                r#"{"answer":[{"question_id":"q","custom_text":"x"}]}"#,
                "'answer' is not known; answers, rejected and reject_reason are",
            ),
            (
                r#"{"answers":[],"reject":true}"#,
                "'reject' is not known; answers, rejected and reject_reason are",
            ),
            (
                r#"{"answers":[{"question_id":"q"},{"question_id":"r","selected_option":["x"]}]}"#,
                "'answers[1].selected_option' is not known; question_id, selected_options and custom_text are",
            ),
            (r#"{"answers":[{"selected_options":["x"]}]}"#, "'answers[0].question_id' is missing"),
        ] {
            assert_eq!(answer(body), format!("in the body, {said}"), "{body}");
        }
        assert_eq!(
            refused(read::<BatchRequest>(br#"{"submissions":[{"id":"a"}]}"#)),
            "in the body, 'submissions[0].answers' is missing"
        );
        assert_eq!(
            refused(read::<BatchRequest>(br#"{"submissions":[{"id":"a","answers":[{"question":"q"}]}]}"#)),
            "in the body, 'submissions[0].answers[0].question' is not known; question_id, selected_options and \
             custom_text are"
        );
        let given = read::<AnswerRequest>(br#"{"answers":[{"question_id":"q","custom_text":"x"}]}"#).unwrap();
        assert_eq!(
            (given.answers[0].custom_text.as_str(), given.answers[0].selected_options.len()),
            ("x", 0)
        );
    }

    #[test]
    fn no_body_takes_what_it_does_not_know() {
        #[track_caller]
        fn knows_its_fields<T: DeserializeOwned>(fields: &str) {
            assert!(read::<T>(format!("{{{fields}}}").as_bytes()).is_ok(), "{fields}");
            let said =
                refused(read::<T>(format!(r#"{{{fields},"expire":"2031-01-31T18:00:00Z"}}"#).as_bytes()));
            assert!(said.starts_with("in the body, 'expire' is not known; "), "{said}");
        }
        knows_its_fields::<AnswerRequest>(r#""answers":[]"#);
        knows_its_fields::<BatchRequest>(r#""submissions":[]"#);
        knows_its_fields::<SeenRequest>(r#""digest":"d""#);
        knows_its_fields::<LoginRequest>(r#""secret":"s""#);
        knows_its_fields::<CreateToken>(r#""scope":"viewer""#);
        knows_its_fields::<SetFlag>(r#""value":null"#);
        knows_its_fields::<StartSession>(r#""agent":"a""#);
        knows_its_fields::<PromptRequest>(r#""text":"t""#);
    }

    #[test]
    fn s33_no_answer_and_no_secret_is_repeated() {
        let answer = |body: &str| refused(read::<AnswerRequest>(body.as_bytes()));
        for (body, said) in [
            (
                r#"{"answers":[{"question_id":"q","selected_options":"hunter2"}]}"#,
                "in the body, 'answers[0].selected_options' is a text; it takes a list",
            ),
            (
                r#"{"answers":[{"question_id":"q","custom_text":4711}]}"#,
                "in the body, 'answers[0].custom_text' is a number; it takes a text",
            ),
            (
                r#"{"answers":[{"question_id":"q"},"hunter2"]}"#,
                "in the body, 'answers[1]' is a text; it takes an object with question_id, selected_options and \
                 custom_text",
            ),
        ] {
            assert_eq!(answer(body), said);
        }
        let said = refused(read::<LoginRequest>(br#"{"secret":["hunter2"]}"#));
        assert_eq!(said, "in the body, 'secret' is a list; it takes a text");
    }

    #[test]
    fn a_body_that_is_no_object_is_told_what_it_is() {
        let answer = |body: &[u8]| refused(read::<AnswerRequest>(body));
        let takes = "it takes an object with answers, rejected and reject_reason";
        assert_eq!(answer(b" "), format!("the body is empty; {takes}"));
        assert_eq!(answer(b"[[],true]"), format!("the body is a list; {takes}"));
        assert_eq!(answer(b"\"x\""), format!("the body is a text; {takes}"));
        assert_eq!(answer(b"{\"answers\":["), "the body ends too early: see line 1, column 12");
        assert_eq!(answer(b"{\n answers: []}"), "the body is no JSON: see line 2, column 2");
        assert_eq!(answer(b"{\"answers\":[]} x"), "the body is no JSON: see line 1, column 16");
        assert_eq!(answer(b"{\"reject_reason\":\"\xff\"}"), "the body is no JSON: see line 1, column 19");
        assert_eq!(
            answer(b"{\"answers\":[],\"rejected\":true,\n\"rejected\":true}"),
            "the body has a field twice, the second time at line 2, column 10; leave one"
        );
        let deep = "[".repeat(1_000);
        assert!(answer(deep.as_bytes()).starts_with("the body is no JSON"));
    }

    #[test]
    fn a_query_that_does_not_fit_is_told_which_parameter_and_what_would_do() {
        let wanted = |text: &str| refused(query::<Wanted>(text));
        for (text, said) in [
            ("limit=0", "'limit' is \"0\"; it takes 1 to 500"),
            ("limit=many", "'limit' is \"many\"; it takes 1 to 500"),
            ("limit=", "'limit' is \"\"; it takes 1 to 500"),
            ("after=-1", "'after' is \"-1\"; it takes a whole number of 0 or more"),
            (
                "source=mars",
                "'source' is \"mars\"; it takes elicitation, permission, refusal, confirm, tool or script",
            ),
            ("colour=red", "'colour' is not known; after, source, cursor and limit are"),
            ("limit=1&limit=2", "'limit' is there more than once"),
        ] {
            assert_eq!(wanted(text), format!("in the query, {said}"));
        }
        let read: Wanted = query("limit=500&source=script&cursor=a%20b&after=7").unwrap();
        assert_eq!((Limit::or(read.limit, 50), read.after), (500, 7));
        assert_eq!((read.source, read.cursor.as_deref()), (Some(Source::Script), Some("a b")));
        assert_eq!(Limit::or(query::<Wanted>("").unwrap().limit, 50), 50);
    }

    #[test]
    fn s42_what_is_repeated_is_short_and_moves_no_terminal() {
        let long = "x".repeat(10_000);
        for text in [format!("limit={long}"), format!("{long}=1"), "source=%1b[2J%e2%80%ae".to_owned()] {
            let said = refused(query::<Wanted>(&text));
            assert!(
                said.len() < 300 && !said.chars().any(handraise_transport::escape::is_hazardous),
                "{said}"
            );
        }
    }
}
