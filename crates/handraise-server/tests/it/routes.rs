//! Every route of the inbox beside everybody who may knock: one table (S1, S34).

use std::collections::BTreeSet;

use handraise_transport::clock::{Clock as _, ManualClock};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::json;

use crate::rig::{Rig, rig_with};

/// Who knocks, in the order of the table's columns.
const CALLERS: [&str; 7] = ["nobody", "viewer", "operator", "admin", "holder", "revoked", "expired"];

/// What a route that needs no token says to everybody.
const fn open(status: u16) -> [u16; 7] {
    [status; 7]
}

/// What a route says to those who may read.
const fn viewer(status: u16) -> [u16; 7] {
    [401, status, status, status, 403, 401, 401]
}

/// What a route says to those who may answer.
const fn operator(status: u16) -> [u16; 7] {
    [401, 403, status, status, 403, 401, 401]
}

/// What a route says to those who may do everything.
const fn admin(status: u16) -> [u16; 7] {
    [401, 403, 403, status, 403, 401, 401]
}

/// What a route says to a holder, and to nobody else.
const fn holder(status: u16) -> [u16; 7] {
    [401, 403, 403, 403, status, 401, 401]
}

/// Every route, and what each of [`CALLERS`] gets from it with an empty body: of those that pass, some are told that
/// the body is missing, or that there is no such thing.
const TABLE: &[(&str, &str, [u16; 7])] = &[
    ("GET", "/api/v1/asks", viewer(200)),
    ("POST", "/api/v1/asks/answer-batch", operator(400)),
    ("GET", "/api/v1/asks/{id}", viewer(404)),
    ("POST", "/api/v1/asks/{id}/answer", operator(400)),
    ("POST", "/api/v1/asks/{id}/seen", viewer(400)),
    ("GET", "/api/v1/events", viewer(200)),
    ("GET", "/api/v1/sessions", viewer(200)),
    ("POST", "/api/v1/sessions", admin(400)),
    ("GET", "/api/v1/sessions/{id}", viewer(404)),
    ("GET", "/api/v1/sessions/{id}/messages", viewer(404)),
    ("POST", "/api/v1/sessions/{id}/prompt", admin(400)),
    ("POST", "/api/v1/sessions/{id}/cancel", admin(404)),
    ("GET", "/api/v1/agents", admin(200)),
    ("GET", "/api/v1/audit", admin(200)),
    ("GET", "/api/v1/records", viewer(200)),
    ("GET", "/api/v1/flags", admin(200)),
    ("PUT", "/api/v1/flags/{name}", admin(400)),
    ("GET", "/api/v1/tokens", admin(200)),
    ("POST", "/api/v1/tokens", admin(400)),
    ("DELETE", "/api/v1/tokens/{id}", admin(404)),
    ("POST", "/api/v1/login", open(400)),
    ("POST", "/api/v1/logout", viewer(400)),
    ("GET", "/api/v1/holder", holder(400)),
    ("GET", "/api/v1/holder/proof", open(400)),
    ("GET", "/api/v1/openapi.json", open(200)),
    ("GET", "/healthz", open(200)),
    ("GET", "/readyz", open(200)),
    ("GET", "/metrics", open(200)),
    ("GET", "/", open(200)),
    ("GET", "/asks/anything", open(200)),
];

/// Addresses that no route has.
const NOWHERE: &[(&str, &str, u16)] = &[
    ("GET", "/api/v1/nowhere", 404),
    ("GET", "/api/nowhere", 404),
    ("GET", "/nowhere.js", 404),
    ("POST", "/", 405),
    ("GET", "/api/v1/login", 405),
    ("OPTIONS", "/api/v1/asks", 405),
];

/// The page's own addresses, which the router's table does not name.
const PAGE: [&str; 2] = ["/", "/asks/anything"];

fn concrete(path: &str) -> String {
    path.replace("{id}", "a").replace("{name}", "elicitation")
}

