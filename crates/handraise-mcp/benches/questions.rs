//! What a question costs the calls that have none, and what binding and sealing cost those that have one (quality.md).
//!
//! The table printed first comes from interleaved runs, so that a noisy machine disturbs both sides alike.
//! `cargo bench -p handraise-mcp` also prints divan's figures for each step.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench may stop, and prints what it measured"
)]

use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;
use std::time::{Duration, Instant};

use handraise_core::Moment;
use handraise_mcp::Now;
use handraise_mcp::canonical::{Dialect, canonical};
use handraise_mcp::refusal::{Refusal, Rules};
use handraise_mcp::seal::{Bound, ClockId, Expiry, Keyring, Offered, RefusalState};

const CLOCK: ClockId = ClockId([7; 16]);
const NOW: Now = Now { boot: Moment::from_millis(5_000), wall_ms: 1_800_000_000_000 };
const CALLER: Bound<'static> = Bound { principal: "stdio", session: Some("b7a1c3d4") };
const MEBIBYTE: usize = 1024 * 1024;

/// A result of that size in which nothing was refused: a page of text with the escapes that JSON needs.
fn result(bytes: usize) -> String {
    let line = r#"{\"name\":\"src/main.rs\",\"line\":17,\"text\":\"let café = \\\"crème\\\";\"},\n"#;
    let lines = line.repeat(bytes / line.len() + 1);
    format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, &lines[..lines.floor_char_boundary(bytes)])
}

fn refusal() -> &'static str {
    r#"{"content":[{"type":"text","text":"{\"success\":false,\"error\":\"2 devices match (code ambiguous_device_target). Pass deviceId.\",\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"emulator-5554\",\"platform\":\"android\"},{\"deviceId\":\"A1B2\",\"platform\":\"ios\"}],\"retryable\":false}"}],"isError":true}"#
}

/// Arguments of about 1 KB.
fn arguments() -> String {
    let item = r#"{"selector":{"text":"Sign in","index":0,"within":[12.5,48,320,0.25]},"note":"tap « OK » then wait","timeoutMs":1500,"tags":["smoke","Ünï"],"strict":true,"parent":null}"#;
    format!(r#"{{"steps":[{}],"deviceId":"A1B2","app":"com.example"}}"#, [item; 6].join(","))
}

fn state() -> RefusalState {
    let ambiguity = Rules::presets().read(refusal(), |_| false).and_then(Refusal::ambiguity).unwrap();
    RefusalState {
        upstream: "devices".into(),
        refusal: ambiguity.rule.name().into(),
        tool: "tapOn".into(),
        arguments_sha256: [3; 32],
        offered: ambiguity.candidates.iter().map(Offered::from).collect(),
        result: refusal().into(),
        expiry: Expiry::from_now(NOW, CLOCK),
        nonce: [9; 16],
        upstream_state: None,
        approval: None,
    }
}

fn seal_and_open(state: &RefusalState, keyring: &Keyring) -> RefusalState {
    let text = state.seal(keyring, CALLER).unwrap();
    RefusalState::open(&text, keyring, CALLER, "devices", NOW, CLOCK).unwrap()
}

#[divan::bench(name = "seal a state")]
fn bench_seal(bencher: divan::Bencher<'_, '_>) {
    let (state, keyring) = (state(), Keyring::single(&[1; 32]));
    bencher.bench(|| state.seal(&keyring, CALLER));
}

#[divan::bench(name = "seal and open a state")]
fn bench_seal_and_open(bencher: divan::Bencher<'_, '_>) {
    let (state, keyring) = (state(), Keyring::single(&[1; 32]));
    bencher.bench(|| seal_and_open(black_box(&state), &keyring));
}

#[divan::bench(name = "seal and open a state of 16 KiB")]
fn bench_large_state(bencher: divan::Bencher<'_, '_>) {
    let (mut state, keyring) = (state(), Keyring::single(&[1; 32]));
    state.result = "x".repeat(16 * 1024);
    bencher.bench(|| seal_and_open(black_box(&state), &keyring));
}

#[divan::bench(name = "canonical text of 1 KB, and its digest")]
fn bench_canonical(bencher: divan::Bencher<'_, '_>) {
    let arguments = arguments();
    bencher.bench(|| {
        canonical(black_box(arguments.as_bytes()), Some("deviceId"), Dialect::Plain).unwrap().sha256()
    });
}

#[divan::bench(name = "read a refusal")]
fn bench_read(bencher: divan::Bencher<'_, '_>) {
    let rules = Rules::presets();
    bencher.bench(|| rules.read(black_box(refusal()), |_| false));
}

#[divan::bench(name = "look at a result that is none", args = [100, 10_000, MEBIBYTE])]
fn bench_look(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let (rules, result) = (Rules::presets(), result(bytes));
    bencher.bench(|| rules.may_match(black_box(result.as_bytes())));
}

/// A byte copy between two pipes: what a gateway without any features does to a result.
struct Copier {
    into: PipeWriter,
    back: PipeReader,
}

impl Copier {
    fn start() -> Self {
        let (mut from, into) = pipe().unwrap();
        let (back, mut out) = pipe().unwrap();
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if out.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
        });
        Self { into, back }
    }

    /// Sends bytes through and waits for the last of them.
    fn copy(&self, bytes: &[u8]) {
        thread::scope(|scope| {
            scope.spawn(|| (&self.into).write_all(bytes).expect("the copier reads"));
            let mut left = bytes.len();
            let mut buffer = vec![0; 64 * 1024];
            while left > 0 {
                let length = (&self.back).read(&mut buffer).expect("the copier writes");
                left -= length;
            }
        });
    }
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
    let rules = Rules::presets();
    let copier = Copier::start();
    println!("a result that is no refusal, median of 200 interleaved rounds:");
    for bytes in [10_000, 100_000, MEBIBYTE] {
        let result = result(bytes);
        let [copy, look] = interleaved(
            200,
            1,
            [&|| copier.copy(black_box(result.as_bytes())), &|| {
                black_box(rules.may_match(black_box(result.as_bytes())));
            }],
        );
        let share = look.as_secs_f64() / copy.as_secs_f64() * 100.0;
        println!("  {bytes:>8} B: byte copy {copy:>9.2?}, look {look:>9.2?}: {share:.2} % of it");
    }
    let (state, keyring) = (state(), Keyring::single(&[1; 32]));
    let arguments = arguments();
    let [sealing, binding] = interleaved(
        200,
        100,
        [&|| drop(black_box(seal_and_open(black_box(&state), &keyring))), &|| {
            drop(black_box(canonical(black_box(arguments.as_bytes()), Some("deviceId"), Dialect::Plain)));
        }],
    );
    let length = state.seal(&keyring, CALLER).unwrap().len();
    println!("seal and open a state of {length} B   {sealing:>9.2?}");
    println!("canonical text of {} B       {binding:>9.2?}", arguments.len());
}

fn main() {
    // Not when `cargo test --benches` only asks whether it runs.
    if std::env::args().any(|argument| argument == "--bench") {
        print_ratios();
    }
    divan::main();
}
