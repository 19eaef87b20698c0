//! The scripts, one table row each.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    forms, odd, terminals,
    turn::{END_TURN, Stop, Turn},
    wire::Gone,
};

pub(crate) type Outcome = Result<Stop, Gone>;

/// What a turn can do.
#[non_exhaustive]
pub struct Script {
    /// The first word of a prompt that runs it.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    pub(crate) run: fn(&mut Turn<'_, '_>) -> Outcome,
}

macro_rules! scripts {
    ($($name:literal $about:literal $run:expr;)+) => {
        &[$(Script { name: $name, about: $about, run: $run },)+]
    };
}

/// Every script.
pub const SCRIPTS: &[Script] = scripts! {
    "demo"             "asks five forms in turn, then says what it was told"                        demo;
    "single"           "asks one single-select question with a companion"                           |turn| one(turn, &forms::single());
    "two"              "asks a single-select and a multi-select question in one form"               |turn| one(turn, &forms::two());
    "refusal"          "asks whether to retry after a model's refusal"                              |turn| one(turn, &forms::refusal());
    "passthrough"      "passes an MCP server's text field on"                                       |turn| one(turn, &forms::passthrough());
    "typed"            "asks a form with text, number, integer, boolean and enum fields"            |turn| one(turn, &forms::typed());
    "eleven"           "asks eleven numbered questions in one form"                                 |turn| one(turn, &forms::eleven());
    "freeform"         "asks a question whose companion is called answer_freeform"                  |turn| one(turn, &forms::freeform());
    "form"             "asks the form that is given as JSON, and keeps the answer to itself"         form;
    "permission"       "asks for permission; the first option rejects"                              permission;
    "permission-bare"  "asks for permission with no option that rejects once"                       permission_bare;
    "permissions"      "asks for the given number of permissions at once"                           permissions;
    "parallel"         "asks the same form twice at once and reports both answers"                  parallel;
    "cancel-request"   "asks, then cancels its own request"                                         cancel_request;
    "wait-for-cancel"  "says something, then waits for session/cancel"                              wait_for_cancel;
    "ask-until-cancel" "asks a form and for permission, and waits for both after session/cancel"    ask_until_cancel;
    "prompt-ends-first" "ends the turn while its ask is open"                                       prompt_ends_first;
    "async"            "asks with codex's asynchronous delivery and ends the turn at once"          asynchronous;
    "exit-mid-ask"     "asks, then exits with status 3"                                             exit_mid_ask;
    "exit"             "exits with the given status at once"                                        exit;
    "url"              "asks in url mode"                                                           url;
    "request-scope"    "asks within a request instead of a session"                                 |turn| scoped(turn, &json!({"requestId": 7}));
    "both-scopes"      "asks within a session and a request"                                        both_scopes;
    "no-scope"         "asks within nothing"                                                        |turn| scoped(turn, &json!({}));
    "foreign-session"  "asks within a session that does not exist"                                  |turn| scoped(turn, &json!({"sessionId": "nobody"}));
    "malformed"        "sends elicitation/create with parameters that make no sense"                malformed;
    "zero"             "asks a form without a usable question"                                      |turn| one(turn, &forms::zero());
    "noise"            "puts garbage between the frames, then asks"                                 noise;
    "pieces"           "says and asks something byte by byte, behind byte order marks"              odd::pieces;
    "strays"           "answers what it was not asked, and its prompt three times"                  odd::strays;
    "cancelled-thrice" "asks, waits for session/cancel, and answers its prompt three times"         odd::cancelled_thrice;
    "long-line"        "sends one line of the given number of bytes"                                long_line;
    "id-reuse"         "asks twice, one after the other, with one JSON-RPC id"                      id_reuse;
    "duplicate-id"     "asks twice at once with one JSON-RPC id"                                    duplicate_id;
    "late"             "cancels its request after the answer came"                                  late;
    "flood"            "sends the given number of updates"                                          flood;
    "flood-bytes"      "thinks aloud, the given number of megabytes"                                odd::flood_bytes;
    "many"             "asks the given number of forms at once"                                     many;
    "tools"            "shows thoughts, a plan and a tool call"                                     tools;
    "read"             "reads the given file through the client"                                    read;
    "write"            "writes text into the given file through the client"                         write;
    "terminal"         "has the client run the given line, or the command that is given as JSON"    terminals::run;
    "terminal-wait"    "the same, and waits for its end without asking for its output"              terminals::wait;
    "terminal-kill"    "kills the given line's command once it has written something"               terminals::kill;
    "terminal-leave"   "leaves the given line's command running"                                    terminals::leave;
    "terminal-many"    "has the client run the given number of commands that do not end"            terminals::many;
    "stop"             "ends the turn with the given stop reason"                                   stop;
    "fail"             "answers the prompt with an error"                                           |_| Ok(Stop::Failed);
    "silent"           "never says anything again, and ignores session/cancel"                      silent;
    "never-asks"       "says three things and ends the turn"                                        never_asks;
    "echo"             "says what it was prompted"                                                  echo;
};

