//! Records: one per rail that was tried for an ask (mcp.md, section 9). Never arguments, never answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::words::{Declared, Era, HolderKind, Outcome, Provenance, Rail};

/// Records in one `records.append`, at most.
pub const MAX_RECORDS: usize = 64;
/// Bytes of each name in a record, at most (S39); longer ones are cut.
pub const MAX_NAME_BYTES: usize = 128;

/// One rail that was tried for one ask. Names are what somebody calls themselves or a thing: claims, 128 bytes at most.
// In the page's TypeScript `Record` is another thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RailRecord)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What the caller of this request declared that it can be asked with.
    pub declared: Declared,
    /// The protocol generation of this request.
    pub era: Era,
    /// The rail that was tried.
    pub rail: Rail,
    /// How it ended.
    pub outcome: Outcome,
    /// Who stands behind the outcome. `human` only where the inbox has taken a person's answer to this ask (S15).
    pub provenance: Provenance,
    /// From the question to its end, in milliseconds; absent where nobody waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The refusal's name, where a refusal was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The client's or agent's name for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The protocol version of this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Why, in a word, where the outcome alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The ask that was put into the inbox, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
}

impl Record {
    /// With every name cut to [`MAX_NAME_BYTES`].
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let names = [&mut self.tool, &mut self.refusal, &mut self.client, &mut self.protocol_version];
        for name in names.into_iter().chain([&mut self.reason, &mut self.ask]).flatten() {
            name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        }
        self
    }
}

/// A record as its holder sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedRecord {
    /// Counts the records of this instance from 1: one that comes again is kept once.
    pub seq: u64,
    /// How long ago it was made, in milliseconds.
    #[serde(default)]
    pub ago_ms: u64,
    /// What it says.
    #[serde(flatten)]
    pub record: Record,
}

/// Payload of `records.append`.
#[derive(Debug, Serialize, Deserialize)]
pub struct AppendRecords {
    /// [`NumberedRecord`]s, [`MAX_RECORDS`] at most. One that cannot be read is left out and counted, and keeps no other
    /// from being kept.
    pub records: Vec<Box<RawValue>>,
    /// How many the holder had no room for since the last time that it said so.
    #[serde(default)]
    pub dropped: u64,
}

/// A record as the inbox keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordEntry {
    /// Rises with the time of arrival; some numbers may be missing.
    pub id: u64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who said so.
    pub holder: RecordHolder,
    /// What it says.
    #[serde(flatten)]
    pub record: Record,
}

/// The holder that a record comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordHolder {
    /// What kind of process.
    pub kind: HolderKind,
    /// Its token's name, also when that has been revoked since.
    pub token: String,
    /// Its instance.
    pub instance: String,
}

/// `GET /records`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    /// The latest first.
    pub records: Vec<RecordEntry>,
    /// Pass as `cursor` for earlier ones; `null` where there are none.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_spelled_as_in_the_gateways_log_and_names_are_cut() {
        let text = json!({"declared": "both", "era": "push", "rail": "form", "outcome": "accept", "provenance": "client",
            "latencyMs": 1234, "tool": "é".repeat(100), "refusal": "r", "client": "c",
            "protocolVersion": "2025-11-25", "reason": "x".repeat(127) + "é"});
        let record: Record = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), text);
        let bounded = record.bounded();
        assert_eq!(bounded.tool.map(|tool| tool.len()), Some(128));
        assert_eq!(bounded.reason.map(|reason| reason.len()), Some(127));
        let least = json!({"declared": "unknown", "era": "local", "rail": "inbox", "outcome": "timeout", "provenance": "system"});
        let record: Record = serde_json::from_value(least.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), least);
    }
}
