//! Sessions: where they stand, what happened in them, and what the inbox wants of them.

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{SessionCancel, SessionMessage, SessionPrompt, SessionUpdated, action},
    session::{Author, MessageKind, SessionState},
};
use handraise_holder::{Command, Holder, NewMessage};
use serde_json::Map;

use crate::inbox::{Inbox, Listen, soon};

fn session(state: SessionState) -> SessionUpdated {
    SessionUpdated {
        session_id: "session-1".into(),
        agent: "fake".into(),
        title: None,
        cwd: None,
        state,
        stop_reason: None,
        background: false,
    }
}

fn message(text: &str) -> NewMessage {
    NewMessage {
        session_id: "session-1".into(),
        kind: MessageKind::AgentText,
        author: Author::Agent,
        text: text.into(),
        continues: false,
        requests_input: false,
        metadata: Map::new(),
    }
}

#[tokio::test]
async fn a_session_and_its_transcript_arrive_and_go_on_after_a_cut() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    holder.session_updated(session(SessionState::Running));
    let told: SessionUpdated = stream.expect(action::SESSION_UPDATED).await;
    assert_eq!(told.state, SessionState::Running);
    holder.session_message(message("one"));
    holder.session_message(message("two"));
    let one: SessionMessage = stream.expect(action::SESSION_MESSAGE).await;
    let (_, two): (_, SessionMessage) = stream.expect_unacknowledged(action::SESSION_MESSAGE).await;
    assert_eq!(
        [(one.message.seq, &*one.message.text), (two.message.seq, &*two.message.text)],
        [(1, "one"), (2, "two")]
    );
    // The acknowledgement of the first is known to have arrived once a later request was answered.
    let _ = stream.ask("no.such.action", &()).await;
    stream.cut();
    holder.session_message(message("three"));

    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let told: SessionUpdated = stream.expect(action::SESSION_UPDATED).await;
    assert_eq!(told.state, SessionState::Running, "the latest word is repeated");
    stream.snapshot().await;
    for (seq, text) in [(2, "two"), (3, "three")] {
        let entry: SessionMessage = stream.expect(action::SESSION_MESSAGE).await;
        assert_eq!((entry.message.seq, &*entry.message.text), (seq, text));
    }
}

#[tokio::test]
async fn prompts_and_cancels_reach_whoever_runs_the_sessions() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let prompt = SessionPrompt { session_id: "session-1".into(), text: "go on".into() };
    let nobody = stream.ask(action::SESSION_PROMPT, &prompt).await;
    assert_eq!(nobody.code, Some(ErrorCode::NotFound));

    let mut commands = holder.commands();
    let id = stream.request(action::SESSION_PROMPT, &prompt).await;
    let Some(Command::Prompt { session_id, text, reply }) = soon(commands.recv()).await else {
        panic!("a prompt")
    };
    assert_eq!((session_id.as_str(), text.as_str()), ("session-1", "go on"));
    reply.send(Ok(()));
    assert!(stream.response(&id).await.0.is_success());

    let cancel = SessionCancel { session_id: "session-2".into() };
    let id = stream.request(action::SESSION_CANCEL, &cancel).await;
    let Some(Command::Cancel { reply, .. }) = soon(commands.recv()).await else { panic!("a cancel") };
    reply.send(Err(ErrorBody::new(ErrorCode::NotFound, "no such session")));
    assert_eq!(stream.response(&id).await.0.code, Some(ErrorCode::NotFound));

    let id = stream.request(action::SESSION_PROMPT, &prompt).await;
    drop(soon(commands.recv()).await);
    assert_eq!(stream.response(&id).await.0.code, Some(ErrorCode::Internal), "nobody took it up");
}

#[tokio::test]
async fn s9_a_late_reply_never_answers_on_a_later_connection() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let mut commands = holder.commands();
    let prompt = SessionPrompt { session_id: "session-1".into(), text: "go on".into() };
    stream.request(action::SESSION_PROMPT, &prompt).await;
    let Some(Command::Prompt { reply, .. }) = soon(commands.recv()).await else { panic!("a prompt") };
    stream.cut();

    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    stream.snapshot().await;
    reply.send(Ok(()));
    // The next thing on the new connection is the answer to its own request.
    let unknown = stream.ask("no.such.action", &()).await;
    assert_eq!(unknown.code, Some(ErrorCode::UnknownAction));
}

#[tokio::test]
async fn commands_that_nobody_takes_up_are_bounded() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let _commands = holder.commands();
    let prompt = SessionPrompt { session_id: "session-1".into(), text: "go on".into() };
    for _ in 0..64 {
        stream.request(action::SESSION_PROMPT, &prompt).await;
    }
    let one_more = stream.ask(action::SESSION_PROMPT, &prompt).await;
    assert_eq!(one_more.code, Some(ErrorCode::LimitExceeded));
}

#[tokio::test]
async fn f7_going_down_does_not_wait_for_an_acknowledgement_that_an_event_never_gets() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let going = tokio::spawn(async move {
        holder.session_updated(session(SessionState::Ended));
        tokio::time::timeout(Holder::SHUTDOWN_GRACE / 2, holder.shutdown()).await
    });
    let told: SessionUpdated = stream.expect(action::SESSION_UPDATED).await;
    assert_eq!(told.state, SessionState::Ended);
    assert!(stream.frame().await.is_none(), "it closes");
    soon(going).await.unwrap().expect("it goes down as soon as everything is told");
}
