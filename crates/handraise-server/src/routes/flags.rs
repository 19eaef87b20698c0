//! `GET /flags`, `PUT /flags/{name}`.

use axum::{Json, extract::State};
use handraise_api::{
    access::{Flag, FlagList, SetFlag},
    error::ErrorResponse,
};
use serde_json::Value;

use super::said::{Refusals, Unknown};
use crate::{
    extract::{Admin, Body, Named},
    failure::Failure,
    flags::OFFERED,
    inbox::App,
};

/// The runtime flags as they are in force.
#[utoipa::path(
    get,
    path = "/api/v1/flags",
    tag = "flags",
    responses(
        (status = 200, body = FlagList),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Json<FlagList> {
    Json(FlagList { flags: app.flags.all() })
}

/// Sets a flag for agents and calls started from now on, or takes the setting back.
#[utoipa::path(
    put,
    path = "/api/v1/flags/{name}",
    tag = "flags",
    params(("name" = String, Path, description = "The flag")),
    request_body = SetFlag,
    responses(
        (status = 200, description = "the flag as it is in force now", body = Flag),
        (status = 400, body = ErrorResponse),
        Refusals,
        Unknown,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn set(
    State(app): State<App>,
    Admin(caller): Admin,
    Named(name): Named,
    Body(SetFlag { value }): Body<SetFlag>,
) -> Result<Json<Flag>, Failure> {
    if !OFFERED.contains(&name.as_str()) {
        return Err(Failure::not_found("flag", &name));
    }
    let value = match value {
        Value::Bool(value) => Some(value),
        Value::Null => None,
        _ => {
            return Err(Failure::bad_request(
                "in the body, 'value' is something else; it takes true, false or null",
            ));
        }
    };
    app.store.set_flag(&name, value).await?;
    app.flags.note(&name, value);
    tracing::info!(flag.name = name, flag.value = ?value, by = caller.name(), "a flag was set");
    app.flags.get(&name).map(Json).ok_or_else(|| Failure::not_found("flag", &name))
}
