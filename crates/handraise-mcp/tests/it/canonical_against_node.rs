//! Canonical text against a second implementation: Node's own `JSON` and `Number`, with keys sorted as JavaScript sorts.

use std::io::Write;
use std::process::{Command, Stdio};

use handraise_mcp::canonical::{Dialect, Unbindable, canonical};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

/// Reads `[documents, numbers]` and writes the canonical text of each document, and what becomes of each number: its text,
/// or nothing where the decimal value of that text is another one.
const SCRIPT: &str = r"
const canonical = (value) => {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  const keys = Object.keys(value).sort();
  return '{' + keys.map((key) => JSON.stringify(key) + ':' + canonical(value[key])).join(',') + '}';
};
const decimal = (text) => {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  let digits = BigInt(whole + fraction);
  let power = BigInt(exponent) - BigInt(fraction.length);
  if (digits === 0n) return '0';
  while (digits % 10n === 0n) { digits /= 10n; power += 1n; }
  return `${sign}${digits}e${power}`;
};
const number = (text) => {
  const written = JSON.stringify(JSON.parse(text));
  return written !== 'null' && decimal(written) === decimal(text) ? written : null;
};
const chunks = [];
process.stdin.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
  const [documents, numbers] = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  const texts = documents.map((document) => canonical(JSON.parse(document)));
  process.stdout.write(JSON.stringify([texts, numbers.map(number)]));
});
";

/// What Node says; nothing when there is no Node.
fn ask_node(documents: &[String], numbers: &[String]) -> Option<(Vec<String>, Vec<Option<String>>)> {
    let spawned =
        Command::new("node").args(["-e", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut node = match spawned {
        Ok(node) => node,
        Err(error) => {
            println!("skipped: node does not start: {error}");
            return None;
        }
    };
    let question = serde_json::to_vec(&(documents, numbers)).unwrap();
    node.stdin.take().unwrap().write_all(&question).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "node ended with {}", output.status);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn samples<T: std::fmt::Debug>(count: usize, strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Strings of every plane. Not the key `__proto__`, which JavaScript does not keep as one.
fn string() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop::char::range('\u{0}', '\u{7f}'),
        prop::char::range('\u{d000}', '\u{ffff}'),
        prop::char::range('\u{1f600}', '\u{1f64f}'),
    ];
    prop::collection::vec(character, 0..8).prop_map(String::from_iter)
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| Some(Value::from(number)).filter(Value::is_number)),
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((string(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Numbers as texts: doubles by their bits, decimals with few and with many digits, and those around ties and borders.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>()
            .prop_filter_map("finite", |bits| Some(f64::from_bits(bits)).filter(|number| number.is_finite()))
            .prop_map(|number| format!("{number:e}")),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?",
        (0_u64..1 << 53).prop_map(|quarters| format!("{}.{:02}", quarters / 4, quarters % 4 * 25)),
        (-1075_i32..1024).prop_map(|exponent| format!("{:e}", 2_f64.powi(exponent))),
    ]
}

#[test]
fn canonical_text_is_what_node_writes() {
    let documents: Vec<String> = samples(2_000, &document()).iter().map(Value::to_string).collect();
    let numbers = samples(20_000, &number());
    let Some((texts, written)) = ask_node(&documents, &numbers) else { return };
    assert_eq!((texts.len(), written.len()), (documents.len(), numbers.len()));
    for (document, text) in documents.iter().zip(&texts) {
        let ours = canonical(document.as_bytes(), None, Dialect::Plain).unwrap();
        assert_eq!(ours.as_str(), text, "{document}");
    }
    let mut refused = 0;
    for (number, written) in numbers.iter().zip(&written) {
        let ours = canonical(number.as_bytes(), None, Dialect::Plain);
        let ours = ours.as_ref().map(handraise_mcp::canonical::Canonical::as_str);
        refused += usize::from(written.is_none());
        assert_eq!(ours, written.as_deref().ok_or(&Unbindable::InexactNumber), "{number}");
    }
    // Both kinds are among them.
    assert!((1_000..numbers.len() - 1_000).contains(&refused), "{refused} of {} refused", numbers.len());
}
