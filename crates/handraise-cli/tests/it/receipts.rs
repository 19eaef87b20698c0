//! An agent whose turn is over stays for an inbox that has not heard yet that an answer counts (F7).

use serde_json::{Value, json};

use crate::support::{Agent, Home, Pass, Relay, Up, kill, pick, terminate, wait_for};

/// An agent's one turn, whose answer it has got; the verdict was lost, and then the inbox was killed.
fn answered_and_unheard(home: &Home) -> (Agent, Relay, Value) {
    let up = Up::start(home);
    let relay = Relay::start(home.path().join("relay.sock"), home.data_dir().join("inbox.sock"));
    let token = home.token("holder");
    let inbox = format!("unix:{}", relay.path().display());
    let arguments = ["--inbox", &inbox, "--json", "--prompt", "single"];
    let agent = Agent::start(home, &arguments, &[], &[("HANDRAISE_TOKEN", &token)]);
    let ask = up.wait_for_ask();
    relay.set(Pass::LoseTheVerdict);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| up.try_answer(&ask, &pick("question_0", &["Postgres"])));
        wait_for("the agent's response", || (!agent.responses().is_empty()).then_some(()));
        kill(up.child.id());
        relay.cut();
        let answer = answering.join().unwrap();
        assert!(answer.is_none_or(|answer| answer.status == 504), "the operator knows no verdict");
    });
    wait_for("what it waits for", || agent.log.text().contains("waiting up to 28 s more").then_some(()));
    (agent, relay, ask)
}

fn has_said_the_end(agent: &Agent) -> bool {
    agent.text.text().contains(r#"{"event":"end","data":{"stopReason":"end_turn"}}"#)
}

#[test]
fn f7_an_agent_whose_turn_is_over_waits_for_an_inbox_that_has_not_heard_of_its_answer() {
    let home = Home::new();
    let (mut agent, relay, before) = answered_and_unheard(&home);
    assert_eq!(agent.child.try_wait().unwrap(), None, "it waits");
    assert!(has_said_the_end(&agent), "its reader does not: {}", agent.text.text());
    let up = Up::start(&home);
    assert_eq!(up.ask(&before)["state"], "sent");
    relay.set(Pass::Everything);
    let settlement = up.wait_for_settlement(&before);
    assert_eq!((&settlement["outcome"], &settlement["by"]), (&json!("accept"), &json!("tests")));
    assert_eq!(agent.wait(), Some(0));
}

#[test]
fn f7_an_agent_that_is_told_to_end_does_not_wait_for_the_inbox() {
    let home = Home::new();
    let (mut agent, _relay, _) = answered_and_unheard(&home);
    terminate(agent.child.id());
    assert_eq!(agent.wait(), Some(0), "the turn had ended by itself");
    agent.log.wait_for("did not acknowledge everything");
}
