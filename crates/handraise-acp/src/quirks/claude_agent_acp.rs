//! `@agentclientprotocol/claude-agent-acp`. Measured: 0.65.0 and 0.101.0, builders executed 2026-11-29, run with a
//! scripted model 2026-11-30.
//!
//! - Until 0.76 a companion's text stands instead of the selection. From 0.77 both count: a single pick keeps the
//!   text as its note, a multi-select has it appended.
//! - Until 0.80 companions carry the marker `_askUserQuestionCustomAnswer`. From 0.81 (0.80 still did, 0.82 does
//!   not) they carry none, except for clients that declare the `jetbrains.air` extension.
//! - Two forms can be open at once. When an MCP server behind it gives up, it sends `$/cancel_request` for its form.

use handraise_core::form::{CompanionMarker, FormProfile};
use handraise_core::words::Companion;

use super::{Agent, Quirks, Version};

/// What it calls itself.
pub const NAME: &str = "@agentclientprotocol/claude-agent-acp";

/// The first version that adds a companion's text to the selection.
const ADDS_SINCE: Version = Version::release(0, 77);
/// The first version whose companions are told by their key alone.
const UNMARKED_SINCE: Version = Version::release(0, 81);

/// The extension's marker, nested and, in case a client library flattens it, with a dotted key.
const AIR: CompanionMarker =
    CompanionMarker::Meta { question: &["jetbrains", "air", "customAnswer", "questionId"], when: &[] };
const AIR_DOTTED: CompanionMarker =
    CompanionMarker::Meta { question: &["jetbrains.air", "customAnswer", "questionId"], when: &[] };

const MARKED: &[CompanionMarker] = &[FormProfile::CUSTOM_ANSWER, AIR, AIR_DOTTED];
const UNMARKED: &[CompanionMarker] =
    &[FormProfile::CUSTOM_ANSWER, AIR, AIR_DOTTED, CompanionMarker::Suffix("_custom")];

/// Decides by version; one that cannot be read gets what every version understands.
pub(super) fn quirks(version: Option<Version>) -> Quirks {
    let since = |first: Version| version.is_some_and(|version| version >= first);
    let form = FormProfile {
        companion: if since(ADDS_SINCE) { Companion::Adds } else { Companion::Replaces },
        markers: if since(UNMARKED_SINCE) { UNMARKED } else { MARKED },
        ..FormProfile::acp()
    };
    Quirks { agent: Agent::ClaudeAgentAcp, form, ..Quirks::default() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decided;
    use super::*;

    #[test]
    fn companions_add_from_0_77_on() {
        let companion = |version| decided(NAME, version).form.companion;
        for version in ["0.65.0", "0.76.9", "0.77.0-rc.1", "garbage", ""] {
            assert_eq!(companion(version), Companion::Replaces, "{version}");
        }
        for version in ["0.77.0", "0.101.0", "1.0.0"] {
            assert_eq!(companion(version), Companion::Adds, "{version}");
        }
    }

    #[test]
    fn companions_are_told_by_suffix_from_0_81_on() {
        let by_suffix =
            |version| decided(NAME, version).form.markers.contains(&CompanionMarker::Suffix("_custom"));
        assert!(["0.65.0", "0.80.0", "0.81.0-beta.2", "garbage"].iter().all(|version| !by_suffix(version)));
        assert!(["0.81.0", "0.82.0", "0.101.0", "1.0.0"].iter().all(|version| by_suffix(version)));
    }
}
