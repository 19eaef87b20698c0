//! What handlers take in: the caller with the scope they need, and what the call was given.

mod given;
mod input;
mod misfit;

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use handraise_api::access::Scope;

pub(crate) use self::{
    input::{Body, Limit, Named, Query},
    misfit::quoted,
};
use crate::{
    access::Grant, door::Place, failure::Failure, inbox::App, metrics::Refused, net::HEAD_PATIENCE,
    peer::Peer,
};

/// Who calls, by proof.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) grant: Arc<Grant>,
    pub(crate) peer: Peer,
}

impl Caller {
    /// The name that stands behind what this caller does.
    pub(crate) fn name(&self) -> &str {
        &self.grant.token.name
    }
}

fn caller(parts: &Parts, app: &App, needed: Scope) -> Result<Caller, Failure> {
    let secret = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim())
        .ok_or_else(|| Failure::unauthorized("send a token as 'Authorization: Bearer …'"))?;
    let grant = app
        .access
        .authenticate(secret)
        .ok_or_else(|| Failure::unauthorized("this token is not good (any more); sign in again"))?;
    if !grant.token.scope.allows(needed) {
        return Err(Failure::forbidden(format!(
            "this needs a token of scope {}, yours is {}",
            needed.as_str(),
            grant.token.scope.as_str()
        )));
    }
    let place = parts.extensions.get::<Arc<Place>>();
    if place.is_some_and(|place| !place.is_of(|| app.access.origin(&grant))) {
        app.metrics.refused(Refused::TokenConnections);
        // One that is not used is closed by then.
        let message = "this token and its pages have as many connections open as they may; close some";
        return Err(Failure::full(message, Some(HEAD_PATIENCE)));
    }
    Ok(Caller { grant, peer: peer(parts) })
}

fn peer(parts: &Parts) -> Peer {
    // Without the extension nothing is known, and nothing may be taken for the socket.
    parts.extensions.get().copied().unwrap_or(Peer::Tcp(([0, 0, 0, 0], 0).into()))
}

macro_rules! scoped {
    ($($(#[$meta:meta])* $name:ident)+) => { $(
        $(#[$meta])*
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = Failure;

            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
                let caller = caller(parts, app, Scope::$name);
                if let Ok(caller) = &caller {
                    parts.extensions.insert(Arc::clone(&caller.grant));
                }
                std::future::ready(caller.map(Self)).await
            }
        }
    )+ };
}

scoped! {
    /// A caller who may read.
    Viewer
    /// A caller who may answer.
    Operator
    /// A caller who may do everything.
    Admin
    /// A holder.
    Holder
}

/// The peer alone, for calls that need no token.
pub(crate) struct From(pub(crate) Peer);

impl FromRequestParts<App> for From {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Failure> {
        std::future::ready(Ok(Self(peer(parts)))).await
    }
}
