//! Connections: proof and token, greeting, limits, garbage, dead peers, going down.

use std::time::Duration;

use handraise_api::{
    error::ErrorCode,
    frame::{AskOpened, AskSettled, AsksDeclined, Limits, Presence, action},
    words::Outcome,
};
use handraise_holder::{
    ConnectError, Delivery, EndCause, Holder, InboxAddress, NewAsk, Refused, Timing, Token,
};

use crate::inbox::{Asker, Connection, Inbox, Listen, TOKEN, colour, pick, soon, timing, wide_limits};

#[tokio::test]
async fn s43_over_tcp_the_inbox_proves_itself_before_it_gets_the_token() {
    let mut inbox = Inbox::start(Listen::Tcp).await;
    let (holder, _stream) = inbox.holder().await;
    assert_eq!((inbox.proofs(), inbox.tokens_seen().len()), (1, 1));
    assert!(holder.flags().acp_elicitation);
}

#[tokio::test]
async fn s43_a_false_inbox_on_the_port_gets_no_token() {
    let inbox = Inbox::start_proving(Listen::Tcp, "another token").await;
    let error = Holder::connect(inbox.settings()).await.unwrap_err();
    assert!(matches!(error, ConnectError::NotProven { .. }), "{error}");
    assert_eq!((inbox.proofs(), inbox.tokens_seen()), (1, vec![]));
    assert!(!error.to_string().contains(TOKEN));
}

#[tokio::test]
async fn s43_redirects_are_not_followed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut inbox = Inbox::start(Listen::Tcp).await;
    let mut settings = inbox.settings();
    let target = settings.inbox.to_string();
    settings.inbox = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let elsewhere =
        axum::Router::new().fallback(move || {
            let target = target.clone();
            async move {
                axum::response::Redirect::temporary(&format!("{target}/api/v1/holder/proof?key=0&nonce=0"))
            }
        });
    let server = tokio::spawn(async move { axum::serve(listener, elsewhere).await });
    let error = Holder::connect(settings).await.unwrap_err();
    assert!(matches!(error, ConnectError::NotProven { .. }), "{error}");
    assert_eq!((inbox.proofs(), inbox.tokens_seen()), (0, vec![]));
    server.abort();
    drop(inbox.holder().await);
}

#[tokio::test]
async fn a_token_that_the_inbox_does_not_take_is_explained_and_not_shown() {
    let inbox = Inbox::start(Listen::Socket).await;
    let mut settings = inbox.settings();
    settings.token = Token::new("not-the-token");
    assert!(!format!("{settings:?}").contains("not-the-token"));
    let error = Holder::connect(settings).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unauthorized { status: 401, .. }), "{error}");
    assert!(
        error.to_string().contains("handraise token create") && !error.to_string().contains("not-the-token")
    );
}

#[tokio::test]
async fn nobody_listening_says_what_to_do() {
    let inbox = Inbox::start(Listen::Socket).await;
    let mut settings = inbox.settings();
    settings.inbox = InboxAddress::Socket("/nonexistent/inbox.sock".into());
    let error = Holder::connect(settings).await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/inbox.sock") && error.contains("handraise up"), "{error}");
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inbox = Inbox::start(Listen::Socket).await;
    let mut settings = inbox.settings();
    settings.inbox = format!("ws://{}", listener.local_addr().unwrap()).parse().unwrap();
    settings.timing.handshake = Duration::from_millis(100);
    let error = soon(Holder::connect(settings)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Silent { .. }), "{error}");
}

