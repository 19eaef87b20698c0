//! Subscriptions of the modern era: requests that stay open while the server speaks, each thing tagged with their id.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{server::lock, wire::Wire};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// What is wanted by whom.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<Vec<Subscription>>);

struct Subscription {
    wire: Arc<Wire>,
    /// The id of the request, as JSON text.
    id: String,
    wanted: Value,
}

impl Subscription {
    fn is(&self, wire: &Arc<Wire>, id: &str) -> bool {
        Arc::ptr_eq(&self.wire, wire) && self.id == id
    }
}

impl Subscriptions {
    /// Begins one, and says so.
    pub(crate) fn begin(&self, wire: &Arc<Wire>, id: &str, wanted: &Value) -> io::Result<()> {
        let mut all = lock(&self.0);
        all.retain(|subscription| !subscription.is(wire, id));
        all.push(Subscription { wire: Arc::clone(wire), id: id.to_owned(), wanted: wanted.clone() });
        let params = json!({"_meta": {TAG: read(id)}, "notifications": wanted});
        wire.notify("notifications/subscriptions/acknowledged", &params)
    }

    /// Its client has left; false: there is no such one.
    pub(crate) fn cancel(&self, wire: &Arc<Wire>, id: &str) -> bool {
        let mut all = lock(&self.0);
        let before = all.len();
        all.retain(|subscription| !subscription.is(wire, id));
        all.len() < before
    }

    /// Tells those that want to hear it.
    pub(crate) fn tell(&self, wanted: &str, method: &str) -> io::Result<()> {
        let all = lock(&self.0);
        for Subscription { wire, id, .. } in all.iter().filter(|one| one.wanted[wanted] == true) {
            wire.notify(method, &json!({"_meta": {TAG: read(id)}}))?;
        }
        Ok(())
    }

    /// Ends all of them in order.
    pub(crate) fn end(&self) -> io::Result<()> {
        for Subscription { wire, id, .. } in std::mem::take(&mut *lock(&self.0)) {
            let result = json!({"resultType": "complete", "_meta": {TAG: read(&id)}});
            wire.respond(&id, &result.to_string())?;
        }
        Ok(())
    }
}

fn read(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}
