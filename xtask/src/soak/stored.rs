//! What the inbox says of asks in the end, read over its API.

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::judge::Stored;
use crate::http::Connection;

/// Every ask, settled or not.
pub(super) fn read(url: &str, token: &str) -> anyhow::Result<Vec<Stored>> {
    let mut connection = Connection::open(url, token)?;
    let mut all = Vec::new();
    for state in ["open", "settled"] {
        let mut cursor = None;
        loop {
            let after: String = cursor.map(|cursor: String| format!("&cursor={cursor}")).unwrap_or_default();
            let page = connection.call("GET", &format!("/api/v1/asks?state={state}&limit=500{after}"), "")?;
            all.extend(page["asks"].as_array().into_iter().flatten().map(stored));
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(all)
}

/// How many are open, by the list and by the metrics, which must agree.
pub(super) fn open(url: &str, token: &str) -> anyhow::Result<usize> {
    let mut connection = Connection::open(url, token)?;
    let page = connection.call("GET", "/api/v1/asks?state=open&limit=500", "")?;
    let listed = page["asks"].as_array().context("no list of asks")?.len();
    let metrics = connection.text("/metrics")?;
    let counted = metrics.lines().find_map(|line| line.strip_prefix("handraise_asks_open "));
    if listed == 0 && counted.is_none_or(|count| count.trim() != "0") {
        bail!("no ask is listed as open, and the metrics say {counted:?}");
    }
    Ok(listed)
}

fn stored(ask: &Value) -> Stored {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let settlement = &ask["settlement"];
    Stored {
        id: word(&ask["id"]),
        name: word(&ask["message"]),
        state: word(&ask["state"]),
        outcome: word(&settlement["outcome"]),
        provenance: word(&settlement["provenance"]),
        text: settlement["answers"][0]["custom_text"].as_str().map(str::to_owned),
        is_held: ask["holder_connected"] == true,
    }
}
