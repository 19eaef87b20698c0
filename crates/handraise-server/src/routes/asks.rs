//! `GET /asks`.

#![expect(unused_qualifications, reason = "utoipa writes out the paths of parameter types")]

use axum::{Json, extract::State};
use handraise_api::{ask::AskList, error::ErrorResponse, words::Source};
use handraise_store::{Cursor, Filter, Page};
use serde::Deserialize;
use utoipa::IntoParams;

use super::said::Refusals;
use crate::{
    extract::{Limit, Query, Viewer},
    failure::Failure,
    inbox::App,
};

const DEFAULT_LIMIT: u32 = 50;

/// Which asks to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// `open` (those with an answer on its way included), or `settled`.
    #[serde(default)]
    #[param(inline)]
    state: Half,
    /// Only of this session.
    session: Option<String>,
    /// Only of this source.
    #[param(inline)]
    source: Option<Source>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// 1 to 500; 50 otherwise.
    #[param(value_type = Option<u32>)]
    limit: Option<Limit>,
}

/// Which half of the asks.
#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum Half {
    /// Not ended.
    #[default]
    Open,
    /// Ended.
    Settled,
}

/// A page of asks: open ones in rounds over the holders by deadline, settled ones the latest first.
#[utoipa::path(
    get,
    path = "/api/v1/asks",
    tag = "asks",
    params(Wanted),
    responses(
        (status = 200, body = AskList),
        (status = 400, description = "a parameter cannot be read", body = ErrorResponse),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: Viewer,
    Query(wanted): Query<Wanted>,
) -> Result<Json<AskList>, Failure> {
    let limit = Limit::or(wanted.limit, DEFAULT_LIMIT);
    let cursor = match wanted.cursor.as_deref().map(Cursor::decode) {
        Some(None) => {
            return Err(Failure::bad_request(
                "'cursor' is not one that this call gave out; it takes 'next_cursor' of the page before",
            ));
        }
        Some(cursor) => cursor,
        None => None,
    };
    let filter = Filter { session: wanted.session, source: wanted.source };
    let page = match wanted.state {
        Half::Open => app.store.open_asks(&filter, cursor.as_ref(), limit).await?,
        Half::Settled => app.store.settled_asks(&filter, cursor.as_ref(), limit).await?,
    };
    Ok(Json(shown(&app, page)))
}

/// A page of the store as operators see it.
pub(crate) fn shown(app: &App, page: Page) -> AskList {
    AskList {
        asks: page.asks.into_iter().map(|(ask, instance)| app.shown(ask, &instance)).collect(),
        next_cursor: page.next.map(|next| next.encode()),
    }
}
