//! How `ambiguous_device_target` looks: the shapes that servers in the field use, and some that are no refusal.

use serde_json::{Value, json};

use crate::devices::described;

/// The shape of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `code` and `candidates` at the top of the text's JSON.
    Flat,
    /// Both in `error`.
    Nested,
    /// The code in `failure`, the candidates at the top.
    Failure,
    /// The candidates under `devices`.
    Devices,
    /// In `structuredContent`; the text is prose.
    Structured,
    /// In `_meta`; the text is prose.
    Meta,
    /// Flat, with the code's and the keys' first letters as `\u` escapes.
    Escaped,
    /// One candidate only.
    Single,
    /// One candidate, twice.
    Duplicate,
    /// No candidates.
    None,
    /// Text that is no JSON and names the code.
    Broken,
    /// Flat, and larger than any state may be.
    Wide,
}

const ALL: &[(&str, Shape)] = &[
    ("flat", Shape::Flat),
    ("nested", Shape::Nested),
    ("failure", Shape::Failure),
    ("devices", Shape::Devices),
    ("structured", Shape::Structured),
    ("meta", Shape::Meta),
    ("escaped", Shape::Escaped),
    ("single", Shape::Single),
    ("duplicate", Shape::Duplicate),
    ("none", Shape::None),
    ("broken", Shape::Broken),
    ("wide", Shape::Wide),
];

impl Shape {
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        ALL.iter().find(|(known, _)| *known == name).map(|(_, shape)| *shape).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
            format!("--shape takes one of {}, not {name}", names.join(", "))
        })
    }
}

const CODE: &str = "ambiguous_device_target";

/// The refusal's result, as JSON text.
pub(crate) fn result(shape: Shape, devices: &[String]) -> String {
    let mut candidates: Vec<Value> = devices.iter().map(|id| described(id)).collect();
    match shape {
        Shape::Single => candidates.truncate(1),
        Shape::Duplicate => {
            candidates.truncate(1);
            candidates.extend(candidates.clone());
        }
        _ => {}
    }
    let said = format!("{} devices match (code {CODE}). Pass deviceId to name one.", devices.len());
    let nested =
        json!({"error": {"code": CODE, "message": said, "candidates": candidates, "retryable": false}});
    let flat = json!({
        "success": false, "error": said, "code": CODE, "candidates": candidates, "retryable": false
    });
    let prose = "Several devices match. Name one with deviceId.";
    let text = match shape {
        Shape::Nested => nested.to_string(),
        Shape::Failure => {
            json!({"failure": {"code": CODE}, "candidates": candidates, "retryable": false}).to_string()
        }
        Shape::Devices => json!({"code": CODE, "error": said, "devices": candidates}).to_string(),
        Shape::None => json!({"code": CODE, "error": said}).to_string(),
        Shape::Broken => format!("{CODE}: {{candidates: several}}"),
        Shape::Structured | Shape::Meta => prose.to_owned(),
        Shape::Wide => {
            let mut wide = flat;
            wide["note"] = "n".repeat(20_000).into();
            wide.to_string()
        }
        Shape::Escaped => flat
            .to_string()
            .replace(CODE, "\\u0061mbiguous_device_target")
            .replace("\"candidates\"", "\"\\u0063andidates\""),
        Shape::Flat | Shape::Single | Shape::Duplicate => flat.to_string(),
    };
    let content = json!([{"type": "text", "text": text}]);
    // Key order and spacing are of no serializer, so that a copy that is not verbatim shows.
    match shape {
        Shape::Structured => {
            format!("{{\"isError\" : true,\"structuredContent\":{nested},\"content\":{content}}}")
        }
        Shape::Meta => format!("{{\"_meta\":{nested}, \"content\":{content},\"isError\":true}}"),
        _ => format!("{{\"content\":{content} ,\"isError\":true, \"x-rank\":1.0}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_json_and_holds_what_it_says() {
        let devices = ["emulator-1".to_owned(), "B".to_owned()];
        for (name, shape) in ALL {
            let result: Value = serde_json::from_str(&result(*shape, &devices)).unwrap();
            assert_eq!(result["isError"], true, "{name}");
            let text = result["content"][0]["text"].as_str().unwrap();
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                assert!(inner.to_string().contains(CODE), "{name}: {inner}");
            }
        }
        let escaped: Value = serde_json::from_str(&result(Shape::Escaped, &devices)).unwrap();
        assert!(!escaped["content"][0]["text"].as_str().unwrap().contains("\"ambiguous"));
    }
}
