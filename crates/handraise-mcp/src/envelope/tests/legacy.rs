//! A session that `initialize` opened never sees `input_required`, however a server spells it (mcp.md §8).

use serde_json::json;

use super::seed::modern_call;
use super::*;

const QUESTION: &str = r#"{"resultType":"input_required","requestState":"s","inputRequests":{}}"#;

/// What some parser reads as a question.
const SPELLINGS: [&str; 8] = [
    r#""resultType":"input_required""#,
    r#""resultType":"input\u005frequired""#,
    r#""resultType":"\u0069nput_required""#,
    r#""result\u0054ype":"input_required""#,
    r#""resultType":"complete","resultType":"input_required""#,
    r#""resultType":"input_required","resultType":"complete""#,
    r#""resultType":"complete","ResultType":"input_required""#,
    r#""resultType":"input_required","n":NaN"#,
];

#[track_caller]
fn is_replaced(world: &mut World, id: &str, why: &str) {
    let got = value(&world.client_got());
    assert_eq!(
        (&got["error"]["code"], &got["id"], got.get("result")),
        (&json!(-32603), &value(id), None),
        "{why}"
    );
}

#[test]
fn a_legacy_session_never_sees_input_required() {
    for request in [
        call("1"),
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"u"}}"#.to_owned(),
    ] {
        for spelling in SPELLINGS {
            let mut world = World::push(&json!({}));
            world.client_sends(&request);
            world.upstream.clear();
            world.upstream_sends(&response("1", &format!("{{{spelling}}}")));
            is_replaced(&mut world, "1", spelling);
            assert_eq!(world.envelope.open_requests(), 0);
        }
    }
    // Twice in the frame, or in another case.
    for frame in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"result":{QUESTION}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{QUESTION},"Result":{{}}}}"#),
        format!(r#"{{"result":{QUESTION},"jsonrpc":"2.0","id":1}}"#),
    ] {
        let mut world = World::push(&json!({}));
        world.client_sends(&call("1"));
        world.upstream.clear();
        world.upstream_sends(&frame);
        is_replaced(&mut world, "1", &frame);
    }
}

/// Before, between and behind so much that frames are looked at by their ends.
#[test]
fn a_legacy_session_sees_no_question_in_a_large_result_wherever_it_says_so() {
    let is_hidden = |before: usize, after: usize, filling: &str, spelling: &str| {
        let member =
            |name: &str, length: usize| format!(r#""{name}":"{}""#, filling.repeat(length / filling.len()));
        let mut world = World::push(&json!({}));
        world.client_sends(&call("1"));
        world.upstream.clear();
        let result = format!("{{{},{spelling},{}}}", member("a", before), member("b", after));
        world.upstream_sends(&response("1", &result));
        is_replaced(&mut world, "1", &format!("{before} {after} {filling} {spelling}"));
    };
    for spelling in SPELLINGS {
        is_hidden(140_000, 140_000, "x", spelling);
    }
    for (before, after) in [(0, 300_000), (300_000, 0), (300_000, 300_000)] {
        for (filling, spelling) in [("x", SPELLINGS[1]), ("\\n_", SPELLINGS[0]), ("\\u00e9", SPELLINGS[2])] {
            is_hidden(before, after, filling, spelling);
        }
    }
}

#[test]
fn a_legacy_session_sees_no_question_in_a_second_run_or_a_second_answer() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.upstream_sends(&response("1", REFUSAL));
    let ask = value(&world.client_got())["id"].to_string();
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{}}}"#, accept("A1B2")));
    let private = value(&world.upstream_got())["id"].to_string();
    let large = format!(r#"{{"a":"{0}",{1},"b":"{0}"}}"#, "x".repeat(300_000), SPELLINGS[1]);
    world.upstream_sends(&response(&private, &large));
    is_replaced(&mut world, "1", "the second run");
    // An answer to nothing that is open: under an id that was used twice, or was answered or cancelled before.
    for id in ["1", "\"never\""] {
        world.upstream_sends(&response(id, &large));
        is_replaced(&mut world, id, "no open request");
    }
    // What is a response only to who reads names without their case is none that we could answer.
    world.upstream_sends(&format!(r#"{{"jsonrpc":"2.0","id":1,"Result":{QUESTION}}}"#));
    world.nobody_got_anything();
    // To who describes itself it is an answer.
    let mut world = World::new(config());
    world.client_sends(&modern_call("1", "", &json!({})));
    for frame in
        [response("1", QUESTION), response("1", &large), format!(r#"{{"id":1,"Result":{QUESTION}}}"#)]
    {
        world.upstream_sends(&frame);
        assert_eq!(world.client_got(), frame);
    }
}

#[test]
fn a_result_that_only_talks_about_a_question_is_none() {
    let filling = "x".repeat(300_000);
    for about in [
        r#"{"content":[{"type":"text","text":"input_required"}],"resultType":"complete"}"#.to_owned(),
        r#"{"structuredContent":{"resultType":"input_required"}}"#.to_owned(),
        r#"{"content":[{"type":"text","text":"{\"resultType\":\"input_required\"}"}]}"#.to_owned(),
        format!(r#"{{"a":"{filling}","structuredContent":{QUESTION},"b":"{filling}\u0069nput"}}"#),
    ] {
        let mut world = World::push(&json!({}));
        world.client_sends(&call("1"));
        world.upstream_sends(&response("1", &about));
        assert_eq!(world.client_got(), response("1", &about));
        assert!(world.records.is_empty());
    }
}
