//! Asks for tests.

use handraise_api::{
    Timestamp,
    ask::{Ask, AskContent, Choice, Confirm, Constraints, Implementation, Origin, Question, Settlement},
    words::{
        AskState, Companion, HolderKind, Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, Who,
        WireAction,
    },
};

pub(super) fn now() -> Timestamp {
    "2026-11-29T14:00:00Z".parse().unwrap()
}

pub(super) fn choice(value: &str) -> Choice {
    Choice { value: value.into(), label: value.into(), description: None, preview: None }
}

pub(super) fn question(id: &str, kind: Kind, choices: &[&str]) -> Question {
    Question {
        id: id.into(),
        kind,
        title: None,
        prompt: format!("What about {id}?"),
        required: false,
        default: None,
        allows_text: false,
        companion: None,
        secret: false,
        choices: choices.iter().map(|value| choice(value)).collect(),
        constraints: Constraints::default(),
    }
}

/// A form of an agent with one question of each kind.
pub(super) fn ask() -> Ask {
    let db = Question {
        title: Some("Datastore".into()),
        prompt: "Which database?".into(),
        allows_text: true,
        companion: Some(Companion::Replaces),
        choices: vec![
            Choice { description: Some("The usual one".into()), ..choice("Postgres") },
            Choice { label: "A file".into(), preview: Some("one\nfile".into()), ..choice("SQLite") },
        ],
        ..question("db", Kind::Single, &[])
    };
    let content = AskContent {
        who: Who::Operator,
        source: Source::Elicitation,
        mode: Mode::Form,
        session_id: None,
        tool_call_id: None,
        message: "Which database?".into(),
        url: None,
        confirm: None,
        on_deadline: Some(OnDeadline::Decline),
        allows_text_with_selection: true,
        allows_partial: true,
        questions: vec![
            db,
            question("envs", Kind::Multi, &["dev", "staging", "prod"]),
            question("public", Kind::Boolean, &[]),
            question("port", Kind::Integer, &[]),
            Question { secret: true, ..question("apiKey", Kind::Text, &[]) },
        ],
    };
    with_content(content)
}

/// A question with two choices.
pub(super) fn single(source: Source) -> Ask {
    let mut ask = ask();
    ask.content.source = source;
    ask.content.questions = vec![question("answer", Kind::Single, &["yes", "no"])];
    (ask.content.allows_partial, ask.content.allows_text_with_selection) = (false, false);
    with_content(ask.content)
}

/// A guarded call.
pub(super) fn confirm() -> Ask {
    let mut ask = single(Source::Confirm);
    ask.content.message = "Send e-mail to 214 people".into();
    ask.content.on_deadline = Some(OnDeadline::Refuse);
    ask.content.confirm = Some(Confirm {
        tool: "mail_send".into(),
        account: Some("sales@example.com".into()),
        target: Some("customers-eu".into()),
        action: Some("Send e-mail".into()),
        arguments: "\"draftId\":\"r-5521\"\n\"subject\":\"Price change\"".into(),
        preview: Some("214 recipients".into()),
    });
    ask.content.questions = vec![Question { required: true, ..question("confirm", Kind::Boolean, &[]) }];
    let mut ask = with_content(ask.content);
    ask.origin.holder = HolderKind::Gateway;
    ask.origin.client = Some(Implementation { name: "some client".into(), version: Some("2.1".into()) });
    ask.origin.server = Some("mail".into());
    ask
}

fn with_content(content: AskContent) -> Ask {
    Ask {
        id: "01927c4a-7a3e-7b61-8a1e-3f7a2b3c4d5e".into(),
        digest: content.digest(),
        state: AskState::Open,
        content,
        origin: Origin {
            holder: HolderKind::Agent,
            holder_token: "laptop".into(),
            owner: None,
            client: Some(Implementation { name: "codex-acp".into(), version: None }),
            server: None,
        },
        opened_at: now(),
        deadline: Some("2026-11-29T14:09:00Z".parse().unwrap()),
        parked_until: None,
        holder_connected: true,
        settlement: None,
        replayed: false,
    }
}

/// The same, answered by Ada.
pub(super) fn settled(ask: Ask) -> Ask {
    let settlement = Settlement {
        outcome: Outcome::Accept,
        provenance: Provenance::Human,
        rail: Rail::Inbox,
        wire: Some(WireAction::Accept),
        by: Some("Ada".into()),
        at: now(),
        reason: None,
        answers: Vec::new(),
        submission_id: None,
    };
    Ask { state: AskState::Settled, settlement: Some(settlement), ..ask }
}
