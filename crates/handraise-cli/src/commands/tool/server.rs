//! The server's side of the protocol, frame by frame: what is answered at once, and what becomes a call.
//!
//! It is written here and not with an SDK: one tool is a handful of messages, frames are read by the code that stands in
//! front of every other server (S3), and the SDK for this language (`rmcp` 3.11) writes a version of its own into
//! `initialize` and gives up on a whole frame for one odd member.

use std::time::Duration;

use handraise_api::ask::Implementation;
use handraise_core::words::Era;
use handraise_mcp::{
    ClientFrame, Id, RequestId,
    declared::{declared, has_capabilities, is_modern_version},
    frame::error_response,
};
use serde_json::{Value, json};

use super::{
    answer,
    definition::{self, MODERN, NAME, SESSIONS},
    questions::Questions,
};
use crate::asking::Caller;

const INVALID_REQUEST: i32 = -32600;
const UNKNOWN_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_VERSION: i32 = -32022;

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The most bytes that are kept of a client's name or version (S39).
const MAX_NAME_BYTES: usize = 128;

/// What becomes of a frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// This goes back.
    Reply(Vec<u8>),
    /// The tool is called.
    Call(Call),
    /// The client does not want an answer to this request any more.
    Cancelled(RequestId),
}

/// A call of the tool that can be asked.
#[derive(Debug)]
pub(crate) struct Call {
    /// The request.
    pub(crate) id: RequestId,
    /// Under which token its progress is told, as JSON text.
    pub(crate) progress_token: Option<String>,
    /// What is asked.
    pub(crate) questions: Questions,
    /// Who asks, by its own word.
    pub(crate) client: Option<Implementation>,
    /// What the record of it says of who asks.
    pub(crate) caller: Caller,
    era: Era,
}

impl Call {
    /// The response with this result.
    pub(crate) fn response(&self, result: Value) -> Vec<u8> {
        response(self.id.raw(), self.era, result)
    }

    /// The progress notification with this number.
    pub(crate) fn progress(&self, count: u64, message: &str) -> Option<Vec<u8>> {
        let token = self.progress_token.as_deref()?;
        let message = Value::from(message);
        Some(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\
                 \"progress\":{count},\"message\":{message}}}}}"
            )
            .into_bytes(),
        )
    }
}

/// The server of one connection.
#[derive(Debug)]
pub(crate) struct Server {
    timeout: Duration,
    /// Who opened the session, by its own word.
    client: Option<Implementation>,
    caller: Caller,
}

impl Server {
    /// A server whose calls wait so long.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, client: None, caller: Caller { tool: Some(NAME.to_owned()), ..Caller::SILENT } }
    }

    /// Takes a frame of the client.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Step {
        let frame = match ClientFrame::read_line(bytes).and_then(ClientFrame::answerable) {
            Ok(frame) => frame,
            Err(malformed) => return Step::Reply(malformed.reply()),
        };
        let Some(method) = frame.method() else {
            // We ask the client nothing, so that its responses are to nothing.
            return match frame.id() {
                Some(id) if !frame.is_response() => {
                    Step::Reply(error(id, INVALID_REQUEST, "a request has a method", None))
                }
                _ => Step::Nothing,
            };
        };
        let Some(id) = frame.id() else {
            return frame.cancelled().map_or(Step::Nothing, |id| Step::Cancelled(id.to_owned()));
        };
        let era = match era(&frame, id) {
            Ok(era) => era,
            Err(refused) => return Step::Reply(refused),
        };
        let is_modern = era == Era::Mrtr;
        let result = match (method, is_modern) {
            ("initialize", false) => {
                self.client = frame.param_text("clientInfo").and_then(implementation);
                let wanted = frame.param_text("protocolVersion").and_then(text);
                let opened = definition::session(wanted.as_deref(), self.timeout);
                self.caller.declared = declared(frame.param_text("capabilities")).into();
                self.caller.protocol_version = opened["protocolVersion"].as_str().map(str::to_owned);
                opened
            }
            ("ping", false) => json!({}),
            ("server/discover", true) => definition::discovered(self.timeout),
            ("tools/list", _) => definition::tools(self.timeout, is_modern),
            ("tools/call", _) => return self.call(&frame, id, era),
            _ => {
                let message = "this server has tools, and no such method";
                return Step::Reply(error(id, UNKNOWN_METHOD, message, None));
            }
        };
        Step::Reply(response(id.raw(), era, result))
    }

    fn call(&self, frame: &ClientFrame<'_>, id: Id<'_>, era: Era) -> Step {
        let name = frame.param_text("name").and_then(text);
        if name.as_deref() != Some(NAME) {
            let message = format!("the one tool here is {NAME}");
            return Step::Reply(error(id, INVALID_PARAMS, &message, None));
        }
        let (client, caller) = if era == Era::Mrtr {
            let caller = Caller {
                declared: declared(frame.meta(META_CAPABILITIES)).into(),
                protocol_version: Some(MODERN.to_owned()),
                ..self.caller.clone()
            };
            (frame.meta(META_CLIENT).and_then(implementation), caller)
        } else {
            (self.client.clone(), self.caller.clone())
        };
        match Questions::read(frame.param_text("arguments")) {
            Ok(questions) => Step::Call(Call {
                id: id.to_owned(),
                progress_token: frame.progress_token().map(|(token, _)| token.raw().to_owned()),
                questions,
                client,
                caller,
                era,
            }),
            // In the result, where the model reads it and can put it right.
            Err(problem) => Step::Reply(response(id.raw(), era, answer::not_asked(&problem))),
        }
    }
}

