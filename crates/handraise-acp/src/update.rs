//! `session/update` → transcript entries: coalesced, bounded, one per change.

use std::collections::{HashMap, VecDeque};

use handraise_api::session::{Author, MessageKind};
use serde_json::{Map, Value, json};

use crate::read::{cut, floor, id, words};

/// The method of the notification.
pub const METHOD: &str = "session/update";

/// The most bytes of one text entry; longer text goes on in the next.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The most bytes of a tool call's title and of a plan's entry.
const MAX_LINE_BYTES: usize = 2 * 1024;
/// The most entries of a plan.
const MAX_PLAN_ENTRIES: usize = 200;
/// The most tool calls whose state is remembered; the oldest is forgotten first.
const MAX_TOOL_CALLS: usize = 1_024;

/// One entry of a transcript, without number, session and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is.
    pub kind: MessageKind,
    /// Who speaks.
    pub author: Author,
    /// The words.
    pub text: String,
    /// Whether `text` goes on where the entry before it stopped.
    pub continues: bool,
    /// `tool_call_id`, `status`, `tool_kind` of a tool call; `entries` of a plan.
    pub metadata: Map<String, Value>,
}

/// Turns one session's updates into entries.
///
/// Adjacent chunks of one speaker are gathered until something else comes, they are 64 KiB, or the owner calls
/// [`Transcript::flush`] (so that a reader need not wait for the end of a paragraph); what follows then
/// `continues`. Tool calls yield an entry when they appear and whenever status or title changes.
#[derive(Debug, Default)]
pub struct Transcript {
    run: Option<Run>,
    tools: HashMap<String, Tool>,
    /// Oldest first, for forgetting.
    tool_order: VecDeque<String>,
}

/// Adjacent chunks of one message.
#[derive(Debug)]
struct Run {
    kind: MessageKind,
    message_id: Option<String>,
    text: String,
    /// Whether some of it was handed out already.
    continues: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Tool {
    title: String,
    kind: Option<String>,
    status: Option<String>,
}

/// The session that an update is about, as the agent calls it.
pub fn session_of(params: &Value) -> Option<&str> {
    id(params.as_object()?, "sessionId")
}

/// The agent's own name for the session, when an update brings one.
pub fn title_of(params: &Value) -> Option<String> {
    let update = params.get("update")?.as_object()?;
    let names = update.get("sessionUpdate")?.as_str()? == "session_info_update";
    words(update, "title").filter(|_| names).map(|title| cut(title, MAX_LINE_BYTES))
}

impl Transcript {
    /// Takes the parameters of one `session/update`; entries that are complete go to `out`. What is unknown or
    /// malformed is ignored.
    pub fn take(&mut self, params: &Value, out: &mut Vec<Entry>) {
        let Some(update) = params.get("update").and_then(Value::as_object) else { return };
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "agent_message_chunk" => self.chunk(MessageKind::AgentText, update, out),
            "agent_thought_chunk" => self.chunk(MessageKind::Thought, update, out),
            "user_message_chunk" => self.chunk(MessageKind::UserText, update, out),
            "tool_call" | "tool_call_update" => self.tool_call(update, out),
            "plan" => self.plan(update, out),
            _ => {}
        }
    }

    /// Hands out what was gathered. More of the same message will continue it.
    pub fn flush(&mut self, out: &mut Vec<Entry>) {
        if let Some(run) = &mut self.run {
            run.hand_out(out);
        }
    }

    /// Hands out what was gathered and ends the message: a turn ended, or something else stands after it.
    pub fn finish(&mut self, out: &mut Vec<Entry>) {
        self.flush(out);
        self.run = None;
    }

