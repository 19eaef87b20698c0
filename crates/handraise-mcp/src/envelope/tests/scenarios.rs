//! Seed 000: every way in which the question about a device ends, in both eras. The envelope's own tests run the table, and
//! those of the real processes, over each way to the client and to the server.

/// How a client answers the question about a device.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// This result, after a second.
    Result(String),
    /// The question itself failed: an error response, or (modern) no answer in the retry.
    Failed,
    /// None, until the question ends: after 20 s, or (modern) after ten minutes, when an acceptance comes too late.
    Late,
    /// The call is cancelled instead. A modern one is over by then, and nothing is in flight.
    Cancelled,
}

/// How a question ends.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) reply: Reply,
    /// The device that the call runs with; `None`: the original refusal, and nothing runs.
    pub(crate) runs_with: Option<&'static str>,
    /// The record in the push era, and in the modern one where it differs.
    pub(crate) record: &'static str,
    pub(crate) modern_record: Option<&'static str>,
}

/// An acceptance of a device.
pub(crate) fn accept(device: &str) -> String {
    format!(r#"{{"action":"accept","content":{{"deviceId":"{device}"}}}}"#)
}

pub(crate) fn scenarios() -> Vec<Scenario> {
    let result = |name, reply: &str, runs_with, record| Scenario {
        name,
        reply: Reply::Result(reply.to_owned()),
        runs_with,
        record,
        modern_record: None,
    };
    let invalid = |name, reply: &str, record| result(name, reply, None, record);
    vec![
        result("accept of the first", &accept("emulator-5554"), Some("emulator-5554"), "accept client"),
        result("accept of the second", &accept("A1B2"), Some("A1B2"), "accept client"),
        result("decline", r#"{"action":"decline"}"#, None, "decline client"),
        result("cancel", r#"{"action":"cancel"}"#, None, "cancel client"),
        result(
            "decline with content",
            r#"{"action":"decline","content":{"deviceId":"A1B2"}}"#,
            None,
            "decline client",
        ),
        invalid("a device that was not offered", &accept("rogue"), "invalid client choice-not-offered"),
        invalid("another case", &accept("a1b2"), "invalid client choice-not-offered"),
        invalid("an empty map", "{}", "invalid client answer-malformed"),
        invalid("no content", r#"{"action":"accept"}"#, "invalid client answer-malformed"),
        invalid("null content", r#"{"action":"accept","content":null}"#, "invalid client answer-malformed"),
        invalid("empty content", r#"{"action":"accept","content":{}}"#, "invalid client answer-missing"),
        invalid(
            "a number",
            r#"{"action":"accept","content":{"deviceId":5}}"#,
            "invalid client answer-malformed",
        ),
        invalid(
            "a list",
            r#"{"action":"accept","content":{"deviceId":["A1B2"]}}"#,
            "invalid client answer-malformed",
        ),
        invalid(
            "twice",
            r#"{"action":"accept","content":{"deviceId":"A1B2","deviceId":"A1B2"}}"#,
            "invalid client answer-malformed",
        ),
        invalid(
            "another action",
            r#"{"action":"Accept","content":{"deviceId":"A1B2"}}"#,
            "invalid client answer-malformed",
        ),
        invalid("a string", r#""accept""#, "invalid client answer-malformed"),
        invalid("null", "null", "invalid client answer-malformed"),
        Scenario {
            name: "a failed ask",
            reply: Reply::Failed,
            runs_with: None,
            record: "error client client-error",
            modern_record: Some("invalid client answer-missing"),
        },
        Scenario {
            name: "no answer in time",
            reply: Reply::Late,
            runs_with: None,
            record: "timeout system",
            modern_record: Some("invalid client state-expired"),
        },
        Scenario {
            name: "a cancelled call",
            reply: Reply::Cancelled,
            runs_with: None,
            record: "withdrawn client call-cancelled",
            modern_record: None,
        },
    ]
}