/// In which era a request speaks: by its own version, and never by what came before.
fn era(frame: &ClientFrame<'_>, id: Id<'_>) -> Result<Era, Vec<u8>> {
    let Some(version) = frame.meta(META_VERSION) else { return Ok(Era::Push) };
    let Some(version) = text(version) else {
        return Err(error(id, INVALID_PARAMS, &format!("_meta[\"{META_VERSION}\"] is no text"), None));
    };
    match version.as_str() {
        MODERN if has_capabilities(frame) => Ok(Era::Mrtr),
        MODERN => {
            let missing = "_meta[\"io.modelcontextprotocol/clientCapabilities\"] is missing, or is no object";
            Err(error(id, INVALID_PARAMS, missing, None))
        }
        session if SESSIONS.contains(&session) && !is_modern_version(session) => Ok(Era::Push),
        other => {
            let data = json!({"supported": definition::versions(), "requested": cut(other)});
            Err(error(id, UNSUPPORTED_VERSION, "Unsupported protocol version", Some(&data)))
        }
    }
}

fn response(id: &str, era: Era, mut result: Value) -> Vec<u8> {
    if era == Era::Mrtr {
        result["resultType"] = "complete".into();
        result["_meta"] = json!({ META_SERVER: definition::server() });
    }
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

fn error(id: Id<'_>, code: i32, message: &str, data: Option<&Value>) -> Vec<u8> {
    let data = data.map(Value::to_string);
    error_response(id.raw(), code, message, data.as_deref())
}

fn text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME_BYTES)]
}

/// A program's name for itself. A claim: nothing follows from it.
fn implementation(info: &str) -> Option<Implementation> {
    let info: Value = serde_json::from_str(info).ok()?;
    let member = |name| info.get(name).and_then(Value::as_str).map(|text| cut(text).to_owned());
    Some(Implementation { name: member("name")?, version: member("version") })
}

#[cfg(test)]
mod tests {
    use handraise_api::words::Declared;

    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    const QUESTIONS: &str =
        r#""arguments":{"questions":[{"prompt":"Sure?","options":[{"label":"a"},{"label":"b"}]}]}"#;

    fn server() -> Server {
        Server::new(Duration::from_secs(3_300))
    }

    fn take(server: &mut Server, frame: &str) -> Value {
        match server.take(frame.as_bytes()) {
            Step::Reply(reply) => serde_json::from_slice(&reply).unwrap(),
            other => panic!("{frame}: {other:?}"),
        }
    }

