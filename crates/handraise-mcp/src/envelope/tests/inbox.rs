//! The inbox rail: when a question goes there, what comes back, and what ends the wait.

mod bounds;

use std::sync::atomic::{AtomicU64, Ordering};

use handraise_core::words::{Provenance, Rail, Source};
use serde_json::json;

use super::*;
use crate::envelope::{InboxEnd, InboxSaid, Waits};
use crate::rails::{Asked, Ladder};

/// How long ago an operator was there, in seconds; `u64::MAX`: there is no inbox.
type Operator = Arc<AtomicU64>;

const AWAY: u64 = u64::MAX;

fn attach(world: &World) -> Operator {
    let operator = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&operator);
    world.process.attach_inbox(move || {
        Some(seen.load(Ordering::Relaxed)).filter(|ago| *ago != AWAY).map(Duration::from_secs)
    });
    operator
}

/// A session of a client that declares this, beside an inbox with somebody there.
fn session(capabilities: &Value) -> (World, Operator) {
    session_of(config(), capabilities)
}

fn session_of(config: EnvelopeConfig, capabilities: &Value) -> (World, Operator) {
    let mut world = World::new(config);
    world.initialize(capabilities, "2025-11-25");
    let operator = attach(&world);
    (world, operator)
}

fn refused(world: &mut World, call: &str) {
    world.client_sends(call);
    world.upstream.clear();
    let frame = ClientFrame::read(call.as_bytes()).unwrap();
    let id = frame.id().unwrap().raw().to_owned();
    world.upstream_sends(&response(&id, REFUSAL));
}

/// Runs a call up to our question in the inbox.
#[track_caller]
fn put(world: &mut World, id: &str) -> InboxAsk {
    refused(world, &call(id));
    world.nobody_got_anything();
    assert_eq!(world.inbox.len(), 1, "{:?}", world.records);
    world.inbox.remove(0)
}

fn says(world: &mut World, key: &str, end: InboxEnd, provenance: Provenance) {
    let mut out = Vec::new();
    world.envelope.inbox_said(key, &InboxSaid { end, provenance }, world.now, &mut out);
    world.drain(out);
}

