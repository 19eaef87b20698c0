//! Agents without an inbox: lives, ends, streams, files.

use std::time::Duration;

use handraise_agentctl::{AgentError, Ended, run};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Place, Stdout, eventually, run_alone, stop_reason};

#[tokio::test]
async fn a_prompt_runs_one_turn_and_streams_the_agents_text() {
    let place = Place::new();
    let (ended, stdout) = run_alone(place.settings(&[], "never-asks")).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert_eq!(stdout, "one\ntwo\nthree\n");
    assert_eq!(place.received_methods(), ["initialize", "session/new", "session/prompt"]);
}

#[tokio::test]
async fn stop_reasons_become_exit_codes() {
    for (script, code) in
        [("stop end_turn", 0), ("stop max_tokens", 6), ("stop refusal", 6), ("stop cancelled", 4)]
    {
        let place = Place::new();
        let (ended, _) = run_alone(place.settings(&[], script)).await;
        assert_eq!(ended.unwrap().exit_code(), code, "{script}");
    }
    let place = Place::new();
    let (failed, _) = run_alone(place.settings(&[], "fail")).await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "the agent refused `session/prompt`: Internal error (code -32603)"
    );
}

#[tokio::test]
async fn json_writes_one_event_a_line_and_the_stop_reason_last() {
    let place = Place::new();
    let mut settings = place.settings(&[], "never-asks");
    settings.json = true;
    let (ended, stdout) = run_alone(settings).await;
    assert_eq!(stop_reason(ended), "end_turn");
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<(String, String)> = events
        .iter()
        .map(|event| {
            let name = event["event"].as_str().unwrap().to_owned();
            let what =
                if name == "session.message" { &event["data"]["type"] } else { &event["data"]["state"] };
            (name, what.as_str().unwrap_or_default().to_owned())
        })
        .collect();
    let mut seen: Vec<(&str, &str)> = seen.iter().map(|(name, what)| (&**name, &**what)).collect();
    // Pieces of one message are gathered for a moment, so that there may be one entry of it or several.
    seen.dedup();
    assert_eq!(
        seen,
        [
            ("session.updated", "idle"),
            ("session.message", "user_text"),
            ("session.updated", "running"),
            ("session.message", "agent_text"),
            ("session.message", "turn_ended"),
            ("session.updated", "idle"),
            ("session.updated", "ended"),
            ("end", ""),
        ]
    );
    assert_eq!(events.last().unwrap(), &json!({"event": "end", "data": {"stopReason": "end_turn"}}));
    let said = events.iter().filter(|event| event["data"]["type"] == "agent_text");
    let said: String = said.filter_map(|event| event["data"]["text"].as_str()).collect();
    assert_eq!(said, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn without_an_inbox_forms_are_not_advertised_and_asks_are_declined() {
    let place = Place::new();
    let mut settings = place.settings(&[], "single");
    settings.elicitation = Some(true);
    let (ended, stdout) = run_alone(settings).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert_eq!(stdout, "I need a decision.\nI was told: {\"action\":\"decline\"}\n");
    let initialize = &place.received()[0]["params"];
    assert_eq!(initialize["clientCapabilities"].get("elicitation"), None);
}

#[tokio::test]
async fn without_an_inbox_permissions_are_rejected_by_kind_not_by_position() {
    let place = Place::new();
    let (_, stdout) = run_alone(place.settings(&[], "permission")).await;
    assert_eq!(stdout, "I was told: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"no\"}}\n");
    let place = Place::new();
    let (_, stdout) = run_alone(place.settings(&[], "permission-bare")).await;
    assert_eq!(stdout, "I was told: {\"outcome\":{\"outcome\":\"cancelled\"}}\n");
}

#[tokio::test]
async fn noise_between_the_frames_is_skipped_and_never_answered() {
    let place = Place::new();
    let (ended, stdout) = run_alone(place.settings(&["--script", "noise"], "go")).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert_eq!(stdout, "before\nI was told: {\"action\":\"decline\"}\n");
    assert_eq!(place.received().len(), 4, "three requests and one answer: {:?}", place.received());
}

#[tokio::test]
async fn a_line_of_100_mb_ends_the_connection_with_a_clear_error_and_bounded_memory() {
    let before = peak_memory();
    let place = Place::new();
    let (ended, _) = run_alone(place.settings(&[], "long-line 100000000")).await;
    assert_eq!(
        ended.unwrap_err().to_string(),
        "the agent sent a line longer than 67108864 bytes, so its connection was ended"
    );
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 200, "the peak grew by {grown} MiB");
}

/// Peak resident memory of this process, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn a_long_line_below_the_limit_is_only_skipped() {
    let place = Place::new();
    let (ended, stdout) = run_alone(place.settings(&[], "long-line 1000000")).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert_eq!(stdout, "said it\n");
}

