//! Calls that are open at the same time, while one of them, or each, is asked about.

use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, modern};

const FIRST: &str = "emulator-5554";
const SECOND: &str = "A1B2-C3D4";
const UNHURRIED: [(&str, &str); 1] = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];

/// A gateway in front of a process, and one in front of a URL.
fn ways() -> [fn(&Home) -> Front; 2] {
    [
        |home| Front::start_with(home, &FrontSetup { variables: &UNHURRIED, ..FrontSetup::default() }),
        |home| Front::in_front_of(home, &home.server(&[]), &UNHURRIED),
    ]
}

/// A session of a client that can be asked.
struct Session<'a> {
    front: &'a Front,
    id: String,
}

impl<'a> Session<'a> {
    fn open(front: &'a Front) -> Self {
        Self { front, id: front.initialize("2025-11-25", &json!({"elicitation": {}}), &[]) }
    }

    fn post(&self, frame: &Value) -> Connection {
        self.front.post(&[("Mcp-Session-Id", &self.id)], frame)
    }

    fn call(&self, id: u64, tool: &str, arguments: &Value) -> Connection {
        let meta = json!({"progressToken": id});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    /// A call that asks: its stream, and the id of the question.
    #[track_caller]
    fn asks(&self, id: u64, tool: &str, arguments: &Value) -> (Connection, Value) {
        let mut stream = self.call(id, tool, arguments);
        stream.stream();
        let question = stream.event().unwrap().frame();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (stream, question["id"].clone())
    }

    #[track_caller]
    fn accept(&self, question: &Value, content: &Value) {
        let result = json!({"action": "accept", "content": content});
        let answer = json!({"jsonrpc": "2.0", "id": question, "result": result});
        assert_eq!(self.post(&answer).head().status, 202);
    }

    /// A call of three steps is done from its first progress to its answer.
    #[track_caller]
    fn swipes(&self, id: u64) {
        let arguments = json!({"steps": 3, "pauseMs": 1, "deviceId": FIRST});
        let mut stream = self.call(id, "swipe", &arguments);
        stream.stream();
        for progress in 1..=3 {
            let frame = stream.event().unwrap().frame();
            assert_eq!(frame["params"], json!({"progressToken": id, "progress": progress, "total": 3}));
        }
        assert_ends(&mut stream, id, &format!("swiped on {FIRST}"));
    }
}

/// The last thing on a stream is the answer to its call.
#[track_caller]
fn assert_ends(stream: &mut Connection, id: u64, text: &str) {
    let answer = stream.event().expect("an answer").frame();
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(id), &json!(text)),
        "{answer}"
    );
    assert_eq!(stream.event(), None);
}

#[test]
fn calls_of_a_session_go_on_while_others_are_asked_about_and_each_answer_goes_to_its_own() {
    for way in ways() {
        let home = Home::new();
        let front = way(&home);
        let session = Session::open(&front);
        let (mut one, of_one) = session.asks(1, "tapOn", &json!({"text": "one"}));
        session.swipes(2);
        let (mut three, of_three) = session.asks(3, "tapOn", &json!({"text": "three"}));
        session.swipes(4);
        // The later one is answered first, and differently.
        session.accept(&of_three, &json!({"deviceId": SECOND}));
        assert_ends(&mut three, 3, &format!("tapped \"three\" on {SECOND}"));
        session.swipes(5);
        session.accept(&of_one, &json!({"deviceId": FIRST}));
        assert_ends(&mut one, 1, &format!("tapped \"one\" on {FIRST}"));
        assert_eq!((front.count("tapOn"), front.count("swipe")), (4, 3));
        assert_eq!(front.outcomes(2), ["accept", "accept"]);
    }
}

