//! Sign-in, tokens and flags.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use utoipa::ToSchema;

/// What a token may do (S34). Each scope includes the ones before it, `holder` excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reads.
    Viewer,
    /// Also answers.
    Operator,
    /// Also sessions, flags, tokens.
    Admin,
    /// Only its holder stream.
    Holder,
}

impl Scope {
    /// Whether a token of this scope may do what `needed` may.
    pub const fn allows(self, needed: Self) -> bool {
        match (self, needed) {
            (Self::Holder, Self::Holder)
            | (Self::Admin, Self::Viewer | Self::Operator | Self::Admin)
            | (Self::Operator, Self::Viewer | Self::Operator)
            | (Self::Viewer, Self::Viewer) => true,
            (Self::Holder | Self::Admin | Self::Operator | Self::Viewer, _) => false,
        }
    }

    /// The spelling on the wire and the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Holder => "holder",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        [Self::Viewer, Self::Operator, Self::Admin, Self::Holder]
            .into_iter()
            .find(|scope| scope.as_str() == word)
            .ok_or_else(|| format!("'{word}' is no scope; viewer, operator, admin and holder are"))
    }
}

/// Body of `POST /login`: the sign-in link's secret, or a token to sign in with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The secret from the link's fragment, or a token.
    pub secret: String,
    /// What to be called.
    #[serde(default)]
    pub name: Option<String>,
}

/// What a sign-in yields: kept in origin-scoped storage and sent as `Authorization: Bearer` (S1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginResponse {
    /// The bearer token of this page session.
    pub token: String,
    /// What it may do.
    pub scope: Scope,
    /// What the operator is called.
    pub name: String,
    /// The person that the operator is, where the token with which they signed in says so (S16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Names it in `DELETE /tokens/{id}`.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// The person whose it is (S16).
    #[schema(required)]
    pub owner: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub expires_at: Option<Timestamp>,
    /// Whether it is a signed-in page.
    pub page_session: bool,
}

/// `GET /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Newest first.
    pub tokens: Vec<Token>,
}

/// Body of `POST /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What it may do.
    pub scope: Scope,
    /// What it is called; the scope's name otherwise.
    #[serde(default)]
    pub name: Option<String>,
    /// The person whose it is: theirs are the asks of its holders, and its answers (S16).
    #[serde(default)]
    pub owner: Option<String>,
    /// When it ends by itself.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires: Option<Timestamp>,
}

/// A time from somebody outside, who hears what would be one.
fn time<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(given)?;
    let read = text.map(|text| text.parse()).transpose();
    read.map_err(|_| D::Error::custom("a time as in RFC 3339, such as 2031-01-31T18:00:00Z"))
}

/// The one time that a token's secret is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// Names it.
    pub id: String,
    /// The secret.
    pub token: String,
}

/// A runtime flag and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Flag {
    /// E.g. `features.acpElicitation`.
    pub name: String,
    /// The value in force for agents and calls started from now on.
    pub value: bool,
    /// Where it comes from.
    pub source: FlagSource,
}

/// Setting > environment > file > default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagSource {
    /// Nobody set it.
    Default,
    /// The config file.
    File,
    /// An environment variable.
    Environment,
    /// An operator, in the inbox.
    Setting,
}

/// `GET /flags`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlagList {
    /// Every flag.
    pub flags: Vec<Flag>,
}

/// Body of `PUT /flags/{name}`: `true`, `false`, or `null` to take the setting back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetFlag {
    /// The setting.
    #[schema(value_type = Option<bool>)]
    pub value: Value,
}
