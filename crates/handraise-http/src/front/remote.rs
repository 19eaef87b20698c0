//! The server behind a link when it is at a URL: what comes from it, and when it has forgotten the session.

use std::{sync::Arc, time::Duration};

use handraise_mcp::envelope::Envelope;
use tokio::time::sleep;

use super::{Front, budget::Budget, desk::Desk, link::Link, pieces::Came, stdin::Stdin};
use crate::upstream::{self, Arrivals, Server};

/// How often a reader looks whether there is room again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A link to the server.
pub(crate) fn start(
    front: &Arc<Front>,
    server: &Arc<Server>,
    principal: Arc<str>,
    envelope: Envelope,
    desk: Desk,
    budget: Arc<Budget>,
) -> Arc<Link> {
    let (way, arrivals) = upstream::Link::new(server, &principal);
    let lost = way.lost();
    let link = Link::new(front, principal, envelope, desk, Stdin::remote(way), budget);
    front.tasks.spawn(read(Arc::clone(&link), arrivals, lost));
    link
}

/// Takes what comes until the way is closed, and its session has been ended.
async fn read(link: Arc<Link>, mut arrivals: Arrivals, lost: impl Future<Output = ()>) {
    tokio::pin!(lost);
    let mut is_lost = false;
    loop {
        tokio::select! {
            biased;
            arrival = arrivals.recv() => {
                let Some(arrival) = arrival else { return };
                if !link.upstream_line(Came::own(&arrival.frame)) {
                    tracing::debug!("an MCP server sent an event that is no frame; it is left out");
                }
            }
            () = &mut lost, if !is_lost => {
                is_lost = true;
                // The client is told 404, and opens another session.
                link.upstream_ended("it no longer knows the session");
            }
        }
        // Those who do not read what is there make their own server wait, and nobody else's.
        while link.budget.is_exhausted() && !link.is_over() {
            sleep(LOOK_AGAIN).await;
        }
    }
}