    /// Whether something is gathered that [`Transcript::flush`] would hand out.
    pub fn is_gathering(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.text.is_empty())
    }

    /// Whether a tool call goes on that the agent has said to be under way. One that was only announced does not count.
    pub fn has_calls_under_way(&self) -> bool {
        self.tools.values().any(|tool| tool.status.as_deref() == Some("in_progress"))
    }

    /// The calls under way ended without a word, as those of a cancelled turn do.
    pub fn forget_calls(&mut self) {
        self.tools.clear();
        self.tool_order.clear();
    }

    fn chunk(&mut self, kind: MessageKind, update: &Map<String, Value>, out: &mut Vec<Entry>) {
        let Some(text) = update.get("content").and_then(Value::as_object).and_then(content_text) else {
            return;
        };
        let message_id = id(update, "messageId");
        let goes_on =
            self.run.as_ref().is_some_and(|run| run.kind == kind && run.message_id.as_deref() == message_id);
        if !goes_on {
            self.finish(out);
        }
        let run = self.run.get_or_insert_with(|| Run {
            kind,
            message_id: message_id.map(str::to_owned),
            text: String::new(),
            continues: false,
        });
        let mut rest = text.as_str();
        while run.text.len() + rest.len() > MAX_TEXT_BYTES {
            let (fits, later) = rest.split_at(floor(rest, MAX_TEXT_BYTES - run.text.len()));
            run.text.push_str(fits);
            run.hand_out(out);
            rest = later;
        }
        run.text.push_str(rest);
    }

    fn tool_call(&mut self, update: &Map<String, Value>, out: &mut Vec<Entry>) {
        let Some(call) = id(update, "toolCallId") else { return };
        let known = self.tools.get(call);
        let mut tool = known.cloned().unwrap_or_default();
        if let Some(title) = words(update, "title") {
            tool.title = cut(title, MAX_LINE_BYTES);
        }
        if let Some(kind) = words(update, "kind") {
            tool.kind = Some(cut(kind, 64));
        }
        if let Some(status) = words(update, "status") {
            tool.status = Some(cut(status, 64));
        }
        if tool.title.is_empty() {
            tool.title = tool.kind.clone().unwrap_or_else(|| "tool call".to_owned());
        }
        if known == Some(&tool) {
            return;
        }
        self.finish(out);
        let mut metadata = Map::new();
        metadata.insert("tool_call_id".to_owned(), call.into());
        metadata.insert("status".to_owned(), tool.status.as_deref().unwrap_or("pending").into());
        if let Some(kind) = &tool.kind {
            metadata.insert("tool_kind".to_owned(), kind.as_str().into());
        }
        out.push(Entry {
            kind: MessageKind::ToolCall,
            author: Author::Agent,
            text: tool.title.clone(),
            continues: false,
            metadata,
        });
        self.remember(call, tool);
    }

    fn remember(&mut self, call: &str, tool: Tool) {
        if self.tools.insert(call.to_owned(), tool).is_none() {
            self.tool_order.push_back(call.to_owned());
        }
        while self.tools.len() > MAX_TOOL_CALLS
            && let Some(oldest) = self.tool_order.pop_front()
        {
            self.tools.remove(&oldest);
        }
    }

    fn plan(&mut self, update: &Map<String, Value>, out: &mut Vec<Entry>) {
        let Some(entries) = update.get("entries").and_then(Value::as_array) else { return };
        let taken: Vec<Value> = entries
            .iter()
            .filter_map(Value::as_object)
            .filter_map(|entry| {
                let content = cut(words(entry, "content")?, MAX_LINE_BYTES);
                let word = |key| words(entry, key).map(|word| cut(word, 64));
                Some(json!({ "content": content, "status": word("status"), "priority": word("priority") }))
            })
            .take(MAX_PLAN_ENTRIES)
            .collect();
        self.finish(out);
        let done = taken.iter().filter(|entry| entry["status"] == "completed").count();
        let text = format!("{done} of {} done", entries.len());
        let mut metadata = Map::new();
        metadata.insert("entries".to_owned(), Value::Array(taken));
        out.push(Entry { kind: MessageKind::Plan, author: Author::Agent, text, continues: false, metadata });
    }
}

impl Run {
    fn hand_out(&mut self, out: &mut Vec<Entry>) {
        if self.text.is_empty() {
            return;
        }
        let author = if self.kind == MessageKind::UserText { Author::Operator } else { Author::Agent };
        out.push(Entry {
            kind: self.kind,
            author,
            text: std::mem::take(&mut self.text),
            continues: self.continues,
            metadata: Map::new(),
        });
        self.continues = true;
    }
}