    fn request(server: &mut Server, method: &str, params: &str) -> Value {
        take(server, &format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#))
    }

    fn call(server: &mut Server, params: &str) -> Call {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"ask_user_question",{params}}}}}"#
        );
        match server.take(frame.as_bytes()) {
            Step::Call(call) => call,
            other => panic!("{params}: {other:?}"),
        }
    }

    #[test]
    fn a_session_is_opened_in_every_version_that_has_tools() {
        for (wanted, version) in [
            (r#""2025-06-18""#, "2025-06-18"),
            (r#""2025-11-25""#, "2025-11-25"),
            (r#""2024-11-05""#, "2024-11-05"),
            // What rmcp 3.11 writes here, what is unknown, and what is no version.
            (r#""2026-07-28""#, "2025-11-25"),
            (r#""1999-01-01""#, "2025-11-25"),
            ("7", "2025-11-25"),
        ] {
            let opened = request(&mut server(), "initialize", &format!(r#""protocolVersion":{wanted}"#));
            assert_eq!(opened["result"]["protocolVersion"], version, "{wanted}");
            assert_eq!(opened["result"]["capabilities"], json!({"tools": {}}));
            assert_eq!(opened["result"].get("resultType"), None, "no word of the other era");
        }
        assert_eq!(request(&mut server(), "ping", "")["result"], json!({}));
    }

    #[test]
    fn requests_that_describe_themselves_need_no_session() {
        let discovered = request(&mut server(), "server/discover", META);
        assert_eq!(discovered["result"]["supportedVersions"][0], MODERN);
        assert_eq!(discovered["result"]["resultType"], "complete");
        let listed = request(&mut server(), "tools/list", META);
        assert_eq!(listed["result"]["cacheScope"], "private");
        assert_eq!(listed["result"]["_meta"][META_SERVER]["name"], "handraise");
        let called = call(&mut server(), &format!("{META},{QUESTIONS}"));
        assert_eq!(called.client, Some(Implementation { name: "c".into(), version: Some("1".into()) }));
        assert_eq!(called.caller.declared, Declared::None, "it declares, and nothing");
        assert_eq!(called.caller.protocol_version.as_deref(), Some(MODERN));
        let response: Value = serde_json::from_slice(&called.response(json!({"content": []}))).unwrap();
        assert_eq!((&response["id"], &response["result"]["resultType"]), (&json!("x"), &json!("complete")));
    }

    #[test]
    fn a_request_is_refused_for_its_own_version_alone() {
        let refused = request(&mut server(), "tools/list", &META.replace("2026-07-28", "2027-01-01"));
        assert_eq!(refused["error"]["code"], -32022);
        assert_eq!(refused["error"]["data"]["requested"], "2027-01-01");
        assert_eq!(refused["error"]["data"]["supported"][0], MODERN);
        let missing = META.replace("clientCapabilities", "capabilities");
        assert_eq!(request(&mut server(), "tools/list", &missing)["error"]["code"], -32602);
        let number = META.replace("\"2026-07-28\"", "20260728");
        assert_eq!(request(&mut server(), "tools/list", &number)["error"]["code"], -32602);
    }

    #[test]
    fn unknown_methods_and_those_of_the_other_era_are_refused() {
        for (method, params) in [
            ("prompts/list", ""),
            ("resources/list", META),
            ("logging/setLevel", r#""level":"debug""#),
            ("initialize", META),
            ("ping", META),
            ("subscriptions/listen", META),
            ("server/discover", ""),
            ("elicitation/create", ""),
        ] {
            assert_eq!(request(&mut server(), method, params)["error"]["code"], -32601, "{method} {params}");
        }
        let other = request(&mut server(), "tools/call", r#""name":"wipe""#);
        assert_eq!(other["error"]["code"], -32602);
        assert_eq!(take(&mut server(), r#"{"jsonrpc":"2.0","id":7}"#)["error"]["code"], -32600);
    }

    #[test]
    fn s3_what_parsers_read_differently_is_refused() {
        for frame in [
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "{",
        ] {
            assert_eq!(take(&mut server(), frame)["error"]["code"], -32600, "{frame}");
        }
    }

    #[test]
    fn what_needs_no_answer_gets_none() {
        for frame in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}"#,
        ] {
            assert!(matches!(server().take(frame.as_bytes()), Step::Nothing), "{frame}");
        }
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#;
        let Step::Cancelled(id) = server().take(cancelled.as_bytes()) else { panic!() };
        assert_eq!(id.raw(), "\"x\"");
    }

    #[test]
    fn progress_is_told_under_the_clients_own_token() {
        let called = call(&mut server(), &format!(r#"{QUESTIONS},"_meta":{{"progressToken":"a\/b"}}"#));
        let progress: Value = serde_json::from_slice(&called.progress(2, "waiting").unwrap()).unwrap();
        assert_eq!(progress["params"], json!({"progressToken": "a/b", "progress": 2, "message": "waiting"}));
        assert_eq!(call(&mut server(), QUESTIONS).progress(1, "waiting"), None);
    }

    #[test]
    fn the_name_of_the_session_is_that_of_its_calls() {
        let mut server = server();
        request(&mut server, "initialize", r#""clientInfo":{"name":"editor","version":"3"}"#);
        assert_eq!(call(&mut server, QUESTIONS).client.unwrap().name, "editor");
        assert_eq!(call(&mut server, QUESTIONS).caller.declared, Declared::Unknown);
        let forms = r#""protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}"#;
        request(&mut server, "initialize", forms);
        let caller = call(&mut server, QUESTIONS).caller;
        assert_eq!(
            (caller.declared, caller.protocol_version.as_deref()),
            (Declared::Bare, Some("2025-06-18"))
        );
        let long = format!(r#""clientInfo":{{"name":"{}"}}"#, "é".repeat(200));
        request(&mut server, "initialize", &long);
        assert_eq!(call(&mut server, QUESTIONS).client.unwrap().name.len(), MAX_NAME_BYTES);
    }

    #[test]
    fn what_is_wrong_with_the_questions_is_a_result_that_the_model_reads() {
        let refused = request(&mut server(), "tools/call", r#""name":"ask_user_question","arguments":{}"#);
        assert_eq!(refused["result"]["isError"], true);
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("arguments.questions is missing"), "{text}");
    }

    #[test]
    fn the_tool_is_annotated_truthfully_and_found_by_what_it_does() {
        let listed = request(&mut server(), "tools/list", "");
        let [tool] = listed["result"]["tools"].as_array().unwrap().as_slice() else { panic!("{listed}") };
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["annotations"]["destructiveHint"], false);
        assert_eq!(tool.get("outputSchema"), None, "the text says everything");
        let description = tool["description"].as_str().unwrap().to_lowercase();
        for word in ["ask", "human", "user", "question", "clarify", "approval", "decision", "confirm", "55m"]
        {
            assert!(description.contains(word), "{word}");
        }
        assert_eq!(listed["result"].get("ttlMs"), None);
    }
}
