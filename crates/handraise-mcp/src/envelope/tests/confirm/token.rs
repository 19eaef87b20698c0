//! The token rail: preview, then the same call with its token.

use super::*;
use crate::confirm::{Call, TokenKey, sign, verify};

const ARGUMENTS: &str = r#"{"id":"d1","account":"me","body":"Hi"}"#;

/// The arguments with a token.
fn with(token: &str) -> String {
    format!(r#"{{"id":"d1","account":"me","body":"Hi","confirmToken":"{token}"}}"#)
}

fn token_of(answer: &Value) -> String {
    said(answer)["confirmToken"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A scene in which a token was given for [`ARGUMENTS`].
fn given() -> (Scene, String) {
    let mut scene = Scene::mute(whole_guard());
    let answer = scene.call(ARGUMENTS);
    assert_eq!(case(&answer), "confirmation-required");
    assert_eq!(scene.records(), ["token asked system"]);
    let token = token_of(&answer);
    (scene, token)
}

#[test]
fn a_preview_then_the_token_and_the_call_runs_once_without_it() {
    let (mut scene, token) = given();
    assert_eq!((scene.lists, scene.previews), (1, 1));
    assert_eq!(scene.call(&with(&token)), Value::Null);
    // Exactly what was shown runs, in the bytes in which it came, without the token.
    assert_eq!(scene.ran, [send("2", ARGUMENTS)]);
    assert_eq!((scene.lists, scene.previews), (1, 2), "what is shown is read again");
    assert_eq!(scene.records(), ["token accept client"]);
    scene.is_clean();
    // And no second time: the reason is that it was used, and nothing else.
    let answer = scene.call(&with(&token));
    assert_eq!(case(&answer), "isError confirmation-rejected TOKEN_REUSED");
    assert_eq!(scene.records(), ["token invalid client token-reused"]);
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn s26_the_first_call_shows_everything_that_is_hashed() {
    let mut scene = Scene::mute(whole_guard());
    let answer =
        scene.call(r#"{"id":"d\u202e1","body":"Hi\nthere","n":1.50,"$k":{"b":1,"a":2},"account":"me"}"#);
    let preview = &said(&answer)["preview"];
    assert_eq!(preview["caller"], "stdio (calls itself \"client\")");
    assert_eq!((&preview["tool"], &preview["account"]), (&json!("send"), &json!("me")));
    assert_eq!(
        preview["arguments"],
        json!([
            r#""$$k":{"a":2,"b":1}"#,
            r#""account":"me""#,
            r#""body":"Hi\nthere""#,
            r#""id":"d\u202e1""#,
            r#""n":1.5"#
        ])
    );
    assert_eq!(preview["serverSays"], json!({"etag": "1", "subject": "Hi"}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains('\u{202e}'), "what hides is made visible: {text}");
    assert_eq!(said(&answer)["action"], "Send e-mail");
}

#[test]
fn the_order_and_spelling_of_arguments_do_not_count_and_every_change_does() {
    let same = [
        r#"{"confirmToken":"TOKEN","body":"Hi","account":"me","id":"d1"}"#,
        r#"{ "id" : "d1" , "confirmToken":"TOKEN", "account":"\u006de", "body":"Hi"}"#,
    ];
    for arguments in same {
        let (mut scene, token) = given();
        scene.call(&arguments.replace("TOKEN", &token));
        assert_eq!(scene.ran.len(), 1, "{arguments}");
        assert!(!scene.ran[0].contains("confirmToken"));
    }
    for (arguments, expected) in [
        (
            r#"{"id":"d1","account":"me","body":"Hi!","confirmToken":"TOKEN"}"#,
            "DRAFT_CHANGED payload-changed",
        ),
        (r#"{"id":"d1","account":"me","confirmToken":"TOKEN"}"#, "DRAFT_CHANGED payload-changed"),
        (
            r#"{"id":"d1","account":"me","body":"Hi","x":null,"confirmToken":"TOKEN"}"#,
            "DRAFT_CHANGED payload-changed",
        ),
        (r#"{"id":"d2","account":"me","body":"Hi","confirmToken":"TOKEN"}"#, "TOKEN_INVALID"),
        (r#"{"id":"d1","account":"you","body":"Hi","confirmToken":"TOKEN"}"#, "TOKEN_INVALID"),
        (r#"{"id":"d1","body":"Hi","confirmToken":"TOKEN"}"#, "TOKEN_INVALID"),
    ] {
        let (mut scene, token) = given();
        let answer = scene.call(&arguments.replace("TOKEN", &token));
        assert_eq!(case(&answer), format!("isError confirmation-rejected {expected}"), "{arguments}");
        assert_eq!(scene.ran, [""; 0], "{arguments}");
    }
}

/// Nine checks in their order: a token that fails several is told the first.
#[test]
fn each_check_has_its_code_and_reason_and_the_first_one_counts() {
    let key = TokenKey::of_secret(SECRET);
    let (scene, token) = given();
    let call = Call { tool: "send", account: Some("me"), target: "d1" };
    let claims = verify(&token, &key, call).unwrap();
    drop(scene);
    let over = 1_700_000_000_000;
    let signed = |change: &dyn Fn(&mut crate::confirm::Claims)| {
        let mut changed = claims.clone();
        change(&mut changed);
        sign(&changed, &key)
    };
    let bad_mac = format!("{}{}", &token[..token.len() - 1], if token.ends_with('A') { 'B' } else { 'A' });
    let no_json = {
        use base64::Engine as _;
        let body = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode("[1]");
        let good = sign(&claims, &key);
        // A body that is no object, under a MAC that is another's.
        format!("{}{body}.{}", crate::confirm::PREFIX, good.rsplit('.').next().unwrap())
    };
    for (token, is_spent, expected, record) in [
        ("nothing".to_owned(), true, "TOKEN_INVALID", "token-malformed"),
        ("mcpu.token.v2.x.y".to_owned(), true, "TOKEN_INVALID", "token-malformed"),
        (bad_mac, true, "TOKEN_INVALID", "token-bad-mac"),
        (no_json, true, "TOKEN_INVALID", "token-bad-mac"),
        (signed(&|claims| claims.tool = "other".into()), true, "TOKEN_INVALID", "token-other-tool"),
        (signed(&|claims| claims.account = None), true, "TOKEN_INVALID", "token-other-account"),
        (signed(&|claims| claims.target = "d2".into()), true, "TOKEN_INVALID", "token-other-target"),
        (signed(&|claims| claims.expires_ms = over), true, "TOKEN_REUSED", "token-reused"),
        (
            signed(&|claims| {
                claims.expires_ms = over;
                claims.revision = None;
            }),
            false,
            "TOKEN_EXPIRED",
            "token-expired",
        ),
        (
            signed(&|claims| {
                claims.revision = Some("0".into());
                claims.hash = "x".into();
            }),
            false,
            "DRAFT_CHANGED revision-changed",
            "revision-changed",
        ),
        (
            signed(&|claims| claims.hash = "x".into()),
            false,
            "DRAFT_CHANGED payload-changed",
            "payload-changed",
        ),
    ] {
        let mut scene = Scene::mute(whole_guard());
        if is_spent {
            scene.store = Store::Of(BTreeSet::from([claims.nonce]));
        }
        let answer = scene.call(&with(&token));
        assert_eq!(case(&answer), format!("isError confirmation-rejected {expected}"), "{record}");
        assert_eq!(scene.records(), [format!("token invalid client {record}")]);
        let has_fresh = said(&answer).get("confirmToken").is_some();
        assert_eq!(has_fresh, expected.starts_with("DRAFT_CHANGED"), "{record}");
        assert_eq!(scene.ran, [""; 0], "{record}");
        scene.is_clean();
    }
    // The ninth: it is claimed in between.
    let (mut scene, token) = given();
    scene.world.client_sends(&send("9", &with(&token)));
    let received = std::mem::take(&mut scene.world.upstream);
    for text in &received {
        scene.upstream_takes(text);
    }
    let look = scene.world.spends.pop().unwrap();
    assert!(!look.claims);
    let mut out = Vec::new();
    scene.world.envelope.spent(look.ticket, Spent::No, scene.world.now, &mut out);
    scene.world.drain(out);
    assert!(scene.world.spends[0].claims);
    scene.store = Store::Of(BTreeSet::from([look.nonce]));
    scene.settle();
    assert_eq!(case(&scene.got()), "isError confirmation-rejected TOKEN_REUSED");
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn every_single_character_of_a_token_counts() {
    let (mut scene, token) = given();
    for at in 0..token.len() {
        for other in ["A", "B", ".", "="] {
            if token[at..=at] == *other {
                continue;
            }
            let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            let answer = scene.call(&with(&changed));
            assert_eq!(case(&answer), "isError confirmation-rejected TOKEN_INVALID", "{at} {other}");
        }
        let shorter = format!("{}{}", &token[..at], &token[at + 1..]);
        assert_eq!(case(&scene.call(&with(&shorter))), "isError confirmation-rejected TOKEN_INVALID", "{at}");
    }
    assert_eq!(scene.ran, [""; 0]);
    scene.call(&with(&token));
    assert_eq!(scene.ran.len(), 1, "and untouched it still counts");
}

#[test]
fn a_draft_that_changed_leaves_the_token_unspent_and_brings_a_fresh_preview() {
    let (mut scene, token) = given();
    let first = scene.preview.clone().unwrap();
    scene.preview = Some(first.replace("Hi", "Bye"));
    let answer = scene.call(&with(&token));
    assert_eq!(case(&answer), "isError confirmation-rejected DRAFT_CHANGED payload-changed");
    let fresh = said(&answer);
    assert_eq!(fresh["preview"]["serverSays"]["subject"], "Bye");
    assert_eq!(fresh["ttlSeconds"], 600);
    scene.preview = Some(first.replace("\\\"etag\\\":\\\"1\\\"", "\\\"etag\\\":\\\"2\\\""));
    let answer = scene.call(&with(&token));
    assert_eq!(case(&answer), "isError confirmation-rejected DRAFT_CHANGED revision-changed");
    // The fresh token is for the fresh preview, and the first one for the first.
    scene.preview = Some(first.replace("Hi", "Bye"));
    assert_eq!(scene.call(&with(fresh["confirmToken"].as_str().unwrap())), Value::Null);
    scene.preview = Some(first);
    assert_eq!(scene.call(&with(&token)), Value::Null);
    assert_eq!(scene.ran.len(), 2);
}

#[test]
fn another_definition_of_the_tool_is_another_call() {
    let (mut scene, token) = given();
    scene.tools = TOOLS.replace(r#"{"type":"object"}"#, r#"{"type":"object","title":"x"}"#);
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    scene.world.client.clear();
    assert_eq!(
        case(&scene.call(&with(&token))),
        "isError confirmation-rejected DRAFT_CHANGED payload-changed"
    );
    // The same value in another spelling is the same definition.
    scene.tools = TOOLS.replace(
        r#""name":"send","inputSchema":{"type":"object"}"#,
        r#""inputSchema":{ "type":"\u006fbject" },"name":"send""#,
    );
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    scene.world.client.clear();
    assert_eq!(scene.call(&with(&token)), Value::Null);
    assert_eq!((scene.ran.len(), scene.lists), (1, 3));
}

#[test]
fn s22_an_approval_for_one_upstream_is_worth_nothing_at_another() {
    let (_, token) = given();
    let other = EnvelopeConfig {
        upstream: "staging".to_owned().into(),
        ..confirming(vec![whole_guard()], shared_secret())
    };
    let mut scene = Scene::on(World::new(other));
    scene.world.initialize(&json!({}), "2025-11-25");
    assert_eq!(
        case(&scene.call(&with(&token))),
        "isError confirmation-rejected DRAFT_CHANGED payload-changed"
    );
    // The same upstream behind another gateway with the same secret is the same.
    let mut replica = Scene::on(World::on(
        Arc::new(Process::new(confirming(vec![whole_guard()], shared_secret()))),
        [8; 32],
    ));
    replica.world.initialize(&json!({}), "2025-11-25");
    assert_eq!(replica.call(&with(&token)), Value::Null);
    assert_eq!(replica.ran.len(), 1);
}

#[test]
fn s5_a_store_that_knows_nothing_or_says_nothing_lets_nothing_run() {
    let (mut scene, token) = given();
    scene.store = Store::Broken;
    let answer = scene.call(&with(&token));
    assert_eq!(case(&answer), "isError confirmation-rejected SPENT_STORE_UNAVAILABLE");
    scene.store = Store::Silent;
    assert_eq!(scene.call(&with(&token)), Value::Null);
    scene.world.advance(Duration::from_secs(10));
    scene.world.tick();
    assert_eq!(case(&scene.got()), "isError confirmation-rejected SPENT_STORE_UNAVAILABLE");
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
    // What it says later is nobody's answer.
    for ticket in 0..10 {
        let mut out = Vec::new();
        scene.world.envelope.spent(ticket, Spent::No, scene.world.now, &mut out);
        assert_eq!(out, []);
    }
}

#[test]
fn what_models_fill_in_is_no_token_and_what_is_no_text_is_a_wrong_one() {
    for (filled, expected) in [
        ("null", "confirmation-required"),
        (r#""""#, "confirmation-required"),
        ("true", "isError confirmation-rejected TOKEN_INVALID"),
        ("{}", "isError confirmation-rejected TOKEN_INVALID"),
        (r#""none""#, "isError confirmation-rejected TOKEN_INVALID"),
    ] {
        let mut scene = Scene::mute(plain_guard());
        let answer = scene.call(&format!(r#"{{"to":"a","confirmToken":{filled}}}"#));
        assert_eq!(case(&answer), expected, "{filled}");
        assert_eq!(scene.ran, [""; 0]);
    }
}

#[test]
fn a_tool_with_a_token_of_its_own_gets_none_of_ours_and_keeps_its_argument() {
    let own = r#"[{"name":"send","inputSchema":{"type":"object","properties":{"confirmToken":{"type":"string"}}}}]"#;
    let mut scene = Scene::mute(plain_guard());
    scene.tools = own.to_owned();
    assert_eq!(case(&scene.call(r#"{"confirmToken":"theirs"}"#)), "confirmation-unsupported");
    let mut scene = Scene::push(plain_guard(), &json!({}));
    scene.tools = own.to_owned();
    let question = scene.call(r#"{"confirmToken":"theirs"}"#);
    assert!(
        question["params"]["message"].as_str().unwrap().contains(r#""confirmToken":"theirs""#),
        "{question}"
    );
    assert_eq!(scene.answer(&question, 1_000, &accepted()), Value::Null);
    assert_eq!(scene.ran, [send("1", r#"{"confirmToken":"theirs"}"#)]);
}

#[test]
fn what_is_too_long_to_show_is_announced_and_gets_no_token() {
    let mut scene = Scene::mute(plain_guard());
    let answer = scene.call(&format!(r#"{{"to":"{}"}}"#, "x".repeat(200_000)));
    assert_eq!(case(&answer), "confirmation-not-shown");
    let note = said(&answer)["note"].as_str().unwrap().to_owned();
    assert!(note.contains(" bytes not shown)") && note.contains(','), "{note}");
    assert!(!answer.to_string().contains("mcpu.token"));
    assert_eq!(scene.previews, 0);
    // What fits the bound and not the surface is announced as well.
    let answer = scene.call(&format!(r#"{{"to":"{}"}}"#, "x".repeat(131_000)));
    assert_eq!(case(&answer), "confirmation-not-shown");
    assert!(said(&answer)["note"].as_str().unwrap().contains(" bytes not shown)"), "{answer}");
    assert_eq!(scene.records(), ["refuse not_offered system too-long", "token not_offered system too-long"]);
    scene.is_clean();
}
