//! `handraise ask` in shells: what runs after it, whatever happens to it.

use std::{
    io::Read as _,
    process::{Child, Command, Output, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Collected, Home, Pass, Relay, Up, binary, hears_hangup, kill, pick, say, send, skip, tree, wait_for,
};

/// The script of the matrix: the rest must run on yes alone.
const DEPLOY: &str = "\"$HANDRAISE\" ask 'Deploy?' --choice yes --choice no $OPTIONS && echo deploying";

/// A shell that runs a script with `$HANDRAISE`.
struct Shell {
    child: Child,
    stdout: Collected,
    stderr: Collected,
}

impl Shell {
    fn run(home: &Home, script: &str, options: &str) -> Self {
        Self::run_with(home, script, options, &[])
    }

    fn run_with(home: &Home, script: &str, options: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HANDRAISE_DATA_DIR", home.data_dir())
            .env("HANDRAISE", binary())
            .env("OPTIONS", options)
            .envs(variables.iter().copied())
            .current_dir(home.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = Collected::from(child.stdout.take().unwrap());
        let stderr = Collected::from(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// The process of `handraise ask` in it.
    fn ask(&self) -> u32 {
        wait_for("handraise ask", || tree(self.child.id()).first().copied())
    }

    /// Its exit status and what it wrote, once it has ended.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String, String) {
        let status = wait_for("the end of the script", || self.child.try_wait().unwrap());
        // The pipes may still hold the last lines.
        let Self { stdout, stderr, .. } = self;
        wait_for("the end of its output", || (stdout.is_closed() && stderr.is_closed()).then_some(()));
        (status.code(), stdout.text(), stderr.text())
    }
}

/// Runs the script to its end, with something happening to its question once it is asked.
#[track_caller]
fn deploy(options: &str, happens: impl FnOnce(&Up, &Value, u32)) -> (Option<i32>, String, String) {
    let home = Home::new();
    let up = Up::start(&home);
    let shell = Shell::run(&home, DEPLOY, options);
    let ask = up.wait_for_ask();
    happens(&up, &ask, shell.ask());
    shell.end()
}

#[test]
fn the_rest_runs_on_yes() {
    let (status, stdout, _) = deploy("", |up, ask, _| {
        assert_eq!(up.answer(ask, &pick("answer", &["yes"])).status, 200);
    });
    assert_eq!((status, stdout.as_str()), (Some(0), "yes\ndeploying\n"));
}

#[test]
fn the_rest_never_runs_on_no() {
    let (status, stdout, stderr) = deploy("", |up, ask, _| {
        assert_eq!(up.answer(ask, &pick("answer", &["no"])).status, 200);
    });
    assert_eq!((status, stdout.as_str()), (Some(6), "no\n"));
    assert!(stderr.contains("tests did not answer \"yes\""), "{stderr}");
}

#[test]
fn the_rest_never_runs_on_a_skip() {
    let (status, stdout, stderr) = deploy("", |up, ask, _| {
        let skip = json!({"answers": [], "rejected": true, "reject_reason": "not on a Friday\u{1b}[2J"});
        assert_eq!(up.answer(ask, &skip).status, 200);
    });
    assert_eq!((status, stdout.as_str()), (Some(3), ""));
    assert!(stderr.contains("declined by tests: not on a Friday\\u{1b}[2J"), "S42: {stderr}");
}

#[test]
fn the_rest_never_runs_when_nobody_answers() {
    let (status, stdout, stderr) = deploy("--timeout 1s", |_, ask, _| {
        assert_eq!(ask["on_deadline"], Value::Null, "then it goes on without an answer");
    });
    assert_eq!((status, stdout.as_str()), (Some(5), ""));
    assert!(stderr.contains("nobody answered within 1s"), "{stderr}");
}

#[test]
fn the_rest_never_runs_after_a_signal_and_the_ask_is_taken_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && !hears_hangup() {
            continue;
        }
        let (status, stdout, _) = deploy("", |up, ask, process| {
            send(process, signal);
            let settlement = up.wait_for_settlement(ask);
            assert_eq!(settlement["outcome"], "cancel", "{signal:?}");
            assert_eq!(settlement["provenance"], "system", "{signal:?}");
        });
        assert_eq!((status, stdout.as_str()), (Some(4), ""), "{signal:?}");
    }
}

#[test]
fn the_rest_never_runs_after_a_kill() {
    let (status, stdout, _) = deploy("", |up, ask, process| {
        kill(process);
        wait_for("the loss of the holder", || (up.wait_for_ask()["holder_connected"] == false).then_some(()));
        assert_eq!(up.answer(ask, &pick("answer", &["yes"])).status, 503, "nothing was written");
    });
    assert_eq!((status, stdout.as_str()), (Some(137), ""));
}

#[test]
fn the_rest_never_runs_without_an_inbox() {
    let home = Home::new();
    let (status, stdout, stderr) = Shell::run(&home, DEPLOY, "").end();
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("start one with `handraise up`, or name one with --inbox URL"), "{stderr}");

    let (status, stdout, stderr) = Shell::run(&home, DEPLOY, "--inbox none").end();
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("nobody can be asked"), "{stderr}");

    let nobody = [("HANDRAISE_TOKEN", "x")];
    let (status, stdout, stderr) =
        Shell::run_with(&home, DEPLOY, "--inbox http://127.0.0.1:9", &nobody).end();
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("is `handraise up` running there?"), "{stderr}");

    let up = Up::start(&home);
    kill(up.child.id());
    drop(up);
    let folder = home.data_dir().display().to_string();
    for (named, command) in
        [("", "up"), (&*format!("--data-dir {folder}"), &*format!("up --data-dir {folder}"))]
    {
        let (status, stdout, stderr) = Shell::run(&home, DEPLOY, named).end();
        assert_eq!((status, stdout.as_str()), (Some(1), ""));
        assert!(stderr.contains(&format!("is it running? Start it with `handraise {command}`")), "{stderr}");
    }
}

