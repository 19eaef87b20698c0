//! What a server at a URL does not acknowledge holds up nothing else for long.

use std::{
    io::Write as _,
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::{
    super::hostile::{peak, stands_still, ticks},
    JSON, in_front_of, opens_session,
};
use crate::support::{
    Gateway, Home, Rig,
    rig::{read, respond},
    wait_for, wait_within,
};

/// How long a call may take behind what is not acknowledged, in milliseconds: less than the half minute that the server has
/// for it.
const SOON: u64 = 15_000;

/// A server that acknowledges `held` once it may, and `slow` after a while. Calls say how many `slow` it has had.
fn rig(held: &'static str, may_go_on: &Arc<AtomicBool>) -> Rig {
    let (may_go_on, slow) = (Arc::clone(may_go_on), AtomicUsize::new(0));
    Rig::start(move |asked, stream| {
        let frame = asked.json();
        if frame["method"] == held {
            while !may_go_on.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            return respond(stream, 202, "", "");
        }
        if opens_session(asked, stream, "s") {
            return;
        }
        if frame["method"] == "notifications/slow" {
            std::thread::sleep(Duration::from_millis(400));
            slow.fetch_add(1, Ordering::SeqCst);
            return respond(stream, 202, "", "");
        }
        let result = json!({"content": [], "slow": slow.load(Ordering::SeqCst)});
        respond(
            stream,
            200,
            JSON,
            &json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string(),
        );
    })
}

fn notify(gateway: &mut Gateway, method: &str) {
    gateway.send(&json!({"jsonrpc": "2.0", "method": method}));
}

/// Calls, and says how many slow notifications were there before.
#[track_caller]
fn call(gateway: &mut Gateway, id: u64) -> u64 {
    let begun = SystemClock.boot_millis();
    gateway.call(&json!(id), "echo", &json!({}));
    let answer = gateway.receive();
    let took = SystemClock.boot_millis() - begun;
    assert!(answer["id"] == id && took < SOON, "{answer} after {took} ms");
    answer["result"]["slow"].as_u64().unwrap()
}

/// What the server got, by method, in order.
fn methods(rig: &Rig) -> Vec<Value> {
    rig.seen().iter().map(|asked| asked.json()["method"].clone()).filter(Value::is_string).collect()
}

#[test]
fn a_notification_that_is_not_acknowledged_holds_up_no_later_call_for_long() {
    let may_go_on = Arc::new(AtomicBool::new(false));
    let rig = rig("notifications/held", &may_go_on);
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    notify(&mut gateway, "notifications/held");
    call(&mut gateway, 1);
    let first = ["initialize", "notifications/initialized", "notifications/held", "tools/call"];
    assert_eq!(methods(&rig), first);
    // Also where there are more of them than are on their way at once.
    for _ in 0..39 {
        notify(&mut gateway, "notifications/held");
    }
    call(&mut gateway, 2);
    let held = || methods(&rig).iter().filter(|method| *method == "notifications/held").count();
    wait_for("as many as may be", || (held() == 16).then_some(()));
    // Once the server goes on, what follows waits for what is before it again.
    may_go_on.store(true, Ordering::SeqCst);
    wait_for("all of them", || (held() == 40).then_some(()));
    let (mut sent, mut id) = (0, 2);
    wait_for("the old order", || {
        notify(&mut gateway, "notifications/slow");
        (sent, id) = (sent + 1, id + 1);
        (call(&mut gateway, id) == sent).then_some(())
    });
}

#[test]
fn an_opening_that_is_not_acknowledged_holds_up_no_later_call_for_long_and_comes_before_it() {
    let may_go_on = Arc::new(AtomicBool::new(false));
    let rig = rig("notifications/initialized", &may_go_on);
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    call(&mut gateway, 1);
    assert_eq!(methods(&rig), ["initialize", "notifications/initialized", "tools/call"]);
    assert!(!rig.seen().iter().any(|asked| asked.method == "GET"), "it is not open yet");
    // The server's own stream is opened once it is, and what is sent meanwhile goes on.
    may_go_on.store(true, Ordering::SeqCst);
    wait_for("the stream", || rig.seen().iter().any(|asked| asked.method == "GET").then_some(()));
    call(&mut gateway, 2);
}

#[test]
fn s37_a_flood_that_is_not_acknowledged_is_held_within_bounds_and_is_all_there() {
    /// Together far more than may wait, and each alone as much.
    const FLOOD: usize = 8;
    const LENGTH: usize = 17 << 20;
    const LONG: Duration = Duration::from_secs(60);
    let may_go_on = Arc::new(AtomicBool::new(false));
    let rig = rig("notifications/held", &may_go_on);
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    let mut stdin = gateway.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let text = "x".repeat(LENGTH);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/held", "params": {"text": text}});
        let line = format!("{note}\n");
        (0..FLOOD).for_each(|_| stdin.write_all(line.as_bytes()).unwrap());
        stdin
    });
    let held = || rig.seen().iter().filter(|asked| asked.body.len() > LENGTH).count();
    let is_still = || {
        let before = ticks(gateway.child.id());
        std::thread::sleep(Duration::from_millis(1500));
        (held() > 0 && ticks(gateway.child.id()) == before).then_some(())
    };
    wait_within("everything to stand still", LONG, is_still);
    assert!(!writer.is_finished(), "it takes no more than may wait");
    let most = peak(gateway.child.id());
    assert!(most < 130_000, "{most} kB");
    may_go_on.store(true, Ordering::SeqCst);
    wait_within("all of them", LONG, || (held() == FLOOD).then_some(()));
    drop(writer.join().unwrap());
}

