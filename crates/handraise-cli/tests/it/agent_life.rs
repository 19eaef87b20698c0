//! The life of an agent through real processes: what it is given, what is kept of what it says, when it is stopped.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, alive, call, skip, tree, wait_for};

/// What is asked of an agent that says nothing for a second.
const IMPATIENT: [(&str, &str); 2] =
    [("HANDRAISE_ACP_IDLE_TIMEOUT", "1s"), ("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "500ms")];

/// The one session, once it is in this state.
#[track_caller]
fn session_in(up: &Up, state: &str) -> Value {
    wait_for(state, || {
        let session = up.get("/sessions")["sessions"][0].clone();
        (session["state"] == state).then_some(session)
    })
}

#[test]
fn f13a_an_agent_without_anything_to_do_is_stopped_after_the_idle_timeout() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::start(&home, &[], &[], &IMPATIENT);
    session_in(&up, "idle");
    let below = tree(agent.child.id());
    assert!(below.len() >= 2, "a supervisor and an agent: {below:?}");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert!(below.iter().all(|process| !alive(*process)), "{below:?}");
    session_in(&up, "ended");
    assert_eq!(agent.count("session/cancel"), 0, "there was no turn to cancel");
}

#[test]
fn an_agent_that_is_silent_in_its_turn_is_cancelled_and_five_seconds_later_killed() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::start(&home, &["--prompt", "silent"], &[], &IMPATIENT);
    session_in(&up, "running");
    let below = tree(agent.child.id());
    wait_for("session/cancel", || (agent.count("session/cancel") == 1).then_some(()));
    // It is given time to end its turn by itself.
    assert!(agent.child.try_wait().unwrap().is_none());
    assert!(below.iter().all(|process| alive(*process)), "{below:?}");
    assert_eq!(agent.wait(), Some(1));
    assert!(below.iter().all(|process| !alive(*process)), "{below:?}");
    let log = wait_for("an error", || Some(agent.log.text()).filter(|log| log.contains("error: ")));
    assert!(log.contains("said nothing for 1s"), "{log}");
    session_in(&up, "ended");
}

#[test]
fn the_mcp_servers_of_the_configuration_reach_the_agent_and_no_log() {
    let home = Home::new();
    home.write_config(
        "[[mcp_server]]\nname = 'files'\ncommand = ['mcp-files', '-r', '/srv']\nenv = { KEY = 'canary-41c7' }\n\
         [[mcp_server]]\nname = 'web'\nurl = 'https://mcp.example/'\nheaders = { Authorization = 'canary-41c7' }\n",
    );
    let _up = Up::start(&home);
    let mut agent = Agent::start(&home, &["--prompt", "echo x", "--log", "trace"], &[], &[]);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let opened = agent.received().into_iter().find(|frame| frame["method"] == "session/new").unwrap();
    let work = home.work().canonicalize().unwrap();
    let expected = json!({"cwd": work, "mcpServers": [
        {"name": "files", "command": "mcp-files", "args": ["-r", "/srv"], "env": [{"name": "KEY", "value": "canary-41c7"}]},
        {"type": "http", "name": "web", "url": "https://mcp.example/",
            "headers": [{"name": "Authorization", "value": "canary-41c7"}]},
    ]});
    assert_eq!(opened["params"], expected);
    assert!(!agent.log.text().contains("canary-41c7"), "{}", agent.log.text());
}