#[test]
fn the_rest_never_runs_when_the_inbox_takes_no_more_and_it_says_so() {
    let home = Home::new();
    home.write_config("[limits]\ntoken_open_asks = 1\n");
    let up = Up::start(&home);
    let first = Shell::run(&home, DEPLOY, "");
    let ask = up.wait_for_ask();
    let (status, stdout, stderr) = Shell::run(&home, DEPLOY, "").end();
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(
        stderr.contains("did not take the question: holders with this token have 1 asks open"),
        "{stderr}"
    );
    assert!(stderr.contains("limits.token_open_asks"), "{stderr}");
    assert_eq!(up.answer(&ask, &pick("answer", &["yes"])).status, 200);
    assert_eq!(first.end().0, Some(0));
}

#[test]
fn the_rest_never_runs_when_the_question_makes_no_sense() {
    let home = Home::new();
    let _up = Up::start(&home);
    for (options, status, words) in [
        ("--choice yes", 1, "--choice \"yes\" stands twice"),
        ("--timeout 0s", 1, "--timeout is \"0s\""),
        ("--timeout soon", 1, "--timeout is \"soon\""),
        ("--expect maybe", 1, "--expect is \"maybe\""),
        ("--nonsense", 2, "--nonsense"),
    ] {
        let (got, stdout, stderr) = Shell::run(&home, DEPLOY, options).end();
        assert_eq!((got, stdout.as_str()), (Some(status), ""), "{options}: {stderr}");
        assert!(stderr.contains(words), "{options}: {stderr}");
    }
}

#[test]
fn the_rest_never_runs_when_the_answer_cannot_be_written() {
    let home = Home::new();
    let up = Up::start(&home);
    let script = "\"$HANDRAISE\" ask 'Deploy?' --choice yes --choice no >/dev/full && echo deploying >&2";
    let shell = Shell::run(&home, script, "");
    assert_eq!(up.answer(&up.wait_for_ask(), &pick("answer", &["yes"])).status, 200);
    let (status, _, stderr) = shell.end();
    assert_eq!(status, Some(1));
    assert!(stderr.contains("cannot be written to stdout") && !stderr.contains("deploying"), "{stderr}");
}

