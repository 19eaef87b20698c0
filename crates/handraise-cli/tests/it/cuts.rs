//! The stream is cut, a process is stopped or killed, at every point of an answer's way: afterwards the operator, the
//! agent and the database agree (acp.md, "Holder stream").

use std::thread;

use serde_json::{Value, json};

use crate::support::{
    Agent, Answer, Home, Pass, Relay, Up, binary, kill, pause, pick, resume, say, skip, wait_for,
};

/// An inbox, an agent whose holder reaches it through a relay, and the agent's open ask.
struct Scene {
    agent: Agent,
    relay: Relay,
    ask: Value,
    up: Up,
    home: Home,
}

impl Scene {
    fn new(script: &str) -> Self {
        Self::of_asks(script, 1)
    }

    /// The same for a script that asks several times at once; `ask` is the first of them.
    fn of_asks(script: &str, count: usize) -> Self {
        Self::watched(script, count, |_| ()).0
    }

    /// The same, with something that watches the inbox from before the first ask.
    fn watched<T>(script: &str, count: usize, watch: impl FnOnce(&Up) -> T) -> (Self, T) {
        let home = Home::new();
        let up = Up::start(&home);
        let watching = watch(&up);
        let relay = Relay::start(home.path().join("relay.sock"), home.data_dir().join("inbox.sock"));
        let token = home.stdout(&["token", "create", "--scope", "holder", "--name", "relayed"]);
        let inbox = format!("unix:{}", relay.path().display());
        let arguments = ["--attach", "--inbox", &inbox, "--prompt", script];
        let agent = Agent::start(&home, &arguments, &[], &[("HANDRAISE_TOKEN", token.trim_end())]);
        let ask = up.wait_for_asks(count).remove(0);
        (Self { agent, relay, ask, up, home }, watching)
    }

    /// Answers while the next answer on the stream meets `pass`; the stream is cut once the agent has been told.
    fn answer_into(&self, pass: Pass, submission: &Value) -> Answer {
        self.relay.set(pass);
        thread::scope(|scope| {
            let answer = scope.spawn(|| self.up.answer(&self.ask, submission));
            if pass == Pass::LoseTheVerdict {
                wait_for("the agent's response", || (!self.agent.responses().is_empty()).then_some(()));
                self.relay.cut();
            }
            answer.join().unwrap()
        })
    }

    /// What the agent heard, once it heard something.
    fn heard(&self) -> Vec<Value> {
        wait_for("the agent's response", || {
            let responses = self.agent.responses();
            (!responses.is_empty()).then_some(responses)
        })
    }
}

/// The kinds of an ask's events, verdicts with what they were.
fn history(ask: &Value) -> Vec<String> {
    let events = ask["events"].as_array().unwrap();
    let word = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .filter(|event| event["kind"] == "submitted" || event["kind"] == "verdict")
        .map(|event| if event["kind"] == "verdict" { word(event, "detail") } else { word(event, "kind") })
        .collect()
}

fn accept(choice: &str) -> Value {
    json!({"action": "accept", "content": {"question_0": choice}})
}

