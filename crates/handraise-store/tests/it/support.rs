//! A store in a throw-away directory, and rows to put into it.

use std::{sync::Arc, sync::OnceLock};

use handraise_api::{
    ask::{Answer, AskContent, Choice, Constraints, Question},
    frame::AnnouncedAsk,
    words::{HolderKind, Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, Who, WireAction},
};
use handraise_core::Moment;
use handraise_store::{Announced, Announcement, Bounds, Ending, Hello, NewSubmission, Now, Store};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

pub(crate) struct Rig {
    pub(crate) store: Store,
    pub(crate) dir: Arc<TempDir>,
    pub(crate) run: u64,
}

pub(crate) async fn rig() -> Rig {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let (store, run) = Store::open(dir.path(), "boot", at(0)).await.unwrap();
    Rig { store, dir, run }
}

/// A test's clock: `seconds` after some start.
pub(crate) fn at(seconds: i64) -> Now {
    let start = Timestamp::constant(1_767_225_600, 0);
    Now {
        wall: start + SignedDuration::from_secs(seconds),
        boot: Moment::from_millis(u64::try_from(3_600_000 + seconds * 1000).unwrap()),
    }
}

pub(crate) fn content(session: Option<&str>, source: Source, message: &str) -> AskContent {
    AskContent {
        who: Who::Operator,
        source,
        mode: Mode::Form,
        session_id: session.map(Into::into),
        tool_call_id: None,
        message: message.into(),
        url: None,
        confirm: None,
        on_deadline: Some(OnDeadline::Decline),
        allows_text_with_selection: true,
        allows_partial: true,
        questions: vec![Question {
            id: "question_0".into(),
            kind: Kind::Single,
            title: None,
            prompt: message.into(),
            required: false,
            default: None,
            allows_text: false,
            companion: None,
            secret: false,
            choices: vec![Choice {
                value: "Red".into(),
                label: "Red".into(),
                description: None,
                preview: None,
            }],
            constraints: Constraints::default(),
        }],
    }
}

pub(crate) fn ask(id: &str, deadline_ms: Option<u64>) -> AnnouncedAsk {
    AnnouncedAsk {
        id: id.into(),
        deadline_ms,
        parked_ms: None,
        client: None,
        server: None,
        content: content(None, Source::Elicitation, "Pick a colour"),
    }
}

pub(crate) async fn announce(store: &Store, now: Now, instance: &str, ask: &AnnouncedAsk) -> Announced {
    let content = serde_json::to_string(&ask.content).unwrap();
    let new = Announcement {
        instance,
        kind: HolderKind::Agent,
        holder_token: "laptop",
        holder_owner: None,
        ask,
        content: &content,
    };
    store.announce(now, &new, &Bounds::NONE).await.unwrap()
}

pub(crate) async fn instance(store: &Store, id: &str) {
    let hello = Hello { token: "token", kind: HolderKind::Agent, version: "0", host: "host" };
    assert!(store.add_instance(id, "hash", hello, &Bounds::NONE).await.unwrap());
}

pub(crate) fn submission(id: &str, ask: &str) -> NewSubmission {
    NewSubmission {
        id: id.into(),
        ask: ask.into(),
        token: "page".into(),
        by: "Ada".into(),
        provenance: Provenance::Human,
        answers: vec![Answer {
            question_id: "question_0".into(),
            selected_options: vec!["Red".into()],
            custom_text: String::new(),
        }],
        rejected: false,
        reject_reason: String::new(),
        fingerprint: "print".into(),
    }
}

pub(crate) fn ending(now: Now, outcome: Outcome, submission: Option<&str>) -> Ending {
    Ending {
        outcome,
        provenance: Provenance::System,
        rail: Rail::Inbox,
        wire: Some(WireAction::Decline),
        by: None,
        at: now.wall,
        reason: None,
        submission_id: submission.map(Into::into),
    }
}

/// One runtime for the cases of a property: making one each would take longer than the cases.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap())
        .block_on(future)
}
