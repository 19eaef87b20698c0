//! Asks, answers and settlements to say something with.

use handraise_api::{
    ask::{Answer, AskContent, Choice, Constraints, Question},
    frame::{AnnouncedAsk, AskSettled, HolderSettlement},
    words::{Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, Who, WireAction},
};
use serde_json::{Value, json};

pub(crate) fn ask(id: &str) -> AnnouncedAsk {
    AnnouncedAsk {
        id: id.into(),
        deadline_ms: Some(600_000),
        parked_ms: None,
        client: None,
        server: None,
        content: AskContent {
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
            questions: vec![question("question_0")],
        },
    }
}

pub(crate) fn permission(id: &str) -> AnnouncedAsk {
    let mut ask = ask(id);
    ask.content.source = Source::Permission;
    ask.content.questions = vec![question("permission")];
    ask
}

pub(crate) fn question(id: &str) -> Question {
    Question {
        id: id.into(),
        kind: Kind::Single,
        title: None,
        prompt: "Which database?".into(),
        required: false,
        default: None,
        allows_text: true,
        companion: None,
        secret: false,
        choices: ["Postgres", "SQLite"]
            .map(|value| Choice {
                value: value.into(),
                label: value.into(),
                description: None,
                preview: None,
            })
            .into(),
        constraints: Constraints::default(),
    }
}

pub(crate) fn answer(option: &str) -> Value {
    json!({"answers": [Answer {
        question_id: "question_0".into(),
        selected_options: vec![option.into()],
        custom_text: String::new(),
    }]})
}

pub(crate) fn settled(id: &str, outcome: Outcome, submission: Option<&str>) -> AskSettled {
    AskSettled {
        pending_id: id.into(),
        settlement: HolderSettlement {
            outcome,
            provenance: Provenance::System,
            rail: Rail::Inbox,
            wire: Some(match outcome {
                Outcome::Accept => WireAction::Accept,
                Outcome::Cancel => WireAction::Cancel,
                _ => WireAction::Decline,
            }),
            reason: None,
            ago_ms: 0,
        },
        submission_id: submission.map(Into::into),
    }
}
