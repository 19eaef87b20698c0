//! What a holder knows of who could answer, beside a real inbox and its real surfaces (mcp.md, section 7).

use std::{sync::Arc, time::Duration};

use handraise_api::words::{HolderKind, Who};
use handraise_holder::{Holder, HolderSettings, Timing, Token};
use handraise_transport::clock::ManualClock;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{Events, Home, Up, call, wait_for};

/// A holder on the socket of an inbox, with a clock of its own.
pub(crate) fn holder(home: &Home, runtime: &Runtime, clock: &ManualClock) -> Holder {
    let file = std::fs::read_to_string(home.data_dir().join("inbox.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let timing = Timing { backoff_max: Duration::from_millis(200), ..Timing::default() };
    let settings = HolderSettings {
        inbox: file["socket"].as_str().map(|path| format!("unix:{path}").parse().unwrap()).unwrap(),
        token: Token::new(file["holder_token"].as_str().unwrap()),
        kind: HolderKind::Gateway,
        who: Who::Operator,
        version: "0.0.0".into(),
        host: "test".into(),
        clock: Arc::new(clock.clone()),
        timing,
    };
    runtime.block_on(Holder::connect(settings)).unwrap()
}

#[track_caller]
fn wait_until(holder: &Holder, ago: Option<u64>) {
    let ago = ago.map(Duration::from_secs);
    wait_for(&format!("{ago:?}"), || (holder.operator_last_there() == ago).then_some(()));
}

#[test]
fn a_holder_knows_how_long_ago_somebody_could_have_answered() {
    let home = Home::new();
    let up = Up::start(&home);
    let runtime = Runtime::new().unwrap();
    let clock = ManualClock::new();
    let holder = holder(&home, &runtime, &clock);
    assert_eq!(holder.operator_last_there(), None);

    // A page, signed in by the link.
    let signed_in =
        call(&up.url, "POST", "/api/v1/login", None, Some(&json!({"secret": up.secret, "name": "Ada"})));
    let page = signed_in.body["token"].as_str().unwrap().to_owned();
    let stream = Events::open(&up.url, &page);
    wait_until(&holder, Some(0));
    clock.advance(Duration::from_secs(60));
    wait_until(&holder, Some(0));
    drop(stream);
    wait_for("its end", || (up.metric("handraise_event_streams") == 0).then_some(()));
    // Asked by another thread, which waits for nobody.
    let other = holder.clone();
    std::thread::spawn(move || {
        wait_for("its end to be told", || {
            clock.advance(Duration::from_millis(1));
            other.operator_last_there().filter(|ago| !ago.is_zero())
        });
        clock.advance(Duration::from_secs(100));
        let ago = other.operator_last_there().unwrap();
        assert!((100..110).contains(&ago.as_secs()), "{ago:?}");
    })
    .join()
    .unwrap();

    // A terminal.
    let mut watch = home.handraise(&["inbox", "watch"]).spawn().unwrap();
    wait_until(&holder, Some(0));

    // While the inbox is away nobody could answer; then it is remembered that somebody was there.
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(holder.times_cut_off(), 0);
    up.stop();
    wait_until(&holder, None);
    assert_eq!(holder.times_cut_off(), 1);
    let _up = Up::start(&home);
    wait_for("the inbox again", || holder.operator_last_there().is_some().then_some(()));
    runtime.block_on(holder.shutdown());
}
