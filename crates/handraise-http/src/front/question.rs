//! What a server is asked by us, on behalf of a request that waits for the answer.

use bytes::Bytes;
use handraise_mcp::{
    declared::{FIRST_MODERN, modern_version},
    frame::ClientFrame,
};
use serde_json::{Map, Value};

use super::known::{Held, Need, Tells};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A request of ours.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) tells: Tells,
    /// On behalf of which request.
    pub(crate) key: u64,
    method: &'static str,
    params: String,
}

impl Question {
    /// The question whose answer `tells` what `held` waits for; `cursor`: from where on.
    pub(super) fn new(tells: Tells, held: &Held, cursor: Option<String>) -> Self {
        let mut params = Map::new();
        params.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.into())));
        params.extend(meta(&held.frame, tells.what).map(|meta| ("_meta".to_owned(), meta.into())));
        let method = match tells.what {
            Need::Tools => "tools/list",
            Need::Versions => "server/discover",
        };
        Self { tells, key: held.key, method, params: Value::Object(params).to_string() }
    }

    /// The frame, under an id that is JSON text.
    pub(crate) fn frame(&self, id: &str) -> Bytes {
        let Self { method, params, .. } = self;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}").into()
    }
}

/// The `_meta` of our question: that of the request which waits, without its progress token, for nobody waits for the
/// progress of ours; and versions are asked for in the first of them.
fn meta(frame: &[u8], need: Need) -> Option<Map<String, Value>> {
    let frame = ClientFrame::read(frame).ok()?;
    let version = modern_version(&frame)?;
    let mut meta: Map<String, Value> = serde_json::from_str(frame.param_text("_meta")?).ok()?;
    meta.remove("progressToken");
    let version = if need == Need::Versions { FIRST_MODERN.to_owned() } else { version };
    meta.insert(META_VERSION.to_owned(), version.into());
    Some(meta)
}
