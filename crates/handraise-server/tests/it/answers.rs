//! From an answer to its verdict: every status, every way a stream can break, every race.

use std::sync::Arc;

use handraise_api::{
    error::{ErrorBody, ErrorCode, ErrorDetail},
    frame::action,
    words::Outcome,
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::rig::{Rig, ask, permission, question, rig, rig_with, settled, start, within};

/// Answers in the background, so that the test can play the holder meanwhile.
macro_rules! answering {
    ($rig:expr, $token:expr, $id:expr, $option:expr) => {{
        let (rig, token) = (Arc::clone(&$rig), $token.clone());
        tokio::spawn(async move { rig.answer(&token, $id, $option).await })
    }};
}

#[tokio::test]
async fn ac20b_an_answer_travels_as_a_frame_and_comes_back_as_the_ask() {
    let rig = Arc::new(rig().await);
    let token = rig.token("operator", "Ada").await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "Postgres");
    let (id, respond) = holder.expect(action::RESPOND).await;
    assert_eq!(respond["pending_id"], "a");
    assert_eq!(respond["answers"][0]["selected_options"], json!(["Postgres"]));
    assert_eq!((&respond["by"], &respond["provenance"]), (&json!("Ada"), &json!("client")));
    holder.succeed(&id, action::RESPOND).await;
    let answered = answering.await.unwrap();
    assert_eq!(answered.status, StatusCode::OK);
    let how = answered.json()["settlement"].clone();
    assert_eq!(how["outcome"], "accept");
    assert_eq!(how["wire"], "accept");
    assert_eq!(how["by"], "Ada");
    assert_eq!(how["answers"][0]["selected_options"], json!(["Postgres"]));
    assert_eq!(how["submission_id"], respond["submission_id"]);
    // The holder's own word for it comes too and changes nothing.
    let ended = settled("a", Outcome::Accept, respond["submission_id"].as_str());
    assert_eq!(holder.settle(&ended).await, None);
    assert_eq!(rig.get("/asks/a").await.json()["settlement"], how);
}

#[tokio::test]
async fn a_misspelt_answer_reaches_nobody_and_the_ask_stays_open() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let misspelt = json!([{"question_id": "question_0", "selected_option": ["Postgres"]}]);
    for (body, names) in [
        (json!({}), "'answers' is missing"),
        (json!({"answer": misspelt}), "'answer' is not known"),
        (json!({"answers": misspelt}), "'answers[0].selected_option' is not known"),
    ] {
        let refused = rig.post("/asks/a/answer", body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.contains(names), "{said}");
    }
    let shown = rig.get("/asks/a").await.json();
    assert_eq!((&shown["state"], shown["events"].as_array().unwrap().len()), (&json!("open"), 1), "{shown}");
    // The first that reaches the holder is the one that was meant.
    let token = rig.token("operator", "Ada").await;
    let answering = answering!(rig, token, "a", "Postgres");
    let (id, respond) = holder.expect(action::RESPOND).await;
    assert_eq!(respond["answers"][0]["selected_options"], json!(["Postgres"]));
    holder.succeed(&id, action::RESPOND).await;
    assert_eq!(answering.await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn ac14_a_skip_is_a_decline() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let skipping = tokio::spawn({
        let rig = Arc::clone(&rig);
        async move {
            rig.post("/asks/a/answer", json!({"answers": [], "rejected": true, "reject_reason": "not now"}))
                .await
        }
    });
    let (id, respond) = holder.expect(action::RESPOND).await;
    assert_eq!((&respond["rejected"], &respond["reject_reason"]), (&json!(true), &json!("not now")));
    holder.succeed(&id, action::RESPOND).await;
    let skipped = skipping.await.unwrap().json();
    assert_eq!(
        (&skipped["settlement"]["outcome"], &skipped["settlement"]["wire"]),
        (&json!("decline"), &json!("decline"))
    );
}

#[tokio::test]
async fn f10_the_holders_list_of_what_is_wrong_comes_through_and_the_ask_stays_open() {
    let rig = Arc::new(rig().await);
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "MySQL");
    let (id, _) = holder.expect(action::RESPOND).await;
    let mut error = ErrorBody::new(ErrorCode::Invalid, "one answer was refused");
    error.details = vec![ErrorDetail {
        question_id: "question_0".into(),
        rule: "choice".into(),
        message: "MySQL is no choice".into(),
    }];
    holder.refuse(&id, action::RESPOND, error, None).await;
    let refused = answering.await.unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "INVALID"));
    assert_eq!(refused.json()["error"]["details"][0]["rule"], "choice");
    assert_eq!(rig.get("/asks/a").await.json()["state"], "open");
}

