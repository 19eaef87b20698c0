//! The store against a naive model: whatever the order of events, both agree, and nothing is settled twice.

use std::collections::BTreeMap;

use handraise_api::words::{AskState, Outcome};
use handraise_store::{Announced, Ending, NoticeKind, Settled, Verdict};
use proptest::prelude::*;

use crate::support::{announce, ask, at, block_on, ending, instance, rig, submission};

const ASKS: usize = 3;
const HOLDERS: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    Announce { holder: usize, ask: usize, changed: bool },
    Submit { ask: usize },
    Reply { submission: usize, verdict: usize },
    SettleByHolder { holder: usize, ask: usize, submission: Option<usize> },
    SettleByInbox { ask: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..HOLDERS, 0..ASKS, prop::bool::weighted(0.1)).prop_map(|(holder, ask, changed)| Step::Announce {
            holder,
            ask,
            changed
        }),
        (0..ASKS).prop_map(|ask| Step::Submit { ask }),
        (0..6usize, 0..4usize).prop_map(|(submission, verdict)| Step::Reply { submission, verdict }),
        (0..HOLDERS, 0..ASKS, prop::option::of(0..6usize))
            .prop_map(|(holder, ask, submission)| Step::SettleByHolder { holder, ask, submission }),
        (0..ASKS).prop_map(|ask| Step::SettleByInbox { ask }),
    ]
}

#[derive(Debug, Default)]
struct Model {
    asks: BTreeMap<usize, ModelAsk>,
    submissions: Vec<ModelSubmission>,
}

#[derive(Debug)]
struct ModelAsk {
    holder: usize,
    ended: Option<(Outcome, Option<String>)>,
}

#[derive(Debug)]
struct ModelSubmission {
    ask: usize,
    resolved: bool,
    /// Its first verdict was not that it won: it can win no more (S15).
    refused: bool,
}

impl Model {
    fn end(&mut self, ask: usize, outcome: Outcome, submission: Option<usize>) -> bool {
        let winner = submission
            .filter(|&s| self.submissions.get(s).is_some_and(|known| known.ask == ask && !known.refused))
            .map(|s| format!("s{s}"));
        let Some(known) = self.asks.get_mut(&ask) else { return false };
        if known.ended.is_some() {
            return false;
        }
        known.ended = Some((outcome, winner));
        true
    }

    fn unresolved(&self, ask: usize) -> bool {
        self.submissions.iter().any(|s| s.ask == ask && !s.resolved)
    }

    fn state(&self, ask: usize) -> AskState {
        match &self.asks[&ask] {
            ModelAsk { ended: Some(_), .. } => AskState::Settled,
            ModelAsk { .. } if self.unresolved(ask) => AskState::Sent,
            ModelAsk { .. } => AskState::Open,
        }
    }

    fn resolve(&mut self, submission: usize, won: bool) {
        let known = &mut self.submissions[submission];
        known.refused |= !known.resolved && !won;
        known.resolved = true;
    }
}