/// Sends a request, with an empty body.
async fn knock(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)]) -> http::Response<Incoming> {
    let mut request = Request::builder().method(method.parse::<Method>().unwrap()).uri(concrete(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = rig.raw(request.body(Full::default()).unwrap()).await;
    // S1: no cookie is ever set, and no page of elsewhere is ever let read.
    for name in response.headers().keys() {
        let name = name.as_str();
        assert!(name != "set-cookie" && !name.starts_with("access-control-"), "{method} {path}: {name}");
    }
    response
}

/// The routes of the router's own table: every `.route("PATH", get(…).post(…))` of its source.
fn routed() -> BTreeSet<(String, String)> {
    let source = include_str!("../../src/routes/mod.rs");
    let mut routes = BTreeSet::new();
    for call in source.split(".route(\"").skip(1) {
        let (path, handlers) = call.split_once('"').unwrap();
        let handlers = handlers.split_once('\n').map_or(handlers, |(line, _)| line);
        let is_root = ["/healthz", "/readyz", "/metrics"].contains(&path);
        for method in ["get", "post", "put", "delete", "patch"] {
            if handlers.contains(&format!("{method}(")) {
                let path = if is_root { path.to_owned() } else { format!("/api/v1{path}") };
                routes.insert((method.to_uppercase(), path));
            }
        }
    }
    routes
}

fn documented() -> BTreeSet<(String, String)> {
    let document = serde_json::to_value(handraise_server::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
            methods.map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect()
}

#[test]
fn s34_no_route_is_without_a_row() {
    let rows: BTreeSet<(String, String)> = TABLE
        .iter()
        .filter(|(_, path, _)| !PAGE.contains(path))
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(rows.len() + PAGE.len(), TABLE.len(), "no row stands twice");
    assert_eq!(routed(), rows, "the router's table");
    let api = rows.into_iter().filter(|(_, path)| path.starts_with("/api/v1/")).collect();
    assert_eq!(documented(), api, "the contract");
}

#[tokio::test]
async fn s34_every_route_says_to_everybody_what_the_table_says() {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| settings.clock = std::sync::Arc::new(clock.clone())).await;
    let mut tokens = vec![String::new()];
    for scope in ["viewer", "operator", "admin", "holder"] {
        tokens.push(rig.token(scope, scope).await);
    }
    let revoked = rig.post("/tokens", json!({"scope": "admin", "name": "revoked"})).await.json();
    let path = format!("/tokens/{}", revoked["id"].as_str().unwrap());
    let gone = rig.call(Method::DELETE, &path, &rig.file.admin_token, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let soon = clock.wall() + jiff::SignedDuration::from_secs(60);
    let brief = json!({"scope": "admin", "name": "expired", "expires": soon.to_string()});
    let expired = rig.post("/tokens", brief).await.json();
    for made in [&revoked, &expired] {
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    clock.advance(std::time::Duration::from_secs(61));

    let host = rig.host();
    let mut wrong = Vec::new();
    let nowhere = NOWHERE.iter().map(|(method, path, status)| (*method, *path, open(*status)));
    for (method, path, expected) in TABLE.iter().copied().chain(nowhere) {
        for ((caller, token), expected) in CALLERS.iter().zip(&tokens).zip(expected) {
            let bearer = format!("Bearer {token}");
            let mut headers = vec![("host", &*host)];
            if !token.is_empty() {
                headers.push(("authorization", &*bearer));
            }
            let got = knock(&rig, method, path, &headers).await.status().as_u16();
            if got != expected {
                wrong.push(format!("{method} {path} as {caller}: {got} instead of {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn s1_no_route_answers_to_another_name_or_page_or_to_a_cookie() {
    let rig = rig_with(|_| {}).await;
    let host = rig.host();
    let port = rig.ready.address.port();
    let own = format!("http://{host}");
    let bearer = format!("Bearer {}", rig.file.admin_token);
    let cookie =
        format!("token={0}; authorization=Bearer {0}; handraise={0}; __Host-token={0}", rig.file.admin_token);
    // A rebound name keeps the port; another page of this machine keeps the name.
    let rebound = [format!("evil.example:{port}"), format!("127.0.0.1.evil.example:{port}"), String::new()];
    let others = [format!("http://127.0.0.1:{}", port ^ 1), format!("http://localhost:{port}")];
    for (method, path, expected) in TABLE {
        let status = async |headers: &[(&str, &str)]| {
            let headers = [&[("authorization", &*bearer)], headers].concat();
            knock(&rig, method, path, &headers).await.status()
        };
        for name in &rebound {
            let got = status(&[("host", name)]).await;
            assert_eq!(got, StatusCode::MISDIRECTED_REQUEST, "{method} {path} at {name:?}");
        }
        let names = others.iter().map(String::as_str);
        for origin in names.chain(["https://evil.example", "null", "file://", ""]) {
            let got = status(&[("host", &host), ("origin", origin)]).await;
            assert_eq!(got, StatusCode::FORBIDDEN, "{method} {path} from {origin:?}");
        }
        for site in ["cross-site", "same-site", "anything"] {
            let got = status(&[("host", &host), ("sec-fetch-site", site)]).await;
            assert_eq!(got, StatusCode::FORBIDDEN, "{method} {path} from a {site} page");
        }
        // The inbox's own page, and an address that was typed.
        let known = [("host", &*host), ("origin", &*own), ("sec-fetch-site", "same-origin")];
        let admin = CALLERS.iter().position(|caller| *caller == "admin").unwrap();
        assert_eq!(status(&known).await.as_u16(), expected[admin], "{method} {path}");
        assert_eq!(status(&[("host", &host), ("sec-fetch-site", "none")]).await.as_u16(), expected[admin]);
        // A cookie alone is nobody.
        let alone = knock(&rig, method, path, &[("host", &host), ("cookie", &cookie)]).await.status();
        assert_eq!(alone.as_u16(), expected[0], "{method} {path} with a cookie");
    }
}

#[test]
fn s1_nothing_here_knows_what_a_cookie_is() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                assert!(!line.contains("cookie"), "{}: {line}", path.display());
            }
        }
    }
    assert!(files > 20, "{files}");
}
