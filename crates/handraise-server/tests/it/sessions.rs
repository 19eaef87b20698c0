//! Sessions: transcripts, what they wait for, prompts, and agents that the inbox starts (AC-08; D3).

use std::sync::Arc;

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::action,
    session::{Author, Message, MessageKind, SessionState},
    words::Outcome,
};
use handraise_server::{AgentSettings, Launcher, Settings};
use handraise_transport::spawn::Supervisor;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{Rig, ask, rig, rig_with, settled};

#[tokio::test]
async fn ac08_an_ask_is_a_transcript_entry_and_the_sessions_pending_action() {
    let rig = rig().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    let mut asked = ask("a");
    asked.content.session_id = Some("one".into());
    holder.opens(&asked).await;
    let messages = rig.get("/sessions/one/messages").await.json();
    let entry = &messages["messages"][0];
    assert_eq!((&entry["type"], &entry["author"]), (&json!("clarification_request"), &json!("agent")));
    assert_eq!((&entry["requests_input"], &entry["metadata"]["pending_id"]), (&json!(true), &json!("a")));
    let session = rig.get("/sessions/one").await.json();
    assert_eq!((&session["pending_action"], &session["waiting"]), (&json!("clarification"), &json!(1)));
    assert_eq!((&session["state"], &session["holder_connected"]), (&json!("running"), &json!(true)));
    assert_eq!(events.until("session.message").await.data["metadata"]["pending_id"], "a");
    let told = events.until("session.updated").await;
    assert_eq!(told.data["pending_action"], "clarification");
    // D3: it holds until the last one ended.
    let mut second = ask("b");
    second.content.session_id = Some("one".into());
    holder.opens(&second).await;
    assert_eq!(holder.settle(&settled("b", Outcome::Cancel, None)).await, None);
    assert_eq!(rig.get("/sessions/one").await.json()["pending_action"], "clarification");
    assert_eq!(holder.settle(&settled("a", Outcome::Cancel, None)).await, None);
    let session = rig.get("/sessions/one").await.json();
    assert_eq!((&session["pending_action"], &session["waiting"]), (&Value::Null, &json!(0)));
}

fn entry(seq: u64, text: &str) -> Value {
    let message = Message {
        seq,
        session_id: "one".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
        kind: MessageKind::AgentText,
        author: Author::Agent,
        text: text.into(),
        continues: false,
        requests_input: false,
        metadata: serde_json::Map::new(),
    };
    json!({ "message": message })
}

#[tokio::test]
async fn a_transcript_is_paged_and_an_entry_sent_twice_is_there_once() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    for (seq, text) in [(0, "a"), (1, "b"), (1, "b"), (2, "c")] {
        assert!(holder.request(action::SESSION_MESSAGE, &entry(seq, text)).await.error.is_none());
    }
    let page = rig.get("/sessions/one/messages?limit=2").await.json();
    assert_eq!((&page["messages"][0]["text"], &page["messages"][1]["text"]), (&json!("a"), &json!("b")));
    let rest = rig.get(&format!("/sessions/one/messages?after={}", page["next_after"])).await.json();
    assert_eq!((&rest["messages"][0]["text"], &rest["next_after"]), (&json!("c"), &Value::Null));
    assert_eq!(rig.get("/sessions/other/messages").await.status, StatusCode::NOT_FOUND);
    assert_eq!(rig.get("/sessions/one/messages?limit=0").await.status, StatusCode::BAD_REQUEST);
    let mut other = rig.holder().await;
    let foreign = other.request(action::SESSION_MESSAGE, &entry(9, "x")).await;
    assert_eq!(foreign.error.unwrap().code, ErrorCode::NotOwner);
    let list = rig.get("/sessions").await.json();
    assert_eq!(list["sessions"][0]["agent"], "claude-acp");
}

#[tokio::test]
async fn prompts_and_cancellations_travel_over_the_stream() {
    let rig = Arc::new(rig().await);
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Idle).await;
    rig.until("/sessions/one", |session| session["holder_connected"] == true).await;
    let post = |path: &'static str, body: Value| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.post(path, body).await })
    };
    let prompting = post("/sessions/one/prompt", json!({"text": "go on"}));
    let (id, prompt) = holder.expect(action::SESSION_PROMPT).await;
    assert_eq!(prompt, json!({"session_id": "one", "text": "go on"}));
    holder.succeed(&id, action::SESSION_PROMPT).await;
    assert_eq!(prompting.await.unwrap().status, StatusCode::NO_CONTENT);
    let cancelling = post("/sessions/one/cancel", json!({}));
    let (id, _) = holder.expect(action::SESSION_CANCEL).await;
    let error = ErrorBody::new(ErrorCode::NotFound, "no such session here");
    holder.refuse(&id, action::SESSION_CANCEL, error, None).await;
    assert_eq!(cancelling.await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(
        post("/sessions/one/prompt", json!({"text": " "})).await.unwrap().status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        post("/sessions/other/prompt", json!({"text": "x"})).await.unwrap().status,
        StatusCode::NOT_FOUND
    );
    drop(holder.die());
    rig.until("/sessions/one", |session| session["holder_connected"] == false).await;
    let lost = post("/sessions/one/prompt", json!({"text": "x"})).await.unwrap();
    assert_eq!(
        (lost.status, lost.code().as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "HOLDER_NOT_CONNECTED")
    );
}

