//! What the envelope adds to a call that nobody is asked about: reading both frames, and keeping track.
//!
//! `cargo bench -p handraise-mcp`. The judge for reading is `serde_json`'s raw value, which a gateway without a scanner of
//! its own would use.

#![expect(clippy::unwrap_used, reason = "a bench may stop")]

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use handraise_core::Moment;
use handraise_mcp::seal::{ClockId, Keyring};
use handraise_mcp::{Caller, ClientFrame, Envelope, EnvelopeConfig, Now, Process, Route};
use serde_json::value::RawValue;

const SIZES: [usize; 3] = [100, 10_240, 1 << 20];

fn main() {
    divan::main();
}

fn text(size: usize) -> String {
    "The quick brown fox, 0123456789 jumps. ".chars().cycle().take(size).collect()
}

fn call(size: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{}"}}}}}}"#,
        text(size)
    )
}

fn result(size: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":12345,"result":{{"content":[{{"type":"text","text":"{}"}}]}}}}"#,
        text(size)
    )
}

/// Many small objects, and line breaks in strings: the worst that is usual.
fn structured(size: usize) -> String {
    let item = r#"{"deviceId":"emulator-5554","path":"src\/main.rs\nline","api_level":34,"ok":true},"#;
    let items = item.repeat(size.div_ceil(item.len()));
    format!(
        r#"{{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{{"name":"echo","arguments":{{"items":[{}]}}}}}}"#,
        items.trim_end_matches(',')
    )
}

fn process() -> Arc<Process> {
    Arc::new(Process::new(EnvelopeConfig::new(
        "bench".to_owned(),
        Keyring::single(&[1; 32]),
        ClockId([0; 16]),
    )))
}

#[divan::bench(args = SIZES)]
fn read_call(bencher: Bencher<'_, '_>, size: usize) {
    let frame = call(size);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| ClientFrame::read(black_box(frame.as_bytes())).is_ok());
}

#[divan::bench(args = SIZES)]
fn read_call_structured(bencher: Bencher<'_, '_>, size: usize) {
    let frame = structured(size);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| ClientFrame::read(black_box(frame.as_bytes())).is_ok());
}

#[divan::bench(args = SIZES)]
fn read_call_by_serde_json(bencher: Bencher<'_, '_>, size: usize) {
    let frame = call(size);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| serde_json::from_slice::<&RawValue>(black_box(frame.as_bytes())).is_ok());
}

#[divan::bench(args = SIZES)]
fn read_call_structured_by_serde_json(bencher: Bencher<'_, '_>, size: usize) {
    let frame = structured(size);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| serde_json::from_slice::<&RawValue>(black_box(frame.as_bytes())).is_ok());
}

#[divan::bench(args = SIZES)]
fn read_result(bencher: Bencher<'_, '_>, size: usize) {
    let frame = result(size);
    let process = process();
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| process.read_server_frame(black_box(frame.as_bytes())).is_ok());
}

#[divan::bench(args = SIZES)]
fn read_result_structured(bencher: Bencher<'_, '_>, size: usize) {
    let frame = structured(size).replace(r#""method":"tools/call","params""#, r#""result""#);
    let process = process();
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench(|| process.read_server_frame(black_box(frame.as_bytes())).is_ok());
}

/// A call and its result through the envelope, sixteen in flight.
#[divan::bench(args = SIZES)]
fn call_and_result(bencher: Bencher<'_, '_>, size: usize) {
    let ids = 12_345..12_361_u32;
    let frame = |template: String, id: u32| template.replace("12345", &id.to_string());
    let calls: Vec<String> = ids.clone().map(|id| frame(call(size), id)).collect();
    let results: Vec<String> = ids.map(|id| frame(result(size), id)).collect();
    let process = process();
    let mut envelope = Envelope::new(Arc::clone(&process), [3; 32]);
    let caller = Arc::new(Caller { principal: "stdio".to_owned(), session: None });
    let now = Now { boot: Moment::from_millis(1), wall_ms: 1 };
    bencher.bench_local(|| {
        let mut out = Vec::new();
        for call in &calls {
            let frame = ClientFrame::read(black_box(call.as_bytes())).unwrap();
            assert_eq!(envelope.client_frame(&frame, &caller, now, &mut out), Route::Forward);
        }
        for result in &results {
            let frame = process.read_server_frame(black_box(result.as_bytes())).unwrap();
            assert_eq!(envelope.upstream_frame(&frame, now, &mut out), Route::Forward);
        }
    });
}

/// A short call and its long result in a session, where no part of a result may be a question: of text, and of much that
/// is escaped.
#[divan::bench(args = [("text", 10_240), ("text", 1 << 20), ("structured", 1 << 20), ("accents", 1 << 20)])]
fn result_in_a_session(bencher: Bencher<'_, '_>, (kind, size): (&str, usize)) {
    let result = match kind {
        "text" => result(size),
        "structured" => structured(size).replace(r#""method":"tools/call","params""#, r#""result""#),
        _ => result(size).replace("quick brown ", "\\u00e9t\\u00e9 "),
    };
    let process = process();
    let mut envelope = Envelope::new(Arc::clone(&process), [3; 32]);
    let caller = Arc::new(Caller { principal: "stdio".to_owned(), session: None });
    let now = Now { boot: Moment::from_millis(1), wall_ms: 1 };
    let call = call(100);
    bencher.counter(BytesCount::of_str(&result)).bench_local(|| {
        let mut out = Vec::new();
        let frame = ClientFrame::read(black_box(call.as_bytes())).unwrap();
        assert_eq!(envelope.client_frame(&frame, &caller, now, &mut out), Route::Forward);
        let frame = process.read_server_frame(black_box(result.as_bytes())).unwrap();
        assert_eq!(envelope.upstream_frame(&frame, now, &mut out), Route::Forward);
    });
}