#[test]
fn what_an_agent_does_is_its_session_s_transcript_and_the_inbox_prompts_it() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::start(&home, &["--agent-id", "claude-acp"], &[], &[]);
    let session = session_in(&up, "idle");
    assert_eq!(session["agent"], "claude-acp");
    let id = session["id"].as_str().unwrap();
    let admin = home.token("admin");
    let prompt = |text: &str| {
        let path = format!("/api/v1/sessions/{id}/prompt");
        call(&up.url, "POST", &path, Some(&admin), Some(&json!({"text": text}))).status
    };
    assert!((200..300).contains(&prompt("tools")));
    let kinds = |wanted: usize| {
        wait_for("the end of the turn", || {
            let messages = up.get(&format!("/sessions/{id}/messages"))["messages"].clone();
            let messages = messages.as_array().cloned().unwrap();
            let ends = messages.iter().filter(|message| message["type"] == "turn_ended").count();
            (ends == wanted).then_some(messages)
        })
    };
    let messages = kinds(1);
    let of = |kind: &str| messages.iter().filter(|message| message["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("user_text")[0]["text"], "tools");
    assert_eq!(of("thought")[0]["text"], "Where is the build file?");
    assert_eq!(of("agent_text")[0]["text"], "Done.\n");
    assert!(of("plan")[0].to_string().contains("Look around"), "{messages:?}");
    let states: Vec<&Value> = of("tool_call").iter().map(|call| &call["metadata"]["status"]).collect();
    assert_eq!(states, ["pending", "in_progress", "completed"]);

    // A second prompt is a second turn of the same session; a cancel ends it.
    assert!((200..300).contains(&prompt("wait-for-cancel")));
    session_in(&up, "running");
    assert_eq!(prompt("echo too early"), 400, "one turn at a time");
    let cancel = format!("/api/v1/sessions/{id}/cancel");
    assert!((200..300).contains(&call(&up.url, "POST", &cancel, Some(&admin), None).status));
    kinds(2);
    assert_eq!(session_in(&up, "idle")["stop_reason"], "cancelled");
    assert_eq!((agent.count("session/new"), agent.count("session/prompt")), (1, 2));
}

#[test]
fn d1_the_setting_sorts_the_questions_of_every_form() {
    let form = json!({"message": "Pick", "requestedSchema": {"type": "object", "properties": {
        "zone": {"type": "string"}, "step_10": {"type": "string"}, "step_2": {"type": "string"},
    }}});
    let home = Home::new();
    let up = Up::start(&home);
    let order = |variables: &[(&str, &str)]| {
        let prompt = format!("form {form}");
        let mut agent = Agent::start(&home, &["--prompt", &prompt], &[], variables);
        let ask = up.wait_for_ask();
        assert_eq!(up.answer(&ask, &json!({"answers": []})).status, 200);
        assert_eq!(agent.wait(), Some(0));
        let questions = ask["questions"].as_array().unwrap();
        questions.iter().map(|question| question["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(&[]), ["zone", "step_10", "step_2"]);
    assert_eq!(order(&[("HANDRAISE_ACP__QUESTION_ORDER", "sorted")]), ["step_2", "step_10", "zone"]);
}

#[test]
fn s37_asks_beyond_a_limit_are_declined_with_a_reason_and_counted() {
    let metric =
        |up: &Up, reason: &str| up.metric(&format!("handraise_asks_declined_total{{reason=\"{reason}\"}}"));
    let skip_all = |up: &Up, count: usize| {
        for ask in up.wait_for_asks(count) {
            assert_eq!(up.answer(&ask, &skip()).status, 200);
        }
    };
    // Ten a second, by default.
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "many 100");
    wait_for("their count", || {
        let open = up.get("/asks")["asks"].as_array().map_or(0, Vec::len);
        let declined = metric(&up, "rate");
        (open >= 10 && open + usize::try_from(declined).unwrap() == 100).then_some(())
    });
    assert!(metric(&up, "rate") > 0, "{}", agent.log.text());
    assert!(agent.responses().iter().all(|response| *response == json!({"action": "decline"})));
    agent.log.wait_for("reason=\"rate\"");
    skip_all(&up, 100 - usize::try_from(metric(&up, "rate")).unwrap());
    assert_eq!(agent.wait(), Some(0));

    // Fifty open in one session, by default; how many a second is what the configuration says.
    let home = Home::new();
    home.write_config("[limits]\nasks_per_second = 1000\n");
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "many 60");
    wait_for("the declined ones", || (agent.responses().len() == 10).then_some(()));
    wait_for("their count", || (metric(&up, "session_open_asks") == 10).then_some(()));
    skip_all(&up, 50);
    assert_eq!(agent.wait(), Some(0));
}

#[test]
fn ac16_ac17_ac18_ac20_what_is_declined_unseen_is_counted() {
    let home = Home::new();
    let up = Up::start(&home);
    let run = |script: &str, arguments: &[&str]| {
        let arguments = [&["--prompt", script], arguments].concat();
        // It ends at once, and what it declined is told before.
        assert_eq!(Agent::start(&home, &arguments, &[], &[]).wait(), Some(0), "{script}");
    };
    for script in ["url", "request-scope", "both-scopes", "no-scope", "foreign-session", "zero", "malformed"]
    {
        run(script, &[]);
    }
    run("single", &["--elicitation", "off"]);
    for (reason, count) in [
        ("url_mode", 1),
        ("request_scope", 1),
        ("both_scopes", 1),
        ("no_scope", 1),
        ("no_session", 1),
        ("no_questions", 2),
        ("off", 1),
        ("not_an_object", 1),
        ("unknown_mode", 1),
        ("malformed", 4),
    ] {
        let name = format!("handraise_asks_declined_total{{reason=\"{reason}\"}}");
        wait_for(&format!("{count} of {reason}"), || (up.metric(&name) == count).then_some(()));
    }
    assert_eq!(up.get("/asks?state=settled")["asks"], json!([]));
}