#[tokio::test]
async fn s9_a_reconnect_shows_the_resume_secret_and_announces_the_same_ids() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let connecting = tokio::spawn(Holder::connect(inbox.settings()));
    let mut stream = inbox.next().await;
    let hello = stream.welcome(1).await;
    assert!(hello["instance"].is_null() && hello["resume_secret"].is_null(), "{hello}");
    let holder = soon(connecting).await.unwrap().unwrap();
    stream.snapshot().await;
    let id = holder.open(colour(), |_| true).unwrap();
    let first: AskOpened = stream.expect(action::ASK_OPENED).await;
    inbox.clock.advance(Duration::from_secs(60));
    stream.cut();

    let mut stream = inbox.next().await;
    let hello = stream.welcome(2).await;
    assert_eq!(
        (hello["instance"].as_str(), hello["resume_secret"].as_str()),
        (Some("instance-1"), Some("secret-1"))
    );
    let again = stream.snapshot().await.asks.remove(0);
    assert_eq!(again.id, id.to_string());
    assert_eq!(again.content, first.ask.content, "an open ask is immutable");
    assert_eq!(again.deadline_ms, Some(3_240_000), "a minute has passed");
    assert_eq!(holder.open_asks(), 1);
}

#[tokio::test]
async fn who_could_answer_is_known_while_the_stream_is_up_and_remembered_beyond_it() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let connecting = tokio::spawn(Holder::connect(inbox.settings()));
    let mut stream = inbox.next().await;
    stream.operators = Some(Presence { live: false, ago_ms: Some(30_000) });
    stream.welcome(1).await;
    let holder = soon(connecting).await.unwrap().unwrap();
    stream.snapshot().await;
    assert_eq!(holder.operator_last_there(), Some(Duration::from_secs(30)));
    inbox.clock.advance(Duration::from_secs(10));
    assert_eq!(holder.operator_last_there(), Some(Duration::from_secs(40)));

    // What cannot be read changes nothing; a field of a later version neither.
    for payload in ["null", r#"{"live":"no"}"#, r#"{"live":true,"surfaces":3}"#] {
        let text = format!(r#"{{"type":"event","action":"operators.presence","payload":{payload}}}"#);
        stream.send_text(text).await;
    }
    let holds = async |ago: Option<Duration>| {
        soon(async {
            while holder.operator_last_there() != ago {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    };
    holds(Some(Duration::ZERO)).await;
    assert!(holder.elicitation());
    let off =
        r#"{"acp_elicitation":true,"elicitation":false,"adaptive_profiles":false,"of_a_later_version":1}"#;
    for payload in ["null", off, "{}"] {
        let text = format!(r#"{{"type":"event","action":"flags.changed","payload":{payload}}}"#);
        stream.send_text(text).await;
    }
    soon(async {
        while holder.elicitation() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(!holder.flags().elicitation);
    inbox.clock.advance(Duration::from_secs(600));
    assert_eq!(holder.operator_last_there(), Some(Duration::ZERO));

    stream.cut();
    holds(None).await;
    assert!(!holder.elicitation(), "the last word stands");
    inbox.clock.advance(Duration::from_secs(5));
    let mut stream = inbox.next().await;
    stream.operators = Some(Presence { live: false, ago_ms: None });
    stream.welcome(2).await;
    holds(Some(Duration::from_secs(5))).await;
    assert!(holder.elicitation());

    // An inbox of an earlier version says nothing of it.
    stream.cut();
    let mut stream = inbox.next().await;
    stream.welcome(3).await;
    stream.snapshot().await;
    assert_eq!(holder.operator_last_there(), None);
    let detached = Holder::detached();
    assert_eq!((detached.operator_last_there(), detached.elicitation()), (None, true));
}

#[tokio::test]
async fn ac20a_an_ask_outlives_the_stream_until_its_deadline() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    stream.cut();
    let mut dialling = inbox.next().await;
    inbox.clock.advance(Duration::from_secs(3300));
    dialling.welcome(2).await;
    let snapshot = dialling.snapshot().await;
    assert_eq!((snapshot.asks.len(), snapshot.settlements.len()), (0, 1));
    assert_eq!(snapshot.settlements[0].pending_id, id.to_string());
    assert_eq!(snapshot.settlements[0].settlement.outcome, Outcome::Timeout);
    assert_eq!(asker.got(), [Delivery::Decline]);
}

#[tokio::test]
async fn s37_the_limits_of_the_welcome_are_applied() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let limits = Limits { session_open_asks: 2, ..wide_limits() };
    let (holder, mut stream) = inbox.holder_with(inbox.settings(), limits).await;
    let asker = Asker::default();
    for _ in 0..2 {
        holder.open(colour(), asker.takes()).unwrap();
        let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    }
    assert_eq!(holder.open(colour(), asker.takes()), Err(Refused::SessionOpenAsks));
    assert_eq!(holder.refusals().into_iter().collect::<Vec<_>>(), [(Refused::SessionOpenAsks, 1)]);
    stream.cut();
    let mut stream = inbox.next().await;
    stream.welcome_with(2, Limits { session_open_asks: 3, ..limits }).await;
    assert_eq!(stream.snapshot().await.asks.len(), 2);
    holder.open(colour(), asker.takes()).expect("the new welcome allows three");
    assert_eq!(asker.got(), []);
}

#[tokio::test]
async fn s37_a_flood_of_asks_is_refused_beyond_the_rate() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let limits = Limits { asks_per_second: 10, ..wide_limits() };
    let (holder, _stream) = inbox.holder_with(inbox.settings(), limits).await;
    let opened = (0..1000).filter(|_| holder.open(colour(), |_| true).is_ok()).count();
    assert_eq!((opened, holder.refusals()[&Refused::Rate]), (10, 990));
    inbox.clock.advance(Duration::from_secs(1));
    assert!(holder.open(colour(), |_| true).is_ok());
}

#[tokio::test]
async fn an_ask_that_fits_no_frame_is_refused_and_large_ones_go_in_parts() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let large = |bytes: usize| NewAsk { message: "x".repeat(bytes), ..colour() };
    assert_eq!(holder.open(large(9 << 20), |_| true), Err(Refused::TooLarge));
    let told: AsksDeclined = stream.expect(action::ASKS_DECLINED).await;
    assert_eq!(told.counts.into_iter().collect::<Vec<_>>(), [("too_large".into(), 1)]);
    for _ in 0..5 {
        holder.open(large(3 << 20), |_| true).unwrap();
        let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    }
    stream.cut();
    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let snapshot = stream.snapshot().await;
    assert_eq!((snapshot.asks.len(), snapshot.seq), (5, 2), "two asks of 3 MiB fit a frame of 8 MiB");
}

#[tokio::test]
async fn an_unknown_action_is_said_to_be_unknown_and_unreadable_payloads_are_refused() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let id = holder.open(colour(), |_| true).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let unknown = stream.ask("agent.elicitations.guess", &serde_json::json!({})).await;
    assert_eq!(unknown.code, Some(ErrorCode::UnknownAction));
    let unreadable =
        stream.ask(action::RESPOND, &serde_json::json!({"pending_id": 7, "answers": "hunter2"})).await;
    assert_eq!(unreadable.code, Some(ErrorCode::BadRequest));
    assert!(!unreadable.message.contains("hunter2"), "{}", unreadable.message);
    let bad_id = stream.ask(action::RESPOND, &pick("no id at all", "s", "Red")).await;
    assert_eq!(bad_id.code, Some(ErrorCode::BadRequest));
    stream.send_text(r#"{"type":"event","action":"inbox.news","payload":{"x":1},"extra":[]}"#).await;
    stream
        .send_text(r#"{"id":"99999","type":"response","action":"ask.opened","payload":{"success":true}}"#)
        .await;
    assert!(
        stream.ask(action::RESPOND, &pick(id.as_str(), "s", "Red")).await.is_success(),
        "all that was harmless"
    );
}

#[tokio::test]
async fn garbage_ends_the_connection_and_the_asks_live_on() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    holder.open(colour(), |_| true).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let garbage = [
        String::new(),
        "nonsense".into(),
        "[]".into(),
        r#"{"type":"gossip","action":"x"}"#.into(),
        r#"{"id":"1","id":"2","type":"request","action":"x"}"#.into(),
        "{".repeat(100_000),
        // Beyond the 8 MiB of a frame.
        format!(r#"{{"type":"event","action":"x","payload":"{}"}}"#, "x".repeat(9 << 20)),
    ];
    for (n, text) in garbage.into_iter().enumerate() {
        stream.blurt(text).await;
        stream.is_over().await;
        stream = inbox.next().await;
        stream.welcome(n as u64 + 2).await;
        assert_eq!(stream.snapshot().await.asks.len(), 1, "after garbage {n}");
    }
}

#[tokio::test]
async fn a_half_open_connection_is_noticed() {
    let mut inbox = Inbox::start(Listen::Tcp).await;
    let mut settings = inbox.settings();
    settings.timing = Timing { dead_after: Duration::from_millis(1500), ..timing() };
    let (holder, mut stream) = inbox.holder_with(settings, wide_limits()).await;
    holder.open(colour(), |_| true).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    // Nobody reads or writes on it any more, but it stays open: pings find no answer.
    let _half_open: Connection = stream;
    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    assert_eq!(stream.snapshot().await.asks.len(), 1);
}

#[tokio::test]
async fn an_inbox_that_never_acknowledges_is_dropped() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let mut settings = inbox.settings();
    settings.timing = Timing { dead_after: Duration::from_millis(1500), ..timing() };
    let (holder, mut stream) = inbox.holder_with(settings, wide_limits()).await;
    holder.open(colour(), |_| true).unwrap();
    let (_, _): (_, AskOpened) = stream.expect_unacknowledged(action::ASK_OPENED).await;
    // It reads, and so answers pings, but says nothing.
    stream.is_over().await;
    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    assert_eq!(stream.snapshot().await.asks.len(), 1);
}

#[tokio::test]
async fn an_inbox_in_trouble_is_left_alone_for_a_moment_and_told_again() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    holder.open(colour(), asker.takes()).unwrap();
    let (frame, _): (_, AskOpened) = stream.expect_unacknowledged(action::ASK_OPENED).await;
    stream.refuse(&frame, "INTERNAL").await;
    stream.is_over().await;
    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    assert_eq!((stream.snapshot().await.asks.len(), asker.got()), (1, vec![]));
}

#[tokio::test]
async fn f7_a_holder_that_goes_down_cancels_its_asks_and_waits_for_the_acknowledgement() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let other = holder.clone();
    let going = tokio::spawn(holder.shutdown());
    let (frame, settled): (_, AskSettled) = stream.expect_unacknowledged(action::ASK_SETTLED).await;
    assert_eq!(settled.settlement.outcome, Outcome::Cancel);
    assert_eq!(settled.settlement.reason.as_deref(), Some("shutdown"));
    assert_eq!(asker.got(), [Delivery::Cancel]);
    assert!(!going.is_finished(), "it waits");
    assert_eq!(other.open(colour(), asker.takes()), Err(Refused::ShuttingDown));
    stream.acknowledge(&frame).await;
    soon(going).await.unwrap();
    stream.is_over().await;
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test measures how long the exit takes")]
async fn f7_a_holder_that_goes_down_waits_two_seconds_at_most() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    holder.open(colour(), |_| true).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let before = std::time::Instant::now();
    soon(holder.shutdown()).await;
    let took = before.elapsed();
    assert!(took >= Holder::SHUTDOWN_GRACE && took < Duration::from_secs(4), "{took:?}");
    stream.is_over().await;
}

#[tokio::test]
async fn a_dropped_holder_cancels_what_is_open() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    holder.open(colour(), asker.takes()).unwrap();
    drop(holder);
    assert_eq!(asker.got(), [Delivery::Cancel]);
    stream.is_over().await;
}

#[tokio::test]
async fn without_an_inbox_nobody_is_asked() {
    let holder = Holder::detached();
    let asker = Asker::default();
    assert_eq!(holder.open(colour(), asker.takes()), Err(Refused::NoInbox));
    assert!(!holder.flags().acp_elicitation);
    holder.end_session("session-1", EndCause::TurnCancelled);
    assert_eq!((asker.got(), holder.refusals()[&Refused::NoInbox]), (vec![], 1));
    soon(holder.shutdown()).await;
}
