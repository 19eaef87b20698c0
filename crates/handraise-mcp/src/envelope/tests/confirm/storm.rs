//! Anything in any order: nothing runs without an acceptance of its own, and nothing is left behind.

use std::sync::atomic::{AtomicBool, Ordering};

use handraise_core::words::Provenance;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::*;
use crate::envelope::{InboxEnd, InboxSaid};

/// What happens next. Numbers pick among what is there.
#[derive(Debug, Clone)]
enum Step {
    Call(u8),
    /// With a token that was given, right or changed.
    Token(u8, bool),
    /// An answer to an open form, after so many milliseconds.
    Answer(u8, u64, &'static str),
    Cancel(u8),
    Advance(u64),
    ToolsChange,
    /// The preview says something else from now on.
    Edit,
    PreviewFails(bool),
    StoreFails(bool),
    /// The server asks something by itself.
    ServerAsks,
    /// Somebody comes to the inbox, or leaves it.
    Operator(bool),
    /// The inbox says what became of something that it was asked, now or earlier.
    Says(u8, Said),
}

#[derive(Debug, Clone, Copy)]
enum Said {
    Yes(Provenance),
    No,
    Declined,
    TimedOut,
    NotOpened,
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop::sample::select(vec![
        r#"{"action":"accept","content":{"confirm":true}}"#,
        r#"{"action":"accept","content":{"confirm":true}}"#,
        r#"{"action":"accept","content":{"confirm":false}}"#,
        r#"{"action":"accept"}"#,
        r#"{"action":"decline"}"#,
        r#"{"action":"cancel"}"#,
        "7",
    ]);
    let said = vec![
        Said::Yes(Provenance::Human),
        Said::Yes(Provenance::Client),
        Said::Yes(Provenance::System),
        Said::No,
        Said::Declined,
        Said::TimedOut,
        Said::NotOpened,
    ];
    let waits = prop::sample::select(vec![0_u64, 399, 400, 5_000]);
    prop_oneof![
        4 => (0..3_u8).prop_map(Step::Call),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(which, right)| Step::Token(which, right)),
        6 => (any::<u8>(), waits, answer).prop_map(|(which, wait, answer)| Step::Answer(which, wait, answer)),
        1 => any::<u8>().prop_map(Step::Cancel),
        1 => prop::sample::select(vec![1_u64, 9_999, 10_000, 20_000]).prop_map(Step::Advance),
        1 => Just(Step::ToolsChange),
        1 => Just(Step::Edit),
        1 => prop::bool::weighted(0.25).prop_map(Step::PreviewFails),
        1 => prop::bool::weighted(0.25).prop_map(Step::StoreFails),
        1 => Just(Step::ServerAsks),
        2 => prop::bool::weighted(0.7).prop_map(Step::Operator),
        5 => (any::<u8>(), prop::sample::select(said)).prop_map(|(which, said)| Step::Says(which, said)),
    ]
}

/// What the client has seen, and what it has done that may run something.
#[derive(Default)]
struct Client {
    forms: Vec<Value>,
    /// Each with the target that it was given for.
    tokens: Vec<(String, String)>,
    calls: Vec<u32>,
    /// Tokens and forms that were used to accept: each runs one call at most.
    acceptances: BTreeSet<String>,
}

impl Client {
    fn takes(&mut self, scene: &mut Scene) {
        for text in std::mem::take(&mut scene.world.client) {
            let frame = value(&text);
            if frame["method"] == "elicitation/create" && frame["id"].as_str().is_some() {
                self.forms.push(frame["id"].clone());
            } else if let Some(text) = frame["result"]["content"][0]["text"].as_str() {
                let (token, target) = (&value(text)["confirmToken"], &value(text)["preview"]["target"]);
                if let (Some(token), Some(target)) = (token.as_str(), target.as_str()) {
                    self.tokens.push((token.to_owned(), target.to_owned()));
                }
            }
        }
    }
}

