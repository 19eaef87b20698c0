//! Subscriptions of the modern era: requests that stay open while the server speaks, each thing tagged with their id.

use std::{collections::BTreeMap, io, sync::Mutex};

use serde_json::{Value, json};

use crate::{server::lock, wire::Wire};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// What is wanted by whom: the ids of the requests, as JSON text.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<String, Value>>);

impl Subscriptions {
    /// Begins one, and says so.
    pub(crate) fn begin(&self, wire: &Wire, id: &str, wanted: &Value) -> io::Result<()> {
        lock(&self.0).insert(id.to_owned(), wanted.clone());
        let params = json!({"_meta": {TAG: read(id)}, "notifications": wanted});
        wire.notify("notifications/subscriptions/acknowledged", &params)
    }

    /// Its client has left; false: there is no such one.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        lock(&self.0).remove(id).is_some()
    }

    /// Tells those that want to hear it.
    pub(crate) fn tell(&self, wire: &Wire, wanted: &str, method: &str) -> io::Result<()> {
        let all = lock(&self.0);
        for (id, _) in all.iter().filter(|(_, wants)| wants[wanted] == true) {
            wire.notify(method, &json!({"_meta": {TAG: read(id)}}))?;
        }
        Ok(())
    }

    /// Ends all of them in order.
    pub(crate) fn end(&self, wire: &Wire) -> io::Result<()> {
        for id in std::mem::take(&mut *lock(&self.0)).into_keys() {
            let result = json!({"resultType": "complete", "_meta": {TAG: read(&id)}});
            wire.respond(&id, &result.to_string())?;
        }
        Ok(())
    }
}

fn read(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}
