//! Where the gateway's questions go that its client cannot be asked.

use std::sync::Once;

use handraise_api::words::{HolderKind, Who};
use handraise_asker::Find;

use crate::{Context, holding, holding::Place};

/// Says where the inbox is, as `handraise ask` finds it; `None` where the settings say that nobody is to be asked. A gateway
/// that finds none goes on without.
pub(super) fn find(context: &Context) -> Option<Find> {
    if context.settings.inbox.as_ref().is_some_and(|inbox| inbox.value == "none") {
        return None;
    }
    let (place, told) = (Place::of(context), Once::new());
    Some(Box::new(move || match place.inbox("") {
        Ok(found) => {
            let (inbox, token) = found?;
            Some(holding::settings(Who::Operator, HolderKind::Gateway, inbox, token))
        }
        Err(error) => {
            if place.is_named() {
                told.call_once(|| tracing::warn!("{error:#}; the client alone is asked"));
            } else {
                tracing::debug!("{error:#}; the client alone is asked");
            }
            None
        }
    }))
}
