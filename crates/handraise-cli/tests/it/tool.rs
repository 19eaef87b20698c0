//! `handraise tool`: the real server on a pipe, in both eras, with the inbox behind it.

use std::{
    io::Write as _,
    process::{ChildStdin, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    Collected, Ending, Home, Up, alive, initialize, modern, pick, say, skip, terminate, wait_for,
};

/// A running server, and us as its client.
struct Tool {
    child: Ending,
    stdin: Option<ChildStdin>,
    stdout: Collected,
    log: Collected,
}

impl Tool {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.handraise(&[&["tool"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Collected::from(child.stdout.take().unwrap());
        let log = Collected::from(child.stderr.take().unwrap());
        Self { stdin: child.stdin.take(), child: Ending(child), stdout, log }
    }

    fn send(&mut self, frame: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{frame}").unwrap();
    }

    /// The response to a request.
    #[track_caller]
    fn response(&self, id: &Value) -> Value {
        wait_for(&format!("response to {id}"), || self.frames().into_iter().find(|frame| &frame["id"] == id))
    }

    fn frames(&self) -> Vec<Value> {
        self.stdout.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the result of a call says, and whether it is an error.
    #[track_caller]
    fn told(&self, id: &Value) -> (Value, bool) {
        let result = self.response(id)["result"].clone();
        let text = result["content"][0]["text"].as_str().unwrap();
        (serde_json::from_str(text).unwrap(), result["isError"].as_bool().unwrap())
    }

    fn call(&mut self, id: u64) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call()}));
    }

    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        let child = &mut self.child.0;
        wait_for("the end of handraise tool", || child.try_wait().unwrap()).code()
    }
}

/// The parameters of a call.
fn call() -> Value {
    json!({"name": "ask_user_question", "arguments": {"questions": [
        {"id": "db", "prompt": "Which database?", "options": [{"label": "Postgres"}, {"label": "SQLite"}]},
    ]}})
}

#[test]
fn f3_ac57_a_session_and_a_request_that_describes_itself_get_the_humans_answer() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut tool = Tool::start(&home, &[]);

    tool.send(&initialize("2025-06-18", &json!({})));
    assert_eq!(tool.response(&json!("init"))["result"]["protocolVersion"], "2025-06-18");
    tool.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    tool.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let listed = tool.response(&json!(1))["result"]["tools"][0].clone();
    assert_eq!(
        (&listed["name"], &listed["annotations"]["readOnlyHint"]),
        (&json!("ask_user_question"), &json!(true))
    );

    tool.call(2);
    let ask = up.wait_for_ask();
    assert_eq!((&ask["source"], &ask["origin"]["holder"]), (&json!("tool"), &json!("tool")));
    assert_eq!(ask["origin"]["client"], json!({"name": "tests", "version": "1"}));
    assert_eq!(ask["allows_text_with_selection"], false);
    assert_eq!(ask["message"], "Which database?");
    let both =
        json!({"answers": [{"question_id": "db", "selected_options": ["SQLite"], "custom_text": "x"}]});
    assert_eq!(up.answer(&ask, &both).status, 422, "a pick or words");
    assert_eq!(up.answer(&ask, &pick("db", &["SQLite"])).status, 200);
    let (told, is_error) = tool.told(&json!(2));
    assert!(!is_error);
    assert_eq!(told["answers"], json!([{"id": "db", "prompt": "Which database?", "selected": ["SQLite"]}]));
    assert_eq!((&told["provenance"], &told["by"]), (&json!("client"), &json!("tests")));

    tool.send(&modern(&json!(3), "server/discover", &json!({})).0);
    assert_eq!(tool.response(&json!(3))["result"]["supportedVersions"][0], "2026-07-28");
    tool.send(&modern(&json!("four"), "tools/call", &call()).0);
    assert_eq!(up.answer(&up.wait_for_ask(), &say("db", "none at all")).status, 200);
    assert_eq!(tool.response(&json!("four"))["result"]["resultType"], "complete");
    assert_eq!(tool.told(&json!("four")).0["answers"][0]["text"], "none at all");

    let records = wait_for("records of both", || {
        let records = up.get("/records")["records"].as_array().cloned().unwrap();
        (records.len() == 2).then_some(records)
    });
    let of_the_session = records.iter().find(|record| record["ask"] == ask["id"]).unwrap();
    for (member, value) in [
        ("era", "local"),
        ("rail", "inbox"),
        ("outcome", "accept"),
        ("provenance", "client"),
        ("tool", "ask_user_question"),
        ("client", "tests"),
        ("declared", "none"),
        ("protocolVersion", "2025-06-18"),
    ] {
        assert_eq!(of_the_session[member], value, "{member}");
    }

    tool.call(5);
    assert_eq!(up.answer(&up.wait_for_ask(), &skip()).status, 200);
    let (told, is_error) = tool.told(&json!(5));
    assert_eq!((&told["answers"], &told["outcome"], is_error), (&json!([]), &json!("decline"), false));
}

#[test]
fn a_cancelled_call_and_a_client_that_goes_take_their_questions_back() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut tool = Tool::start(&home, &[]);
    tool.call(1);
    let ask = up.wait_for_ask();
    tool.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!(
        (&settlement["outcome"], &settlement["reason"]),
        (&json!("cancel"), &json!("request_cancelled"))
    );

    tool.call(2);
    tool.call(3);
    let asks = up.wait_for_asks(2);
    tool.stdin = None;
    for ask in &asks {
        let settlement = up.wait_for_settlement(ask);
        assert_eq!(
            (&settlement["outcome"], &settlement["reason"]),
            (&json!("withdrawn"), &json!("agent_disconnected"))
        );
    }
    assert_eq!(tool.end(), Some(0), "{}", tool.log.text());
    assert_eq!(tool.frames(), [] as [Value; 0], "what was taken back is not answered");

    let mut tool = Tool::start(&home, &[]);
    tool.call(1);
    let ask = up.wait_for_ask();
    terminate(tool.child.0.id());
    assert_eq!(up.wait_for_settlement(&ask)["reason"], "shutdown");
    let (told, is_error) = tool.told(&json!(1));
    assert!(is_error && told["message"].as_str().unwrap().contains("handraise was stopped"), "{told}");
    assert_eq!(tool.end(), Some(0));
}

#[test]
fn without_an_inbox_the_tool_is_there_and_says_how_to_get_one_and_silence_is_no_answer() {
    let home = Home::new();
    let mut tool = Tool::start(&home, &["--timeout", "200ms"]);
    tool.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(tool.response(&json!(1))["result"]["tools"][0]["name"], "ask_user_question");
    tool.call(2);
    let (told, is_error) = tool.told(&json!(2));
    assert!(is_error);
    assert_eq!((&told["answers"], &told["outcome"]), (&json!([]), &json!("not_offered")));
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("start one with `handraise up`"), "{message}");

    let up = Up::start(&home);
    tool.call(3);
    let (told, is_error) = tool.told(&json!(3));
    assert!(is_error);
    assert_eq!((&told["outcome"], &told["provenance"]), (&json!("timeout"), &json!("system")));
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("Nobody answered within 200ms") && message.contains("no consent"), "{message}");
    assert!(alive(tool.child.0.id()));
    drop(up);
}