fn accepts(device: &str) -> InboxEnd {
    InboxEnd::Accepted(format!(r#"{{"deviceId":"{device}"}}"#))
}

/// A call that describes itself, of a client that declares this.
fn modern(id: &str, capabilities: &Value, more: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tapOn","arguments":{{"n":1.50}}{more},"_meta":{meta}}}}}"#
    )
}

#[test]
fn a_client_that_declares_nothing_is_answered_from_the_inbox_in_the_same_call() {
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    assert_eq!((ask.source, ask.principal.as_str(), ask.tool.as_str()), (Source::Refusal, "stdio", "tapOn"));
    assert_eq!(ask.message, "Which device should tapOn use?");
    assert_eq!(ask.server.as_deref(), Some("s"), "what the server calls itself");
    assert_eq!((ask.client.as_deref(), ask.timeout), (Some("client"), Duration::from_secs(45)));
    let schema = value(&ask.schema);
    assert_eq!(schema["required"], json!(["deviceId"]));
    let second = &schema["properties"]["deviceId"]["oneOf"][1];
    assert_eq!(second, &json!({"const": "A1B2", "title": "A1B2 (ios)"}));
    world.advance(Duration::from_secs(7));
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    let again = value(&world.upstream_got());
    assert_eq!(again["params"]["arguments"], json!({"text": "OK", "n": 1.50, "deviceId": "A1B2"}));
    world.upstream_sends(&response(&again["id"].to_string(), r#"{"done": 1e0}"#));
    assert_eq!(world.client_got(), response("1", r#"{"done": 1e0}"#));
    let record = world.records[0].clone();
    assert_eq!((record.rail, record.latency_ms, record.ask), (Rail::Inbox, Some(7000), Some(ask.key)));
    assert_eq!(world.recorded(), "accept human");
    assert_eq!((world.runs, world.process.bytes_in_flight(), world.envelope.open_requests()), (2, 0, 0));
    assert_eq!(world.envelope.next_deadline(), None);
}

#[test]
fn an_answer_counts_once_and_only_for_the_call_that_it_was_given_to() {
    let (mut world, _) = session(&json!({}));
    let first = put(&mut world, "1");
    let second = put(&mut world, "2");
    assert_ne!(first.key, second.key);
    for key in ["", "1", "hr-inbox-", &first.key.replace("hr-inbox", "hr-ask")] {
        says(&mut world, key, accepts("A1B2"), Provenance::Human);
        // Nor does the client answer what is in the inbox.
        world.client_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":"{}","result":{}}}"#,
            first.key,
            accept("A1B2")
        ));
    }
    // What looks like an answer to a question of the server's goes there.
    world.upstream.clear();
    assert_eq!((world.runs, world.envelope.open_requests()), (2, 2));
    says(&mut world, &second.key, accepts("A1B2"), Provenance::Client);
    let again = world.upstream_got();
    assert_eq!(value(&again)["params"]["arguments"]["deviceId"], "A1B2");
    for end in
        [accepts("emulator-5554"), InboxEnd::Declined, InboxEnd::TimedOut, InboxEnd::NotOpened("not-opened")]
    {
        says(&mut world, &second.key, end, Provenance::Human);
    }
    world.nobody_got_anything();
    assert_eq!(world.runs, 3);
    assert_eq!(world.recorded(), "accept client");
}

#[test]
fn everything_but_an_offered_candidate_ends_with_the_refusal_byte_for_byte() {
    for (end, provenance, recorded) in [
        (InboxEnd::Declined, Provenance::Human, "decline human"),
        (InboxEnd::Cancelled, Provenance::System, "cancel system"),
        (InboxEnd::TimedOut, Provenance::System, "timeout system"),
        (InboxEnd::NotOpened("not-opened"), Provenance::System, "error system not-opened"),
        (accepts("rogue"), Provenance::Human, "invalid human choice-not-offered"),
        (InboxEnd::Accepted("{}".into()), Provenance::Human, "invalid human answer-missing"),
        (InboxEnd::Accepted("[]".into()), Provenance::Human, "invalid human answer-malformed"),
        (InboxEnd::Accepted("}".into()), Provenance::Human, "invalid human answer-malformed"),
        (
            InboxEnd::Accepted(r#"{"deviceId":"A1B2","deviceId":"A1B2"}"#.into()),
            Provenance::Human,
            "invalid human answer-malformed",
        ),
    ] {
        let (mut world, _) = session(&json!({}));
        let ask = put(&mut world, "1");
        says(&mut world, &ask.key, end, provenance);
        assert_eq!(world.client_got(), response("1", REFUSAL), "{recorded}");
        assert_eq!(world.recorded(), recorded);
        assert_eq!((world.runs, world.process.bytes_in_flight()), (1, 0));
        assert!(world.withdrawn.is_empty());
    }
}

#[test]
fn without_an_operator_the_refusal_passes_at_once() {
    let (mut world, operator) = session(&json!({}));
    for (ago, is_asked) in [(AWAY, false), (301, false), (300, true)] {
        operator.store(ago, Ordering::Relaxed);
        refused(&mut world, &call("1"));
        if is_asked {
            assert_eq!(world.inbox.len(), 1);
        } else {
            assert_eq!(world.client_got(), response("1", REFUSAL));
            assert_eq!(world.records[0].rail, Rail::Refuse);
            assert_eq!(world.recorded(), "not_offered system");
        }
    }
}

#[test]
fn switched_off_nothing_goes_to_the_inbox() {
    let (mut world, _) = session(&json!({}));
    world.process.set_elicitation(false);
    refused(&mut world, &call("1"));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "disabled system");
}

#[test]
fn the_inboxs_switch_is_read_for_every_call_and_off_in_either_place_wins() {
    let (mut world, _) = session(&json!({"elicitation": {}}));
    let is_on = Arc::new(AtomicU64::new(0));
    let switch = Arc::clone(&is_on);
    world.process.attach_switch(move || switch.load(Ordering::Relaxed) == 1);
    for (id, inbox, ours, is_asked) in
        [("1", 0, true, false), ("2", 1, true, true), ("3", 1, false, false), ("4", 0, false, false)]
    {
        is_on.store(inbox, Ordering::Relaxed);
        world.process.set_elicitation(ours);
        refused(&mut world, &call(id));
        let got = world.client.remove(0);
        assert_eq!(value(&got)["method"] == "elicitation/create", is_asked, "{id}");
        assert_eq!(world.records.pop().is_some(), !is_asked);
    }
}

#[test]
fn whoever_holds_the_ask_ends_the_wait_and_the_envelope_does_where_it_is_silent() {
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    world.advance(Duration::from_millis(45_249));
    world.tick();
    world.nobody_got_anything();
    // In time by the judgement of whoever holds it.
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    assert_eq!(value(&world.upstream_got())["params"]["arguments"]["deviceId"], "A1B2");
    assert_eq!(world.recorded(), "accept human");
    let ask = put(&mut world, "2");
    world.advance(Duration::from_millis(45_250));
    world.tick();
    assert_eq!(world.client_got(), response("2", REFUSAL));
    assert_eq!(world.recorded(), "timeout system");
    assert_eq!(world.withdrawn, [(ask.key.clone(), Withdrawal::TimedOut)]);
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    world.nobody_got_anything();
    assert_eq!((world.runs, world.records.len()), (3, 0));
}

#[test]
fn an_answer_that_comes_with_the_deadline_counts() {
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    world.advance(Duration::from_secs(50));
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    assert_eq!(world.recorded(), "accept human");
    assert_eq!(world.runs, 2);
}

#[test]
fn the_wait_is_counted_from_the_calls_arrival() {
    for (spent, left) in [(44, Some(1)), (45, None)] {
        let (mut world, _) = session(&json!({}));
        let id = spent.to_string();
        world.client_sends(&call(&id));
        world.upstream.clear();
        world.advance(Duration::from_secs(spent));
        world.upstream_sends(&response(&id, REFUSAL));
        assert_eq!(world.inbox.pop().map(|ask| ask.timeout), left.map(Duration::from_secs));
        if left.is_none() {
            assert_eq!(world.client_got(), response(&id, REFUSAL));
            assert_eq!(
                (world.records[0].rail, world.recorded()),
                (Rail::Inbox, "not_offered system too-late".into())
            );
        }
    }
}

#[test]
fn after_a_wait_that_nobody_ended_the_next_refusals_pass_at_once_until_somebody_answers() {
    let (mut world, _) = session(&json!({}));
    let (late, other) = (put(&mut world, "1"), put(&mut world, "2"));
    says(&mut world, &late.key, InboxEnd::TimedOut, Provenance::System);
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "timeout system");
    refused(&mut world, &call("3"));
    assert_eq!(world.client_got(), response("3", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system inbox-unanswered");
    says(&mut world, &other.key, InboxEnd::Declined, Provenance::Human);
    world.client.clear();
    world.records.clear();
    // A human's word is remembered on the connection.
    refused(&mut world, &call("4"));
    assert_eq!(world.client_got(), response("4", REFUSAL));
    assert_eq!(world.recorded(), "remembered system");
    let others = REFUSAL.replace("A1B2", "C3D4");
    world.client_sends(&call("5"));
    world.upstream_sends(&response("5", &others));
    assert_eq!(world.inbox.len(), 1);
}

#[test]
fn all_waits_of_a_session_are_bounded() {
    let waits = Waits { in_all: Duration::from_secs(60), ..Waits::default() };
    let (mut world, _) = session_of(EnvelopeConfig { waits, ..config() }, &json!({}));
    for (id, wait) in [("1", 45), ("2", 20)] {
        let ask = put(&mut world, id);
        assert_eq!(ask.timeout, Duration::from_secs(wait));
        world.advance(Duration::from_secs(40).min(ask.timeout));
        says(&mut world, &ask.key, accepts("rogue"), Provenance::Human);
        assert_eq!(world.client_got(), response(id, REFUSAL));
        world.records.clear();
    }
    refused(&mut world, &call("3"));
    assert_eq!(world.client_got(), response("3", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system waited-enough");
}

#[test]
fn a_call_that_takes_progress_waits_longer_and_is_told_that_it_does() {
    let (mut world, _) = session(&json!({}));
    let progressing = call("1").replace(r#""arguments""#, r#""_meta":{"progressToken":"t"},"arguments""#);
    world.client_sends(&progressing);
    world.upstream.clear();
    let progress = |progress: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{progress}}}}}"#
        )
    };
    world.upstream_sends(&progress("3"));
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), progress("3"));
    let ask = world.inbox.remove(0);
    assert_eq!(ask.timeout, Duration::from_secs(600));
    let mut last = 3.0;
    for _ in 0..3 {
        world.advance(Duration::from_secs(10));
        world.tick();
        let told = value(&world.client_got());
        assert_eq!(
            (&told["method"], &told["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t"))
        );
        let said = told["params"]["progress"].as_f64().unwrap();
        assert!(said > last && said < 3.1, "{said}");
        last = said;
    }
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    let again = value(&world.upstream_got())["id"].to_string();
    for said in ["0", "3", "4"] {
        world.upstream_sends(&progress(said));
    }
    assert_eq!(world.client_got(), progress("4"), "what falls back is left out");
    world.upstream_sends(&response(&again, "{}"));
    assert_eq!(world.client_got(), response("1", "{}"));
    assert_eq!(world.envelope.next_deadline(), None);
}