#[tokio::test]
async fn an_agent_is_started_as_configured_and_its_prompt_follows_over_the_stream() {
    let rig = rig_with(|settings| {
        let dir = settings.data_dir.parent().unwrap().to_owned();
        settings.agents = vec![AgentSettings {
            id: "scripted".into(),
            command: vec!["sh".into(), "command".into()],
            cwd: None,
        }];
        // The shell stands in for the supervisor as well as for the agent: it writes down how it was called.
        let script = "printf '%s\\n' \"$@\" > called.new; mv called.new called; while :; do sleep 1; done";
        settings.launcher = Some(Launcher {
            program: "agent".into(),
            args: vec!["--data-dir".into(), "there".into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            supervisor: Supervisor::other("/bin/sh", ["-c", script, "sh"].map(Into::into)),
        });
        std::fs::create_dir(dir.join("work")).unwrap();
    })
    .await;
    let agents = rig.get("/agents").await.json();
    assert_eq!(agents, json!({"agents": [{"id": "scripted", "cwd": null}]}), "and not how it is called");
    let work = rig.dir.path().join("work");
    let start = json!({"agent": "scripted", "cwd": work, "prompt": "do it"});
    let started = rig.post("/sessions", start).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.json());
    let id = started.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(started.json()["holder_connected"], false);
    let called = crate::rig::within(async {
        loop {
            if let Ok(called) = std::fs::read_to_string(work.join("called")) {
                return called;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let work = work.display().to_string();
    let expected = [
        "agent",
        "--data-dir",
        "there",
        "--agent-id",
        "scripted",
        "--session-id",
        &id,
        "--cwd",
        &work,
        "--",
        "sh",
        "command",
    ];
    let arguments: Vec<&str> = called.lines().skip_while(|line| *line != "agent").collect();
    assert_eq!(arguments, expected);
    assert!(!called.contains("do it"), "a prompt is no argument");
    // Its holder announces the session, and the prompt follows.
    let mut holder = rig.holder().await;
    holder.session(&id, SessionState::Idle).await;
    let (request, prompt) = holder.expect(action::SESSION_PROMPT).await;
    assert_eq!(prompt, json!({"session_id": id, "text": "do it"}));
    holder.succeed(&request, action::SESSION_PROMPT).await;
    // The end of the inbox is the end of the agent.
    crate::rig::within(rig.stop()).await;
}

/// Agents whose supervisor is a shell that runs a script.
fn scripted(settings: &mut Settings, script: &str) {
    settings.agents = vec![AgentSettings {
        id: "scripted".into(),
        command: vec!["sh".into(), "--password".into(), "hunter2".into()],
        cwd: Some("/".into()),
    }];
    settings.launcher = Some(Launcher {
        program: "agent".into(),
        args: Vec::new(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        supervisor: Supervisor::other("/bin/sh", ["-c", script, "sh"].map(Into::into)),
    });
}

/// What a session's transcript says once the session has ended.
async fn told(rig: &Rig, session: &str) -> Vec<(String, String, String)> {
    rig.until(&format!("/sessions/{session}"), |session| session["state"] == "ended").await;
    let messages = rig.get(&format!("/sessions/{session}/messages")).await.json();
    let word = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    let messages = messages["messages"].as_array().unwrap();
    messages.iter().map(|entry| (word(entry, "type"), word(entry, "author"), word(entry, "text"))).collect()
}

#[tokio::test]
async fn s33_s42_why_an_agent_failed_is_in_its_session_and_its_prompt_is_kept() {
    let script =
        r"printf 'loading\nerror: the agent ended; it last said:\n  API_KEY=abc is \033[2Jbad' >&2; exit 7";
    let rig = rig_with(|settings| scripted(settings, script)).await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let started = rig.post("/sessions", json!({"agent": "scripted", "prompt": "do it"})).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.json());
    let told = told(&rig, started.json()["id"].as_str().unwrap()).await;
    let why = "Agent scripted (\"sh\") failed: the agent ended; it last said:\n  API_KEY=• is \\u{1b}[2Jbad\n\
        It has not taken the prompt.";
    let entry = |kind: &str, author: &str, text: &str| (kind.to_owned(), author.to_owned(), text.to_owned());
    assert_eq!(told, [entry("user_text", "operator", "do it"), entry("notice", "system", why)]);
    assert_eq!(events.until("session.message").await.data["text"], "do it");
    assert_eq!(events.until("session.message").await.data["text"], why);
}

#[tokio::test]
async fn an_agent_that_fails_without_a_word_has_its_exit_status_told() {
    let rig = rig_with(|settings| scripted(settings, "exit 7")).await;
    let started = rig.post("/sessions", json!({"agent": "scripted"})).await;
    let told = told(&rig, started.json()["id"].as_str().unwrap()).await;
    assert_eq!(
        told[0].2,
        "Agent scripted (\"sh\") failed: its process ended with exit status 7 and said nothing"
    );
}

#[tokio::test]
async fn a_prompt_that_an_agent_left_without_is_kept() {
    let rig = rig_with(|settings| scripted(settings, "exit 0")).await;
    let started = rig.post("/sessions", json!({"agent": "scripted", "prompt": "do it"})).await;
    let told = told(&rig, started.json()["id"].as_str().unwrap()).await;
    assert_eq!((told[0].2.as_str(), told.len()), ("do it", 2));
    assert!(told[1].2.contains("did not take the prompt"), "{told:?}");
}

#[tokio::test]
async fn a_session_that_has_ended_takes_no_prompt_and_keeps_it() {
    let rig = rig_with(|settings| {
        let go = settings.data_dir.parent().unwrap().join("go");
        scripted(settings, &format!("while [ ! -e '{}' ]; do sleep 0.05; done; exit 3", go.display()));
    })
    .await;
    let started = rig.post("/sessions", json!({"agent": "scripted", "prompt": "do it"})).await;
    let id = started.json()["id"].as_str().unwrap().to_owned();
    let mut holder = rig.holder().await;
    holder.session(&id, SessionState::Ended).await;
    holder.opens(&ask("a")).await;
    std::fs::write(rig.dir.path().join("go"), "").unwrap();
    let path = format!("/sessions/{id}/messages");
    rig.until(&path, |told| told["messages"].as_array().is_some_and(|entries| entries.len() == 2)).await;
    assert_eq!(rig.get(&path).await.json()["messages"][0]["text"], "do it");
    assert!(holder.is_quiet());
}

#[tokio::test]
async fn a_prompt_that_was_refused_is_kept_with_the_reason() {
    let rig = rig_with(|settings| scripted(settings, "while :; do sleep 1; done")).await;
    let started = rig.post("/sessions", json!({"agent": "scripted", "prompt": "do it"})).await;
    let id = started.json()["id"].as_str().unwrap().to_owned();
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let mut holder = rig.holder().await;
    holder.session(&id, SessionState::Idle).await;
    let (request, _) = holder.expect(action::SESSION_PROMPT).await;
    let error = ErrorBody::new(ErrorCode::LimitExceeded, "too many prompts wait");
    holder.refuse(&request, action::SESSION_PROMPT, error, None).await;
    assert_eq!(events.until("session.message").await.data["text"], "do it");
    let notice = events.until("session.message").await.data["text"].clone();
    assert!(notice.as_str().unwrap().contains("too many prompts wait"), "{notice}");
    crate::rig::within(rig.stop()).await;
}

#[tokio::test]
async fn where_an_agent_is_to_run_and_what_is_looked_at_before_it_is_started() {
    let rig = rig_with(|settings| {
        scripted(settings, "exit 0");
        let gone = AgentSettings {
            id: "gone".into(),
            command: vec!["/not/there/agent".into()],
            cwd: Some("/not/there".into()),
        };
        settings.agents.push(gone);
    })
    .await;
    for (body, words) in [
        (json!({"agent": "scripted", "cwd": "/not/there"}), ["'cwd'", "\"/not/there\""]),
        (json!({"agent": "scripted", "cwd": "/dev/null"}), ["'cwd'", "directory"]),
        (json!({"agent": "gone"}), ["[[agent]] 'gone'", "\"/not/there\""]),
        (json!({"agent": "gone", "cwd": "/"}), ["\"/not/there/agent\"", "check the path"]),
    ] {
        let refused = rig.post("/sessions", body.clone()).await;
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (StatusCode::BAD_REQUEST, "BAD_REQUEST"),
            "{message}"
        );
        assert!(words.iter().all(|word| message.contains(word)), "{body}: {message}");
    }
    assert!(
        rig.get("/sessions").await.json()["sessions"].as_array().unwrap().is_empty(),
        "nothing was begun"
    );
}

#[tokio::test]
async fn what_cannot_be_started_is_said() {
    let rig = rig_with(|settings| {
        settings.agents = vec![AgentSettings { id: "known".into(), command: vec!["x".into()], cwd: None }];
    })
    .await;
    for (body, word) in [
        (json!({"agent": "unknown"}), "known"),
        (json!({"agent": "known"}), "cwd"),
        (json!({"agent": "known", "cwd": "relative"}), "absolute"),
        (json!({"agent": "known", "cwd": "/", "prompt": ""}), "prompt"),
        (json!({"agent": "known", "cwd": "/"}), "handraise agent"),
    ] {
        let refused = rig.call(Method::POST, "/sessions", &rig.file.admin_token, Some(body.clone())).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(word), "{message}");
    }
    assert!(rig.get("/sessions").await.json()["sessions"].as_array().unwrap().is_empty());
    assert_eq!(
        rig.get("/agents").await.json(),
        json!({"agents": []}),
        "what cannot be started is not offered"
    );
}

#[tokio::test]
async fn s37_only_so_many_agents_run_and_who_comes_too_many_hears_when_to_ask_again() {
    let rig = rig_with(|settings| {
        scripted(settings, "while :; do sleep 1; done");
        settings.caps.agents = 1;
    })
    .await;
    let start = async || rig.post("/sessions", json!({"agent": "scripted"})).await;
    assert_eq!(start().await.status, StatusCode::CREATED);
    let refused = start().await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "LIMIT_EXCEEDED"));
    assert_eq!(refused.headers["retry-after"], "60");
    crate::rig::within(rig.stop()).await;
}