#[test]
fn a_servers_own_question_beside_one_of_ours_goes_with_its_call_and_both_are_answered() {
    for way in ways() {
        let home = Home::new();
        let front = way(&home);
        let session = Session::open(&front);
        let (mut tap, of_tap) = session.asks(1, "tapOn", &json!({"text": "OK"}));
        let (mut ask, of_ask) = session.asks(2, "ask", &json!({"askId": 7}));
        let (mut again, of_again) = session.asks(3, "ask", &json!({"askId": "7"}));
        session.swipes(4);
        assert_eq!((&of_ask, &of_again), (&json!(7), &json!("7")), "a server's ids are its own");
        let said = |colour: &str| json!({"action": "accept", "content": {"colour": colour}}).to_string();
        session.accept(&of_again, &json!({"colour": "red"}));
        assert_ends(&mut again, 3, &said("red"));
        session.accept(&of_tap, &json!({"deviceId": SECOND}));
        assert_ends(&mut tap, 1, &format!("tapped \"OK\" on {SECOND}"));
        session.accept(&of_ask, &json!({"colour": "blue"}));
        assert_ends(&mut ask, 2, &said("blue"));
        assert_eq!(front.count("tapOn"), 2);
    }
}

#[test]
fn what_one_session_has_declined_another_is_asked() {
    for way in ways() {
        let home = Home::new();
        let front = way(&home);
        let [one, two] = [Session::open(&front), Session::open(&front)];
        let tap = json!({"text": "OK"});
        let (mut stream, question) = one.asks(1, "tapOn", &tap);
        let declined = json!({"jsonrpc": "2.0", "id": question, "result": {"action": "decline"}});
        assert_eq!(one.post(&declined).head().status, 202);
        let refusal = stream.event().unwrap().frame()["result"].clone();
        assert!(refusal["content"][0]["text"].as_str().unwrap().contains("ambiguous_device_target"));
        // Here it is remembered, and there it is not known.
        assert_eq!(one.call(2, "tapOn", &tap).answer_in_time()["result"], refusal);
        let (mut stream, question) = two.asks(2, "tapOn", &tap);
        two.accept(&question, &json!({"deviceId": SECOND}));
        assert_ends(&mut stream, 2, &format!("tapped \"OK\" on {SECOND}"));
        assert_eq!(front.outcomes(3), ["decline", "remembered", "accept"]);
    }
}

/// What a client of the modern era calls, under the one id that all of them use.
fn described(front: &Front, text: &str, more: &Value) -> Connection {
    let tool = if more["_meta"].is_object() { "swipe" } else { "tapOn" };
    let mut params = json!({"name": tool, "arguments": {"text": text}});
    if tool == "swipe" {
        params["arguments"] = json!({"steps": 40, "pauseMs": 20, "deviceId": FIRST});
    }
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (frame, headers) = modern(&json!(1), "tools/call", &params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&headers, &frame)
}

#[test]
fn a_modern_client_goes_on_while_another_is_asked_and_each_gets_its_own() {
    for way in ways() {
        let home = Home::new();
        let front = way(&home);
        let mut swiping = described(&front, "", &json!({"_meta": {"progressToken": 1}}));
        swiping.stream();
        let progress =
            |stream: &mut Connection| stream.event().unwrap().frame()["params"]["progress"].clone();
        assert_eq!(progress(&mut swiping), 1);
        // Two others are asked meanwhile, and answer in the other order.
        let states = ["one", "two"].map(|text| {
            let asked = described(&front, text, &json!({})).answer_in_time();
            assert_eq!((&asked["id"], &asked["result"]["resultType"]), (&json!(1), &json!("input_required")));
            asked["result"]["requestState"].clone()
        });
        for (at, text, device) in [(1, "two", SECOND), (0, "one", FIRST)] {
            let choice = json!({"action": "accept", "content": {"deviceId": device}});
            let retry = json!({"requestState": states[at], "inputResponses": {"deviceChoice": choice}});
            let tapped = described(&front, text, &retry).answer_in_time();
            let expected = json!(format!("tapped \"{text}\" on {device}"));
            assert_eq!((&tapped["id"], &tapped["result"]["content"][0]["text"]), (&json!(1), &expected));
        }
        // The first one has been going on, and is not done.
        for step in 2..=40 {
            assert_eq!(progress(&mut swiping), step);
        }
        assert_ends(&mut swiping, 1, &format!("swiped on {FIRST}"));
        assert_eq!((front.count("tapOn"), front.count("swipe")), (4, 1));
    }
}