#[test]
fn a_call_that_is_cancelled_takes_its_question_back_at_once() {
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    world.advance(Duration::from_secs(1));
    world.client_sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    world.nobody_got_anything();
    assert_eq!(world.withdrawn, [(ask.key.clone(), Withdrawal::Cancelled)]);
    assert_eq!(
        (world.records[0].rail, world.recorded()),
        (Rail::Inbox, "withdrawn client call-cancelled".into())
    );
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    world.nobody_got_anything();
    assert_eq!((world.runs, world.process.bytes_in_flight()), (1, 0));
}

#[test]
fn either_sides_end_takes_the_question_back() {
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    world.client_closes();
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.withdrawn, [(ask.key, Withdrawal::Gone)]);
    assert_eq!(world.recorded(), "withdrawn system client-closed");
    let (mut world, _) = session(&json!({}));
    let ask = put(&mut world, "1");
    world.upstream_ends();
    assert!(world.client_got().contains("the MCP server ended"));
    assert_eq!(world.withdrawn, [(ask.key.clone(), Withdrawal::Gone)]);
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    world.nobody_got_anything();
    assert_eq!(world.runs, 1);
}

/// The client is asked first, and answers like this so many milliseconds later.
fn form_answered(after: u64, body: &str) -> (World, Operator) {
    let (mut world, operator) = session(&json!({"elicitation": {}}));
    refused(&mut world, &call("1"));
    let id = value(&world.client_got())["id"].to_string();
    world.advance(Duration::from_millis(after));
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#));
    (world, operator)
}