#[tokio::test]
async fn a_flood_of_updates_arrives_whole_and_in_order() {
    let place = Place::new();
    let (ended, stdout) = run_alone(place.settings(&[], "flood 5000")).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert!(stdout.lines().map(str::to_owned).eq((0..5_000).map(|index| format!("line {index}"))));
}

#[tokio::test]
async fn an_agent_that_dies_is_reported_with_its_status_and_last_words() {
    let place = Place::new();
    let (ended, _) = run_alone(place.settings(&[], "exit-mid-ask")).await;
    assert_eq!(ended.unwrap_err().to_string(), "the agent ended with exit status 3");
    let place = Place::new();
    let mut settings = place.settings(&[], "hello");
    settings.command = vec!["sh".into(), "-c".into(), "printf 'no \\033[31mkey\\n' >&2; exit 9".into()];
    let (ended, _) = run_alone(settings).await;
    assert_eq!(
        ended.unwrap_err().to_string(),
        "the agent ended with exit status 9 before it opened a session; it last said:\n  no \\u{1b}[31mkey"
    );
    let place = Place::new();
    let mut settings = place.settings(&[], "hello");
    settings.command = vec!["true".into()];
    let (ended, _) = run_alone(settings).await;
    assert_eq!(
        ended.unwrap_err().to_string(),
        "the agent ended with exit status 0 before it opened a session; is it an agent that speaks ACP on stdin and \
         stdout?"
    );
}

#[tokio::test]
async fn a_command_that_is_not_there_is_named() {
    let place = Place::new();
    let mut settings = place.settings(&[], "hello");
    settings.command = vec!["no-such-agent".into()];
    let (ended, _) = run_alone(settings).await;
    let said = ended.unwrap_err().to_string();
    assert!(
        said.starts_with("the agent ended with exit status 127 before it opened a session; it last said:\n"),
        "{said}"
    );
    assert!(
        said.contains("cannot start no-such-agent") && said.ends_with("is it installed, and on PATH?"),
        "{said}"
    );
}

#[tokio::test]
async fn f13a_an_answer_timeout_that_outlives_the_agent_is_refused() {
    let place = Place::new();
    let mut settings = place.settings(&[], "hello");
    settings.answer_timeout = settings.idle_timeout;
    let (ended, _) = run_alone(settings).await;
    assert!(matches!(ended, Err(AgentError::AnswerOutlivesAgent { .. })), "{ended:?}");
}

#[tokio::test]
async fn a_working_directory_that_is_none_is_named() {
    let place = Place::new();
    let mut settings = place.settings(&[], "hello");
    settings.cwd = "/no/such/directory".into();
    let (ended, _) = run_alone(settings).await;
    assert_eq!(ended.unwrap_err().to_string(), "the working directory /no/such/directory cannot be used");
}

#[tokio::test]
async fn s45_the_agent_reads_and_writes_files_of_its_working_directory_only() {
    let place = Place::new();
    std::fs::write(place.work().join("in.txt"), "words").unwrap();
    std::fs::write(place.dir.path().join("outside.txt"), "secret").unwrap();
    let path = |name: &str| format!("{}/{name}", place.work().display());
    for (prompt, said) in [
        (format!("read {}", path("in.txt")), "read: words\n"),
        (format!("write {}", path("out.txt")), "wrote\n"),
        (
            format!("read {}", path("../outside.txt")),
            "refused: the path is outside the session's working directory\n",
        ),
        ("read /etc/passwd".to_owned(), "refused: the path is outside the session's working directory\n"),
    ] {
        let (_, stdout) = run_alone(place.settings(&[], &prompt)).await;
        assert_eq!(stdout, said, "{prompt}");
    }
    assert_eq!(std::fs::read_to_string(place.work().join("out.txt")).unwrap(), "written\n");
}

