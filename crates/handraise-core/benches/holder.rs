//! What one ask costs its holder while many others are open.

use std::{sync::Arc, time::Duration};

use divan::{Bencher, black_box};
use handraise_core::{
    Answer, AskId, Choice, Constraints, Kind, Moment, Question, Source, Submission, SubmissionId,
    form::{AnswerRules, Form},
    holder::{Courier, Delivery, Engine, Limits, NewAsk, Route},
};

fn main() {
    divan::main();
}

struct Taken;

impl Courier for Taken {
    fn deliver(&mut self, _: &AskId, delivery: Option<Delivery>) -> bool {
        black_box(delivery);
        true
    }
}

fn id(n: u64) -> Option<AskId> {
    AskId::new(format!("0192c9a4-7a3e-7b61-8a1e-{n:012}")).ok()
}

fn form() -> Option<Form> {
    let choice =
        |value: &str| Choice { value: value.into(), label: value.into(), description: None, preview: None };
    let question = Question {
        id: "question_0".into(),
        kind: Kind::Single,
        title: None,
        prompt: "Which database?".into(),
        required: false,
        default: None,
        allows_text: false,
        companion: None,
        secret: false,
        choices: vec![choice("Postgres"), choice("SQLite")],
        constraints: Constraints::default(),
    };
    Form::from_questions(vec![question]).ok()
}

fn ask(n: u64, form: &Form) -> Option<NewAsk> {
    Some(NewAsk {
        id: id(n)?,
        source: Source::Elicitation,
        session: Some(format!("session-{}", n % 100)),
        announcement: Arc::from("x".repeat(1_000)),
        form: form.clone(),
        rules: AnswerRules::for_source(Source::Elicitation),
        single_use: Vec::new(),
        timeout: Some(Duration::from_secs(3_300 + n % 1_000)),
    })
}

/// Opens, answers and settles one ask beside `open` others.
#[divan::bench(args = [100, 10_000, 100_000])]
fn open_and_answer(bencher: Bencher<'_, '_>, open: u64) {
    let limits = Limits {
        open_asks: u32::MAX,
        open_bytes: u64::MAX,
        session_open_asks: u32::MAX,
        session_parked_asks: u32::MAX,
        asks_per_second: u32::MAX,
    };
    let Some(form) = form() else { return };
    let mut engine = Engine::new(limits, 1 << 20);
    for n in 0..open {
        let opened = ask(n, &form).map(|ask| engine.open(Moment::default(), ask, &mut Taken));
        assert_eq!(opened, Some(Ok(())));
    }
    let mut n = open;
    bencher.bench_local(|| {
        n += 1;
        // The clock moves, so that the ledger forgets as it would.
        let now = Moment::from_millis((n - open) / 10);
        let (Some(ask), Some(id), Ok(submission)) = (ask(n, &form), id(n), SubmissionId::new("submission"))
        else {
            return;
        };
        let picked = Answer {
            question_id: "question_0".into(),
            selected_options: vec!["SQLite".into()],
            custom_text: String::new(),
        };
        let submission = Submission {
            id: submission,
            answers: vec![picked],
            rejected: false,
            reject_reason: String::new(),
        };
        black_box(engine.open(now, ask, &mut Taken)).ok();
        black_box(engine.submit(now, &id, &submission, Route::Elicitation, &mut Taken));
        black_box(engine.next_deadline());
    });
}
