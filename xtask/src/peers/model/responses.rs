//! The Responses API.

use serde_json::{Value, json};

use super::{Reply, Request, event, text_of};

pub(super) fn read(body: &Value) -> Request {
    let tools = body["tools"].as_array().into_iter().flatten();
    let items = body["input"].as_array().into_iter().flatten();
    let results = items
        .filter(|item| item["type"] == "function_call_output")
        .filter_map(|item| Some((item["call_id"].as_str()?.to_owned(), text_of(&item["output"]))));
    let names = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned));
    Request { tools: names.collect(), results: results.collect() }
}

pub(super) fn write(_: &Value, reply: &Reply) -> (&'static str, String) {
    let items: Vec<Value> = match reply {
        Reply::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            vec![
                json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}),
            ]
        }
        Reply::Calls(calls) => calls
            .iter()
            .map(|(id, call)| {
                let (namespace, name) = match call.tool.split_once(':') {
                    Some((namespace, name)) => (Some(namespace), name),
                    None => (None, call.tool.as_str()),
                };
                let mut item = json!({
                    "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                    "arguments": call.arguments.to_string(), "status": "completed",
                });
                if let Some(namespace) = namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            })
            .collect(),
    };
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20,
    });
    let mut stream = String::new();
    let mut emit = |data: Value| event(&mut stream, data["type"].as_str(), &data);
    let response = json!({"id": "resp_1", "object": "response", "status": "in_progress", "output": []});
    emit(json!({"type": "response.created", "response": response}));
    for (index, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        if item["type"] == "message" {
            begun["content"] = json!([]);
        } else {
            begun["arguments"] = json!("");
        }
        emit(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        if let Some(text) = item["content"][0]["text"].as_str() {
            emit(
                json!({"type": "response.output_text.delta", "item_id": item["id"], "output_index": index, "content_index": 0, "delta": text}),
            );
        }
        emit(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let response =
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": items, "usage": usage});
    emit(json!({"type": "response.completed", "response": response}));
    ("text/event-stream", stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({"tools": [{"type": "function", "name": "a"}, {"type": "web_search"}], "input": [
            {"type": "message", "role": "user", "content": []},
            {"type": "function_call", "call_id": "call_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        ]});
        assert_eq!(
            read(&body),
            Request { tools: vec!["a".into()], results: vec![("call_1".into(), "one".into())] }
        );
    }

    #[test]
    fn a_namespace_stands_beside_the_name() {
        let call = super::super::Call { tool: "mcp__x:deploy".into(), arguments: json!({}) };
        let (_, stream) = write(&json!({}), &Reply::Calls(vec![("call_1".into(), call)]));
        assert!(
            stream.contains(r#""name":"deploy""#) && stream.contains(r#""namespace":"mcp__x""#),
            "{stream}"
        );
    }
}
