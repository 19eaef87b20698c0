//! States that are not ours, and those of gateways in a row.

use super::*;

#[test]
fn the_upstreams_state_is_carried_and_restored() {
    let mut world = World::new(config());
    world.client_sends(&modern_call("1", "", &json!({})));
    world.upstream.clear();
    let result = REFUSAL.replace(r#""x":1e2"#, r#""requestState":"their\/s","x":1e2"#);
    world.upstream_sends(&response("1", &result));
    let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
    world.advance(Duration::from_secs(1));
    let extra = format!(
        r#","inputResponses":{{"theirs":{{"x":1.0}},"deviceChoice":{}}},"requestState":"{state}""#,
        accept("A1B2")
    );
    world.client_sends(&modern_call("2", &extra, &json!({})));
    let expected =
        modern_call("2", r#","inputResponses":{"theirs":{"x":1.0}},"requestState":"their/s""#, &json!({}))
            .replace(r#""n": 1.50}"#, r#""n": 1.50,"deviceId":"A1B2"}"#);
    assert_eq!(world.upstream_got(), expected);
}

#[test]
fn a_foreign_state_goes_through_and_adds_no_question() {
    for (state, reason) in [("theirs", "server-state"), ("hr2.x", "server-state"), ("", "server-state")] {
        let mut world = World::new(config());
        let call = modern_call("1", &with(state, r#"{"action":"accept"}"#), &json!({}));
        world.client_sends(&call);
        assert_eq!(world.upstream_got(), call);
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!(world.recorded(), format!("not_offered system {reason}"));
    }
    let mut world = World::new(config());
    let call = modern_call("1", r#","inputResponses":{"deviceChoice":{}}"#, &json!({}));
    world.client_sends(&call);
    assert_eq!(world.upstream_got(), call);
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system answer-without-state");
}

/// What an upstream has shown of itself before a call brings a state of its own.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// It answered `initialize` with this version.
    Opened(&'static str),
    /// It answered `initialize` with an error.
    NotOpened,
    /// It answered `server/discover` with this.
    Discover(&'static str),
    /// It answered a modern call with a question.
    Question,
}

const UNKNOWN: Shown = Shown::Discover(r#""error":{"code":-32601,"message":"Method not found"}"#);
const DISCOVERED: Shown = Shown::Discover(r#""result":{"supportedVersions":["2026-07-28"]}"#);

impl Shown {
    fn to(self, world: &mut World) {
        match self {
            Self::Opened(version) => world.initialize(&json!({"elicitation": {}}), version),
            Self::NotOpened => {
                let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
                let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
                world.client_sends(&request.to_string());
                world.upstream_sends(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}"#);
            }
            Self::Discover(answer) => {
                world.client_sends(r#"{"jsonrpc":"2.0","id":6,"method":"server/discover"}"#);
                world.upstream_sends(&format!(r#"{{"jsonrpc":"2.0","id":6,{answer}}}"#));
            }
            Self::Question => {
                world.client_sends(&modern_call("8", "", &json!({})));
                world.upstream_sends(&response(
                    "8",
                    r#"{"resultType":"input_required","requestState":"theirs"}"#,
                ));
            }
        }
        world.client.clear();
        world.upstream.clear();
        world.runs = 0;
    }
}

/// A legacy server would run the call and never look at the state (mcp.md §5). What it is, it says by how it opens a
/// connection and by what it answers, never by a version in `initialize`.
#[test]
fn a_foreign_state_goes_no_further_before_a_legacy_upstream() {
    use Shown::{Discover, NotOpened, Opened, Question};
    let other_error = Discover(r#""error":{"code":-32000,"message":"not initialized"}"#);
    let odd_error = Discover(r#""error":null"#);
    let version_error = Discover(r#""error":{"code":-32022,"message":"version","data":{"supported":[]}}"#);
    for (shown, goes_on) in [
        // Nothing is known: the upstream judges.
        (&[][..], true),
        (&[NotOpened], true),
        (&[Opened("2025-11-25")], false),
        (&[Opened("2024-11-05")], false),
        // rmcp 3.11 writes that into `initialize`.
        (&[Opened("2026-07-28")], false),
        (&[Opened("2027-01-01")], false),
        (&[UNKNOWN], false),
        (&[other_error], false),
        (&[odd_error], false),
        (&[UNKNOWN, Opened("2025-11-25")], false),
        (&[Opened("2025-11-25"), UNKNOWN], false),
        // Only a modern one has these.
        (&[DISCOVERED], true),
        (&[version_error], true),
        (&[Question], true),
        (&[Opened("2025-11-25"), DISCOVERED], true),
        (&[DISCOVERED, Opened("2025-11-25")], true),
        (&[UNKNOWN, DISCOVERED], true),
        (&[DISCOVERED, UNKNOWN], true),
        (&[Opened("2026-07-28"), Question], true),
        (&[UNKNOWN, Question], true),
    ] {
        let mut world = World::new(config());
        for one in shown {
            one.to(&mut world);
        }
        let call = modern_call("5", &with("theirs", r#"{"action":"accept"}"#), &json!({}));
        world.client_sends(&call);
        if goes_on {
            assert_eq!(world.upstream_got(), call, "{shown:?}");
            assert!(world.client.is_empty() && world.records.is_empty(), "{shown:?}");
        } else {
            assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":5,{INVALID}"#), "{shown:?}");
            let record = "invalid client state-before-legacy-upstream";
            assert_eq!((world.recorded().as_str(), world.runs), (record, 0), "{shown:?}");
        }
    }
}

#[test]
fn a_state_of_ours_belongs_to_tool_calls() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let prompt =
        modern_call("2", &with(&state, &accept("A1B2")), &json!({})).replace("tools/call", "prompts/get");
    world.client_sends(&prompt);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,{INVALID}"#));
    // In the push era as well.
    let bare = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"tapOn","requestState":"{state}"}}}}"#
    );
    world.client_sends(&bare);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":3,{INVALID}"#));
    assert_eq!(world.runs, 1);
}

#[test]
fn gateways_in_a_row_know_their_own_states() {
    for keys in [[9; 32], [10; 32]] {
        // With keys of its own, or sharing ours: the state that went through is the inner one's.
        let mut inner = World::new(EnvelopeConfig { keyring: Keyring::single(&keys), ..config() });
        let mut outer = World::on(Arc::new(Process::new(config())), [8; 32]);
        outer.client_sends(&modern_call("1", "", &json!({})));
        inner.client_sends(&outer.upstream_got());
        inner.upstream_got();
        inner.upstream_sends(&response("1", REFUSAL));
        let asked = inner.client_got();
        outer.upstream_sends(&asked);
        assert_eq!(outer.client_got(), asked, "verbatim");
        let state = value(&asked)["result"]["requestState"].as_str().unwrap().to_owned();
        assert!(state.starts_with("hr1."));
        for world in [&mut inner, &mut outer] {
            world.advance(Duration::from_secs(1));
            world.records.clear();
        }
        let declined = modern_call("2", &with(&state, r#"{"action":"decline"}"#), &json!({}));
        outer.client_sends(&declined);
        assert_eq!(outer.upstream, [declined.as_str()]);
        inner.client_sends(&outer.upstream_got());
        outer.upstream_sends(&inner.client_got());
        assert_eq!(outer.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
        assert_eq!(inner.recorded(), "decline client");
        assert_eq!(outer.recorded(), "not_offered system server-state", "the outer one adds no question");
        retry(&mut outer, "3", &state, &accept("A1B2"));
        inner.client_sends(&outer.upstream_got());
        assert_eq!(inner.runs, 2);
        // What never went through is refused.
        let mut third = World::on(Arc::new(Process::new(config())), [3; 32]);
        if keys == [10; 32] {
            is_refused(&mut third, "2", &state, "an unknown key");
        }
    }
}
