//! `subscriptions/listen`: streams of 2026-07-28 that stay open, several of which share a server.

use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, modern, wait_for};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";
/// Three subscriptions at the most.
const THREE: [(&str, &str); 1] = [("HANDRAISE_MCP__SUBSCRIPTIONS", "3")];

fn post(front: &Front, id: &Value, method: &str, params: &Value) -> Connection {
    let (frame, headers) = modern(id, method, params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&headers, &frame)
}

/// Subscribes to changes of something; the stream once it was acknowledged under the client's own id.
#[track_caller]
fn listen(front: &Front, id: &Value, what: &str) -> Connection {
    let wanted = json!({ what: true });
    let mut stream = post(front, id, "subscriptions/listen", &json!({"notifications": wanted}));
    stream.stream();
    let acknowledged = stream.event().unwrap().frame();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(
        (&acknowledged["params"]["_meta"][TAG], &acknowledged["params"]["notifications"]),
        (id, &wanted)
    );
    stream
}

#[track_caller]
fn notify(front: &Front, arguments: &Value) {
    let answer = post(front, &json!(1), "tools/call", &json!({"name": "notify", "arguments": arguments}))
        .answer_in_time();
    assert_eq!(answer["result"]["content"][0]["text"], "notified", "{answer}");
}

/// The next thing that a subscription is told, which is tagged with its own id.
#[track_caller]
fn assert_changed(stream: &mut Connection, id: &Value) {
    let changed = stream.event().unwrap().frame();
    assert_eq!(changed["method"], "notifications/tools/list_changed", "{changed}");
    assert_eq!(changed["params"]["_meta"][TAG], *id, "{changed}");
}

#[test]
fn s6_subscriptions_that_share_a_server_are_told_their_own_under_their_own_ids() {
    let at_a_url = |home: &Home| Front::in_front_of(home, &home.server(&[]), &THREE);
    let of_a_process =
        |home: &Home| Front::start_with(home, &FrontSetup { variables: &THREE, ..FrontSetup::default() });
    let ways: [&dyn Fn(&Home) -> Front; 2] = [&of_a_process, &at_a_url];
    for way in ways {
        let home = Home::new();
        let front = way(&home);
        // Clients know nothing of each other, and number alike.
        let ids = [json!(1), json!("1"), json!(1)];
        let mut tools = listen(&front, &ids[0], "toolsListChanged");
        let mut other = listen(&front, &ids[1], "toolsListChanged");
        let mut prompts = listen(&front, &ids[2], "promptsListChanged");
        notify(&front, &json!({}));
        assert_changed(&mut tools, &ids[0]);
        assert_changed(&mut other, &ids[1]);
        // There is no place for a fourth before one leaves, which cancels it.
        let mut refused = post(&front, &json!(9), "subscriptions/listen", &json!({"notifications": {}}));
        let head = refused.head();
        assert_eq!((head.status, head.header("retry-after")), (503, "5"));
        assert_eq!(front.metric("refused_total{reason=\"subscriptions\"}"), 1);
        drop(tools);
        wait_for("its cancel", || (front.cancelled("subscriptions/listen") == 1).then_some(()));
        let mut again = listen(&front, &json!("another"), "toolsListChanged");
        notify(&front, &json!({"endSubscriptions": true}));
        assert_changed(&mut other, &ids[1]);
        assert_changed(&mut again, &json!("another"));
        // The server ends them in order: a result with the same tag, and nothing behind it.
        for (stream, id) in [(&mut other, &ids[1]), (&mut again, &json!("another")), (&mut prompts, &ids[2])]
        {
            let ended = stream.event().unwrap().frame();
            assert_eq!((&ended["id"], &ended["result"]["_meta"][TAG]), (id, id), "{ended}");
            assert_eq!(stream.event(), None);
        }
        assert_eq!((front.count("subscriptions/listen"), front.cancelled("subscriptions/listen")), (4, 1));
        assert_eq!(front.metric("shared_servers"), 1);
        assert_eq!(front.metric("bytes_in_flight"), 0);
    }
}

#[test]
fn s6_a_subscription_hears_nothing_of_what_another_principals_server_says() {
    let home = Home::new();
    home.write_config(&super::walls::callers(&[("ada", "ada"), ("bob", "bob")]));
    let front = Front::start(&home);
    let as_caller = |name: &str, id: u64, method: &str, params: &Value| {
        let (frame, headers) = modern(&json!(id), method, params);
        let token = format!("Bearer {name}");
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = headers.chain([("Authorization", token.as_str())]).collect();
        front.post(&headers, &frame)
    };
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut of_ada = as_caller("ada", 1, "subscriptions/listen", &wanted);
    of_ada.stream();
    of_ada.event().unwrap();
    let notify = |name: &str| {
        let params = json!({"name": "notify", "arguments": {}});
        assert_eq!(as_caller(name, 2, "tools/call", &params).answer_in_time()["id"], 2);
    };
    for _ in 0..20 {
        notify("bob");
    }
    notify("ada");
    assert_changed(&mut of_ada, &json!(1));
    let end = json!({"name": "notify", "arguments": {"endSubscriptions": true}});
    as_caller("ada", 3, "tools/call", &end).answer_in_time();
    assert_changed(&mut of_ada, &json!(1));
    assert_eq!(of_ada.event().unwrap().frame()["id"], 1, "and nothing of bob's in between");
}