#[test]
fn what_nobody_was_shown_goes_on_to_the_inbox_and_says_so_there() {
    for (after, body, recorded, sentence) in [
        (
            12,
            r#""result":{"action":"decline"}"#,
            "decline not_shown",
            "The client answered decline after 12 ms: nobody can have read the question there.",
        ),
        (
            0,
            r#""result":{"action":"cancel"}"#,
            "cancel not_shown",
            "The client answered cancel after 0 ms: nobody can have read the question there.",
        ),
        (
            5_000,
            r#""error":{"code":-32601,"message":"?"}"#,
            "error not_shown client-error",
            "The client cannot show the question itself.",
        ),
        (
            5_000,
            r#""error":{"code":-1,"message":"No supported fields"}"#,
            "error not_shown client-error",
            "The client cannot show the question itself.",
        ),
    ] {
        let (mut world, _) = form_answered(after, body);
        world.nobody_got_anything();
        assert_eq!(world.recorded(), recorded);
        let ask = world.inbox.remove(0);
        assert_eq!(ask.message, format!("Which device should tapOn use?\n\n{sentence}"));
        says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
        let again = value(&world.upstream_got());
        assert_eq!(again["params"]["arguments"]["deviceId"], "A1B2");
        assert_eq!(world.recorded(), "accept human");
        // And it is not remembered: the next one is asked about again.
        world.upstream_sends(&response(&again["id"].to_string(), "{}"));
        world.client.clear();
        refused(&mut world, &call("2"));
        assert_eq!(value(&world.client_got())["method"], "elicitation/create");
    }
}

