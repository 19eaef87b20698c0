//! The scripts that write what no agent should.

use serde_json::{Value, json};

use crate::{
    forms,
    scripts::{Outcome, told},
    turn::{END_TURN, Stop, Turn},
    wire::Gone,
};

/// Words whose letters have one to four bytes each.
const WORDS: &str = "Grüße, 手を挙げて 🖐️\n";

/// Asks a form whose words come byte by byte, each frame behind a byte order mark.
pub(crate) fn pieces(turn: &mut Turn<'_, '_>) -> Outcome {
    let session = turn.prompt.session.clone();
    let said = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": WORDS},
    }}});
    for byte in format!("\u{feff}{said}\n").into_bytes() {
        turn.raw(&[byte])?;
    }
    let id = *turn.next_id();
    *turn.next_id() = id + 1;
    let mut params = json!({"mode": "form", "sessionId": session, "message": WORDS.trim_end()});
    params["requestedSchema"] = forms::passthrough()["requestedSchema"].take();
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    for byte in format!("\u{feff}{ask}\r\n").into_bytes() {
        turn.raw(&[byte])?;
    }
    let answer = turn.answer(id)?;
    turn.say(&told(&answer))?;
    Ok(END_TURN)
}

/// Answers that nobody waits for.
fn stray_answers(turn: &mut Turn<'_, '_>) -> Result<(), Gone> {
    for id in [json!(999), json!("never-asked"), Value::Null, json!(-1), json!(1.5), json!(0)] {
        for outcome in [
            json!({"result": {"stopReason": "end_turn"}}),
            json!({"error": {"code": -32603, "message": "stray"}}),
            json!({}),
        ] {
            let mut frame = json!({"jsonrpc": "2.0", "id": id});
            if let (Some(frame), Some(outcome)) = (frame.as_object_mut(), outcome.as_object()) {
                frame.extend(outcome.clone());
            }
            turn.raw(format!("{frame}\n").as_bytes())?;
        }
    }
    Ok(())
}

/// Answers what it was not asked, before and during its own ask, and its prompt three times.
pub(crate) fn strays(turn: &mut Turn<'_, '_>) -> Outcome {
    stray_answers(turn)?;
    let id = turn.send_ask(&forms::single())?;
    stray_answers(turn)?;
    let answer = turn.answer(id)?;
    turn.say(&told(&answer))?;
    answer_thrice(turn, "end_turn")
}

/// Waits until it is cancelled, then answers its prompt three times.
pub(crate) fn cancelled_thrice(turn: &mut Turn<'_, '_>) -> Outcome {
    turn.send_ask(&forms::single())?;
    turn.wait_for_cancel()?;
    answer_thrice(turn, "cancelled")
}

fn answer_thrice(turn: &mut Turn<'_, '_>, reason: &str) -> Outcome {
    turn.end(reason)?;
    turn.end("refusal")?;
    let error = json!({"jsonrpc": "2.0", "id": turn.prompt.id, "error": {"code": -32603, "message": "late"}});
    turn.raw(format!("{error}\n").as_bytes())?;
    Ok(Stop::Already)
}

/// Thinks aloud, the given number of megabytes.
pub(crate) fn flood_bytes(turn: &mut Turn<'_, '_>) -> Outcome {
    const PIECE: usize = 64_000;
    let words = "x".repeat(PIECE);
    for _ in 0..turn.number(1) * 1_000_000 / PIECE {
        turn.update(&json!({
            "sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": words},
        }))?;
    }
    turn.say("thought enough\n")?;
    Ok(END_TURN)
}