/// The script that `words` begin with.
pub(crate) fn find(words: &str) -> Option<&'static Script> {
    let name = words.split_whitespace().next()?;
    SCRIPTS.iter().find(|script| script.name == name)
}

/// One line a script.
pub(crate) fn list() -> String {
    SCRIPTS.iter().fold(String::new(), |mut list, script| {
        let _ = writeln!(list, "{:<18} {}", script.name, script.about);
        list
    })
}

/// What is no frame: words, half a frame, a lone NUL, invalid UTF-8, blank lines, a byte order mark, JSON that is no
/// JSON-RPC, and a batch.
pub(crate) const NOISE: &[u8] = b"\xEF\xBB\xBF\nnpm warn deprecated something\n{\"jsonrpc\":\"2.0\",\"method\":\n\n\r\n\
\0\n\xFF\xFE\n42\n{}\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}]\n{\"type\":\"info\",\"message\":\"starting\"}\n\
{not json\n";

pub(crate) fn told(answer: &Value) -> String {
    format!("I was told: {answer}\n")
}

/// Asks one form and says what came back.
fn one(turn: &mut Turn<'_, '_>, form: &Value) -> Outcome {
    turn.say("I need a decision.\n")?;
    let answer = turn.ask(form)?;
    turn.say(&told(&answer))?;
    Ok(END_TURN)
}

fn demo(turn: &mut Turn<'_, '_>) -> Outcome {
    if !turn.client_takes_forms() {
        turn.say("This client takes no forms, so I would have to guess. I had rather not.\n")?;
        return Ok(END_TURN);
    }
    let steps = [
        ("I am setting up a new service. First, where should it keep its data?\n", forms::single()),
        ("Two more things before I write the deployment.\n", forms::two()),
        ("The model declined one step. What now?\n", forms::refusal()),
        (
            "A tool behind me needs something that only you know. Anything will do, this is a demo.\n",
            forms::passthrough(),
        ),
        ("Last, the details.\n", forms::typed()),
    ];
    let mut summary = String::from("Thank you. This is what I was told:\n");
    for (words, form) in steps {
        turn.say(words)?;
        let answer = turn.ask(&form)?;
        if answer["action"] == "cancel" {
            turn.say("Cancelled, so I stop here.\n")?;
            return Ok(END_TURN);
        }
        let line = match answer["action"].as_str() {
            Some("accept") => answer["content"].to_string(),
            Some(other) => other.to_owned(),
            None => answer.to_string(),
        };
        let _ = writeln!(summary, "- {line}");
    }
    turn.say(&summary)?;
    Ok(END_TURN)
}

fn form(turn: &mut Turn<'_, '_>) -> Outcome {
    let Ok(form) = serde_json::from_str::<Value>(&turn.prompt.argument) else { return Ok(Stop::Failed) };
    let answer = turn.ask(&form)?;
    turn.say(&format!("The answer came: {}.\n", answer["action"]))?;
    Ok(END_TURN)
}

fn permission_request(turn: &Turn<'_, '_>, options: &Value) -> Value {
    json!({
        "sessionId": turn.prompt.session,
        "toolCall": {"toolCallId": "tool-7", "title": "Run `rm -rf build`", "kind": "execute", "status": "pending"},
        "options": options,
    })
}

/// Four options of every kind, the rejection first.
fn any_permission(turn: &Turn<'_, '_>) -> Value {
    permission_request(
        turn,
        &json!([
            {"optionId": "no", "name": "No, and tell me what to do", "kind": "reject_once"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "always", "name": "Yes, always", "kind": "allow_always"},
            {"optionId": "never", "name": "Never", "kind": "reject_always"},
        ]),
    )
}

fn permission(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = any_permission(turn);
    let reply =
        turn.call("session/request_permission", &params)?.unwrap_or_else(|error| json!({"error": error}));
    turn.say(&told(&reply))?;
    Ok(END_TURN)
}

fn permissions(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = any_permission(turn);
    let ids = (0..turn.number(2))
        .map(|_| turn.request("session/request_permission", &params))
        .collect::<Result<Vec<_>, _>>()?;
    for id in ids {
        let answer = turn.answer(id)?;
        turn.say(&told(&answer))?;
    }
    Ok(END_TURN)
}

