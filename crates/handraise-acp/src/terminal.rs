//! `terminal/…`: commands that an agent has run by its client.
//!
//! `command` is a program and `args` are its arguments. Agents that hand on a line for a shell put all of it into
//! `command` and send no arguments; the most used client runs everything through a shell, so that nobody noticed. A
//! `command` without arguments that is no plain word is therefore run by `/bin/sh -c`.

use serde_json::{Map, Value, json};

use crate::read::id;

/// The most arguments, and the most variables, of a command.
const MAX_WORDS: usize = 4096;
/// The most bytes of a command, its arguments and its variables together.
const MAX_BYTES: usize = 1024 * 1024;
/// What a shell reads as more than the name of a program.
const SHELL: &str = "|&;<>()$`\\\"'*?[]#~={}!";

/// What an agent wants of its client's terminals.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalRequest {
    /// `terminal/create`
    Create(Order),
    /// `terminal/output`
    Output(String),
    /// `terminal/wait_for_exit`
    WaitForExit(String),
    /// `terminal/kill`
    Kill(String),
    /// `terminal/release`
    Release(String),
}

/// A command to be run. Not `Debug` in full: variables may hold secrets.
#[derive(PartialEq, Eq)]
pub struct Order {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables on top of the environment that the agent has.
    pub env: Vec<(String, String)>,
    /// Where it runs, as an absolute path; the session's working directory otherwise.
    pub cwd: Option<String>,
    /// How many bytes of output are kept.
    pub output_byte_limit: Option<u64>,
    /// The command in one line, for people.
    pub line: String,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Order")
            .field("line", &self.line)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(u32),
    /// By this signal, such as `SIGTERM`.
    Signal(String),
    /// Nobody knows.
    Unknown,
}

impl Exit {
    /// The result of `terminal/wait_for_exit`, and `exitStatus` of `terminal/output`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Code(code) => json!({"exitCode": code, "signal": null}),
            Self::Signal(signal) => json!({"exitCode": null, "signal": signal}),
            Self::Unknown => json!({"exitCode": null, "signal": null}),
        }
    }
}

/// Reads a request; `None` for a method that there is not, otherwise why its parameters make no sense.
pub fn read(method: &str, params: &Value) -> Option<Result<TerminalRequest, &'static str>> {
    let named = |request: fn(String) -> TerminalRequest| {
        let id = params.as_object().and_then(|params| id(params, "terminalId"));
        id.map(|id| request(id.to_owned())).ok_or("terminalId is missing")
    };
    Some(match method {
        "terminal/create" => order(params).map(TerminalRequest::Create),
        "terminal/output" => named(TerminalRequest::Output),
        "terminal/wait_for_exit" => named(TerminalRequest::WaitForExit),
        "terminal/kill" => named(TerminalRequest::Kill),
        "terminal/release" => named(TerminalRequest::Release),
        _ => return None,
    })
}

fn order(params: &Value) -> Result<Order, &'static str> {
    let params = params.as_object().ok_or("the parameters are no object")?;
    let command = params.get("command").and_then(Value::as_str).unwrap_or_default();
    if command.trim().is_empty() {
        return Err("command is missing");
    }
    let args = list(params, "args", "args is no list of texts", |arg| arg.as_str().map(str::to_owned))?;
    let env = list(params, "env", "env is no list of names and values", |variable| {
        let text = |key| variable.get(key).and_then(Value::as_str).map(str::to_owned);
        text("name").zip(text("value")).filter(|(name, _)| !name.is_empty() && !name.contains('='))
    })?;
    check_size(command, &args, &env)?;
    let cwd = match params.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(cwd)) => Some(cwd.clone()),
        Some(_) => return Err("cwd is no text"),
    };
    let output_byte_limit = params.get("outputByteLimit").and_then(Value::as_u64);
    let line = args.iter().fold(command.to_owned(), |line, arg| line + " " + arg);
    let (program, args) = if args.is_empty() && !is_plain(command) {
        ("/bin/sh".to_owned(), vec!["-c".to_owned(), command.to_owned()])
    } else {
        (command.to_owned(), args)
    };
    Ok(Order { program, args, env, cwd, output_byte_limit, line })
}

fn check_size(command: &str, args: &[String], env: &[(String, String)]) -> Result<(), &'static str> {
    let variables = env.iter().flat_map(|(name, value)| [name, value]);
    let words: Vec<&str> = args.iter().chain(variables).map(String::as_str).chain([command]).collect();
    if words.iter().map(|word| word.len()).sum::<usize>() > MAX_BYTES {
        return Err("the command is larger than 1 MiB");
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("the command holds a NUL");
    }
    Ok(())
}

