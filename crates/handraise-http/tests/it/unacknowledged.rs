//! More notifications than may be on their way at once, which the server does not acknowledge.

use std::time::Duration;

use handraise_http::upstream::Link;
use tokio::time::timeout;

use crate::rig::{Asked, Rig, frame};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
pub(crate) const ON_THEIR_WAY: usize = 16;
const HELD: usize = 14;

/// Sends them all; those that have come, and that nobody has acknowledged yet.
pub(crate) fn send(rig: &Rig, link: &Link) -> Vec<Asked> {
    for _ in 0..ON_THEIR_WAY + HELD {
        link.send(frame(NOTE));
    }
    let come = (0..ON_THEIR_WAY).map(|_| rig.next()).collect::<Vec<_>>();
    assert!(come.iter().all(|asked| asked.body == NOTE));
    come
}

fn acknowledge(asked: Asked) {
    asked.answer("202 Accepted", "", "");
}

/// Completes once so many notifications count as queued.
async fn queued(link: &Link, notes: usize) {
    let all = async {
        while link.queued() != notes * NOTE.len() {
            link.moved().await;
        }
    };
    timeout(Duration::from_secs(20), all).await.unwrap_or_else(|_| panic!("{} bytes", link.queued()));
}

#[tokio::test(flavor = "multi_thread")]
async fn s37_what_is_not_acknowledged_counts_as_queued_and_holds_up_no_call() {
    let rig = Rig::start();
    let (link, _arrivals) = rig.link();
    let mut come = send(&rig, &link);
    link.send(frame(CALL));
    // Less than the half minute that the server has for a notification.
    let call = rig.next_within(Duration::from_secs(15)).expect("the call");
    assert_eq!(call.body, CALL, "no more of them are on their way");
    queued(&link, ON_THEIR_WAY + HELD).await;
    assert!(rig.next_within(Duration::from_millis(200)).is_none(), "no more of them are on their way");
    for left in (0..ON_THEIR_WAY + HELD).rev() {
        acknowledge(come.remove(0));
        if left >= ON_THEIR_WAY {
            let next = rig.next();
            assert_eq!(next.body, NOTE);
            come.push(next);
        }
        queued(&link, left).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_sent_at_the_end_to_a_server_that_goes_on() {
    let mut come_at_the_end = Vec::new();
    // The end takes two seconds at most, which a busy machine may need for less.
    for _ in 0..5 {
        let rig = Rig::start();
        let (link, _arrivals) = rig.link();
        let come = send(&rig, &link);
        let closing = tokio::spawn(link.close());
        come.into_iter().for_each(acknowledge);
        let rest = std::iter::from_fn(|| rig.next_within(Duration::from_secs(3)).map(acknowledge));
        come_at_the_end.push(rest.take(HELD).count());
        closing.await.unwrap();
        if come_at_the_end.ends_with(&[HELD]) {
            return;
        }
    }
    panic!("{come_at_the_end:?} of {HELD}");
}
