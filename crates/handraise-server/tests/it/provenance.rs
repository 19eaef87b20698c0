//! S15: `human` is only who had reported painting this very content long enough ago. One test per way to cheat.

use std::{sync::Arc, time::Duration};

use handraise_api::frame::action;
use handraise_transport::clock::ManualClock;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{Holder, Rig, answer, ask, permission, rig_with};

/// How long a question must have been on screen, in milliseconds.
const STILL: u64 = 350;

/// An inbox whose time a test moves, with the ask `a` open.
struct Stage {
    rig: Arc<Rig>,
    clock: ManualClock,
    holder: Holder,
}

impl Stage {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let rig = Arc::new(rig_with(|settings| settings.clock = Arc::new(clock.clone())).await);
        let mut holder = rig.holder().await;
        holder.opens(&ask("a")).await;
        Self { rig, clock, holder }
    }

    fn wait(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// Reports an ask as painted; the status.
    async fn seen(&self, token: &str, id: &str, digest: &str) -> StatusCode {
        let body = Some(json!({"digest": digest}));
        self.rig.call(Method::POST, &format!("/asks/{id}/seen"), token, body).await.status
    }

    async fn painted(&self, token: &str) {
        assert_eq!(self.seen(token, "a", &digest()).await, StatusCode::NO_CONTENT);
    }

    /// Answers; what the holder was told and what the operator hears, which is the same.
    async fn provenance(&mut self, token: &str, body: Value) -> String {
        let (rig, token) = (Arc::clone(&self.rig), token.to_owned());
        let answering =
            tokio::spawn(async move { rig.call(Method::POST, "/asks/a/answer", &token, Some(body)).await });
        let (frame, respond) = self.holder.expect(action::RESPOND).await;
        self.holder.succeed(&frame, action::RESPOND).await;
        let settlement = answering.await.unwrap().json()["settlement"].clone();
        assert_eq!(settlement["provenance"], respond["provenance"]);
        settlement["provenance"].as_str().unwrap().to_owned()
    }

    async fn answers(&mut self, token: &str) -> String {
        self.provenance(token, answer("Postgres")).await
    }
}

fn digest() -> String {
    ask("a").content.digest()
}

#[tokio::test]
async fn s15_a_page_that_had_the_question_painted_for_350_ms_is_a_human() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    stage.painted(&page).await;
    stage.wait(STILL);
    assert_eq!(stage.answers(&page).await, "human");
}

#[tokio::test]
async fn s15_a_page_that_painted_nothing_is_a_client() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    stage.wait(60_000);
    assert_eq!(stage.answers(&page).await, "client");
}

#[tokio::test]
async fn s15_an_answer_quicker_than_a_person_is_a_clients() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    stage.painted(&page).await;
    stage.wait(STILL - 1);
    assert_eq!(stage.answers(&page).await, "client");
}

#[tokio::test]
async fn s15_reporting_again_gains_no_time_and_the_first_report_stays() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    stage.painted(&page).await;
    stage.wait(STILL - 1);
    stage.painted(&page).await;
    stage.wait(1);
    assert_eq!(stage.answers(&page).await, "human");
}

#[tokio::test]
async fn s15_a_bearer_token_shows_nothing_to_anybody() {
    let mut stage = Stage::new().await;
    let token = stage.rig.token("operator", "script").await;
    assert_eq!(stage.seen(&token, "a", &digest()).await, StatusCode::FORBIDDEN);
    stage.wait(60_000);
    assert_eq!(stage.answers(&token).await, "client");
}

#[tokio::test]
async fn s15_another_sessions_report_lends_nothing() {
    let mut stage = Stage::new().await;
    let (ada, other) = (stage.rig.page("Ada").await, stage.rig.page("Ada").await);
    stage.painted(&ada).await;
    stage.wait(60_000);
    assert_eq!(stage.answers(&other).await, "client", "not even one of the same name");
}

#[tokio::test]
async fn s15_a_report_of_another_ask_or_of_other_content_lends_nothing() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    stage.holder.opens(&permission("b")).await;
    assert_eq!(stage.seen(&page, "b", &permission("b").content.digest()).await, StatusCode::NO_CONTENT);
    assert_eq!(stage.seen(&page, "a", "other").await, StatusCode::UNPROCESSABLE_ENTITY);
    let of_b = permission("b").content.digest();
    assert_eq!(stage.seen(&page, "a", &of_b).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(stage.seen(&page, "nowhere", &digest()).await, StatusCode::NOT_FOUND);
    stage.wait(60_000);
    assert_eq!(stage.answers(&page).await, "client");
}

#[tokio::test]
async fn s15_a_page_is_no_terminal() {
    let mut stage = Stage::new().await;
    let page = stage.rig.page("Ada").await;
    let body = json!({"digest": digest(), "surface": "terminal"});
    let tried = stage.rig.call_locally(Method::POST, "/asks/a/seen", &page, Some(body)).await;
    assert_eq!(tried.status, StatusCode::FORBIDDEN);
    stage.wait(60_000);
    assert_eq!(stage.answers(&page).await, "client");
}

#[tokio::test]
async fn s15_what_an_answer_says_of_itself_does_not_count() {
    let mut stage = Stage::new().await;
    let token = stage.rig.token("operator", "script").await;
    for (key, value) in [("provenance", "human"), ("by", "Ada"), ("surface", "terminal")] {
        let mut body = answer("Postgres");
        body[key] = value.into();
        let refused = stage.rig.call(Method::POST, "/asks/a/answer", &token, Some(body)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "there is no field for that");
    }
    assert_eq!(stage.answers(&token).await, "client");
    let settlement = stage.rig.get("/asks/a").await.json()["settlement"].clone();
    assert_eq!(settlement["by"], "script", "who answered is who came with the token");
}

#[tokio::test]
async fn s15_a_terminal_is_human_on_the_local_socket_only() {
    let clock = ManualClock::new();
    let rig = Arc::new(rig_with(|settings| settings.clock = Arc::new(clock.clone())).await);
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    holder.opens(&ask("b")).await;
    let body = json!({"digest": ask("a").content.digest(), "surface": "terminal"});
    let admin = rig.file.admin_token.clone();
    let outside = rig.call(Method::POST, "/asks/a/seen", &admin, Some(body.clone())).await;
    assert_eq!(outside.status, StatusCode::FORBIDDEN);
    for id in ["a", "b"] {
        let path = format!("/asks/{id}/seen");
        let inside = rig.call_locally(Method::POST, &path, &admin, Some(body.clone())).await;
        assert_eq!(inside.status, StatusCode::NO_CONTENT);
    }
    clock.advance(Duration::from_millis(STILL));
    for (id, local, provenance) in [("a", true, "human"), ("b", false, "client")] {
        let answering = tokio::spawn({
            let (rig, admin) = (Arc::clone(&rig), admin.clone());
            async move {
                let path = format!("/asks/{id}/answer");
                let body = Some(answer("Postgres"));
                if local {
                    rig.call_locally(Method::POST, &path, &admin, body).await
                } else {
                    rig.call(Method::POST, &path, &admin, body).await
                }
            }
        });
        let (frame, respond) = holder.expect(action::RESPOND).await;
        assert_eq!(respond["provenance"], provenance);
        holder.succeed(&frame, action::RESPOND).await;
        assert_eq!(answering.await.unwrap().status, StatusCode::OK);
    }
}
