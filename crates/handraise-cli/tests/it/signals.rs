//! Signals: the orderly end, by whichever of them it comes.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Agent, Collected, Ending, Home, Up, hears_hangup, send, wait_for, wait_for_link};

#[test]
fn an_inbox_whose_terminal_is_closed_ends_in_order() {
    if !hears_hangup() {
        return;
    }
    let home = Home::new();
    let mut up = Up::start(&home);
    send(up.child.id(), Signal::HUP);
    let status = wait_for("the end", || up.child.try_wait().unwrap());
    assert!(status.success(), "{status}: {}", up.log.text());
    assert!(!home.data_dir().join("inbox.sock").exists());
}

#[test]
fn one_end_that_comes_as_two_signals_is_one() {
    // As GNU timeout does it: to the process, then to its group.
    for _ in 0..3 {
        let home = Home::new();
        let mut up = Up::start(&home);
        send(up.child.id(), Signal::TERM);
        send(up.child.id(), Signal::INT);
        let status = wait_for("the end", || up.child.try_wait().unwrap());
        assert!(status.success(), "{status}: {}", up.log.text());
        assert!(!home.data_dir().join("inbox.sock").exists());
    }
}

#[test]
fn f7_an_agent_whose_terminal_is_closed_takes_its_questions_back() {
    if !hears_hangup() {
        return;
    }
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "ask-until-cancel");
    let asks = up.wait_for_asks(2);
    send(agent.child.id(), Signal::HUP);
    agent.wait();
    for ask in &asks {
        let settlement = up.ask(ask)["settlement"].clone();
        let told = (&settlement["outcome"], &settlement["provenance"]);
        assert_eq!(told, (&json!("cancel"), &json!("system")), "{settlement}");
    }
}

#[test]
fn a_demo_whose_terminal_is_closed_leaves_nothing_behind() {
    if !hears_hangup() {
        return;
    }
    let home = Home::new();
    let folders = home.path().join("tmp");
    std::fs::create_dir(&folders).unwrap();
    let mut command = home.handraise(&["demo", "--no-open", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", &folders).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = Ending(command.spawn().unwrap());
    let printed = Collected::from(demo.0.stdout.take().unwrap());
    let log = Collected::from(demo.0.stderr.take().unwrap());
    wait_for_link(&printed, &mut demo.0, &log);
    let asks = ["A script asks", "made that a question", "The agent asks"];
    wait_for("every question", || asks.iter().all(|ask| log.text().contains(ask)).then_some(()));
    send(demo.0.id(), Signal::HUP);
    let status = wait_for("the end", || demo.0.try_wait().unwrap());
    assert!(!log.text().contains("reconnecting"), "who asks goes first: {}", log.text());
    assert!(status.success(), "{status}: {}", log.text());
    assert_eq!(std::fs::read_dir(&folders).unwrap().count(), 0, "nothing is left");
}
