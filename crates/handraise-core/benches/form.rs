//! What a form costs, as a ratio to the floor: `serde_json` parsing the same text (quality.md).
//!
//! The table printed first comes from one interleaved run, so that a noisy machine disturbs both sides alike.
//! `cargo bench -p handraise-core` also prints divan's figures for each step.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench may stop, and prints what it measured"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use handraise_core::Answer;
use handraise_core::form::{AnswerRules, Content, Form, FormProfile, FormRequest, map};
use handraise_core::words::Source;
use serde_json::Value;

/// Two questions as the Claude bridge 0.65.0 asks them.
const TWO: &str = r#"{"type":"object","properties":{"question_0":{"type":"string","title":"Datastore","description":"Which database should the new service use?","oneOf":[{"const":"Postgres","title":"Postgres","description":"Relational, already operated by the team."},{"const":"SQLite","title":"SQLite","description":"Embedded; no ops burden.","_meta":{"_claude/askUserQuestionOption":{"preview":"file:./app.db"}}},{"const":"DynamoDB","title":"DynamoDB"}]},"question_0_custom":{"type":"string","title":"Other","description":"Type your own answer instead of choosing an option above (optional).","_meta":{"_askUserQuestionCustomAnswer":{"questionId":"question_0","isCustomAnswer":true}}},"question_1":{"type":"array","title":"Envs","description":"Which environments should it deploy to?","items":{"anyOf":[{"const":"dev","title":"dev"},{"const":"staging","title":"staging"},{"const":"prod","title":"prod"}]}},"question_1_custom":{"type":"string","title":"Other","description":"Type your own answer instead of choosing an option above (optional).","_meta":{"_askUserQuestionCustomAnswer":{"questionId":"question_1","isCustomAnswer":true}}}}}"#;

const RULES: AnswerRules = AnswerRules::for_source(Source::Elicitation);
const PROFILE: FormProfile = FormProfile::acp();

fn answers() -> [Answer; 2] {
    [
        Answer {
            question_id: "question_0".into(),
            selected_options: vec!["Postgres".into()],
            custom_text: " CockroachDB ".into(),
        },
        Answer {
            question_id: "question_1".into(),
            selected_options: vec!["prod".into(), "dev".into()],
            custom_text: String::new(),
        },
    ]
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn mapped(schema: &Value) -> Form {
    map(&FormRequest { message: "Please answer the following questions.", schema }, &PROFILE).unwrap().form
}

fn whole(schema: &Value, answers: &[Answer]) -> Content {
    mapped(schema).answer(answers, RULES).unwrap()
}

/// A schema of `questions` with `choices` each, every value distinct, and an answer that picks them all.
fn large(questions: usize, choices: usize) -> (String, Vec<Answer>) {
    let mut text = String::from(r#"{"properties":{"#);
    let mut answers = Vec::new();
    for question in 0..questions {
        let comma = if question == 0 { "" } else { "," };
        write!(text, r#"{comma}"q{question}":{{"type":"array","items":{{"enum":["#).unwrap();
        let values: Vec<String> = (0..choices).map(|choice| choice.to_string()).collect();
        for (at, value) in values.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(text, r#"{comma}"{value}""#).unwrap();
        }
        text.push_str("]}}");
        let selected_options = values.into_iter().rev().collect();
        answers.push(Answer {
            question_id: format!("q{question}"),
            selected_options,
            custom_text: String::new(),
        });
    }
    text.push_str("}}");
    (text, answers)
}

#[divan::bench(name = "floor: parse")]
fn bench_parse(bencher: divan::Bencher<'_, '_>) {
    bencher.bench(|| parse(black_box(TWO)));
}

#[divan::bench(name = "map")]
fn bench_map(bencher: divan::Bencher<'_, '_>) {
    let schema = parse(TWO);
    bencher.bench(|| mapped(black_box(&schema)));
}

#[divan::bench(name = "validate + build")]
fn bench_answer(bencher: divan::Bencher<'_, '_>) {
    let (form, answers) = (mapped(&parse(TWO)), answers());
    bencher.bench(|| form.answer(black_box(&answers), RULES));
}

#[divan::bench(name = "map + validate + build")]
fn bench_whole(bencher: divan::Bencher<'_, '_>) {
    let (schema, answers) = (parse(TWO), answers());
    bencher.bench(|| whole(black_box(&schema), black_box(&answers)));
}

#[divan::bench(name = "parse + map + validate + build")]
fn bench_from_text(bencher: divan::Bencher<'_, '_>) {
    let answers = answers();
    bencher.bench(|| whole(&parse(black_box(TWO)), black_box(&answers)));
}

/// The median time of one call of each side, measured in turns.
#[expect(clippy::disallowed_methods, reason = "a bench is about the clock")]
fn interleaved<const SIDES: usize>(
    rounds: usize,
    calls: u32,
    sides: [&dyn Fn(); SIDES],
) -> [Duration; SIDES] {
    let mut times = [const { Vec::new() }; SIDES];
    for _ in 0..rounds {
        for (side, times) in sides.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..calls {
                side();
            }
            times.push(start.elapsed() / calls);
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

fn print_ratios() {
    let (schema, answers) = (parse(TWO), answers());
    let [floor, from_value, from_text] = interleaved(
        200,
        100,
        [
            &|| drop(black_box(parse(black_box(TWO)))),
            &|| drop(black_box(whole(black_box(&schema), black_box(&answers)))),
            &|| drop(black_box(whole(&parse(black_box(TWO)), black_box(&answers)))),
        ],
    );
    let ratio = |time: Duration| time.as_secs_f64() / floor.as_secs_f64();
    println!("two questions, median of 200 interleaved rounds:");
    println!("  parse alone (the floor)         {floor:>10.2?}   1.00x");
    println!("  map + validate + build          {from_value:>10.2?}   {:.2}x", ratio(from_value));
    println!("  parse + map + validate + build  {from_text:>10.2?}   {:.2}x", ratio(from_text));
    println!("growth with the input, per choice (a flat column is linear):");
    for (questions, choices) in [(2, 10), (20, 10), (200, 10), (200, 100), (1, 1000), (40, 1000)] {
        let (text, answers) = large(questions, choices);
        let schema = parse(&text);
        let [floor, time] = interleaved(
            15,
            1,
            [&|| drop(black_box(parse(black_box(&text)))), &|| {
                drop(black_box(whole(black_box(&schema), black_box(&answers))));
            }],
        );
        let each = |time: Duration| time.as_nanos() / (questions * choices) as u128;
        println!(
            "  {questions:>3} questions of {choices:>4} choices: parse {:>5} ns, map + validate + build {:>5} ns",
            each(floor),
            each(time)
        );
    }
}

fn main() {
    // Not when `cargo test --benches` only asks whether it runs.
    if std::env::args().any(|argument| argument == "--bench") {
        print_ratios();
    }
    divan::main();
}
