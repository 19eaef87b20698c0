//! Records: one per rail that was tried for an ask (mcp.md §9). Never arguments, never answers.

use handraise_core::words::{Declared, Era, Outcome, Provenance, Rail};
use serde::Serialize;

use crate::declared::Party;
use crate::visible;

/// What a log line with a record begins with.
pub const LINE_PREFIX: &str = "[elicitation] ";

/// The most bytes of a name that is kept (S39).
pub const MAX_NAME_BYTES: usize = 128;

/// One rail that was tried for one ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the caller of this request declared.
    pub declared: Declared,
    /// The protocol generation of this request.
    pub era: Era,
    /// The rail that was tried.
    pub rail: Rail,
    /// How it ended.
    pub outcome: Outcome,
    /// Who stands behind the outcome.
    pub provenance: Provenance,
    /// From the question to its answer, in milliseconds.
    pub latency_ms: Option<u64>,
    /// The tool that was called.
    pub tool: String,
    /// The refusal's name, where a refusal was asked about.
    pub refusal: Option<String>,
    /// The client's name for itself. A claim.
    pub client: Option<String>,
    /// The protocol version of this request.
    pub protocol_version: Option<String>,
    /// Why, where the outcome alone does not say it: one of a closed set of words.
    pub reason: Option<&'static str>,
    /// The key under which the inbox was asked, where it was. It stands in no log.
    pub ask: Option<String>,
}

/// Takes records, wherever they go.
pub trait Recorder {
    /// Keeps one record.
    fn record(&self, record: &Record);
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    declared: &'static str,
    era: &'static str,
    rail: &'static str,
    outcome: &'static str,
    provenance: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl Record {
    /// A record about a call of a party's, without latency, refusal and reason.
    pub fn of(party: &Party, tool: String, rail: Rail, outcome: Outcome, provenance: Provenance) -> Self {
        Self {
            declared: party.declared,
            era: party.era,
            rail,
            outcome,
            provenance,
            latency_ms: None,
            tool,
            refusal: None,
            client: party.client.clone(),
            protocol_version: party.version.clone(),
            reason: None,
            ask: None,
        }
    }

    /// How long somebody was waited for, where anybody was.
    pub fn waited_ms(&self) -> Option<u64> {
        self.latency_ms.filter(|_| was_waited_for(self.outcome))
    }

    /// The record of a question that was taken back after it had been answered: how it was answered, and why nothing was done
    /// with that.
    #[must_use]
    pub fn answered(self, outcome: Outcome, provenance: Provenance) -> Self {
        Self { outcome, provenance, reason: self.reason.or(Some("too-late")), ..self }
    }

    /// The record as compact JSON on one line. Controls and bidi characters of foreign names are escaped; names are cut
    /// after [`MAX_NAME_BYTES`]; outcomes that nobody waited for have no latency.
    pub fn to_json(&self) -> String {
        let wire = Wire {
            declared: self.declared.as_str(),
            era: self.era.as_str(),
            rail: self.rail.as_str(),
            outcome: self.outcome.as_str(),
            provenance: self.provenance.as_str(),
            latency_ms: self.waited_ms(),
            tool: cut(&self.tool),
            refusal: self.refusal.as_deref().map(cut),
            client: self.client.as_deref().map(cut),
            protocol_version: self.protocol_version.as_deref().map(cut),
            reason: self.reason,
        };
        // A struct of strings and numbers has JSON.
        visible::json(&serde_json::to_string(&wire).unwrap_or_default())
    }

    /// The record's line in a log.
    pub fn to_line(&self) -> String {
        format!("{LINE_PREFIX}{}", self.to_json())
    }
}

const fn was_waited_for(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::NotOffered | Outcome::Asked | Outcome::Disabled | Outcome::Remembered)
}

/// The beginning of a name.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_before_it_was_taken_back_says_so_and_why_nothing_was_done() {
        let party = Party { declared: Declared::None, era: Era::Push, client: None, version: None };
        let taken_back = |outcome, reason| {
            let record = Record::of(&party, "t".into(), Rail::Inbox, outcome, Provenance::Client);
            Record { reason, latency_ms: Some(9), ..record }.answered(Outcome::Accept, Provenance::Human)
        };
        let record = taken_back(Outcome::Withdrawn, Some("call-cancelled"));
        assert_eq!((record.outcome, record.provenance), (Outcome::Accept, Provenance::Human));
        assert_eq!((record.reason, record.latency_ms), (Some("call-cancelled"), Some(9)));
        assert_eq!(taken_back(Outcome::Timeout, None).reason, Some("too-late"));
    }

    fn record() -> Record {
        Record {
            declared: Declared::Both,
            era: Era::Push,
            rail: Rail::Form,
            outcome: Outcome::Accept,
            provenance: Provenance::Client,
            latency_ms: Some(1234),
            tool: "tapOn".into(),
            refusal: Some("ambiguous_device_target".into()),
            client: Some("ExampleClient".into()),
            protocol_version: Some("2025-11-25".into()),
            reason: None,
            ask: Some("hr-inbox-1".into()),
        }
    }

    #[test]
    fn a_record_is_one_line_of_camel_case_json() {
        assert_eq!(
            record().to_line(),
            concat!(
                r#"[elicitation] {"declared":"both","era":"push","rail":"form","outcome":"accept","provenance":"client","#,
                r#""latencyMs":1234,"tool":"tapOn","refusal":"ambiguous_device_target","client":"ExampleClient","#,
                r#""protocolVersion":"2025-11-25"}"#
            )
        );
    }

    #[test]
    fn what_nobody_waited_for_has_no_latency() {
        for outcome in Outcome::ALL {
            let json = Record { outcome: *outcome, ..record() }.to_json();
            let is_instant = ["not_offered", "asked", "disabled", "remembered"].contains(&outcome.as_str());
            assert_eq!(json.contains("latencyMs"), !is_instant, "{json}");
        }
        let unknown = Record {
            outcome: Outcome::NotOffered,
            refusal: None,
            client: None,
            protocol_version: None,
            reason: Some("duplicate-key"),
            ..record()
        };
        assert_eq!(
            unknown.to_json(),
            r#"{"declared":"both","era":"push","rail":"form","outcome":"not_offered","provenance":"client","tool":"tapOn","reason":"duplicate-key"}"#
        );
    }

    #[test]
    fn s42_foreign_names_do_nothing_but_appear() {
        let client = "Evil\u{1b}[2J\u{9b}\u{7f}\u{202e}\n\"";
        let json = Record { client: Some(client.into()), ..record() }.to_json();
        assert!(!json.contains(visible::is_hazardous), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["client"], client);
    }

    #[test]
    fn s39_names_are_kept_to_128_bytes() {
        let json =
            Record { client: Some("é".repeat(100)), tool: "a".repeat(127) + "é", ..record() }.to_json();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["client"].as_str().map(str::len), Some(128));
        assert_eq!(value["tool"].as_str(), Some("a".repeat(127).as_str()));
    }
}
