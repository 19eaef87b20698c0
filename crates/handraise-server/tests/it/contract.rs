//! The OpenAPI document: complete, and the same wherever it is asked for.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::rig::rig;

#[tokio::test]
async fn the_document_is_served_as_it_is_generated() {
    let rig = rig().await;
    let served = rig.get("/openapi.json").await.json();
    assert_eq!(served, serde_json::to_value(handraise_server::openapi()).unwrap());
    assert_eq!(served["openapi"], "3.1.0");
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_a_name() {
    let document = serde_json::to_value(handraise_server::openapi()).unwrap();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for schema in
        ["Ask", "AskDetail", "Snapshot", "Message", "Session", "NotFoundResponse", "ErrorResponse", "Flag"]
    {
        assert!(document["components"]["schemas"].get(schema).is_some(), "{schema}");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                references.insert(reference.clone());
            }
            map.values().for_each(|value| collect(value, references));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}