#[test]
fn a_question_whose_reader_has_gone_is_taken_back() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut child = home
        .handraise(&["ask", "Anybody?", "--text"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ask = up.wait_for_ask();
    drop(child.stdout.take());
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "cancel");
    assert_eq!(wait_for("its end", || child.try_wait().unwrap()).code(), Some(4));
}

/// As when a client is killed that ran it with a pipe for each.
#[test]
fn a_question_is_taken_back_when_nobody_reads_its_log_either() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut child = home
        .handraise(&["ask", "Anybody?", "--text"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ask = up.wait_for_ask();
    drop(child.stderr.take());
    drop(child.stdout.take());
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "cancel");
    assert_eq!(wait_for("its end", || child.try_wait().unwrap()).code(), Some(4));
}

#[test]
fn the_rest_never_runs_when_the_inbox_dies_and_stays_away() {
    let (status, stdout, _) = deploy("--timeout 2s", |up, _, _| kill(up.child.id()));
    assert_eq!((status, stdout.as_str()), (Some(5), ""));
}

#[test]
fn a_question_outlives_a_restart_of_the_inbox() {
    let home = Home::new();
    let up = Up::start(&home);
    let shell = Shell::run(&home, DEPLOY, "");
    let before = up.wait_for_ask();
    up.stop();
    let up = Up::start(&home);
    wait_for("the holder", || (up.wait_for_ask()["holder_connected"] == true).then_some(()));
    let ask = up.wait_for_ask();
    assert_eq!(ask["id"], before["id"]);
    assert_eq!(up.answer(&ask, &pick("answer", &["yes"])).status, 200);
    let (status, stdout, _) = shell.end();
    assert_eq!((status, stdout.as_str()), (Some(0), "yes\ndeploying\n"));
}

