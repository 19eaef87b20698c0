//! The Messages API.

use serde_json::{Value, json};

use super::{Reply, Request, event, text_of};

pub(super) fn read(body: &Value) -> Request {
    let tools = body["tools"].as_array().into_iter().flatten();
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result").filter_map(|block| {
        let failed = if block["is_error"] == true { "error: " } else { "" };
        Some((block["tool_use_id"].as_str()?.to_owned(), format!("{failed}{}", text_of(&block["content"]))))
    });
    Request {
        tools: tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect(),
        results: results.collect(),
    }
}

pub(super) fn write(body: &Value, reply: &Reply) -> (&'static str, String) {
    let (blocks, stop) = match reply {
        Reply::Text(text) => (vec![json!({"type": "text", "text": text})], "end_turn"),
        Reply::Calls(calls) => {
            let blocks = calls.iter().map(|(id, call)| {
                json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.arguments})
            });
            (blocks.collect(), "tool_use")
        }
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
        "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage,
    });
    if body["stream"] != true {
        return ("application/json", message.to_string());
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let mut stream = String::new();
    let mut emit = |data: Value| event(&mut stream, data["type"].as_str(), &data);
    emit(json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = if block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
        } else {
            let mut start = block.clone();
            start["input"] = json!({});
            (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
        };
        emit(json!({"type": "content_block_start", "index": index, "content_block": start}));
        emit(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        emit(json!({"type": "content_block_stop", "index": index}));
    }
    emit(
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
    );
    emit(json!({"type": "message_stop"}));
    ("text/event-stream", stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({"tools": [{"name": "a"}, {"type": "odd"}], "messages": [
            {"role": "user", "content": "go"},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "good"}]},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "bad", "is_error": true},
            ]},
        ]});
        let results = vec![("call_1".into(), "good".into()), ("call_2".into(), "error: bad".into())];
        assert_eq!(read(&body), Request { tools: vec!["a".into()], results });
    }
}