#[tokio::test]
async fn ac61_a_second_answer_is_forwarded_and_the_holder_says_what_it_is() {
    let rig = Arc::new(rig().await);
    let (ada, bob) = (rig.token("operator", "Ada").await, rig.token("operator", "Bob").await);
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let first = answering!(rig, ada, "a", "Postgres");
    let (id, respond) = holder.expect(action::RESPOND).await;
    let winner = respond["submission_id"].as_str().unwrap().to_owned();
    holder.succeed(&id, action::RESPOND).await;
    assert_eq!(first.await.unwrap().status, StatusCode::OK);

    // Another operator, and the same operator with another answer: forwarded, and 404 with who won.
    for (token, option) in [(&bob, "Postgres"), (&ada, "SQLite")] {
        let again = answering!(rig, token, "a", option);
        let (id, respond) = holder.expect(action::RESPOND).await;
        assert_ne!(respond["submission_id"], winner.as_str());
        holder.not_found(&id, action::RESPOND, Some(&settled("a", Outcome::Accept, Some(&winner)))).await;
        let refused = again.await.unwrap();
        assert_eq!((refused.status, refused.code().as_str()), (StatusCode::NOT_FOUND, "NOT_FOUND"));
        assert_eq!(refused.json()["settlement"]["by"], "Ada");
        assert_eq!(refused.json()["recorded"], false);
    }

    // The same operator with the same answer: it had won, and that is no error.
    let again = answering!(rig, ada, "a", "Postgres");
    let (id, _) = holder.expect(action::RESPOND).await;
    holder.not_found(&id, action::RESPOND, Some(&settled("a", Outcome::Accept, Some(&winner)))).await;
    let replayed = again.await.unwrap();
    assert_eq!((replayed.status, &replayed.json()["replayed"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test]
async fn ac12g_an_ask_that_the_holder_ended_itself_is_not_found_with_its_word() {
    let rig = Arc::new(rig().await);
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "Postgres");
    let (id, _) = holder.expect(action::RESPOND).await;
    holder.not_found(&id, action::RESPOND, Some(&settled("a", Outcome::Timeout, None))).await;
    let refused = answering.await.unwrap();
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(refused.json()["settlement"]["outcome"], "timeout");
    assert_eq!(refused.json()["settlement"]["provenance"], "system");
    assert_eq!(rig.get("/asks/a").await.json()["state"], "settled");
}

#[tokio::test]
async fn ac20a_without_its_holder_an_answer_goes_nowhere_and_the_ask_stays_open() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    drop(holder.die());
    rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    let refused = rig.answer(&rig.file.admin_token, "a", "Postgres").await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "HOLDER_NOT_CONNECTED")
    );
    // A connection counts as lost at once; its history is written a moment later.
    let ask = rig.until("/asks/a", |ask| ask["events"].as_array().unwrap().len() > 1).await;
    assert_eq!((&ask["state"], &ask["settlement"]), (&json!("open"), &Value::Null));
    let kinds: Vec<&str> =
        ask["events"].as_array().unwrap().iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["opened", "disconnected"]);
}

#[tokio::test]
async fn a_settled_ask_of_a_lost_holder_is_answered_from_what_is_stored() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    for (id, outcome) in [("late", Outcome::Timeout), ("dead", Outcome::Withdrawn)] {
        holder.opens(&ask(id)).await;
        assert_eq!(holder.settle(&settled(id, outcome, None)).await, None);
    }
    drop(holder.die());
    rig.until("/!/metrics", |_| true).await;
    rig.until("/asks/late", |ask| ask["holder_connected"] == false).await;
    for (id, outcome, recorded) in [("late", "timeout", false), ("dead", "withdrawn", true)] {
        let refused = rig.answer(&rig.file.admin_token, id, "Postgres").await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        assert_eq!(refused.json()["settlement"]["outcome"], outcome);
        assert_eq!(refused.json()["recorded"], recorded);
    }
}

#[tokio::test]
async fn an_unknown_ask_is_not_found_and_nothing_is_recorded() {
    let rig = rig().await;
    let refused = rig.answer(&rig.file.admin_token, "nowhere", "Postgres").await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(refused.json()["settlement"], Value::Null);
    assert_eq!(refused.json()["recorded"], false);
}

async fn impatient() -> Arc<Rig> {
    Arc::new(rig_with(|settings| settings.timing.verdict = std::time::Duration::from_millis(100)).await)
}