#[tokio::test]
async fn s37_who_hangs_up_before_an_agent_was_started_keeps_no_place_and_starts_none() {
    let rig = rig_with(|settings| {
        scripted(settings, "touch started; while :; do sleep 1; done");
        let dir = settings.data_dir.parent().unwrap().to_owned();
        settings.agents[0].cwd = Some(dir);
        settings.caps.agents = 1;
        // Three for each token.
        settings.caps.connections = 6;
    })
    .await;
    let impatient = rig.token("admin", "impatient").await;
    let database = rig.dir.path().join("data").join("handraise.db");
    assert!(database.exists());
    let other = rusqlite::Connection::open(database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({"agent": "scripted", "prompt": "do it"});
    let start = || rig.call(Method::POST, "/sessions", &impatient, Some(body.clone()));
    // One of two takes the only place, and waits for the database; it hangs up then.
    let refused = crate::rig::within(async {
        tokio::select! {
            first = start() => first,
            second = start() => second,
        }
    })
    .await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.json());
    // The inbox has noticed when the connections are free again.
    let mut streams = Vec::new();
    crate::rig::within(async {
        while streams.len() < 3 {
            streams.extend(rig.try_events(&impatient).await);
        }
    })
    .await;
    other.execute_batch("ROLLBACK").unwrap();
    let sessions = rig
        .until("/sessions", |list| {
            let sessions = list["sessions"].as_array().unwrap();
            !sessions.is_empty() && sessions.iter().all(|session| session["state"] == "ended")
        })
        .await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    assert!(!rig.dir.path().join("started").exists());
    let told = told(&rig, sessions["sessions"][0]["id"].as_str().unwrap()).await;
    assert_eq!((told[0].0.as_str(), told[0].2.as_str()), ("user_text", "do it"));
    assert!(told[1].2.contains("was not started"), "{told:?}");
    let started = rig.post("/sessions", json!({"agent": "scripted"})).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.json());
    crate::rig::within(rig.stop()).await;
}

#[tokio::test]
async fn what_goes_on_in_the_background_is_told() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let mut said = json!({"session_id": "one", "agent": "codex", "title": null, "cwd": null, "state": "idle",
        "stop_reason": "end_turn", "background": true});
    holder.send(handraise_api::frame::FrameKind::Event, "", action::SESSION_UPDATED, &said).await;
    rig.until("/sessions/one", |session| session["background"] == true).await;
    // An older holder says nothing of it.
    said.as_object_mut().unwrap().remove("background");
    holder.send(handraise_api::frame::FrameKind::Event, "", action::SESSION_UPDATED, &said).await;
    rig.until("/sessions/one", |session| session["background"] == false).await;
}
