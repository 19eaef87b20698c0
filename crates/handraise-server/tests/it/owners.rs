//! S16: whose answer counts, by the owners of the holder's token and of the operator's.

use handraise_api::{
    frame::{AnnouncedAsk, action},
    words::Who,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{Holder, Rig, answer, ask, permission, rig, start};

/// A token of a scope, and whose it is.
async fn token(rig: &Rig, scope: &str, owner: Option<&str>) -> String {
    let made = rig.post("/tokens", json!({"scope": scope, "owner": owner})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json());
    made.json()["token"].as_str().unwrap().to_owned()
}

/// A page that was signed in with such a token, and whose it is by its own word.
async fn page(rig: &Rig, secret: &str) -> (String, Value) {
    let login = rig.call(Method::POST, "/login", "", Some(json!({"secret": secret}))).await.json();
    (login["token"].as_str().unwrap().to_owned(), login["owner"].clone())
}

async fn holder_of(rig: &Rig, owner: Option<&str>) -> Holder {
    let mut holder = rig.dial(&token(rig, "holder", owner).await).await;
    holder.hello(None).await;
    holder.snapshot(&[], &[]).await;
    holder
}

fn with_who(mut ask: AnnouncedAsk, who: Who) -> AnnouncedAsk {
    ask.content.who = who;
    ask
}

/// What the inbox says to an answer that is not forwarded.
async fn refused(rig: &Rig, token: &str, id: &str) -> String {
    let answered = rig.answer(token, id, "Postgres").await;
    assert_eq!((answered.status, answered.code().as_str()), (StatusCode::FORBIDDEN, "FORBIDDEN"));
    answered.json()["error"]["message"].as_str().unwrap().to_owned()
}

async fn kinds_of_events(rig: &Rig, id: &str) -> Vec<String> {
    let ask = rig.get(&format!("/asks/{id}")).await.json();
    let events = ask["events"].as_array().unwrap().iter();
    events.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn s16_only_the_owner_answers_where_the_ask_says_so() {
    let rig = rig().await;
    let mut holder = holder_of(&rig, Some("ada")).await;
    holder.opens(&with_who(ask("a"), Who::Caller)).await;
    let shown = rig.get("/asks/a").await.json();
    assert_eq!((&shown["who"], &shown["origin"]["owner"]), (&json!("caller"), &json!("ada")));

    let (bobs, _) = page(&rig, &token(&rig, "operator", Some("bob")).await).await;
    let nobodys = token(&rig, "operator", None).await;
    assert_eq!(refused(&rig, &bobs, "a").await, "only ada may answer this; you are bob");
    let unknown = "only ada may answer this; your token does not say whose it is; one made with --owner does";
    assert_eq!(refused(&rig, &nobodys, "a").await, unknown);
    assert_eq!(refused(&rig, &rig.file.admin_token, "a").await, unknown, "an admin is not everybody");
    // What came before its receipt would be there now.
    holder.opens(&ask("later")).await;
    assert!(holder.is_quiet(), "nothing of them was forwarded");
    assert_eq!(kinds_of_events(&rig, "a").await, ["opened"], "or kept");
    let audit = rig.get("/audit").await.json();
    let rows: Vec<(&Value, &Value)> =
        audit["entries"].as_array().unwrap().iter().map(|row| (&row["what"], &row["about"])).collect();
    assert_eq!(rows, [(&json!("answerers"), &json!("a")); 3]);
    let metrics = rig.get("/!/metrics").await.bytes;
    let metrics = String::from_utf8_lossy(&metrics);
    assert!(metrics.contains("handraise_refused_total{what=\"answerers\"} 3\n"), "{metrics}");

    // The page that Ada signed in with her token is hers.
    let (adas, owner) = page(&rig, &token(&rig, "operator", Some("ada")).await).await;
    assert_eq!(owner, "ada");
    let answering = tokio::spawn(async move {
        let answered = rig.answer(&adas, "a", "Postgres").await;
        (answered.status, rig)
    });
    let (frame, _) = holder.expect(action::RESPOND).await;
    holder.succeed(&frame, action::RESPOND).await;
    assert_eq!(answering.await.unwrap().0, StatusCode::OK);
}

#[tokio::test]
async fn s16_somebody_else_has_to_answer_where_the_ask_says_so() {
    let rig = rig().await;
    let mut holder = holder_of(&rig, Some("ada")).await;
    holder.opens(&with_who(ask("a"), Who::NotTheCaller)).await;
    let adas = token(&rig, "operator", Some("ada")).await;
    assert_eq!(refused(&rig, &adas, "a").await, "anybody but ada may answer this; you are ada");
    refused(&rig, &token(&rig, "operator", None).await, "a").await;
    let bobs = token(&rig, "operator", Some("bob")).await;
    let answering = tokio::spawn(async move { rig.answer(&bobs, "a", "Postgres").await.status });
    let (frame, _) = holder.expect(action::RESPOND).await;
    holder.succeed(&frame, action::RESPOND).await;
    assert_eq!(answering.await.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn s16_an_ask_that_nobody_could_answer_is_refused_at_once() {
    let rig = rig().await;
    let mut holder = holder_of(&rig, None).await;
    for who in [Who::Caller, Who::NotTheCaller] {
        let error = holder.open(&with_who(ask("a"), who)).await.unwrap();
        assert!(error.message.contains("the holder's token has no owner"), "{}", error.message);
    }
    assert_eq!(rig.get("/asks/a").await.status, StatusCode::NOT_FOUND);
    holder.opens(&with_who(ask("a"), Who::Operator)).await;
}

#[tokio::test]
async fn s16_a_batch_with_one_that_is_not_theirs_answers_none() {
    let rig = rig().await;
    let mut holder = holder_of(&rig, Some("ada")).await;
    holder.opens(&permission("p")).await;
    holder.opens(&with_who(permission("q"), Who::Caller)).await;
    let bobs = token(&rig, "operator", Some("bob")).await;
    let yes = json!([{"question_id": "permission", "selected_options": ["allow"], "custom_text": ""}]);
    let batch = json!({"submissions": [{"id": "p", "answers": yes}, {"id": "q", "answers": yes}]});
    let answered = rig.call(Method::POST, "/asks/answer-batch", &bobs, Some(batch)).await;
    assert_eq!(answered.status, StatusCode::FORBIDDEN, "{}", answered.json());
    holder.opens(&ask("later")).await;
    assert!(holder.is_quiet());
    assert_eq!(kinds_of_events(&rig, "p").await, ["opened"]);
}

#[tokio::test]
async fn s16_whose_an_ask_is_outlives_a_restart_and_its_holder() {
    let first = rig().await;
    let mut holder = holder_of(&first, Some("ada")).await;
    holder.opens(&with_who(ask("a"), Who::Caller)).await;
    let rig = start(first.stop().await, |_| {}).await;
    let bobs = token(&rig, "operator", Some("bob")).await;
    refused(&rig, &bobs, "a").await;
    let adas = token(&rig, "operator", Some("ada")).await;
    let body = Some(answer("Postgres"));
    let answered = rig.call(Method::POST, "/asks/a/answer", &adas, body).await;
    assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE, "its holder is not there");
}