fn list<T>(
    params: &Map<String, Value>,
    key: &str,
    problem: &'static str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, &'static str> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MAX_WORDS => {
            items.iter().map(|item| read(item).ok_or(problem)).collect()
        }
        Some(_) => Err(problem),
    }
}

/// Whether a shell would read it as the name of a program and nothing else.
fn is_plain(command: &str) -> bool {
    !command.contains(|c: char| c.is_whitespace() || SHELL.contains(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn created(params: &Value) -> Result<Order, &'static str> {
        match read("terminal/create", params).unwrap()? {
            TerminalRequest::Create(order) => Ok(order),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(params: &Value, program: &str, args: &[&str]) {
        let order = created(params).unwrap();
        assert_eq!(
            (order.program.as_str(), order.args),
            (program, args.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn a_program_and_its_arguments_are_run_as_they_are() {
        check(&json!({"command": "npm", "args": ["test", "a b; c"]}), "npm", &["test", "a b; c"]);
        check(&json!({"command": "make"}), "make", &[]);
        check(&json!({"command": "/usr/bin/g++", "args": null, "cwd": null}), "/usr/bin/g++", &[]);
        check(&json!({"command": "my program", "args": ["x"]}), "my program", &["x"]);
    }

    #[test]
    fn a_line_without_arguments_is_a_shells() {
        for line in ["git status && echo x | head", "ls -la", "CI=1 make", "echo $HOME", "./a.sh;", "ls\n"] {
            check(&json!({"command": line, "args": []}), "/bin/sh", &["-c", line]);
            check(&json!({"command": line}), "/bin/sh", &["-c", line]);
        }
    }

    #[test]
    fn everything_else_of_the_order_is_read() {
        let order = created(&json!({
            "sessionId": "s", "command": "make", "args": ["-j", "2"], "cwd": "/work", "outputByteLimit": 1000,
            "env": [{"name": "CI", "value": "1"}, {"name": "EMPTY", "value": "", "_meta": {}}],
        }));
        let order = order.unwrap();
        assert_eq!(order.env, [("CI".to_owned(), "1".to_owned()), ("EMPTY".to_owned(), String::new())]);
        assert_eq!((order.cwd.as_deref(), order.output_byte_limit), (Some("/work"), Some(1000)));
        assert_eq!(order.line, "make -j 2");
        assert!(!format!("{order:?}").contains("\"1\""), "{order:?}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let many = vec!["x"; MAX_WORDS + 1];
        for (params, reason) in [
            (json!(null), "the parameters are no object"),
            (json!({}), "command is missing"),
            (json!({"command": " "}), "command is missing"),
            (json!({"command": 7}), "command is missing"),
            (json!({"command": "a", "args": "b"}), "args is no list of texts"),
            (json!({"command": "a", "args": [1]}), "args is no list of texts"),
            (json!({"command": "a", "args": many}), "args is no list of texts"),
            (json!({"command": "a", "args": ["b\u{0}"]}), "the command holds a NUL"),
            (json!({"command": "a", "args": ["x".repeat(MAX_BYTES)]}), "the command is larger than 1 MiB"),
            (json!({"command": "a", "env": {"CI": "1"}}), "env is no list of names and values"),
            (
                json!({"command": "a", "env": [{"name": "A=B", "value": ""}]}),
                "env is no list of names and values",
            ),
            (
                json!({"command": "a", "env": [{"name": "", "value": ""}]}),
                "env is no list of names and values",
            ),
            (json!({"command": "a", "cwd": 1}), "cwd is no text"),
        ] {
            assert_eq!(created(&params).err(), Some(reason));
        }
        for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"] {
            assert_eq!(read(method, &json!({})), Some(Err("terminalId is missing")), "{method}");
            assert!(matches!(read(method, &json!({"terminalId": "t"})), Some(Ok(_))), "{method}");
        }
        assert_eq!(read("terminal/resize", &json!({"terminalId": "t"})), None);
    }

    #[test]
    fn an_exit_has_a_code_or_a_signal() {
        assert_eq!(Exit::Code(3).to_json(), json!({"exitCode": 3, "signal": null}));
        assert_eq!(Exit::Signal("SIGTERM".into()).to_json(), json!({"exitCode": null, "signal": "SIGTERM"}));
        assert_eq!(Exit::Unknown.to_json(), json!({"exitCode": null, "signal": null}));
    }

    proptest! {
        #[test]
        fn whatever_is_run_is_what_was_asked_for(command in "\\PC{1,40}", args in prop::collection::vec("\\PC{0,10}", 0..4)) {
            if let Ok(order) = created(&json!({"command": command, "args": args})) {
                if order.program == command {
                    prop_assert_eq!(order.args, args);
                } else {
                    prop_assert_eq!(order.args, ["-c".to_owned(), command]);
                    prop_assert!(args.is_empty());
                }
            }
        }
    }
}