/// Asks with these arguments, answers with that, and takes the exit status and stdout.
#[track_caller]
fn asked(arguments: &[&str], answers: &[(&Value, u16)]) -> (Option<i32>, String) {
    let home = Home::new();
    let up = Up::start(&home);
    let mut command = home.handraise(&["ask"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let ask = up.wait_for_ask();
    assert_eq!(ask["source"], "script");
    assert_eq!(ask["origin"]["holder"], "ask");
    for (answer, status) in answers {
        let said = up.answer(&ask, answer);
        assert_eq!(said.status, *status, "{}", said.body);
    }
    wait_for("the end of handraise ask", || child.try_wait().unwrap());
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn several_choices_are_printed_one_a_line_in_the_order_of_the_script() {
    let arguments = ["Which?", "--multi", "--choice", "a b", "--choice", "c", "--choice", "d"];
    let picked = pick("answer", &["d", "a b"]);
    assert_eq!(asked(&arguments, &[(&picked, 200)]), (Some(0), "a b\nd\n".to_owned()));
}

#[test]
fn free_text_is_printed_as_it_is() {
    let said = say("answer", "two\nlines \u{1b}[1m");
    assert_eq!(asked(&["What?", "--text"], &[(&said, 200)]), (Some(0), "two\nlines \u{1b}[1m\n".to_owned()));
}

#[test]
fn f10_an_answer_that_is_none_leaves_the_question_open() {
    let arguments = ["Which?", "--choice", "a", "--choice", "b", "--text"];
    let both = json!({"answers": [{"question_id": "answer", "selected_options": ["a"], "custom_text": "c"}]});
    let (none, empty) = (pick("answer", &["c"]), json!({"answers": []}));
    let answers = [(&none, 422), (&both, 422), (&empty, 422), (&say("answer", "c"), 200)];
    assert_eq!(asked(&arguments, &answers), (Some(0), "c\n".to_owned()));
}

#[test]
fn json_says_how_it_ended_and_who_stands_behind_it() {
    let arguments = ["Which?", "--json", "--choice", "a", "--choice", "b", "--expect", "a"];
    let json = |answer: &Value| {
        let (status, stdout) = asked(&arguments, &[(answer, 200)]);
        (status, serde_json::from_str::<Value>(&stdout).unwrap())
    };
    let accept = |value| json!({"outcome": "accept", "provenance": "client", "content": {"answer": value}});
    assert_eq!(json(&pick("answer", &["a"])), (Some(0), accept("a")));
    assert_eq!(json(&pick("answer", &["b"])), (Some(6), accept("b")));
    let declined = json!({"outcome": "decline", "provenance": "client", "content": null});
    assert_eq!(json(&skip()), (Some(3), declined));
}

#[test]
fn a_script_may_ask_several_questions_at_once_and_each_gets_its_own_answer() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut asking: Vec<(String, Child)> = (0..8)
        .map(|n| {
            let question = format!("Number {n}?");
            let mut command = home.handraise(&["ask", &question, "--text"]);
            (question, command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
        })
        .collect();
    for ask in up.wait_for_asks(8) {
        let said = say("answer", ask["message"].as_str().unwrap());
        assert_eq!(up.answer(&ask, &said).status, 200);
    }
    for (question, child) in &mut asking {
        let mut answer = String::new();
        child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        assert_eq!(answer, format!("{question}\n"));
        assert!(child.wait().unwrap().success());
    }
}

/// A script whose question reaches the inbox through a relay, which loses the verdict on the answer; then the inbox is
/// killed. The script waits with its answer.
fn answered_and_unheard(home: &Home) -> (Shell, Relay, Value) {
    let up = Up::start(home);
    let relay = Relay::start(home.path().join("relay.sock"), home.data_dir().join("inbox.sock"));
    let token = home.token("holder");
    let options = format!("--inbox unix:{}", relay.path().display());
    let shell = Shell::run_with(home, DEPLOY, &options, &[("HANDRAISE_TOKEN", &token)]);
    let ask = up.wait_for_ask();
    relay.set(Pass::LoseTheVerdict);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| up.try_answer(&ask, &pick("answer", &["yes"])));
        wait_for("the answer on stdout", || (shell.stdout.text() == "yes\n").then_some(()));
        kill(up.child.id());
        relay.cut();
        let answer = answering.join().unwrap();
        assert!(answer.is_none_or(|answer| answer.status == 504), "the operator knows no verdict");
    });
    wait_for("what it waits for", || shell.stderr.text().contains("waiting up to 30s").then_some(()));
    (shell, relay, ask)
}

#[test]
fn f7_an_answer_waits_for_an_inbox_that_comes_back_so_that_it_is_not_shown_as_sent() {
    let home = Home::new();
    let (mut shell, relay, before) = answered_and_unheard(&home);
    assert_eq!(shell.child.try_wait().unwrap(), None, "it waits");
    let up = Up::start(&home);
    assert_eq!(up.ask(&before)["state"], "sent");
    relay.set(Pass::Everything);
    let settlement = up.wait_for_settlement(&before);
    assert_eq!((&settlement["outcome"], &settlement["by"]), (&json!("accept"), &json!("tests")));
    let (status, stdout, stderr) = shell.end();
    assert_eq!((status, stdout.as_str()), (Some(0), "yes\ndeploying\n"));
    assert!(stderr.contains("the inbox is back and has heard it"), "{stderr}");
}

#[test]
fn f7_a_signal_ends_the_wait_for_the_inbox_and_changes_nothing_about_the_answer() {
    let home = Home::new();
    let (shell, _relay, _) = answered_and_unheard(&home);
    send(shell.ask(), Signal::INT);
    let (status, stdout, stderr) = shell.end();
    assert_eq!((status, stdout.as_str()), (Some(0), "yes\ndeploying\n"));
    assert!(stderr.contains("the inbox did not come back"), "{stderr}");
}
