//! Answers that come on the stream of their POST, to a client on stdio.

use super::in_front_of;
use crate::{
    gateway::{
        answering::{BETWEEN, How, STREAMS, answering, is_modern, is_response, large, request_of},
        frames::{FROM_CLIENT, FROM_SERVER},
    },
    support::{Front, Home},
};

/// Every answer of a server, with what is said before each of a session's.
#[track_caller]
fn check(home: &Home, url: &str, between: &[String]) {
    let mut gateway = in_front_of(home, url);
    let line = |text: &str| format!("{text}\n");
    gateway.write(line(FROM_CLIENT[0]).as_bytes());
    assert_eq!(String::from_utf8(gateway.line()).unwrap(), line(FROM_SERVER[0]));
    gateway.write(line(FROM_CLIENT[1]).as_bytes());
    for frame in FROM_SERVER[1..].iter().filter(|frame| is_response(frame)) {
        let request = request_of(frame);
        gateway.write(line(&request).as_bytes());
        let between = if is_modern(&request) { &[] } else { between };
        for expected in between.iter().map(String::as_str).chain([*frame]) {
            assert_eq!(String::from_utf8(gateway.line()).unwrap(), line(expected));
        }
    }
    for is_modern in [false, true] {
        let (request, expected) = large(is_modern);
        gateway.write(line(&request).as_bytes());
        assert!(gateway.line() == line(&expected).as_bytes(), "{is_modern}");
    }
    gateway.close();
    assert_eq!(gateway.rest(), b"");
}

#[test]
fn every_answer_that_comes_on_the_stream_of_its_call_comes_out_as_it_went_in() {
    // All that a server says of itself may come on the stream of a call.
    let said = FROM_SERVER.iter().filter(|frame| !is_response(frame)).chain(&BETWEEN);
    let said: Vec<_> = said.map(|frame| (*frame).to_owned()).collect();
    let [byte_by_byte, others @ ..] = STREAMS;
    for how in others {
        check(&Home::new(), &answering(how, false, said.clone()).url, &said);
    }
    let between = BETWEEN.map(str::to_owned).to_vec();
    check(&Home::new(), &answering(byte_by_byte, false, between.clone()).url, &between);
    check(&Home::new(), &answering(How::Body, false, Vec::new()).url, &[]);
}

#[test]
fn every_answer_that_comes_on_a_stream_comes_out_as_it_went_in_through_two_gateways() {
    let home = Home::new();
    let between = BETWEEN.map(str::to_owned).to_vec();
    let rig = answering(STREAMS[0], false, between.clone());
    let inner = Front::in_front_of(&home, &rig.url, &[]);
    check(&home, &format!("http://{}/mcp", inner.address), &between);
    assert_eq!(inner.metric("bytes_in_flight"), 0);
}
