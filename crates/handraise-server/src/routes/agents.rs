//! `GET /agents`.

use axum::{Json, extract::State};
use handraise_api::session::{Agent, AgentList};

use super::said::Refusals;
use crate::{extract::Admin, inbox::App};

/// The agents of the configuration that `POST /sessions` starts; none where this inbox can start none.
#[utoipa::path(
    get,
    path = "/api/v1/agents",
    tag = "sessions",
    responses((status = 200, body = AgentList), Refusals),
    security(("bearer" = [])),
)]
pub(crate) async fn list(State(app): State<App>, Admin(_): Admin) -> Json<AgentList> {
    let agents = match app.settings.launcher {
        None => Vec::new(),
        Some(_) => app.settings.agents.iter().map(shown).collect(),
    };
    Json(AgentList { agents })
}

fn shown(agent: &crate::settings::AgentSettings) -> Agent {
    Agent { id: agent.id.clone(), cwd: agent.cwd.as_ref().map(|cwd| cwd.display().to_string()) }
}
