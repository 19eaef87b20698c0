//! What the server waits for, and what it is to stop for, does not stand behind notifications that it does not acknowledge.

use std::time::Duration;

use handraise_http::upstream::Arrivals;
use tokio::time::timeout;

use crate::{
    rig::{Rig, frame},
    server_stream::{CALL, open},
    unacknowledged::send,
};

const STREAM: &str = "200 OK\r\nContent-Type: text/event-stream";
const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
/// An answer to nothing, and the cancel of nothing.
const NOTHING: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":"x","result":{"roots":[]}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
];
/// Less than the half minute that the server has for a notification.
const SOON: Duration = Duration::from_secs(15);

async fn asked(arrivals: &mut Arrivals) {
    timeout(Duration::from_secs(30), arrivals.recv()).await.unwrap().expect("the question");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_and_a_cancel_pass_what_is_not_acknowledged() {
    let rig = Rig::start();
    let (link, mut arrivals) = rig.link();
    link.send(frame(CALL));
    let mut call = rig.next();
    call.begin(STREAM);
    call.say(QUESTION);
    asked(&mut arrivals).await;
    let mut unacknowledged = send(&rig, &link);
    for awaited in [ANSWER, CANCEL] {
        link.send(frame(awaited));
        let passed = rig.next_within(SOON).expect("it has passed");
        assert_eq!(passed.body, awaited);
        unacknowledged.push(passed);
    }
    // What answers nothing, or is said twice, is held like a notification.
    for other in [ANSWER, CANCEL].into_iter().chain(NOTHING) {
        link.send(frame(other));
    }
    assert!(rig.next_within(Duration::from_millis(200)).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_what_the_server_asks_on_its_own_stream_passes_as_well() {
    let rig = Rig::start();
    let (link, mut arrivals, mut stream) = open(&rig);
    stream.begin(STREAM);
    assert_eq!(rig.next().body, CALL);
    stream.say(QUESTION);
    asked(&mut arrivals).await;
    let _unacknowledged = send(&rig, &link);
    link.send(frame(ANSWER));
    assert_eq!(rig.next_within(SOON).expect("it has passed").body, ANSWER);
}
