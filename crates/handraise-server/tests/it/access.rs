//! Who gets in, and what each scope may do.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use handraise_api::{access::FlagSource, frame::action};
use handraise_server::FlagSetting;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{rig, rig_with, start};

#[tokio::test]
async fn s11_get_changes_nothing() {
    for path in handraise_server::openapi().paths.paths.iter().filter(|(_, item)| item.get.is_some()) {
        let path = path.0;
        assert!(
            !["login", "logout", "answer", "seen", "prompt", "cancel"]
                .iter()
                .any(|verb| path.ends_with(verb)),
            "{path}"
        );
    }
    let rig = rig().await;
    for path in ["/login", "/logout", "/asks/a/answer", "/asks/a/seen"] {
        let refused = rig.get(path).await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
}

#[tokio::test]
async fn s1_a_sign_in_sets_no_cookie() {
    let rig = rig().await;
    let signed_in =
        rig.call(Method::POST, "/login", "", Some(json!({"secret": rig.ready.sign_in_secret}))).await;
    assert_eq!(signed_in.status, StatusCode::OK);
    assert!(!signed_in.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn s41_every_answer_carries_the_security_headers() {
    let rig = rig().await;
    for path in ["/asks", "/nowhere", "/!/", "/!/nowhere.js", "/!/healthz"] {
        let response = rig.get(path).await;
        let header = |name: &str| response.headers.get(name).map_or("", |value| value.to_str().unwrap());
        assert!(header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
    }
    assert_eq!(rig.get("/asks").await.headers["cache-control"], "no-store");
    assert_eq!(rig.get("/nowhere").await.status, StatusCode::NOT_FOUND);
    assert_eq!(rig.get("/nowhere").await.code(), "NOT_FOUND");
    assert_eq!(rig.get("/!/nowhere.js").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s11_the_sign_in_link_works_once() {
    let rig = rig().await;
    let secret = rig.ready.sign_in_secret.clone();
    assert!(rig.ready.sign_in_link().contains('#'));
    let login = async |secret: &str, name: Option<&str>| {
        rig.call(Method::POST, "/login", "", Some(json!({"secret": secret, "name": name}))).await
    };
    let signed_in = login(&secret, Some("Ada")).await;
    assert_eq!(signed_in.status, StatusCode::OK);
    assert_eq!((&signed_in.json()["scope"], &signed_in.json()["name"]), (&json!("admin"), &json!("Ada")));
    let page = signed_in.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(rig.call(Method::GET, "/flags", &page, None).await.status, StatusCode::OK);
    assert_eq!(login(&secret, None).await.status, StatusCode::UNAUTHORIZED);
    let out = rig.call(Method::POST, "/logout", &page, None).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    assert_eq!(rig.call(Method::GET, "/asks", &page, None).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn s11_the_sign_in_link_is_good_for_ten_minutes() {
    let clock = handraise_transport::clock::ManualClock::new();
    let rig = rig_with(|settings| settings.clock = std::sync::Arc::new(clock.clone())).await;
    clock.advance(Duration::from_secs(600));
    let late = rig.call(Method::POST, "/login", "", Some(json!({"secret": rig.ready.sign_in_secret}))).await;
    assert_eq!(late.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_pasted_token_signs_in_with_its_own_scope() {
    let rig = rig().await;
    let login =
        async |secret: &str| rig.call(Method::POST, "/login", "", Some(json!({"secret": secret}))).await;
    let viewer = login(&rig.token("viewer", "Bob").await).await.json();
    assert_eq!((&viewer["scope"], &viewer["name"]), (&json!("viewer"), &json!("Bob")));
    assert_ne!(viewer["token"], Value::Null);
    assert_eq!(login(&rig.file.holder_token).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn s11_failed_sign_ins_are_slowed_down_and_lock_nobody_out() {
    let clock = handraise_transport::clock::ManualClock::new();
    let rig = rig_with(|settings| settings.clock = std::sync::Arc::new(clock.clone())).await;
    let login =
        async |secret: &str| rig.call(Method::POST, "/login", "", Some(json!({"secret": secret}))).await;
    for _ in 0..10 {
        assert_eq!(login("a guess").await.status, StatusCode::UNAUTHORIZED);
    }
    let slowed = login("a guess").await;
    assert_eq!((slowed.status, slowed.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"));
    assert_eq!(slowed.headers["retry-after"], "60");
    // Another user of this machine shares our address, and must not keep us out.
    assert_eq!(login(&rig.ready.sign_in_secret).await.status, StatusCode::OK);
    assert_eq!(login("a guess").await.status, StatusCode::TOO_MANY_REQUESTS);
    clock.advance(Duration::from_secs(61));
    assert_eq!(login("a guess").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn s37_one_token_signs_in_so_many_pages_and_the_oldest_goes() {
    let clock = handraise_transport::clock::ManualClock::new();
    let rig = rig_with(|settings| {
        settings.clock = std::sync::Arc::new(clock.clone());
        settings.timing.page_session = Duration::from_secs(60 * 60);
    })
    .await;
    let token = rig.token("viewer", "wall").await;
    let mut pages = Vec::new();
    for _ in 0..65 {
        let made = rig.call(Method::POST, "/login", "", Some(json!({"secret": token}))).await;
        assert_eq!(made.status, StatusCode::OK);
        pages.push(made.json()["token"].as_str().unwrap().to_owned());
    }
    let mut good = 0;
    for page in &pages {
        good += usize::from(rig.call(Method::GET, "/asks", page, None).await.status == StatusCode::OK);
    }
    assert_eq!(good, 64);
    let last = pages.last().unwrap();
    assert_eq!(rig.call(Method::GET, "/asks", last, None).await.status, StatusCode::OK);
    clock.advance(Duration::from_secs(10 * 60));
    let nested = rig.call(Method::POST, "/login", "", Some(json!({"secret": last}))).await;
    assert_eq!((nested.status, nested.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "LIMIT_EXCEEDED"));
    assert_eq!(nested.headers["retry-after"], "3000", "the first of the pages ends then");
    clock.advance(Duration::from_secs(50 * 60));
}

#[tokio::test]
async fn s34_a_token_that_is_revoked_while_its_body_arrives_does_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let rig = rig().await;
    let made = rig.post("/tokens", json!({"scope": "admin", "name": "Eve"})).await.json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let mut stream = tokio::net::TcpStream::connect(rig.ready.address).await.unwrap();
    // `expect` makes the inbox say when it has begun to read the body, which is after it took the token.
    let head = format!(
        "POST /api/v1/tokens HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Length: 17\r\n\
         Expect: 100-continue\r\nConnection: close\r\n\r\n",
        rig.host()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    crate::rig::within(stream.read_exact(&mut begun)).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100");
    let path = format!("/tokens/{id}");
    let revoked = rig.call(Method::DELETE, &path, &rig.file.admin_token, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    stream.write_all(br#"{"scope":"admin"}"#).await.unwrap();
    let mut answer = String::new();
    crate::rig::within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn s34_revocation_and_sign_out_end_streams_within_a_second() {
    let rig = rig().await;
    let made = rig.post("/tokens", json!({"scope": "operator", "name": "Ada"})).await.json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let page = rig.call(Method::POST, "/login", "", Some(json!({"secret": token}))).await.json();
    let page = page["token"].as_str().unwrap().to_owned();
    let holder_made = rig.post("/tokens", json!({"scope": "holder"})).await.json();
    let mut holder = rig.dial(holder_made["token"].as_str().unwrap()).await;
    holder.hello(None).await;
    // A page signed another one in; that one ends too.
    let second = rig.call(Method::POST, "/login", "", Some(json!({"secret": page}))).await.json();
    let second = second["token"].as_str().unwrap().to_owned();
    let mut streams =
        [rig.events(token, None).await, rig.events(&page, None).await, rig.events(&second, None).await];
    for stream in &mut streams {
        stream.until("snapshot").await;
    }
    let patience = Duration::from_secs(1);
    for id in [id, holder_made["id"].as_str().unwrap()] {
        let path = format!("/tokens/{id}");
        let revoked = rig.call(Method::DELETE, &path, &rig.file.admin_token, None).await;
        assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    }
    for stream in &mut streams {
        assert!(tokio::time::timeout(patience, stream.next()).await.unwrap().is_none());
    }
    tokio::time::timeout(patience, holder.is_over()).await.unwrap();
    for token in [token, &page, &second] {
        assert_eq!(rig.call(Method::GET, "/asks", token, None).await.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn s34_expiry_ends_a_token_and_its_streams() {
    let clock = handraise_transport::clock::ManualClock::new();
    let rig = rig_with(|settings| settings.clock = std::sync::Arc::new(clock.clone())).await;
    let expires = handraise_transport::clock::Clock::wall(&clock) + jiff::SignedDuration::from_secs(60);
    let body = json!({"scope": "viewer", "expires": expires.to_string()});
    let token = rig.post("/tokens", body).await.json()["token"].as_str().unwrap().to_owned();
    let mut stream = rig.events(&token, None).await;
    stream.until("snapshot").await;
    clock.advance(Duration::from_secs(60));
    assert_eq!(rig.call(Method::GET, "/asks", &token, None).await.status, StatusCode::UNAUTHORIZED);
    assert!(tokio::time::timeout(Duration::from_secs(1), stream.next()).await.unwrap().is_none());
    let past = json!({"scope": "viewer", "expires": expires.to_string()});
    assert_eq!(rig.post("/tokens", past).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn tokens_are_listed_without_their_secrets() {
    let rig = rig().await;
    let secret = rig.token("viewer", "Bob").await;
    let list = rig.get("/tokens").await;
    assert!(!String::from_utf8_lossy(&list.bytes).contains(&secret));
    let tokens = list.json()["tokens"].clone();
    assert_eq!(tokens[0]["name"], "Bob");
    assert_eq!(tokens.as_array().unwrap().len(), 3, "{tokens}");
    for body in [json!({"scope": "viewer", "name": ""}), json!({"scope": "viewer", "name": "x".repeat(129)})]
    {
        assert_eq!(rig.post("/tokens", body).await.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn local_files_are_for_their_owner_only_and_tokens_survive_a_restart() {
    let rig = rig().await;
    let before = rig.file.clone();
    let data = rig.dir.path().join("data");
    let mode = |name: &str| data.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("inbox.json"), mode("inbox.sock"), mode(".")), (0o600, 0o600, 0o700));
    let dir = rig.stop().await;
    assert!(!data.join("inbox.sock").exists());
    let rig = start(dir, |_| {}).await;
    assert_eq!(rig.file.holder_token, before.holder_token);
    assert_eq!(rig.file.admin_token, before.admin_token);
    assert_eq!(rig.get("/asks").await.status, StatusCode::OK);
    // A token that was revoked is made anew.
    let tokens = rig.get("/tokens").await.json();
    let holder = tokens["tokens"].as_array().unwrap().iter().find(|t| t["scope"] == "holder").unwrap();
    let path = format!("/tokens/{}", holder["id"].as_str().unwrap());
    rig.call(Method::DELETE, &path, &rig.file.admin_token, None).await;
    let rig = start(rig.stop().await, |_| {}).await;
    assert_ne!(rig.file.holder_token, before.holder_token);
    assert_eq!(rig.file.admin_token, before.admin_token);
}

#[tokio::test]
async fn a_second_inbox_on_the_same_data_is_refused() {
    let rig = rig().await;
    let settings = crate::rig::settings(rig.dir.path());
    let refused = handraise_server::serve(settings, |_| {}, std::future::pending()).await.unwrap_err();
    assert!(matches!(refused, handraise_server::ServeError::InUse { .. }), "{refused}");
    assert_eq!(rig.get("/asks").await.status, StatusCode::OK);
}

#[tokio::test]
async fn s10_listening_beyond_loopback_needs_a_word_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let settings = handraise_server::Settings::new(dir.path(), ([0, 0, 0, 0], 0).into());
    let refused = handraise_server::serve(settings, |_| {}, std::future::pending()).await.unwrap_err();
    assert!(matches!(refused, handraise_server::ServeError::BeyondLoopback(_)), "{refused}");
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[tokio::test]
async fn s43_the_inbox_proves_that_it_knows_the_holder_token() {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use sha2::{Digest as _, Sha256};

    let rig = rig().await;
    let key = Sha256::digest(rig.file.holder_token.as_bytes());
    let prefix = hex(&key[..4]);
    let nonce = "0123456789abcdef0123";
    let proof = async |prefix: &str, nonce: &str| {
        rig.call(Method::GET, &format!("/holder/proof?key={prefix}&nonce={nonce}"), "", None).await
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(nonce.as_bytes());
    mac.update(rig.host().as_bytes());
    let expected = hex(&mac.finalize().into_bytes());
    assert_eq!(proof(&prefix, nonce).await.json()["proof"], expected);
    assert_eq!(proof("ffffffff", nonce).await.status, StatusCode::NOT_FOUND);
    let admin = Sha256::digest(rig.file.admin_token.as_bytes());
    let admin = hex(&admin[..4]);
    assert_eq!(proof(&admin, nonce).await.status, StatusCode::NOT_FOUND, "only holder tokens are proven");
    assert_eq!(proof(&prefix, "short").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(proof("xyz", nonce).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn flags_are_set_listed_and_taken_back() {
    let rig = rig().await;
    let put = async |name: &str, value: Value| {
        let body = json!({"value": value});
        rig.call(Method::PUT, &format!("/flags/{name}"), &rig.file.admin_token, Some(body)).await
    };
    let flags = rig.get("/flags").await.json();
    let names = flags["flags"].as_array().unwrap().iter().map(|flag| flag["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["features.acpElicitation", "elicitation"]);
    let set = put("features.acpElicitation", json!(false)).await.json();
    assert_eq!(set, json!({"name": "features.acpElicitation", "value": false, "source": "setting"}));
    // F5: a holder that dials from now on hears of it.
    let mut holder = rig.dial(&rig.file.holder_token).await;
    assert!(!holder.hello(None).await.flags.acp_elicitation);
    let back = put("features.acpElicitation", Value::Null).await.json();
    assert_eq!(back["source"], "default");
    assert_eq!(put("unknown", json!(true)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(put("features.acpElicitation", json!("off")).await.status, StatusCode::BAD_REQUEST);
    // What nobody reads yet is no switch.
    assert_eq!(put("profiles.adaptive", json!(false)).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_holder_hears_at_once_that_an_operator_has_switched_questions_off() {
    let off = FlagSetting { value: false, source: FlagSource::Environment };
    for configured in [FlagSetting { value: true, source: FlagSource::Default }, off] {
        let rig = rig_with(|settings| settings.flags.elicitation = configured).await;
        let put = async |value: Value| {
            let body = json!({"value": value});
            rig.call(Method::PUT, "/flags/elicitation", &rig.file.admin_token, Some(body)).await.json()
        };
        let mut holder = rig.dial(&rig.file.holder_token).await;
        assert_eq!(holder.hello(None).await.flags.elicitation, configured.value);
        // The same as before is no news.
        put(json!(configured.value)).await;
        assert_eq!(put(json!(false)).await["value"], false);
        if configured.value {
            let told = holder.hears(action::FLAGS_CHANGED).await;
            assert_eq!((&told["elicitation"], &told["acp_elicitation"]), (&json!(false), &json!(true)));
            assert_eq!(
                put(Value::Null).await,
                json!({"name": "elicitation", "value": true, "source": "default"})
            );
            assert_eq!(holder.hears(action::FLAGS_CHANGED).await["elicitation"], true);
        } else {
            // Off in either place wins: a host that switched questions off is not overruled from a browser.
            assert_eq!(
                put(json!(true)).await,
                json!({"name": "elicitation", "value": false, "source": "environment"})
            );
            put(json!(null)).await;
            let body = json!({"value": false});
            rig.call(Method::PUT, "/flags/features.acpElicitation", &rig.file.admin_token, Some(body)).await;
            let told = holder.hears(action::FLAGS_CHANGED).await;
            assert_eq!((&told["elicitation"], &told["acp_elicitation"]), (&json!(false), &json!(false)));
        }
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_errors_name_the_place() {
    let rig = rig().await;
    let huge = |bytes: usize| Some(json!({"name": "x".repeat(bytes)}));
    let refused = rig.call(Method::POST, "/tokens", &rig.file.admin_token, huge(3 * 1024 * 1024)).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "LIMIT_EXCEEDED"));
    // S37: less from whoever has shown no token.
    let refused = rig.call(Method::POST, "/login", "", huge(32 * 1024)).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "LIMIT_EXCEEDED"));
    let refused = rig.post("/tokens", json!({"scope": "king"})).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::BAD_REQUEST, "BAD_REQUEST"));
}

#[tokio::test]
async fn whatever_cannot_be_read_is_told_by_its_place_in_words_of_the_api() {
    let rig = rig().await;
    let admin = rig.file.admin_token.as_str();
    let cases = [
        (Method::GET, "/asks?limit=0", None, "'limit' is \"0\"; it takes 1 to 500"),
        (Method::GET, "/asks?limit=501", None, "'limit' is \"501\"; it takes 1 to 500"),
        (Method::GET, "/asks?state=lost", None, "'state' is \"lost\"; it takes open or settled"),
        (Method::GET, "/asks?cursor=x", None, "'cursor'"),
        (Method::GET, "/asks?colour=red", None, "'colour' is not known"),
        (Method::GET, "/audit?before=x", None, "'before' is \"x\"; it takes a whole number"),
        (Method::GET, "/sessions/a/messages?after=x", None, "'after' is \"x\"; it takes a whole number"),
        (Method::GET, "/sessions/a/messages?befor=1", None, "'befor' is not known"),
        (Method::GET, "/asks/%ff", None, "'id' in the path is no UTF-8"),
        (Method::PUT, "/flags/%ff", Some(json!({"value": null})), "'name' in the path is no UTF-8"),
        (Method::POST, "/tokens", Some(json!({"scope": "king"})), "'scope' is \"king\"; it takes viewer,"),
        (
            Method::POST,
            "/tokens",
            Some(json!({"scope": "viewer", "owner": ""})),
            "'owner' takes 1 to 128 bytes",
        ),
        (Method::POST, "/sessions", Some(json!({"agent": "none"})), "'agent' is \"none\", and no [[agent]]"),
        (Method::POST, "/asks/a/seen", Some(json!({})), "'digest' is missing"),
        (
            Method::POST,
            "/asks/answer-batch",
            Some(json!({"submissions": []})),
            "'submissions' has 0; it takes 1 to",
        ),
        (Method::POST, "/asks/a/answer", None, "the body is empty; it takes an object with answers"),
        (Method::GET, "/holder/proof?key=0", None, "'nonce' is missing"),
    ];
    for (method, path, body, said) in cases {
        let refused = rig.call(method, path, admin, body).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (StatusCode::BAD_REQUEST, "BAD_REQUEST"),
            "{path}"
        );
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(said), "{path}: {message}");
        for internal in ["deserialize", "invalid type", "expected", "variant", "struct "] {
            assert!(!message.contains(internal), "{path}: {message}");
        }
    }
}

#[tokio::test]
async fn machines_that_watch_the_inbox_need_no_token() {
    let rig = rig().await;
    for path in ["/!/healthz", "/!/readyz", "/!/metrics"] {
        assert_eq!(rig.call(Method::GET, path, "", None).await.status, StatusCode::OK, "{path}");
    }
    let mut holder = rig.holder().await;
    holder.opens(&crate::rig::ask("a")).await;
    let text = String::from_utf8(rig.get("/!/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        "handraise_asks_open 1",
        "handraise_holders_connected 1",
        "handraise_asks_opened_total{source=\"elicitation\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn a_token_is_made_without_a_running_inbox() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let data = dir.path().join("data");
    let wanted = handraise_api::access::CreateToken {
        scope: handraise_api::access::Scope::Viewer,
        name: None,
        owner: None,
        expires: None,
    };
    let clock = handraise_transport::clock::SystemClock::shared();
    let made = handraise_server::create_token(&data, &wanted, clock.clone()).await.unwrap();
    let rig = start(dir, |_| {}).await;
    assert_eq!(rig.call(Method::GET, "/asks", &made.token, None).await.status, StatusCode::OK);
    let refused = handraise_server::create_token(&data, &wanted, clock).await.err().unwrap();
    assert!(matches!(refused, handraise_server::ServeError::InUse { .. }), "{refused}");
}