async fn run(steps: Vec<Step>) {
    let rig = rig().await;
    let store = rig.store;
    let mut model = Model::default();
    for holder in 0..HOLDERS {
        instance(&store, &format!("h{holder}")).await;
    }
    for (n, step) in steps.into_iter().enumerate() {
        let now = at(i64::try_from(n).unwrap());
        match step {
            Step::Announce { holder, ask: id, changed } => {
                let mut asked = ask(&format!("a{id}"), None);
                if changed {
                    asked.content.message.push('!');
                }
                let got = announce(&store, now, &format!("h{holder}"), &asked).await;
                match model.asks.get(&id) {
                    None if changed => {
                        // The first content counts as the ask's content, so begin with the plain one.
                        let plain = ask(&format!("a{id}"), None);
                        assert!(matches!(got, Announced::Opened { .. }), "{got:?}");
                        let again = announce(&store, now, &format!("h{holder}"), &plain).await;
                        assert!(matches!(again, Announced::ContentChanged(_)), "{again:?}");
                        let ended = Some((Outcome::Withdrawn, None));
                        model.asks.insert(id, ModelAsk { holder, ended });
                    }
                    None => {
                        assert!(matches!(got, Announced::Opened { .. }), "{got:?}");
                        model.asks.insert(id, ModelAsk { holder, ended: None });
                    }
                    Some(known) if known.holder != holder => assert_eq!(got, Announced::NotOwner),
                    Some(known) if known.ended.is_some() => {
                        assert!(matches!(got, Announced::Settled(_)), "{got:?}");
                    }
                    Some(_) if changed => {
                        assert!(matches!(got, Announced::ContentChanged(_)), "{got:?}");
                        model.end(id, Outcome::Withdrawn, None);
                    }
                    Some(_) => assert_eq!(got, Announced::Known(None)),
                }
            }
            Step::Submit { ask } => {
                let id = model.submissions.len();
                let got = store.submit(now, &[submission(&format!("s{id}"), &format!("a{ask}"))]).await;
                if !model.asks.contains_key(&ask) {
                    assert!(got.is_err());
                    continue;
                }
                got.unwrap();
                model.submissions.push(ModelSubmission { ask, resolved: false, refused: false });
            }
            Step::Reply { submission, verdict } => {
                let verdict =
                    [Verdict::Delivered, Verdict::NotFound, Verdict::Invalid, Verdict::Unseen][verdict];
                let id = format!("s{submission}");
                let known = store.submission(&id).await.unwrap();
                let ending = known
                    .as_ref()
                    .filter(|_| verdict == Verdict::Delivered)
                    .map(|won| Ending::delivered(won, now.wall));
                let got = store.reply(now, &id, verdict, ending.as_ref()).await.unwrap();
                let Some(known) = model.submissions.get(submission) else {
                    assert_eq!(got, None);
                    continue;
                };
                let ask = known.ask;
                model.resolve(submission, verdict == Verdict::Delivered);
                let ended =
                    verdict == Verdict::Delivered && model.end(ask, Outcome::Accept, Some(submission));
                assert_eq!(got.unwrap().settled_now, ended);
            }
            Step::SettleByHolder { holder, ask, submission } => {
                let id = submission.map(|s| format!("s{s}"));
                // What every submission here asks for; another word about one would lend nothing.
                let outcome = if submission.is_some() { Outcome::Accept } else { Outcome::Decline };
                let how = ending(now, outcome, id.as_deref());
                let got =
                    store.settle_by(now, &format!("a{ask}"), &format!("h{holder}"), &how).await.unwrap();
                match model.asks.get(&ask) {
                    None => assert_eq!(got, Settled::Unknown),
                    Some(known) if known.holder != holder => assert_eq!(got, Settled::NotOwner),
                    Some(_) => {
                        if let Some(s) = submission
                            && model.submissions.get(s).is_some_and(|known| known.ask == ask)
                        {
                            model.resolve(s, true);
                        }
                        let ended = model.end(ask, outcome, submission);
                        assert_eq!(matches!(got, Settled::Now(_)), ended, "{got:?}");
                    }
                }
            }
            Step::SettleByInbox { ask } => {
                let got = store.settle(&format!("a{ask}"), None, &ending(now, Outcome::Timeout, None)).await;
                let ended = model.end(ask, Outcome::Timeout, None);
                assert_eq!(matches!(got.unwrap(), Settled::Now(_)), ended);
            }
        }
        for (id, known) in &model.asks {
            let (stored, holder) = store.ask(&format!("a{id}")).await.unwrap().unwrap();
            assert_eq!(holder, format!("h{}", known.holder));
            assert_eq!(stored.state, model.state(*id), "a{id} after step {n}");
            let ending = stored.settlement.map(|how| (how.outcome, how.submission_id));
            assert_eq!(ending, known.ended, "a{id} after step {n}");
        }
    }
    let notices = store.notices(0, 100).await.unwrap();
    let count = |kind| notices.iter().filter(|notice| notice.kind == kind).count();
    assert_eq!(count(NoticeKind::Requested), model.asks.len());
    assert_eq!(count(NoticeKind::Withdrawn), model.asks.values().filter(|ask| ask.ended.is_some()).count());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_store_agrees_with_a_naive_model(steps in prop::collection::vec(step(), 1..40)) {
        block_on(run(steps));
    }
}