fn permission_bare(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = permission_request(turn, &json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]));
    let reply =
        turn.call("session/request_permission", &params)?.unwrap_or_else(|error| json!({"error": error}));
    turn.say(&told(&reply))?;
    Ok(END_TURN)
}

fn parallel(turn: &mut Turn<'_, '_>) -> Outcome {
    let (first, second) = (turn.send_ask(&forms::single())?, turn.send_ask(&forms::single())?);
    let (first, second) = (turn.answer(first)?, turn.answer(second)?);
    turn.say(&format!("first: {first}\nsecond: {second}\n"))?;
    Ok(END_TURN)
}

fn cancel_request(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.say("asking\n")?;
    let id = turn.send_ask(&forms::single())?;
    turn.notify("$/cancel_request", &json!({"requestId": id}))?;
    let answer = turn.answer(id)?;
    turn.say(&told(&answer))?;
    Ok(END_TURN)
}

fn wait_for_cancel(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.say("waiting\n")?;
    turn.wait_for_cancel()?;
    Ok(END_TURN)
}

fn ask_until_cancel(turn: &mut Turn<'_, '_>) -> Outcome {
    let ask = turn.send_ask(&forms::single())?;
    let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
    let params = permission_request(turn, &options);
    let permission = turn.request("session/request_permission", &params)?;
    turn.wait_for_cancel()?;
    let (answer, permission) = (turn.answer(ask)?, turn.answer(permission)?);
    turn.say(&format!("ask: {answer}\npermission: {permission}\n"))?;
    Ok(END_TURN)
}

fn prompt_ends_first(turn: &mut Turn<'_, '_>) -> Outcome {
    let id = turn.send_ask(&forms::passthrough())?;
    turn.end("end_turn")?;
    // Keeps the agent in this script until the client has done something about the ask.
    turn.answer(id)?;
    Ok(Stop::Already)
}

fn asynchronous(turn: &mut Turn<'_, '_>) -> Outcome {
    let mut form = forms::single();
    form["_meta"] = json!({"codex": {"delivery": "async"}});
    let id = turn.send_ask(&form)?;
    turn.end("end_turn")?;
    let answer = turn.answer(id)?;
    turn.say(&told(&answer))?;
    Ok(Stop::Already)
}

fn exit_mid_ask(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.send_ask(&forms::single())?;
    Err(Gone::Exit(3))
}

fn exit(turn: &mut Turn<'_, '_>) -> Outcome {
    Err(Gone::Exit(u8::try_from(turn.number(1)).unwrap_or(1)))
}

fn url(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = json!({
        "mode": "url",
        "sessionId": turn.prompt.session,
        "message": "Authorize",
        "url": "https://example.test/a",
        "elicitationId": "el-1",
    });
    report(turn, &params)
}

/// Sends an ask as it is, and says what came back.
fn report(turn: &mut Turn<'_, '_>, params: &Value) -> Outcome {
    let id = turn.request("elicitation/create", params)?;
    let answer = turn.answer(id)?;
    turn.say(&told(&answer))?;
    Ok(END_TURN)
}

fn scoped(turn: &mut Turn<'_, '_>, scope: &Value) -> Outcome {
    let mut params = forms::single();
    if let Some(params) = params.as_object_mut() {
        params.insert("mode".to_owned(), json!("form"));
        params.extend(scope.as_object().cloned().unwrap_or_default());
    }
    report(turn, &params)
}

fn both_scopes(turn: &mut Turn<'_, '_>) -> Outcome {
    let scope = json!({"sessionId": turn.prompt.session, "requestId": 7});
    scoped(turn, &scope)
}

fn malformed(turn: &mut Turn<'_, '_>) -> Outcome {
    let session = turn.prompt.session.clone();
    for params in [
        json!({}),
        json!([]),
        json!({"mode": "form", "sessionId": session, "message": 5, "requestedSchema": {}}),
        json!({"mode": "form", "sessionId": 5, "message": "m", "requestedSchema": {"type": "object"}}),
        json!({"mode": "form", "sessionId": session, "message": "m", "requestedSchema": "x"}),
        json!({"mode": "form", "sessionId": session, "message": "m"}),
        json!({"mode": "telepathy", "sessionId": session, "message": "m"}),
    ] {
        report(turn, &params)?;
    }
    Ok(END_TURN)
}

fn noise(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.raw(NOISE)?;
    turn.say("before\n")?;
    turn.raw(NOISE)?;
    let answer = turn.ask(&forms::single())?;
    turn.raw(NOISE)?;
    turn.say(&told(&answer))?;
    turn.raw(NOISE)?;
    Ok(END_TURN)
}