#[tokio::test]
async fn a_verdict_that_takes_too_long_is_unknown_and_counts_when_it_comes() {
    let rig = impatient().await;
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "Postgres");
    let (id, _) = holder.expect(action::RESPOND).await;
    let unknown = answering.await.unwrap();
    assert_eq!((unknown.status, unknown.code().as_str()), (StatusCode::GATEWAY_TIMEOUT, "VERDICT_UNKNOWN"));
    assert_eq!(rig.get("/asks/a").await.json()["state"], "sent");
    holder.succeed(&id, action::RESPOND).await;
    let ask = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    assert_eq!(ask["settlement"]["outcome"], "accept");
}

#[tokio::test]
async fn a_holder_that_gives_no_verdict_is_hung_up_on_and_asked_when_it_comes_back() {
    let rig = rig_with(|settings| settings.timing.hang = std::time::Duration::from_millis(100)).await;
    let rig = Arc::new(rig);
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "Postgres");
    holder.expect(action::RESPOND).await;
    let unknown = within(answering).await.unwrap();
    assert_eq!((unknown.status, unknown.code().as_str()), (StatusCode::GATEWAY_TIMEOUT, "VERDICT_UNKNOWN"));
    while within(holder.receive()).await.is_some() {}
    let (instance, secret) = holder.die();
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[ask("a")], &[]).await;
    holder.expect(action::VERDICT).await;
}

/// The stream breaks after the answer was written; the holder comes back and is asked what became of it.
async fn cut_after_write() -> (Arc<Rig>, String, (String, String)) {
    let rig = Arc::new(rig().await);
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = answering!(rig, token, "a", "Postgres");
    let (_, respond) = holder.expect(action::RESPOND).await;
    let resume = holder.die();
    let unknown = within(answering).await.unwrap();
    assert_eq!((unknown.status, unknown.code().as_str()), (StatusCode::GATEWAY_TIMEOUT, "VERDICT_UNKNOWN"));
    assert_eq!(rig.get("/asks/a").await.json()["state"], "sent");
    (rig, respond["submission_id"].as_str().unwrap().to_owned(), resume)
}

#[tokio::test]
async fn cut_before_the_verdict_a_delivered_answer_is_settled_on_reconnect() {
    let (rig, submission, (instance, secret)) = cut_after_write().await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    // The settlement that nobody acknowledged is in the snapshot.
    holder.snapshot(&[], &[settled("a", Outcome::Accept, Some(&submission))]).await;
    let ask = rig.get("/asks/a").await.json();
    assert_eq!((&ask["state"], &ask["settlement"]["outcome"]), (&json!("settled"), &json!("accept")));
    assert_eq!(ask["settlement"]["submission_id"], submission.as_str());
    assert_eq!(ask["settlement"]["by"], "local");
}

#[tokio::test]
async fn cut_before_the_verdict_the_holder_is_asked_and_says_delivered() {
    let (rig, submission, (instance, secret)) = cut_after_write().await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[], &[]).await;
    let (id, query) = holder.expect(action::VERDICT).await;
    assert_eq!(query, json!({"pending_id": "a", "submission_id": submission}));
    holder.succeed(&id, action::VERDICT).await;
    let ask = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    assert_eq!(ask["settlement"]["outcome"], "accept");
}

#[tokio::test]
async fn what_has_its_verdict_by_the_time_of_its_turn_is_not_asked_for() {
    let rig = Arc::new(rig().await);
    let token = rig.file.admin_token.clone();
    let mut holder = rig.holder().await;
    let mut submissions = Vec::new();
    for id in ["a", "b"] {
        holder.opens(&ask(id)).await;
        let _unknown = answering!(rig, token, id, "Postgres");
        let (_, respond) = holder.expect(action::RESPOND).await;
        submissions.push((id, respond["submission_id"].as_str().unwrap().to_owned()));
    }
    let (instance, secret) = holder.die();
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[ask("a"), ask("b")], &[]).await;
    // One after the other: while the first is asked for, the holder says how the other ended.
    let (query, first) = holder.expect(action::VERDICT).await;
    let (other, submission) = submissions.iter().find(|(id, _)| first["pending_id"] != *id).unwrap();
    assert_eq!(holder.settle(&settled(other, Outcome::Accept, Some(submission))).await, None);
    holder.succeed(&query, action::VERDICT).await;
    for id in ["a", "b"] {
        rig.until(&format!("/asks/{id}"), |ask| ask["state"] == "settled").await;
    }
    // The next request is that of the next answer.
    holder.opens(&ask("c")).await;
    let answering = answering!(rig, token, "c", "Postgres");
    let (id, _) = holder.expect(action::RESPOND).await;
    holder.succeed(&id, action::RESPOND).await;
    assert_eq!(within(answering).await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn cut_before_the_holder_read_it_the_ask_is_open_again() {
    let (rig, _, (instance, secret)) = cut_after_write().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[ask("a")], &[]).await;
    let (id, _) = holder.expect(action::VERDICT).await;
    holder.refuse(&id, action::VERDICT, ErrorBody::new(ErrorCode::Unseen, "never arrived"), None).await;
    let ask = rig.until("/asks/a", |ask| ask["state"] == "open").await;
    assert_eq!(ask["settlement"], Value::Null);
    let details: Vec<_> = ask["events"].as_array().unwrap().iter().map(|e| e["detail"].clone()).collect();
    assert!(details.contains(&json!("unseen")), "{details:?}");
    // The operator is told.
    loop {
        let told = events.until("ask.updated").await;
        if told.data["state"] == "open" {
            break;
        }
    }
}