/// A server that reads nothing of what comes on its first connection, and answers whatever comes on the others; whether
/// the first has come, and what was asked on the others.
fn reads_all_but_the_first() -> (String, Arc<AtomicBool>, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (has_come, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let (comes, list) = (Arc::clone(&has_come), Arc::clone(&seen));
    std::thread::spawn(move || {
        let mut unread = None;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if unread.is_none() {
                unread = Some(stream);
                comes.store(true, Ordering::SeqCst);
                continue;
            }
            let frame = read(&stream).unwrap().json();
            list.lock().unwrap().push(frame.clone());
            let answer = json!({"jsonrpc": "2.0", "id": frame["id"], "result": {}});
            respond(&mut stream, 200, JSON, &answer.to_string());
        }
    });
    (url, has_come, seen)
}

#[test]
fn s37_requests_that_are_not_read_count_and_what_is_short_passes_them() {
    /// Together far more than may wait, and each alone as much.
    const CALLS: u64 = 8;
    const LENGTH: usize = 17 << 20;
    let (url, has_come, seen) = reads_all_but_the_first();
    let home = Home::new();
    let mut gateway = in_front_of(&home, &url);
    gateway.call(&json!(1), "echo", &json!({"text": "x".repeat(LENGTH)}));
    wait_for("the first connection", || has_come.load(Ordering::SeqCst).then_some(()));
    // A short one goes on all the same.
    gateway.call(&json!(2), "echo", &json!({}));
    assert_eq!(gateway.receive()["id"], 2);
    let mut stdin = gateway.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 0..CALLS {
            let params = json!({"name": "echo", "arguments": {"text": "x".repeat(LENGTH)}});
            let call = json!({"jsonrpc": "2.0", "id": 10 + id, "method": "tools/call", "params": params});
            stdin.write_all(format!("{call}\n").as_bytes()).unwrap();
        }
        stdin
    });
    stands_still(gateway.child.id(), || true);
    assert!(!writer.is_finished(), "it takes no more than may wait");
    assert_eq!(seen.lock().unwrap().len(), 1, "and what is long waits");
    let most = peak(gateway.child.id());
    assert!(most < 150_000, "{most} kB");
}