fn long_line(turn: &mut Turn<'_, '_>) -> Outcome {
    const PIECE: usize = 1024 * 1024;
    let mut left = turn.number(100_000_000);
    turn.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":\"")?;
    let piece = vec![b'x'; PIECE];
    while left > 0 {
        let count = left.min(PIECE);
        turn.raw(&piece[..count])?;
        left -= count;
    }
    turn.raw(b"\"}}\n")?;
    turn.say("said it\n")?;
    Ok(END_TURN)
}

fn id_reuse(turn: &mut Turn<'_, '_>) -> Outcome {
    let start = *turn.next_id();
    let first = turn.ask(&forms::single())?;
    *turn.next_id() = start;
    let second = turn.ask(&forms::single())?;
    turn.say(&format!("first: {first}\nsecond: {second}\n"))?;
    Ok(END_TURN)
}

fn duplicate_id(turn: &mut Turn<'_, '_>) -> Outcome {
    let id = turn.send_ask(&forms::single())?;
    *turn.next_id() = id;
    turn.send_ask(&forms::passthrough())?;
    let (first, second) = (turn.answer(id)?, turn.answer(id)?);
    turn.say(&format!("one: {first}\nother: {second}\n"))?;
    Ok(END_TURN)
}

fn late(turn: &mut Turn<'_, '_>) -> Outcome {
    let id = turn.send_ask(&forms::single())?;
    let answer = turn.answer(id)?;
    turn.notify("$/cancel_request", &json!({"requestId": id}))?;
    turn.say(&told(&answer))?;
    Ok(END_TURN)
}

fn flood(turn: &mut Turn<'_, '_>) -> Outcome {
    for index in 0..turn.number(10_000) {
        turn.say(&format!("line {index}\n"))?;
    }
    Ok(END_TURN)
}

fn many(turn: &mut Turn<'_, '_>) -> Outcome {
    let ids =
        (0..turn.number(100)).map(|_| turn.send_ask(&forms::passthrough())).collect::<Result<Vec<_>, _>>()?;
    let mut declined = 0;
    for id in ids {
        declined += usize::from(turn.answer(id)?["action"] == "decline");
    }
    turn.say(&format!("{declined} declined\n"))?;
    Ok(END_TURN)
}

fn tools(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.update(&json!({
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "text", "text": "Where is the build file?"},
    }))?;
    turn.update(&json!({"sessionUpdate": "plan", "entries": [
        {"content": "Look around", "priority": "high", "status": "in_progress"},
        {"content": "Build", "priority": "medium", "status": "pending"},
    ]}))?;
    turn.update(&json!({
        "sessionUpdate": "tool_call", "toolCallId": "tool-1", "title": "List files", "kind": "read",
        "status": "pending", "locations": [],
    }))?;
    for status in ["in_progress", "completed"] {
        turn.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "tool-1", "status": status,
        }))?;
    }
    turn.say("Done.\n")?;
    Ok(END_TURN)
}

fn read(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = json!({"sessionId": turn.prompt.session, "path": turn.prompt.argument});
    let reply = turn.call("fs/read_text_file", &params)?;
    turn.say(&match reply {
        Ok(result) => format!("read: {}\n", result["content"].as_str().unwrap_or_default()),
        Err(error) => format!("refused: {}\n", error["message"].as_str().unwrap_or_default()),
    })?;
    Ok(END_TURN)
}

fn write(turn: &mut Turn<'_, '_>) -> Outcome {
    let params =
        json!({"sessionId": turn.prompt.session, "path": turn.prompt.argument, "content": "written\n"});
    let reply = turn.call("fs/write_text_file", &params)?;
    turn.say(&match reply {
        Ok(_) => "wrote\n".to_owned(),
        Err(error) => format!("refused: {}\n", error["message"].as_str().unwrap_or_default()),
    })?;
    Ok(END_TURN)
}

fn stop(turn: &mut Turn<'_, '_>) -> Outcome {
    const REASONS: [&str; 5] = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
    let wanted = REASONS.into_iter().find(|reason| *reason == turn.prompt.argument);
    turn.say("stopping\n")?;
    Ok(wanted.map_or(Stop::Failed, Stop::Because))
}

fn silent(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.say("I go quiet now.\n")?;
    loop {
        // A request that nobody sent is never answered.
        turn.reply(u64::MAX)?.ok();
    }
}

fn never_asks(turn: &mut Turn<'_, '_>) -> Outcome {
    for words in ["one\n", "two\n", "three\n"] {
        turn.say(words)?;
    }
    Ok(END_TURN)
}

fn echo(turn: &mut Turn<'_, '_>) -> Outcome {
    let text = turn.prompt.text.clone();
    turn.say(&text)?;
    Ok(END_TURN)
}
