//! Requests whose answer could be brought to nobody: a POST without an id is a notification, and gets none.

use serde_json::{Value, json};

use super::{JSON, in_front_of, modern, opens_session};
use crate::support::{Home, Rig, rig::respond};

#[test]
fn s3_toward_a_url_a_request_whose_id_is_neither_string_nor_number_is_refused_and_reaches_nobody() {
    let rig = Rig::start(|asked, stream| {
        if opens_session(asked, stream, "s") {
            return;
        }
        let frame = asked.json();
        if frame["method"] == "tools/call" {
            let answer = json!({"jsonrpc": "2.0", "id": frame["id"], "result": {}});
            return respond(stream, 200, JSON, &answer.to_string());
        }
        respond(stream, 202, "", "");
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    let params = json!({"name": "echo", "arguments": {}});
    let of_session = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let of_its_own = modern(7, "tools/call", &params);
    for id in ["null", "true", "[7]", "{\"a\":7}"] {
        for call in [&of_session, &of_its_own] {
            let frame = call.to_string().replacen("\"id\":7", &format!("\"id\":{id}"), 1);
            gateway.write(format!("{frame}\n").as_bytes());
            let refused = gateway.receive();
            assert_eq!(
                (&refused["error"]["code"], &refused["id"]),
                (&json!(-32600), &Value::Null),
                "{frame}"
            );
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("the id of a request is a string or a number"), "{refused}");
        }
    }
    // What has no answer may have `null` there.
    let note = r#"{"id":null,"jsonrpc":"2.0","method":"notifications/vendor", "params":{"n":1.0}}"#;
    gateway.write(format!("{note}\n").as_bytes());
    gateway.call(&json!(8), "echo", &json!({}));
    assert_eq!(gateway.receive()["id"], 8);
    let bodies: Vec<String> = rig.seen().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies.iter().filter(|body| body.contains("tools/call")).count(), 1, "{bodies:?}");
    assert!(bodies.iter().any(|body| body == note), "{bodies:?}");
}