#[tokio::test]
async fn unseen_by_a_holder_that_forgot_the_ask_is_withdrawn() {
    let (rig, _, (instance, secret)) = cut_after_write().await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[], &[]).await;
    let (id, _) = holder.expect(action::VERDICT).await;
    holder.refuse(&id, action::VERDICT, ErrorBody::new(ErrorCode::Unseen, "never arrived"), None).await;
    let ask = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    assert_eq!(ask["settlement"]["outcome"], "withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_racing_answers_one_is_delivered_and_the_others_get_the_holders_verdict() {
    let rig = Arc::new(rig().await);
    let mut tokens = Vec::new();
    for n in 0..64 {
        tokens.push(rig.token("operator", &format!("operator {n}")).await);
    }
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let racers: Vec<_> = tokens.into_iter().map(|token| answering!(rig, token, "a", "Postgres")).collect();
    let mut winner: Option<String> = None;
    for _ in 0..64 {
        let (id, respond) = holder.expect(action::RESPOND).await;
        let submission = respond["submission_id"].as_str().unwrap().to_owned();
        match &winner {
            None => {
                winner = Some(submission);
                holder.succeed(&id, action::RESPOND).await;
            }
            Some(winner) => {
                holder
                    .not_found(&id, action::RESPOND, Some(&settled("a", Outcome::Accept, Some(winner))))
                    .await;
            }
        }
    }
    let (mut delivered, mut lost) = (0, 0);
    let mut by = Vec::new();
    for racer in racers {
        let response = racer.await.unwrap();
        match response.status {
            StatusCode::OK => {
                delivered += 1;
                by.push(response.json()["settlement"]["by"].clone());
            }
            StatusCode::NOT_FOUND => {
                lost += 1;
                by.push(response.json()["settlement"]["by"].clone());
            }
            other => panic!("{other}: {}", response.json()),
        }
    }
    assert_eq!((delivered, lost), (1, 63));
    by.dedup();
    assert_eq!(by.len(), 1, "everybody hears of the same winner: {by:?}");
    assert_eq!(rig.get("/asks/a").await.json()["settlement"]["submission_id"], winner.unwrap());
}