/// How many calls ran.
fn play(steps: Vec<Step>, can_ask: bool) -> Result<usize, TestCaseError> {
    let mut scene = if can_ask { Scene::push(whole_guard(), &json!({})) } else { Scene::mute(whole_guard()) };
    let operator = Arc::new(AtomicBool::new(false));
    let is_there = Arc::clone(&operator);
    scene.world.process.attach_inbox(move || is_there.load(Ordering::Relaxed).then_some(Duration::ZERO));
    let mut client = Client::default();
    let mut edits = 0;
    for step in steps {
        match step {
            Step::Call(which) => {
                let id = scene.id();
                client.calls.push(scene.next);
                scene.sends(&send(&id, &format!(r#"{{"id":"d{which}"}}"#)));
            }
            Step::Token(which, is_right) => {
                let Some((token, target)) = pick(&client.tokens, which) else { continue };
                let (id, token) = (scene.id(), if is_right { token } else { token.replace('a', "b") });
                client.calls.push(scene.next);
                if is_right {
                    client.acceptances.insert(token.clone());
                }
                // Now and then it is brought to another call.
                let target = if which.is_multiple_of(5) { "d0" } else { &target };
                scene.sends(&send(&id, &format!(r#"{{"id":"{target}","confirmToken":"{token}"}}"#)));
            }
            Step::Answer(which, wait, answer) => {
                let Some(form) = pick(&client.forms, which) else { continue };
                scene.world.advance(Duration::from_millis(wait));
                if answer.contains("true") {
                    client.acceptances.insert(form.to_string());
                }
                scene.sends(&format!(r#"{{"jsonrpc":"2.0","id":{form},"result":{answer}}}"#));
            }
            Step::Cancel(which) => {
                let Some(call) = pick(&client.calls, which) else { continue };
                let running = scene.ran.iter().any(|ran| value(ran)["id"] == call);
                if !running {
                    scene.sends(&format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{call}}}}}"#
                    ));
                }
            }
            Step::Advance(span) => {
                scene.world.advance(Duration::from_millis(span));
                scene.world.tick();
                scene.settle();
            }
            Step::ToolsChange => {
                scene
                    .world
                    .upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            }
            Step::Edit => {
                edits += 1;
                scene.preview = scene.preview.map(|_| PREVIEW.replace("Hi", &format!("Hi {edits}")));
            }
            Step::PreviewFails(fails) => scene.preview = (!fails).then(|| PREVIEW.to_owned()),
            Step::StoreFails(fails) => match &scene.store {
                Store::Of(_) if fails => scene.store = Store::Broken,
                // What was spent is forgotten with it, and so are the tokens of before.
                Store::Broken if !fails => {
                    scene.store = Store::Of(BTreeSet::new());
                    client.tokens.clear();
                }
                _ => {}
            },
            Step::Operator(comes) => operator.store(comes, Ordering::Relaxed),
            Step::Says(which, said) => {
                let keys: Vec<String> = scene.world.inbox.iter().map(|ask| ask.key.clone()).collect();
                let Some(key) = pick(&keys, which) else { continue };
                let content = |field: bool| InboxEnd::Accepted(format!("{{\"confirm\":{field}}}"));
                let (end, provenance) = match said {
                    Said::Yes(provenance) => (content(true), provenance),
                    Said::No => (content(false), Provenance::Human),
                    Said::Declined => (InboxEnd::Declined, Provenance::Human),
                    Said::TimedOut => (InboxEnd::TimedOut, Provenance::System),
                    Said::NotOpened => (InboxEnd::NotOpened("not-opened"), Provenance::System),
                };
                if matches!(said, Said::Yes(Provenance::Human | Provenance::Client)) {
                    client.acceptances.insert(key.clone());
                }
                let mut out = Vec::new();
                let said = InboxSaid { end, provenance };
                scene.world.envelope.inbox_said(&key, &said, scene.world.now, &mut out);
                scene.world.drain(out);
                scene.settle();
            }
            Step::ServerAsks => {
                scene.world.upstream_sends(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}"#);
                scene.settle();
            }
        }
        client.takes(&mut scene);
        prop_assert!(scene.ran.len() <= client.acceptances.len(), "{} ran", scene.ran.len());
    }
    if can_ask {
        prop_assert!(client.tokens.is_empty(), "no token where there is a form (S8)");
    }
    let mut ids: Vec<String> = scene.ran.iter().map(|ran| value(ran)["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    prop_assert_eq!(ids.len(), scene.ran.len(), "no call runs twice");
    prop_assert!(scene.ran.iter().all(|ran| !ran.contains("confirmToken")));
    // Everything that still waits ends by its own time limit.
    for _ in 0..8 {
        scene.world.advance(Duration::from_secs(20));
        scene.world.tick();
        scene.settle();
    }
    scene.world.client.clear();
    scene.is_clean();
    Ok(scene.ran.len())
}

/// One of the newest four, or of all.
fn pick<T: Clone>(from: &[T], which: u8) -> Option<T> {
    let which = usize::from(which);
    let among = if which.is_multiple_of(4) { from.len() } else { from.len().min(4) };
    from.iter().rev().nth((which / 4).checked_rem(among)?).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn s5_whatever_happens_each_run_has_an_acceptance_of_its_own(
        steps in prop::collection::vec(step(), 0..40),
        can_ask in any::<bool>(),
    ) {
        play(steps, can_ask)?;
    }
}

#[test]
fn the_storm_runs_some_calls_on_both_rails() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for can_ask in [true, false] {
        let mut ran = 0;
        for _ in 0..100 {
            let steps = prop::collection::vec(step(), 40).new_tree(&mut runner).unwrap().current();
            ran += play(steps, can_ask).unwrap();
        }
        assert!(ran > 25, "{ran}");
    }
}