/// A content block in words: what is no text is named.
fn content_text(content: &Map<String, Value>) -> Option<String> {
    let text = |key| content.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" => text("text").map(str::to_owned),
        "resource_link" => text("uri").map(|uri| format!("[{}]", cut(uri, MAX_LINE_BYTES))),
        "resource" => {
            let uri = content.get("resource")?.get("uri")?.as_str()?;
            Some(format!("[{}]", cut(uri, MAX_LINE_BYTES)))
        }
        "image" => Some("[image]".to_owned()),
        "audio" => Some("[audio]".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionId": "s", "update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
    }

    fn tool(id: &str, rest: &Value) -> Value {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
        for (key, value) in rest.as_object().unwrap() {
            update[key] = value.clone();
        }
        json!({ "update": update })
    }

    fn run(updates: &[Value]) -> Vec<Entry> {
        let mut transcript = Transcript::default();
        let mut out = Vec::new();
        for update in updates {
            transcript.take(update, &mut out);
        }
        transcript.finish(&mut out);
        out
    }

    #[test]
    fn adjacent_chunks_are_one_entry_and_speakers_are_kept_apart() {
        let entries = run(&[
            chunk("agent_thought_chunk", "Hm"),
            chunk("agent_thought_chunk", "m."),
            chunk("agent_message_chunk", "Hello, "),
            chunk("agent_message_chunk", "world"),
            chunk("user_message_chunk", "Hi"),
        ]);
        let said: Vec<_> = entries.iter().map(|e| (e.kind, e.author, e.text.as_str(), e.continues)).collect();
        assert_eq!(
            said,
            [
                (MessageKind::Thought, Author::Agent, "Hmm.", false),
                (MessageKind::AgentText, Author::Agent, "Hello, world", false),
                (MessageKind::UserText, Author::Operator, "Hi", false),
            ]
        );
    }

    #[test]
    fn flushed_text_is_continued_and_a_new_message_is_not() {
        let mut transcript = Transcript::default();
        let mut out = Vec::new();
        transcript.take(&chunk("agent_message_chunk", "one "), &mut out);
        assert!(transcript.is_gathering() && out.is_empty());
        transcript.flush(&mut out);
        transcript.flush(&mut out);
        assert!(!transcript.is_gathering());
        transcript.take(&chunk("agent_message_chunk", "two"), &mut out);
        let mut other = chunk("agent_message_chunk", "three");
        other["update"]["messageId"] = json!("m-2");
        transcript.take(&other, &mut out);
        transcript.finish(&mut out);
        transcript.take(&chunk("agent_message_chunk", "four"), &mut out);
        transcript.finish(&mut out);
        let said: Vec<_> = out.iter().map(|e| (e.text.as_str(), e.continues)).collect();
        assert_eq!(said, [("one ", false), ("two", true), ("three", false), ("four", false)]);
    }

    #[test]
    fn long_text_is_split_between_characters() {
        let text = "ä".repeat(100_000);
        let entries = run(&[chunk("agent_message_chunk", "x"), chunk("agent_message_chunk", &text)]);
        assert!(entries.iter().all(|entry| entry.text.len() <= MAX_TEXT_BYTES));
        assert_eq!(
            entries.iter().map(|entry| entry.continues).collect::<Vec<_>>(),
            [false, true, true, true]
        );
        assert_eq!(entries.iter().map(|entry| entry.text.as_str()).collect::<String>(), format!("x{text}"));
    }

    #[test]
    fn a_tool_call_is_told_once_per_change() {
        let entries = run(&[
            json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read file", "kind": "read", "status": "pending"}}),
            tool("t", &json!({"status": "in_progress"})),
            tool("t", &json!({"content": []})),
            tool("t", &json!({"status": "in_progress"})),
            tool("t", &json!({"status": "completed", "title": "Read main.rs"})),
            tool("u", &json!({})),
        ]);
        let said: Vec<_> = entries
            .iter()
            .map(|e| {
                (
                    e.text.as_str(),
                    e.metadata["tool_call_id"].as_str().unwrap(),
                    e.metadata["status"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                ("Read file", "t", "pending"),
                ("Read file", "t", "in_progress"),
                ("Read main.rs", "t", "completed"),
                ("tool call", "u", "pending"),
            ]
        );
        assert_eq!(entries[0].metadata["tool_kind"], "read");
    }

    #[test]
    fn calls_are_under_way_from_the_agents_word_to_their_end() {
        let mut transcript = Transcript::default();
        let mut under_way = |status: &str| {
            transcript.take(&tool("t", &json!({"title": "Build", "status": status})), &mut Vec::new());
            transcript.has_calls_under_way()
        };
        assert_eq!(
            ["pending", "in_progress", "completed", "in_progress", "failed", "in_progress"]
                .map(&mut under_way),
            [false, true, false, true, false, true]
        );
        transcript.forget_calls();
        assert!(!transcript.has_calls_under_way());
    }

    #[test]
    fn a_session_is_named_by_its_agent() {
        let named =
            |update: &str| title_of(&json!({"update": {"sessionUpdate": update, "title": "Fix the build"}}));
        assert_eq!(named("session_info_update").as_deref(), Some("Fix the build"));
        assert_eq!(named("tool_call"), None);
        assert_eq!(
            title_of(&json!({"update": {"sessionUpdate": "session_info_update", "title": null}})),
            None
        );
    }

    #[test]
    fn remembered_tool_calls_are_bounded() {
        let mut transcript = Transcript::default();
        let mut out = Vec::new();
        for n in 0..5_000 {
            transcript.take(&tool(&format!("t{n}"), &json!({"title": "x"})), &mut out);
        }
        assert_eq!((transcript.tools.len(), transcript.tool_order.len()), (MAX_TOOL_CALLS, MAX_TOOL_CALLS));
    }

    #[test]
    fn a_plan_says_how_far_it_is() {
        let entries = run(&[json!({"update": {"sessionUpdate": "plan", "entries": [
            {"content": "Look", "priority": "high", "status": "completed"},
            {"content": "Leap", "priority": "low", "status": "pending"},
        ]}})]);
        assert_eq!((entries[0].kind, entries[0].text.as_str()), (MessageKind::Plan, "1 of 2 done"));
        assert_eq!(entries[0].metadata["entries"][1]["content"], "Leap");
    }

    #[test]
    fn what_is_no_text_is_named_and_what_is_unknown_is_ignored() {
        let content =
            |content: Value| json!({"update": {"sessionUpdate": "agent_message_chunk", "content": content}});
        let entries = run(&[
            content(json!({"type": "image", "data": "AAAA"})),
            content(json!({"type": "resource_link", "uri": "file:///a", "name": "a"})),
            content(json!({"type": "resource", "resource": {"uri": "file:///b", "text": "…"}})),
            content(json!({"type": "hologram"})),
            json!({"update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}}),
            json!({"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}),
            json!({"update": {"sessionUpdate": "next_year_update"}}),
            json!({"update": null}),
        ]);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].text, "[image][file:///a][file:///b]");
    }

    proptest! {
        #[test]
        fn taking_is_total_and_loses_no_text(values in prop::collection::vec(any_json(), 0..8), texts in prop::collection::vec(".{0,9}", 0..8)) {
            let mut updates: Vec<Value> = Vec::new();
            for value in values {
                updates.push(json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": value}}));
                updates.push(json!({"update": {"sessionUpdate": "plan", "entries": [value]}}));
                updates.push(json!({ "update": value }));
                updates.push(value);
            }
            let _ = run(&updates);
            let chunks: Vec<Value> = texts.iter().map(|text| chunk("agent_message_chunk", text)).collect();
            let said: String = run(&chunks).iter().map(|entry| entry.text.clone()).collect();
            prop_assert_eq!(said, texts.concat());
        }
    }
}
