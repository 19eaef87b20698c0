//! The Chat Completions API.

use serde_json::{Value, json};

use super::{Reply, Request, event, text_of};

pub(super) fn read(body: &Value) -> Request {
    let tools = body["tools"].as_array().into_iter().flatten();
    let messages = body["messages"].as_array().into_iter().flatten();
    let results = messages.filter(|message| message["role"] == "tool").filter_map(|message| {
        Some((message["tool_call_id"].as_str()?.to_owned(), text_of(&message["content"])))
    });
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    Request { tools: tools.filter_map(name).collect(), results: results.collect() }
}

pub(super) fn write(body: &Value, reply: &Reply) -> (&'static str, String) {
    let (message, finish) = match reply {
        Reply::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Calls(calls) => {
            let calls: Vec<_> = calls
                .iter()
                .enumerate()
                .map(|(index, (id, call))| {
                    let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
                    json!({"index": index, "id": id, "type": "function", "function": function})
                })
                .collect();
            (json!({"role": "assistant", "content": "", "tool_calls": calls}), "tool_calls")
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20});
    let part = |kind: &str, choices: Value, usage: &Value| json!({"id": "chat_1", "object": kind, "created": 1, "model": body["model"], "choices": choices, "usage": usage});
    if body["stream"] != true {
        let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        return ("application/json", part("chat.completion", choices, &usage).to_string());
    }
    let kind = "chat.completion.chunk";
    let mut stream = String::new();
    let delta = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    event(&mut stream, None, &part(kind, delta(message, Value::Null), &Value::Null));
    event(&mut stream, None, &part(kind, delta(json!({}), json!(finish)), &Value::Null));
    event(&mut stream, None, &part(kind, json!([]), &usage));
    stream.push_str("data: [DONE]\n\n");
    ("text/event-stream", stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({"tools": [{"type": "function", "function": {"name": "a"}}], "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": []},
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        ]});
        let results = vec![("call_1".into(), "one".into()), ("call_2".into(), "two".into())];
        assert_eq!(read(&body), Request { tools: vec!["a".into()], results });
    }
}
