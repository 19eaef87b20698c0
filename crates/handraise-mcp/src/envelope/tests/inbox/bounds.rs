//! How much one session and one caller may have the inbox asked, and for how long.

use std::collections::BTreeSet;

use super::*;

/// A session of a caller, beside others in one process.
fn session_in(process: &Arc<Process>, principal: &str, seed: u8) -> World {
    let mut world = World::on(Arc::clone(process), [seed; 32]);
    world.envelope = Envelope::of(Arc::clone(process), principal, [seed; 32]);
    world.caller = Arc::new(Caller { principal: principal.to_owned(), session: None });
    world.initialize(&json!({}), "2025-11-25");
    world
}

#[test]
fn one_session_asks_five_times_a_second_and_has_fifty_open() {
    let (mut world, _) = session(&json!({}));
    for id in 0..5 {
        put(&mut world, &format!("{}", 10 + id));
    }
    refused(&mut world, &call("20"));
    assert_eq!(world.client_got(), response("20", REFUSAL));
    assert_eq!(world.records[0].rail, Rail::Inbox);
    assert_eq!(world.recorded(), "not_offered system asks-too-fast");
    world.advance(Duration::from_secs(1));
    let mut last = None;
    for id in 5..50 {
        world.advance(Duration::from_millis(200));
        last = Some(put(&mut world, &format!("{}", 100 + id)));
    }
    world.advance(Duration::from_secs(1));
    refused(&mut world, &call("200"));
    assert_eq!(world.client_got(), response("200", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system asks-too-many");
    // One ends, and there is room for one.
    // What the system ends is nobody's decline.
    says(&mut world, &last.unwrap().key, InboxEnd::Cancelled, Provenance::System);
    world.client.clear();
    world.records.clear();
    put(&mut world, "201");
}

#[test]
fn one_callers_sessions_leave_room_for_another_caller() {
    let callers: BTreeSet<String> = ["ada", "ben"].map(str::to_owned).into();
    let process = Arc::new(Process::new(EnvelopeConfig { callers, ..config() }));
    let mut sessions: Vec<World> = (1..=3).map(|seed| session_in(&process, "ada", seed)).collect();
    attach(&sessions[0]);
    let mut asked = 0;
    for (index, session) in sessions.iter_mut().enumerate() {
        for id in 0..3 {
            refused(session, &call(&format!("1{index}{id}")));
            asked += session.inbox.drain(..).count();
        }
    }
    assert_eq!(asked, 5);
    let recorded = sessions[2].records.iter().map(|record| record.reason);
    assert!(recorded.eq([Some("asks-too-fast"); 3]));
    let mut other = session_in(&process, "ben", 9);
    put(&mut other, "1");
}

#[test]
fn what_was_open_of_a_session_that_ended_is_open_no_more() {
    let callers: BTreeSet<String> = ["ada", "ben"].map(str::to_owned).into();
    let process = Arc::new(Process::new(EnvelopeConfig { callers, ..config() }));
    let mut world = session_in(&process, "ada", 1);
    attach(&world);
    for round in 0..10 {
        for id in 0..5 {
            put(&mut world, &format!("{}", 1 + round * 5 + id));
        }
        world.advance(Duration::from_secs(1));
    }
    world.upstream_ends();
    let mut now = world.now.boot;
    assert_eq!(process.rooms.of("ada").turn_bar(now), None);
    drop(world);
    for seed in 2..=9 {
        let mut world = session_in(&process, "ada", seed);
        world.now.boot = now;
        for round in 0..10 {
            for id in 0..5 {
                put(&mut world, &format!("{}", 1 + round * 5 + id));
            }
            world.advance(Duration::from_secs(1));
        }
        world.client_closes();
        now = world.now.boot;
    }
}

#[test]
fn a_wait_that_its_client_gives_up_has_ended_unanswered() {
    for (after, next) in [(4_999, None), (5_000, Some("not_offered system inbox-unanswered"))] {
        let (mut world, _) = session(&json!({}));
        put(&mut world, "1");
        world.advance(Duration::from_millis(after));
        world
            .client_sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        world.records.clear();
        refused(&mut world, &call("2"));
        assert_eq!(
            world.records.pop().and_then(|record| record.reason).map(|_| "said"),
            next.map(|_| "said")
        );
        assert_eq!(world.inbox.len(), usize::from(next.is_none()), "{after}");
    }
}

#[test]
fn a_wait_that_the_budget_cut_short_says_nothing_about_operators() {
    let waits = Waits { in_all: Duration::from_secs(60), ..Waits::default() };
    let (mut world, _) = session_of(EnvelopeConfig { waits, ..config() }, &json!({}));
    let ask = put(&mut world, "1");
    world.advance(Duration::from_secs(40));
    says(&mut world, &ask.key, InboxEnd::Declined, Provenance::System);
    world.client.clear();
    let ask = put(&mut world, "2");
    assert_eq!(ask.timeout, Duration::from_secs(20));
    world.advance(Duration::from_secs(14));
    world.records.clear();
    says(&mut world, &ask.key, InboxEnd::TimedOut, Provenance::System);
    assert_eq!(world.recorded(), "timeout system");
    world.client.clear();
    let ask = put(&mut world, "3");
    world.advance(ask.timeout.saturating_sub(Duration::from_millis(4_999)));
    says(&mut world, &ask.key, InboxEnd::Cancelled, Provenance::System);
    world.client.clear();
    world.records.clear();
    // Less than five seconds of it are left.
    refused(&mut world, &call("4"));
    assert_eq!(world.client_got(), response("4", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system waited-enough");
}

#[test]
fn a_client_that_cannot_be_told_that_its_call_goes_on_waits_like_others() {
    for (length, wait) in [(200, 600), (300, 45)] {
        let (mut world, _) = session(&json!({}));
        let meta = format!(r#""_meta":{{"progressToken":"{}"}},"arguments""#, "t".repeat(length));
        world.client_sends(&call("1").replace(r#""arguments""#, &meta));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.inbox.remove(0).timeout, Duration::from_secs(wait));
    }
}

const TOKEN: &str = r#""progressToken":"t","io.modelcontextprotocol/protocolVersion""#;

fn progress(value: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{value}}}}}"#
    )
}

#[test]
fn progress_of_a_retry_goes_on_above_what_its_client_was_told_while_it_waited() {
    let mut world = World::new(config());
    attach(&world);
    let capabilities = json!({"elicitation": {}});
    refused(&mut world, &modern("1", &capabilities, ""));
    let asked = value(&world.client_got());
    world.advance(Duration::from_millis(12));
    let more = format!(
        r#","requestState":{},"inputResponses":{{"deviceChoice":{{"action":"decline"}}}}"#,
        asked["result"]["requestState"]
    );
    let retry = modern("2", &capabilities, &more);
    world.client_sends(&retry.replace(r#""io.modelcontextprotocol/protocolVersion""#, TOKEN));
    let ask = world.inbox.remove(0);
    world.advance(Duration::from_secs(10));
    world.tick();
    assert_eq!(value(&world.client_got())["params"]["progress"], json!(0.001));
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    assert_eq!(value(&world.upstream_got())["id"], 2);
    for said in ["0", "0.0005", "1"] {
        world.upstream_sends(&progress(said));
    }
    assert_eq!(world.client_got(), progress("1"));
    world.upstream_sends(&response("2", "{}"));
    world.client.clear();
    // The token means nothing any more.
    world.upstream_sends(&progress("0.5"));
    assert_eq!(world.client_got(), progress("0.5"));
}

/// A retry with that state, which nobody was shown.
fn retry_unshown(world: &mut World, id: &str, state: &str) {
    let more =
        format!(r#","requestState":{state},"inputResponses":{{"deviceChoice":{{"action":"decline"}}}}"#);
    world.client_sends(&modern(id, &json!({"elicitation": {}}), &more));
}

#[test]
fn the_question_of_a_state_is_put_once_at_a_time_and_never_once_it_is_spent() {
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{REFUSAL}}}"#);
    let mut world = World::new(config());
    attach(&world);
    refused(&mut world, &modern("1", &json!({"elicitation": {}}), ""));
    let state = value(&world.client_got())["result"]["requestState"].to_string();
    retry_unshown(&mut world, "2", &state);
    let ask = world.inbox.remove(0);
    let before = world.process.bytes_in_flight();
    assert!(before > 3 * REFUSAL.len() as u64, "the state counts: {before}");
    world.records.clear();
    retry_unshown(&mut world, "3", &state);
    assert_eq!(world.client_got(), result("3"));
    assert_eq!(world.records.pop().unwrap().reason, Some("already-asked"));
    assert!(world.inbox.is_empty());
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    assert_eq!(value(&world.upstream_got())["id"], 2);
    world.upstream_sends(&response("2", "{}"));
    world.client.clear();
    retry_unshown(&mut world, "4", &state);
    assert_eq!(world.client_got(), result("4"));
    assert_eq!(world.records.pop().unwrap().reason, Some("state-spent"));
    assert!(world.inbox.is_empty());
    assert_eq!((world.runs, world.process.bytes_in_flight()), (2, 0));
}
