//! `handraise inbox` in a real terminal, against a real inbox.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Agent, Home, Terminal, Up, pick, terminate, wait_for};

/// A person looks before they press: less than 350 ms would not be believed, and the same key within 700 ms is taken for
/// one that is held down (S40).
fn look() {
    std::thread::sleep(Duration::from_millis(800));
}

fn picker(home: &Home) -> Terminal {
    let mut command = home.handraise(&["inbox"]);
    command.env("USER", "ada");
    Terminal::run(command)
}

fn ask(home: &Home, arguments: &[&str]) -> Child {
    let mut command = home.handraise(&["ask", "--json"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The JSON that an asking script got, and its exit status.
#[track_caller]
fn end(mut ask: Child) -> (Option<i32>, Value) {
    wait_for("the end of handraise ask", || ask.try_wait().unwrap());
    let output = ask.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// Waits until the inbox knows that a question was painted.
fn wait_for_seen(up: &Up, ask: &Value) {
    let path = format!("/asks/{}", ask["id"].as_str().unwrap());
    wait_for("the report of the painted question", || {
        let events = up.get(&path)["events"].clone();
        events
            .as_array()?
            .iter()
            .any(|event| event["kind"] == "seen" && event["detail"] == "terminal")
            .then_some(())
    });
}

#[test]
fn s15_what_a_person_answers_in_a_terminal_is_a_human_s_answer() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut terminal = picker(&home);
    terminal.wait_for("No hands up");
    let asking = ask(&home, &["Deploy?", "--choice", "yes", "--choice", "no"]);
    terminal.wait_for("Deploy?");
    terminal.press("\r");
    terminal.wait_for("[ Submit ]");
    terminal.wait_for("script with token local, calls itself “handraise ask 0.1.0”");
    wait_for_seen(&up, &up.wait_for_ask());
    look();
    terminal.press("1");
    terminal.wait_for("(•) yes");
    look();
    terminal.press("\u{13}");
    let answer = json!({"outcome": "accept", "provenance": "human", "content": {"answer": "yes"}});
    assert_eq!(end(asking), (Some(0), answer));
    terminal.wait_for("You answered, and it was delivered.");
    let settled = up.get("/asks?state=settled")["asks"][0]["settlement"].clone();
    assert_eq!((&settled["by"], &settled["provenance"]), (&json!("ada (terminal)"), &json!("human")));
    assert!(home.stdout(&["token", "list"]).contains("ada (terminal)"));
    look();
    terminal.press("u");
    terminal.wait_for("No hands up");
    terminal.press("q");
    assert_eq!(terminal.wait(), Some(0));
    wait_for("the terminal as it was", || terminal.is_put_back().then_some(()));
    assert!(!home.stdout(&["token", "list"]).contains("terminal"), "its token ended with it");
}

#[test]
fn s15_what_another_process_answers_beside_the_terminal_is_a_client_s() {
    let home = Home::new();
    let up = Up::start(&home);
    let asking = ask(&home, &["Deploy?", "--choice", "yes", "--choice", "no"]);
    let mut terminal = picker(&home);
    terminal.wait_for("Deploy?");
    terminal.press("\r");
    terminal.wait_for("[ Submit ]");
    let open = up.wait_for_ask();
    wait_for_seen(&up, &open);
    look();
    home.stdout(&["inbox", "answer", open["id"].as_str().unwrap(), "answer=yes"]);
    let answer = json!({"outcome": "accept", "provenance": "client", "content": {"answer": "yes"}});
    assert_eq!(end(asking), (Some(0), answer));
    terminal.wait_for("Ended: local answered “yes”");
    terminal.wait_for("a client reports it, we saw nobody");
}

#[test]
fn s40_keys_that_come_with_the_one_that_opens_a_card_answer_nothing() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut asking = ask(&home, &["Deploy?", "--choice", "yes", "--choice", "no"]);
    let mut terminal = picker(&home);
    terminal.wait_for("Deploy?");
    terminal.press("\r1\u{13}s\r");
    terminal.wait_for("Why? (optional");
    terminal.wait_for("That was pressed before the question stood still. Nothing was sent.");
    assert!(!terminal.screen().contains("(•)"), "{}", terminal.screen());
    assert_eq!(up.wait_for_ask()["state"], "open");
    look();
    terminal.press("\u{1b}");
    terminal.wait_for("0 of 1 answered");
    assert_eq!(asking.try_wait().unwrap(), None);
    terminate(asking.id());
    assert_eq!(end(asking).0, Some(4));
    terminal.wait_for("the asking side cancelled it");
}

#[test]
fn a_skip_with_a_reason_reaches_whoever_asks() {
    let home = Home::new();
    let up = Up::start(&home);
    let asking = ask(&home, &["Deploy?", "--choice", "yes", "--choice", "no"]);
    let mut terminal = picker(&home);
    terminal.wait_for("Deploy?");
    terminal.press("\r");
    terminal.wait_for("[ Submit ]");
    wait_for_seen(&up, &up.wait_for_ask());
    look();
    terminal.press("s");
    terminal.wait_for("Why? (optional");
    terminal.press("not on a Friday");
    terminal.wait_for("not on a Friday");
    look();
    terminal.press("\r");
    let declined = json!({"outcome": "decline", "provenance": "human", "content": null});
    assert_eq!(end(asking), (Some(3), declined));
    terminal.wait_for("You skipped it");
}

#[test]
fn a_form_of_an_agent_is_answered_and_its_turn_goes_on() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut terminal = picker(&home);
    terminal.wait_for("No hands up");
    let mut agent = Agent::prompt(&home, "single");
    terminal.wait_for("fake-agent");
    terminal.press("\r");
    terminal.wait_for("[ Submit ]");
    wait_for_seen(&up, &up.wait_for_ask());
    look();
    terminal.press("\u{1b}[B");
    terminal.press("\u{1b}[B");
    terminal.press("\r");
    terminal.wait_for("(•)");
    look();
    terminal.press("\u{13}");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses().len(), 1);
    assert_eq!(agent.responses()[0]["action"], "accept");
}

#[test]
fn the_picker_outlives_a_restart_of_the_inbox() {
    let home = Home::new();
    let up = Up::start(&home);
    let asking = ask(&home, &["Deploy?", "--choice", "yes", "--choice", "no"]);
    let mut terminal = picker(&home);
    terminal.wait_for("Deploy?");
    up.stop();
    terminal.wait_for("Lost the inbox; trying again.");
    let up = Up::start(&home);
    wait_for("the inbox on the screen", || (!terminal.screen().contains("Lost the inbox")).then_some(()));
    wait_for("the script", || (up.wait_for_ask()["holder_connected"] == true).then_some(()));
    assert_eq!(up.answer(&up.wait_for_ask(), &pick("answer", &["no"])).status, 200);
    assert_eq!(end(asking).0, Some(6));
    terminal.wait_for("No hands up");
    look();
    terminal.press("\u{3}");
    assert_eq!(terminal.wait(), Some(0));
}

#[test]
fn a_signal_puts_the_terminal_back() {
    let home = Home::new();
    let _up = Up::start(&home);
    let mut terminal = picker(&home);
    terminal.wait_for("No hands up");
    terminate(terminal.child.id());
    assert_eq!(terminal.wait(), Some(0));
    wait_for("the terminal as it was", || terminal.is_put_back().then_some(()));
}
