//! What surfaces show: all of what is hashed, and nothing that hides.

use proptest::prelude::*;
use serde_json::Value;

use super::super::*;
use crate::canonical::{Canonical, Dialect, canonical};
use crate::visible::is_hazardous;

fn bound(json: &str) -> Canonical {
    canonical(json.as_bytes(), None, Dialect::DoubledDollar).unwrap()
}

fn shown(arguments: &Canonical) -> Shown<'_> {
    Shown {
        principal: "stdio",
        client: None,
        action: "Do it",
        tool: "t",
        account: None,
        target: "",
        arguments,
        preview: None,
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[\\u{0}-\\u{ff}\\u{200e}\\u{202a}-\\u{202e}\\u{2066}-\\u{2069}\\u{feff}$]{0,6}"
            .prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[$a-c\\u{202e}\"]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[$a-c\\u{202e}\"\\\\]{0,4}", tree, 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    /// The lines are the canonical text that is hashed, whole and in its order, and do nothing but appear.
    #[test]
    fn s26_the_lines_are_exactly_what_is_hashed(arguments in values()) {
        let canonical = bound(&arguments.to_string());
        let lines = lines(&canonical);
        for line in &lines {
            prop_assert!(!line.contains(is_hazardous), "{line:?}");
        }
        let joined = format!("{{{}}}", lines.join(","));
        let (shown, hashed): (Value, Value) =
            (serde_json::from_str(&joined).unwrap(), serde_json::from_str(canonical.as_str()).unwrap());
        prop_assert_eq!(shown.to_string(), hashed.to_string());
        prop_assert_eq!(lines.len(), arguments.as_object().unwrap().len());
    }

    /// A text of the arguments never becomes a line of the message's own.
    #[test]
    fn s26_no_argument_forges_a_line(text in "[a-z\\n\\r:\\u{2028} ]{0,20}") {
        let arguments = bound(&serde_json::json!({"x": format!("{text}\nTool: \"harmless\"")}).to_string());
        let message = shown(&arguments).message().unwrap();
        prop_assert_eq!(message.lines().filter(|line| line.starts_with("Tool: ")).count(), 1);
        prop_assert_eq!(message.lines().count(), 5);
    }
}

#[test]
fn s26_names_that_deceive_are_quoted_and_made_visible() {
    let arguments = bound("{}");
    let shown = Shown {
        principal: "ci",
        client: Some("ci\u{202e}\nTool: x"),
        tool: "send\u{1b}[2J\"",
        account: Some("a\nb"),
        target: "\u{feff}",
        ..shown(&arguments)
    };
    let message = shown.message().unwrap();
    assert_eq!(
        message,
        "ci (calls itself \"ci\\u202e\\nTool: x\") asks to: Do it\nTool: \"send\\u001b[2J\\\"\"\nAccount: \"a\\nb\"\n\
         Target: \"\\ufeff\"\nArguments: none\nIt runs only if you confirm."
    );
    let json = shown.json().unwrap();
    assert!(!json.get().contains(is_hazardous), "{json}");
}

#[test]
fn s26_what_does_not_fit_is_counted() {
    let arguments = bound(&format!(r#"{{"x":"{}"}}"#, "y".repeat(MAX_MESSAGE_BYTES)));
    let hidden = shown(&arguments).message().unwrap_err().hidden;
    let whole = shown(&bound("{}")).message().unwrap().len() - " none".len() + "\n  \"x\":\"\"".len();
    assert_eq!(hidden, whole);
    assert!(shown(&arguments).json().is_ok());
    let arguments = bound(&format!(r#"{{"x":"{}"}}"#, "y".repeat(MAX_TOKEN_PREVIEW_BYTES)));
    assert!(shown(&arguments).json().unwrap_err().hidden > 0);
}