#[tokio::test]
async fn a_permission_travels_as_its_option() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    holder.opens(&permission("a")).await;
    let post = |body: Value| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.post("/asks/a/answer", body).await })
    };
    for body in [
        json!({"answers": []}),
        json!({"answers": [{"question_id": "permission", "selected_options": ["a", "b"], "custom_text": ""}]}),
        json!({"answers": [{"question_id": "other", "selected_options": ["a"], "custom_text": ""}]}),
        json!({"answers": [{"question_id": "permission", "selected_options": ["a"], "custom_text": "but"}]}),
    ] {
        let refused = post(body).await.unwrap();
        assert_eq!((refused.status, refused.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "INVALID"));
    }
    let picked = post(json!({"answers": [
        {"question_id": "permission", "selected_options": ["allow_once"], "custom_text": ""}
    ]}));
    let (id, respond) = holder.expect(action::RESPOND_PERMISSION).await;
    assert_eq!(respond["option_id"], "allow_once");
    holder.succeed(&id, action::RESPOND_PERMISSION).await;
    assert_eq!(picked.await.unwrap().status, StatusCode::OK);
    let skipped = post(json!({"answers": [], "rejected": true}));
    let (id, respond) = holder.expect(action::RESPOND_PERMISSION).await;
    assert_eq!(respond["option_id"], Value::Null);
    holder.not_found(&id, action::RESPOND_PERMISSION, None).await;
    assert_eq!(skipped.await.unwrap().status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s33_secrets_are_forwarded_and_never_stored() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    let mut asked = ask("a");
    let mut secret = question("password");
    secret.secret = true;
    asked.content.questions = vec![secret, question("question_0")];
    holder.opens(&asked).await;
    let body = json!({"answers": [
        {"question_id": "password", "selected_options": [], "custom_text": "hunter2"},
        {"question_id": "question_0", "selected_options": ["Postgres"], "custom_text": ""},
    ]});
    let answering = tokio::spawn({
        let rig = Arc::clone(&rig);
        async move { rig.post("/asks/a/answer", body).await }
    });
    let (id, respond) = holder.expect(action::RESPOND).await;
    assert_eq!(respond["answers"][0]["custom_text"], "hunter2");
    holder.succeed(&id, action::RESPOND).await;
    let stored = answering.await.unwrap().json()["settlement"]["answers"].clone();
    assert_eq!(stored[0]["custom_text"], "•");
    assert_eq!(stored[1]["selected_options"], json!(["Postgres"]));
    drop(holder.die());
    let rig = Arc::into_inner(rig).unwrap();
    let dir = rig.stop().await;
    for entry in dir.path().join("data").read_dir().unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    }
}

#[tokio::test]
async fn s44_a_batch_is_one_frame_of_one_holder() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    let mut other = rig.holder().await;
    holder.opens(&permission("a")).await;
    holder.opens(&permission("b")).await;
    holder.opens(&ask("form")).await;
    other.opens(&permission("c")).await;
    let batch = |ids: &[&str]| {
        let rig = Arc::clone(&rig);
        let submissions: Vec<_> = ids
            .iter()
            .map(|id| {
                json!({"id": id, "answers": [
                    {"question_id": "permission", "selected_options": ["allow_once"], "custom_text": ""}
                ]})
            })
            .collect();
        tokio::spawn(async move { rig.post("/asks/answer-batch", json!({"submissions": submissions})).await })
    };
    for (ids, status) in [
        (&["a", "c"][..], StatusCode::BAD_REQUEST),
        (&["a", "form"], StatusCode::BAD_REQUEST),
        (&["a", "a"], StatusCode::BAD_REQUEST),
        (&[], StatusCode::BAD_REQUEST),
        (&["a", "nowhere"], StatusCode::NOT_FOUND),
    ] {
        assert_eq!(batch(ids).await.unwrap().status, status, "{ids:?}");
    }
    let refused = batch(&["a", "b"]);
    let (id, frame) = holder.expect(action::RESPOND_BATCH).await;
    assert_eq!(frame["submissions"].as_array().unwrap().len(), 2);
    holder.not_found(&id, action::RESPOND_BATCH, Some(&settled("b", Outcome::Timeout, None))).await;
    assert_eq!(refused.await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(rig.get("/asks/a").await.json()["state"], "open");
    assert_eq!(rig.get("/asks/b").await.json()["settlement"]["outcome"], "timeout");

    holder.opens(&permission("d")).await;
    let taken = batch(&["a", "d"]);
    let (id, _) = holder.expect(action::RESPOND_BATCH).await;
    holder.succeed(&id, action::RESPOND_BATCH).await;
    let taken = taken.await.unwrap();
    assert_eq!(taken.status, StatusCode::OK, "{}", taken.json());
    let asks = taken.json()["asks"].clone();
    assert_eq!((&asks[0]["id"], &asks[1]["id"]), (&json!("a"), &json!("d")));
    assert!(asks.as_array().unwrap().iter().all(|ask| ask["settlement"]["outcome"] == "accept"));
}

#[tokio::test]
async fn an_answer_of_before_a_crash_is_asked_about_after_it() {
    let (rig, submission, (instance, secret)) = cut_after_write().await;
    let rig = Arc::into_inner(rig).unwrap();
    let dir = rig.stop().await;
    let rig = start(dir, |_| {}).await;
    assert_eq!(rig.get("/asks/a").await.json()["state"], "sent");
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[ask("a")], &[]).await;
    let (id, query) = holder.expect(action::VERDICT).await;
    assert_eq!(query["submission_id"], submission.as_str());
    holder.succeed(&id, action::VERDICT).await;
    rig.until("/asks/a", |ask| ask["settlement"]["outcome"] == "accept").await;
}