#[test]
fn what_somebody_may_have_said_is_final() {
    for (after, body, recorded) in [
        (400, r#""result":{"action":"decline"}"#, "decline client"),
        (400, r#""result":{"action":"cancel"}"#, "cancel client"),
        (400, r#""error":{"code":-1,"message":"busy"}"#, "error client client-error"),
        (3, r#""result":{"action":"accept","content":{}}"#, "invalid not_shown answer-missing"),
    ] {
        let (mut world, _) = form_answered(after, body);
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!(world.recorded(), recorded);
        assert!(world.inbox.is_empty());
    }
    let (mut world, _) = session(&json!({"elicitation": {}}));
    refused(&mut world, &call("1"));
    world.advance(Duration::from_secs(20));
    world.tick();
    assert_eq!(world.client.pop(), Some(response("1", REFUSAL)));
    assert_eq!(world.recorded(), "timeout system");
    assert!(world.inbox.is_empty());
}

#[test]
fn what_nobody_was_shown_and_nobody_can_be_shown_ends_with_the_refusal() {
    let (mut world, operator) = session(&json!({"elicitation": {}}));
    operator.store(AWAY, Ordering::Relaxed);
    refused(&mut world, &call("1"));
    let id = value(&world.client_got())["id"].to_string();
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "decline not_shown");
}

#[test]
fn the_order_of_rails_is_what_the_settings_say() {
    let ladder = |words: &[&str]| Ladder::parse(Asked::Refusal, words.iter().copied()).unwrap();
    let with = |words: &[&str]| {
        let config = EnvelopeConfig { refusal_rails: ladder(words), ..config() };
        session_of(config, &json!({"elicitation": {}}))
    };
    let (mut world, operator) = with(&["inbox", "form"]);
    let ask = put(&mut world, "1");
    // It could not be opened: nobody was shown it, and the client is next.
    says(&mut world, &ask.key, InboxEnd::NotOpened("not-opened"), Provenance::System);
    assert_eq!(value(&world.client_got())["method"], "elicitation/create");
    assert_eq!(world.recorded(), "error system not-opened");
    operator.store(AWAY, Ordering::Relaxed);
    refused(&mut world, &call("2"));
    assert_eq!(value(&world.client_got())["method"], "elicitation/create");
    let (mut world, _) = with(&["refuse"]);
    refused(&mut world, &call("1"));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system");
    let (mut world, _) = with(&["form"]);
    refused(&mut world, &call("1"));
    let id = value(&world.client_got())["id"].to_string();
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert!(world.inbox.is_empty());
}

#[test]
fn a_modern_request_is_held_open_for_the_inbox() {
    let mut world = World::new(config());
    attach(&world);
    refused(&mut world, &modern("1", &json!({}), ""));
    world.nobody_got_anything();
    let ask = world.inbox.remove(0);
    assert_eq!(ask.client.as_deref(), Some("modern"));
    world.advance(Duration::from_secs(3));
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    let again = value(&world.upstream_got());
    assert_eq!(again["params"]["arguments"], json!({"n": 1.50, "deviceId": "A1B2"}));
    assert_eq!(world.recorded(), "accept human");
    // What the server asks then is its own question, and goes on as it is.
    let question = r#"{"resultType":"input_required","requestState":"s","inputRequests":{}}"#;
    world.upstream_sends(&response(&again["id"].to_string(), question));
    assert_eq!(world.client_got(), response("1", question));
}

/// A modern client that takes forms got the question, and retries like this after so many milliseconds.
fn retried(after: u64, answer: &str) -> (World, Operator) {
    let mut world = World::new(config());
    let operator = attach(&world);
    let capabilities = json!({"elicitation": {}});
    refused(&mut world, &modern("1", &capabilities, ""));
    let asked = value(&world.client_got());
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(world.recorded(), "asked system");
    world.advance(Duration::from_millis(after));
    let more = format!(
        r#","requestState":{},"inputResponses":{{"deviceChoice":{answer}}}"#,
        asked["result"]["requestState"]
    );
    world.client_sends(&modern("2", &capabilities, &more));
    (world, operator)
}

#[test]
fn a_retry_that_nobody_was_shown_goes_on_inside_that_retry() {
    let (mut world, _) = retried(12, r#"{"action":"decline"}"#);
    world.nobody_got_anything();
    assert_eq!(world.recorded(), "decline not_shown");
    let ask = world.inbox.remove(0);
    assert!(
        ask.message
            .ends_with("The client answered decline after 12 ms: nobody can have read the question there.")
    );
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    let again = value(&world.upstream_got());
    assert_eq!((&again["id"], &again["params"]["arguments"]["deviceId"]), (&json!(2), &json!("A1B2")));
    assert_eq!(
        (&again["params"]["requestState"], &again["params"]["inputResponses"]),
        (&json!(null), &json!(null))
    );
    let record = world.records[0].clone();
    assert_eq!((record.rail, world.recorded()), (Rail::Inbox, "accept human".to_owned()));
    world.upstream_sends(&response("2", "{}"));
    assert_eq!(world.client_got(), response("2", "{}"));
    assert_eq!((world.runs, world.process.bytes_in_flight()), (2, 0));
}

#[test]
fn a_retry_in_the_inbox_ends_with_the_refusal_and_runs_at_most_once_with_its_state() {
    let result = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#);
    for end in [InboxEnd::Declined, InboxEnd::TimedOut, accepts("rogue"), InboxEnd::NotOpened("not-opened")] {
        let (mut world, _) = retried(12, r#"{"action":"cancel"}"#);
        let ask = world.inbox.remove(0);
        says(&mut world, &ask.key, end, Provenance::Human);
        assert_eq!(world.client_got(), result);
        assert_eq!((world.runs, world.process.bytes_in_flight()), (1, 0));
    }
    let (mut world, operator) = retried(12, r#"{"action":"cancel"}"#);
    operator.store(AWAY, Ordering::Relaxed);
    let ask = world.inbox.remove(0);
    // Meanwhile another retry with that state is accepted by the client.
    let state = {
        let call = world.envelope.open.get(crate::frame::Id::parse("2").unwrap());
        let Some(crate::envelope::open::Open::Asking(asking)) = call else { panic!("it waits") };
        let frame = ClientFrame::read(asking.call.bytes()).unwrap();
        frame.param(|params| params.request_state.as_ref()).unwrap().to_owned()
    };
    world.advance(Duration::from_secs(1));
    let more = format!(r#","requestState":{state},"inputResponses":{{"deviceChoice":{}}}"#, accept("A1B2"));
    world.client_sends(&modern("3", &json!({"elicitation": {}}), &more));
    assert_eq!(value(&world.upstream_got())["id"], 3);
    says(&mut world, &ask.key, accepts("A1B2"), Provenance::Human);
    assert!(world.client_got().contains("invalid_request_state"));
    assert_eq!(world.runs, 2);
}

#[test]
fn a_slow_decline_in_a_retry_is_final() {
    let (mut world, _) = retried(400, r#"{"action":"decline"}"#);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
    assert_eq!(world.recorded(), "decline client");
    assert!(world.inbox.is_empty());
}

#[test]
fn answers_are_in_no_debug_text() {
    let said = InboxSaid { end: accepts("hunter2"), provenance: Provenance::Human };
    assert!(!format!("{said:?}").contains("hunter2"));
}