#[test]
fn ac20a_cut_before_the_write_nothing_is_sent_or_queued_and_the_ask_stays_open() {
    let scene = Scene::new("single");
    scene.relay.cut();
    scene.up.wait_for_state(&scene.ask, "open", false);
    let answer = scene.up.answer(&scene.ask, &pick("question_0", &["Postgres"]));
    assert_eq!((answer.status, &answer.body["error"]["code"]), (503, &json!("HOLDER_NOT_CONNECTED")));
    let ask = scene.up.ask(&scene.ask);
    assert_eq!((&ask["state"], history(&ask)), (&json!("open"), vec![]), "{ask}");

    scene.relay.set(Pass::Everything);
    let again = scene.up.wait_for_state(&scene.ask, "open", true);
    assert_eq!(again["digest"], scene.ask["digest"]);
    assert_eq!(scene.agent.responses(), [] as [Value; 0], "nothing was queued");
    assert_eq!(scene.up.answer(&again, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(scene.heard(), [accept("SQLite")]);
}

#[test]
fn ac12g_ac20b_ac61_every_submission_is_a_frame_on_the_holder_stream_also_when_the_ask_is_settled() {
    const ACTION: &str = r#""action":"agent.elicitations.respond""#;
    let scene = Scene::new("single");
    let pending = format!(r#""pending_id":{}"#, scene.ask["id"]);
    assert_eq!((scene.relay.count(ACTION), scene.relay.count(&pending)), (0, 0));
    assert_eq!(scene.up.answer(&scene.ask, &pick("question_0", &["Postgres"])).status, 200);
    assert_eq!((scene.relay.count(ACTION), scene.relay.count(&pending)), (1, 1));
    assert_eq!(scene.up.ask(&scene.ask)["state"], "settled");
    // The inbox knows that it is settled, and lets the holder say so.
    for n in 2..=3 {
        assert_eq!(scene.up.answer(&scene.ask, &pick("question_0", &["SQLite"])).status, 404);
        assert_eq!((scene.relay.count(ACTION), scene.relay.count(&pending)), (n, n));
    }
    assert_eq!(scene.heard(), [accept("Postgres")]);
}

#[test]
fn f9_an_ask_is_notified_once_however_often_its_holder_comes_back() {
    let (scene, events) = Scene::watched("parallel", 2, |up| {
        let events = up.events();
        wait_for("the snapshot", || (!events.named("snapshot").is_empty()).then_some(()));
        events
    });
    let first = scene.up.wait_for_asks(2);
    for _ in 0..2 {
        scene.relay.cut();
        scene.up.wait_for_state(&first[0], "open", false);
        scene.relay.set(Pass::Everything);
        scene.up.wait_for_state(&first[0], "open", true);
    }
    // Once the next ask's notification has come, whatever came again would have come before it.
    let mut other = Agent::prompt(&scene.home, "passthrough");
    let ids: Vec<&Value> = first.iter().map(|ask| &ask["id"]).collect();
    let last = wait_for("the third ask", || {
        let asks = scene.up.get("/asks")["asks"].as_array().cloned().unwrap();
        asks.into_iter().find(|ask| !ids.contains(&&ask["id"]))
    });
    let requested = wait_for("its notification", || {
        let requested = events.named("session.clarification_requested");
        requested.iter().any(|ask| ask["id"] == last["id"]).then_some(requested)
    });
    let times = |id: &Value| requested.iter().filter(|ask| ask["id"] == *id).count();
    assert_eq!((times(ids[0]), times(ids[1]), times(&last["id"]), requested.len()), (1, 1, 1, 3));
    assert_eq!(scene.up.answer(&last, &skip()).status, 200);
    assert_eq!(other.wait(), Some(0));
}

#[test]
fn cut_after_the_write_and_before_the_holder_read_it_the_ask_is_open_again_and_never_answered_by_it() {
    let scene = Scene::new("single");
    let answer = scene.answer_into(Pass::LoseTheAnswer, &pick("question_0", &["Postgres"]));
    assert_eq!((answer.status, &answer.body["error"]["code"]), (504, &json!("VERDICT_UNKNOWN")));
    scene.up.wait_for_state(&scene.ask, "sent", false);

    scene.relay.set(Pass::Everything);
    let again = scene.up.wait_for_state(&scene.ask, "open", true);
    assert_eq!(history(&again), ["submitted", "unseen"], "the operator is told: {again}");
    assert_eq!(scene.agent.responses(), [] as [Value; 0]);
    assert_eq!(scene.up.answer(&again, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(scene.heard(), [accept("SQLite")]);
    let settlement = scene.up.wait_for_settlement(&scene.ask);
    assert_eq!(settlement["answers"][0]["selected_options"], json!(["SQLite"]));
}

#[test]
fn cut_before_the_verdict_a_delivered_answer_is_settled_as_the_agent_heard_it() {
    let scene = Scene::new("single");
    let answer = scene.answer_into(Pass::LoseTheVerdict, &pick("question_0", &["Postgres"]));
    assert_eq!((answer.status, &answer.body["error"]["code"]), (504, &json!("VERDICT_UNKNOWN")));
    scene.up.wait_for_state(&scene.ask, "sent", false);
    let unreachable = scene.up.answer(&scene.ask, &pick("question_0", &["SQLite"]));
    assert_eq!(unreachable.status, 503, "{}", unreachable.body);

    scene.relay.set(Pass::Everything);
    let settlement = scene.up.wait_for_settlement(&scene.ask);
    assert_eq!((&settlement["outcome"], &settlement["wire"]), (&json!("accept"), &json!("accept")));
    assert_eq!((&settlement["by"], &settlement["provenance"]), (&json!("tests"), &json!("client")));
    assert_eq!(settlement["answers"][0]["selected_options"], json!(["Postgres"]));
    // Whoever asks again is told the same, and the agent hears nothing more.
    let repeated = scene.up.answer(&scene.ask, &pick("question_0", &["Postgres"]));
    assert_eq!((repeated.status, &repeated.body["replayed"]), (200, &json!(true)), "{}", repeated.body);
    let other = scene.up.answer(&scene.ask, &pick("question_0", &["SQLite"]));
    assert_eq!((other.status, &other.body["settlement"]), (404, &settlement), "{}", other.body);
    assert_eq!(scene.agent.responses(), [accept("Postgres")]);
}

#[test]
fn cut_before_the_verdict_a_skip_is_settled_as_a_decline() {
    let scene = Scene::new("single");
    assert_eq!(scene.answer_into(Pass::LoseTheVerdict, &skip()).status, 504);
    scene.relay.set(Pass::Everything);
    let settlement = scene.up.wait_for_settlement(&scene.ask);
    assert_eq!((&settlement["outcome"], &settlement["by"]), (&json!("decline"), &json!("tests")));
    assert_eq!(scene.agent.responses(), [json!({"action": "decline"})]);
}

#[test]
fn cut_before_the_verdict_a_permission_is_settled_as_it_was_given() {
    let scene = Scene::new("permission");
    assert_eq!(scene.answer_into(Pass::LoseTheVerdict, &pick("permission", &["yes"])).status, 504);
    scene.relay.set(Pass::Everything);
    let settlement = scene.up.wait_for_settlement(&scene.ask);
    assert_eq!(settlement["answers"][0]["selected_options"], json!(["yes"]));
    let given = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    assert_eq!(scene.agent.responses(), [given]);
}

#[test]
fn f10_cut_before_the_verdict_an_answer_that_does_not_fit_leaves_the_ask_open() {
    let scene = Scene::new("single");
    scene.relay.set(Pass::LoseTheVerdict);
    thread::scope(|scope| {
        let answer = scope.spawn(|| scene.up.answer(&scene.ask, &pick("question_0", &["Oracle"])));
        scene.up.wait_for_state(&scene.ask, "sent", true);
        // Nothing at the agent tells that the holder has read it; either way it does not count.
        scene.relay.cut();
        assert_eq!(answer.join().unwrap().status, 504);
    });
    scene.relay.set(Pass::Everything);
    let again = scene.up.wait_for_state(&scene.ask, "open", true);
    assert_eq!(scene.agent.responses(), [] as [Value; 0]);
    assert_eq!(scene.up.answer(&again, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(scene.heard(), [accept("SQLite")]);
}

#[test]
fn of_64_submissions_that_race_a_cut_the_one_that_the_agent_heard_is_settled() {
    let scene = Scene::new("freeform");
    scene.relay.set(Pass::LoseTheVerdict);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let racers: Vec<_> = (0..64)
            .map(|n| {
                let scene = &scene;
                scope
                    .spawn(move || scene.up.answer(&scene.ask, &say("direction", &format!("way {n}"))).status)
            })
            .collect();
        scene.heard();
        scene.relay.cut();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [503, 504].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&504), "{statuses:?}");
    scene.relay.set(Pass::Everything);
    let settlement = scene.up.wait_for_settlement(&scene.ask);
    let stored = &settlement["answers"][0]["custom_text"];
    let responses = scene.agent.responses();
    assert_eq!(responses, [json!({"action": "accept", "content": {"answer_freeform": stored}})]);
    // Every submission has its verdict in the end, and one of them is the winner's.
    let verdicts = wait_for("every verdict", || {
        let history = history(&scene.up.ask(&scene.ask));
        let (sent, verdicts): (Vec<_>, Vec<_>) = history.into_iter().partition(|word| word == "submitted");
        (sent.len() == verdicts.len()).then_some(verdicts)
    });
    assert_eq!(verdicts.iter().filter(|word| *word == "delivered").count(), 1, "{verdicts:?}");
}

#[test]
fn a_verdict_that_takes_more_than_10_seconds_is_unknown_and_counts_when_it_comes() {
    let scene = Scene::new("single");
    pause(scene.agent.child.id());
    let answer = scene.up.answer(&scene.ask, &pick("question_0", &["Postgres"]));
    let sent = scene.up.ask(&scene.ask);
    resume(scene.agent.child.id());
    assert_eq!((answer.status, &answer.body["error"]["code"]), (504, &json!("VERDICT_UNKNOWN")));
    assert_eq!((&sent["state"], &sent["holder_connected"]), (&json!("sent"), &json!(true)));
    assert_eq!(scene.up.wait_for_settlement(&scene.ask)["outcome"], "accept");
    assert_eq!(scene.agent.responses(), [accept("Postgres")]);
}

#[test]
fn an_answer_on_its_way_when_the_inbox_is_killed_is_settled_by_the_next_one() {
    let Scene { agent, relay, ask, up, home } = Scene::new("single");
    pause(agent.child.id());
    let next = thread::scope(|scope| {
        let answer = scope.spawn(|| up.try_answer(&ask, &pick("question_0", &["Postgres"])));
        wait_for("the answer to be sent", || (up.ask(&ask)["state"] == "sent").then_some(()));
        kill(up.child.id());
        assert!(answer.join().unwrap().is_none(), "nobody was told that it counted");
        Up::start(&home)
    });
    assert_eq!(next.ask(&ask)["state"], "sent", "committed before it was forwarded");
    resume(agent.child.id());
    let settlement = next.wait_for_settlement(&ask);
    // The frame was in the holder's hands or lost with the inbox; the agent and the database agree either way, and
    // here it was in its hands.
    let scene = Scene { agent, relay, ask, up: next, home };
    assert_eq!(scene.heard(), [accept("Postgres")]);
    assert_eq!((&settlement["outcome"], &settlement["by"]), (&json!("accept"), &json!("tests")));
    assert_eq!(settlement["answers"][0]["selected_options"], json!(["Postgres"]));
}

#[test]
fn nothing_acknowledged_is_lost_when_the_inbox_is_killed_among_answers() {
    const AGENTS: usize = 4;
    const ENOUGH: usize = 3;
    let home = Home::new();
    let up = Up::start(&home);
    let agents: Vec<Agent> =
        (0..AGENTS).map(|_| Agent::start(&home, &["--attach", "--prompt", "parallel"], &[], &[])).collect();
    let asks = up.wait_for_asks(2 * AGENTS);
    let text = |ask: &Value| format!("for {}", ask["id"].as_str().unwrap());
    let (told, telling) = std::sync::mpsc::channel();
    let acknowledged: Vec<&Value> = thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            for ask in &asks {
                let Some(answer) = up.try_answer(ask, &say("question_0", &text(ask))) else { break };
                assert_eq!(answer.status, 200, "{}", answer.body);
                acknowledged.push(ask);
                told.send(()).unwrap();
            }
            acknowledged
        });
        for _ in 0..ENOUGH {
            telling.recv().unwrap();
        }
        kill(up.child.id());
        answering.join().unwrap()
    });
    assert!(acknowledged.len() >= ENOUGH);
    drop(up);

    let up = Up::start(&home);
    for ask in &acknowledged {
        let stored = up.ask(ask);
        assert_eq!(stored["state"], "settled", "{stored}");
        assert_eq!(stored["settlement"]["answers"][0]["custom_text"], text(ask));
    }
    // What was not acknowledged is open under its id, or turns out to have been delivered.
    for ask in asks.iter().filter(|ask| !acknowledged.contains(ask)) {
        let now = wait_for("an answerable or settled ask", || {
            let now = up.ask(ask);
            let is_open = now["state"] == "open" && now["holder_connected"] == true;
            (is_open || now["state"] == "settled").then_some(now)
        });
        assert_eq!(now["digest"], ask["digest"]);
        if now["state"] == "open" {
            assert_eq!(up.answer(ask, &say("question_0", &text(ask))).status, 200);
        }
    }
    let mut expected: Vec<String> = asks.iter().map(text).collect();
    let mut heard: Vec<String> = agents
        .iter()
        .flat_map(|agent| {
            wait_for("both responses", || {
                let responses = agent.responses();
                (responses.len() == 2).then_some(responses)
            })
        })
        .map(|response| response["content"]["question_0_custom"].as_str().unwrap().to_owned())
        .collect();
    expected.sort();
    heard.sort();
    assert_eq!(heard, expected, "each request was answered once, with its own answer");
}

#[test]
fn f7_an_ask_that_ended_while_the_inbox_was_away_is_told_to_the_next_one() {
    let home = Home::new();
    let up = Up::start(&home);
    let timeout = [("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "2s")];
    let agent = Agent::start(&home, &["--attach", "--prompt", "single"], &[], &timeout);
    let ask = up.wait_for_ask();
    kill(up.child.id());
    drop(up);
    wait_for("the deadline", || (!agent.responses().is_empty()).then_some(()));
    assert_eq!(agent.responses(), [json!({"action": "decline"})], "AC-64 holds without an inbox");
    let up = Up::start(&home);
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!((&settlement["outcome"], &settlement["wire"]), (&json!("timeout"), &json!("decline")));
    assert_eq!((&settlement["provenance"], &settlement["by"]), (&json!("system"), &Value::Null));
}

#[test]
fn s43_a_relay_on_another_port_is_no_inbox_and_gets_no_token() {
    let home = Home::new();
    let up = Up::start(&home);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let inbox = up.url.strip_prefix("http://").unwrap().to_owned();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noting = std::sync::Arc::clone(&seen);
    thread::spawn(move || {
        for holder in listener.incoming().map_while(Result::ok) {
            let inbox = std::net::TcpStream::connect(&inbox).unwrap();
            let (mut answers, mut back) = (inbox.try_clone().unwrap(), holder.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let noting = std::sync::Arc::clone(&noting);
            thread::spawn(move || note_and_pass(holder, inbox, &noting));
        }
    });
    let token = home.stdout(&["token", "create", "--scope", "holder"]).trim_end().to_owned();
    let run = |inbox: &str| {
        let mut command = home.handraise(&["agent", "--inbox", inbox, "--prompt", "echo hello", "--"]);
        command.args([binary(), "fake-agent"]).env("HANDRAISE_TOKEN", &token).output().unwrap()
    };
    // The relay asks the true inbox for the proof and gets none, by whichever name it is dialled.
    for name in ["127.0.0.1", "localhost"] {
        let output = run(&format!("http://{name}:{port}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("was not sent"), "{output:?}");
    }
    let seen = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    assert!(seen.contains("/api/v1/holder/proof") && !seen.contains(&token), "{seen}");
    // The inbox itself proves itself, by both names.
    let port = up.url.rsplit_once(':').unwrap().1;
    for name in ["127.0.0.1", "localhost"] {
        let output = run(&format!("http://{name}:{port}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Passes on what a holder says, and keeps a copy.
fn note_and_pass(
    mut from: std::net::TcpStream,
    mut to: std::net::TcpStream,
    seen: &std::sync::Mutex<Vec<u8>>,
) {
    use std::io::{Read as _, Write as _};
    let mut piece = [0; 4096];
    while let Ok(count) = from.read(&mut piece)
        && count > 0
    {
        seen.lock().unwrap().extend(&piece[..count]);
        if to.write_all(&piece[..count]).is_err() {
            return;
        }
    }
}