#[tokio::test]
async fn a_shutdown_cancels_the_turn_and_ends_in_order() {
    let place = Place::new();
    let stdout = Stdout::default();
    let said = stdout.clone();
    let shutdown = async move {
        eventually("it waits", || said.text().contains("waiting")).await;
    };
    let running = run(place.settings(&[], "wait-for-cancel"), None, stdout.clone(), shutdown);
    let ended = tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap();
    assert_eq!(ended, Ended::Turn { stop_reason: "cancelled".to_owned() });
    assert_eq!(ended.exit_code(), 4);
    assert_eq!(place.received_methods().last().unwrap(), "session/cancel");
}

#[tokio::test]
async fn attached_lines_are_prompts_one_after_the_other() {
    let place = Place::new();
    let mut settings = place.settings(&[], "echo first\n");
    settings.attach = Some(Box::new(&b"echo second\n\necho third"[..]));
    let (ended, stdout) = run_alone(settings).await;
    assert_eq!(stop_reason(ended), "end_turn");
    assert_eq!(stdout, "echo first\necho second\necho third\n");
    let prompts = place.received_methods().iter().filter(|method| *method == "session/prompt").count();
    assert_eq!(prompts, 3);
}

#[tokio::test]
async fn s42_the_agents_text_cannot_drive_the_terminal() {
    let place = Place::new();
    let (_, stdout) = run_alone(place.settings(&[], "echo \u{1b}[2Jgone \u{202e}")).await;
    assert_eq!(stdout, "echo \\u{1b}[2Jgone \\u{202e}\n");
}

#[tokio::test]
async fn a_silent_agent_is_cancelled_then_ended() {
    let place = Place::new();
    let mut settings = place.settings(&[], "silent");
    settings.answer_timeout = Duration::from_millis(100);
    settings.idle_timeout = Duration::from_millis(300);
    let clock = handraise_transport::clock::ManualClock::new();
    settings.clock = std::sync::Arc::new(clock.clone());
    let stdout = Stdout::default();
    let said = stdout.clone();
    let driver = tokio::spawn(run(settings, None, stdout, std::future::pending()));
    eventually("it is quiet", || said.text().contains("quiet")).await;
    clock.advance(Duration::from_millis(300));
    let is_cancelled = || place.received_methods().iter().any(|method| method == "session/cancel");
    eventually("its turn is cancelled", is_cancelled).await;
    assert!(!driver.is_finished(), "it has five seconds to end its turn");
    clock.advance(Duration::from_secs(5));
    let ended = tokio::time::timeout(PATIENCE, driver).await.unwrap().unwrap();
    assert!(matches!(ended, Err(AgentError::Silent(_))), "{ended:?}");
}

#[tokio::test]
async fn an_agent_of_another_protocol_is_told_apart() {
    let place = Place::new();
    for (answer, said) in [
        (
            r#"{"protocolVersion":2}"#,
            "the agent answered `initialize` with something unusable: it wants protocol version 2, and handraise speaks 1",
        ),
        ("{}", "the agent answered `initialize` with something unusable: it names no protocol version"),
    ] {
        let mut settings = place.settings(&[], "hello");
        // Answers whatever comes first, with the id that it came with.
        let script = format!(
            "read line; id=$(printf %s \"$line\" | sed 's/.*\"id\":\\(\"[^\"]*\"\\).*/\\1/'); \
             printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{answer}}}\\n' \"$id\"; read line"
        );
        settings.command = vec!["sh".into(), "-c".into(), script.into()];
        let (ended, _) = run_alone(settings).await;
        assert_eq!(ended.unwrap_err().to_string(), said);
    }
}
