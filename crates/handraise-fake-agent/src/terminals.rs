//! The scripts that have their client run commands.

use serde_json::{Value, json};

use crate::{
    scripts::{Outcome, told},
    turn::{END_TURN, Turn},
    wire::Gone,
};

/// Creates a terminal for what the script was given; `Err` holds what the client said instead.
fn create_terminal(turn: &mut Turn<'_, '_>) -> Result<Result<Value, Value>, Gone> {
    let given = turn.prompt.argument.clone();
    let mut params = json!({"command": if given.is_empty() { "true" } else { &given }});
    if let (Ok(Value::Object(given)), Some(params)) = (serde_json::from_str(&given), params.as_object_mut()) {
        params.extend(given);
    }
    params["sessionId"] = turn.prompt.session.clone().into();
    Ok(turn.call("terminal/create", &params)?.map(|mut created| created["terminalId"].take()))
}

/// Calls a method of a terminal.
fn on_terminal(turn: &mut Turn<'_, '_>, method: &str, terminal: &Value) -> Result<Value, Gone> {
    let params = json!({"sessionId": turn.prompt.session, "terminalId": terminal});
    let reply = turn.call(&format!("terminal/{method}"), &params)?;
    Ok(reply.unwrap_or_else(|error| json!({"error": error})))
}

fn refused(turn: &mut Turn<'_, '_>, error: &Value) -> Outcome {
    turn.say(&told(&json!({"error": error["code"]})))?;
    Ok(END_TURN)
}

pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Outcome {
    let terminal = match create_terminal(turn)? {
        Ok(terminal) => terminal,
        Err(error) => return refused(turn, &error),
    };
    for method in ["wait_for_exit", "output", "release", "output"] {
        let reply = on_terminal(turn, method, &terminal)?;
        turn.say(&format!("{method}: {reply}\n"))?;
    }
    Ok(END_TURN)
}

pub(crate) fn wait(turn: &mut Turn<'_, '_>) -> Outcome {
    match create_terminal(turn)? {
        Ok(terminal) => {
            let exit = on_terminal(turn, "wait_for_exit", &terminal)?;
            turn.say(&told(&exit))?;
            Ok(END_TURN)
        }
        Err(error) => refused(turn, &error),
    }
}

pub(crate) fn kill(turn: &mut Turn<'_, '_>) -> Outcome {
    let terminal = match create_terminal(turn)? {
        Ok(terminal) => terminal,
        Err(error) => return refused(turn, &error),
    };
    while on_terminal(turn, "output", &terminal)?["output"] == "" {}
    let params = json!({"sessionId": turn.prompt.session, "terminalId": terminal});
    let waiting = turn.request("terminal/wait_for_exit", &params)?;
    for method in ["kill", "output", "kill", "release"] {
        let reply = on_terminal(turn, method, &terminal)?;
        turn.say(&format!("{method}: {reply}\n"))?;
    }
    let exit = turn.answer(waiting)?;
    turn.say(&format!("exit: {exit}\n"))?;
    Ok(END_TURN)
}

pub(crate) fn leave(turn: &mut Turn<'_, '_>) -> Outcome {
    match create_terminal(turn)? {
        Ok(terminal) => while on_terminal(turn, "output", &terminal)?["output"] == "" {},
        Err(error) => return refused(turn, &error),
    }
    Ok(END_TURN)
}

pub(crate) fn many(turn: &mut Turn<'_, '_>) -> Outcome {
    let params = json!({"sessionId": turn.prompt.session, "command": "sleep", "args": ["1000"]});
    for _ in 0..turn.number(1) {
        let said = match turn.call("terminal/create", &params)? {
            Ok(_) => "created\n".to_owned(),
            Err(error) => format!("refused: {}\n", error["message"].as_str().unwrap_or_default()),
        };
        turn.say(&said)?;
    }
    Ok(END_TURN)
}
