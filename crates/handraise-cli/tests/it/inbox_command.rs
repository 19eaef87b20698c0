//! `handraise inbox list`, `show`, `answer`, `skip` and `watch`, against a real inbox.

use std::{
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Output, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Agent, Collected, Home, Up, alive, kill, pause, pick, resume, send, stderr, wait_for};

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn id(ask: &Value) -> &str {
    ask["id"].as_str().unwrap()
}

#[test]
fn a_form_is_listed_shown_and_answered() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "two");
    let ask = up.wait_for_ask();
    let question = ask["questions"][1]["id"].as_str().unwrap();
    let values: Vec<&str> = ask["questions"][1]["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["value"].as_str().unwrap())
        .collect();

    let tail = &id(&ask)[28..];
    // Piped, the bare command is the list.
    for arguments in [&["inbox"][..], &["inbox", "list"]] {
        let list = home.stdout(arguments);
        assert!(list.starts_with(tail) && list.contains("local “"), "{list}");
    }
    let listed: Value = serde_json::from_str(&home.stdout(&["inbox", "list", "--json"])).unwrap();
    assert_eq!(listed["asks"][0]["id"], ask["id"]);
    assert!(listed["next_cursor"].is_null());
    assert_eq!(home.stdout(&["inbox", "list", "--source", "tool"]), "");

    let shown = home.stdout(&["inbox", "show", tail]);
    assert!(shown.contains(&format!("{question}={}", values[0])), "{shown}");
    let shown: Value = serde_json::from_str(&home.stdout(&["inbox", "show", tail, "--json"])).unwrap();
    assert_eq!((&shown["id"], &shown["events"][0]["kind"]), (&ask["id"], &json!("opened")));

    // In the wrong order, which the holder puts right (F12).
    let picks = [format!("{question}={}", values[1]), format!("{question}={}", values[0])];
    let answered = home.stdout(&["inbox", "answer", tail, &picks[0], &picks[1]]);
    assert!(answered.starts_with("local answered"), "{answered}");
    assert!(answered.contains("a client reports it, we saw nobody"), "S15: {answered}");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses()[0]["content"][question], json!([values[0], values[1]]));

    let settled = home.stdout(&["inbox", "list", "--state", "settled"]);
    assert!(settled.starts_with(tail) && settled.contains("accept"), "{settled}");
    // What the list says is what the others take.
    assert!(home.stdout(&["inbox", "show", tail]).contains("local answered"));
    for late in [&["inbox", "answer", tail, &picks[0]][..], &["inbox", "skip", tail]] {
        let output = home.run(late);
        assert_eq!(code(&output), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains("too late: "), "{}", stderr(&output));
    }
    assert!(home.stdout(&["inbox", "show", id(&ask)]).contains("local answered"));
}

#[test]
fn words_stand_beside_a_pick_and_a_secret_comes_by_stdin() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    home.stdout(&["inbox", "answer", id(&ask), "question_0=Postgres", "question_0:=but only 17"]);
    assert_eq!(agent.wait(), Some(0));
    let settled = up.get(&format!("/asks/{}", id(&ask)))["settlement"]["answers"][0].clone();
    assert_eq!(settled["selected_options"], json!(["Postgres"]));
    assert_eq!(settled["custom_text"], "but only 17");

    let mut agent = Agent::prompt(&home, "passthrough");
    let ask = up.wait_for_ask();
    let mut command = home.handraise(&["inbox", "answer", id(&ask), "--stdin", "apiKey"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hunter2\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"apiKey": "hunter2"}})]);

    let mut agent = Agent::prompt(&home, "passthrough");
    let output = home.run(&["inbox", "answer", id(&up.wait_for_ask()), "apiKey=hunter2"]);
    assert_eq!(code(&output), Some(0));
    assert!(stderr(&output).contains("\"apiKey\" looks like a secret"), "{}", stderr(&output));
    assert_eq!(agent.wait(), Some(0));
}

#[test]
fn f10_a_refused_answer_exits_3_and_leaves_the_ask_open() {
    let home = Home::new();
    let up = Up::start(&home);
    let _agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    let refused = home.run(&["inbox", "answer", id(&ask), "question_0=Oracle"]);
    assert_eq!(code(&refused), Some(3), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty());
    let said = stderr(&refused);
    assert!(said.contains("nothing was sent on, the ask is still open"), "{said}");
    assert!(said.contains("question_0: “Oracle” is not one of the choices."), "{said}");
    assert_eq!(up.wait_for_ask()["state"], "open");
    for (arguments, words) in [
        (&["inbox", "answer", id(&ask)][..], "there is no answer; write key=value"),
        (&["inbox", "answer", id(&ask), "nothing=x"], "no question \"nothing\"; it has \"question_0\""),
        (
            &["inbox", "answer", "ffffffff", "a=b"],
            "no ask that is open, and none of the 500 that ended last, has an id that begins or ends with",
        ),
        (&["inbox", "answer", "../asks", "a=b"], "is no id"),
        (&["inbox", "show", "01927c4a-7a3e-7b61-8a1e-3f7a2b3c4d5e"], "the inbox says: there is no ask"),
    ] {
        let output = home.run(arguments);
        assert_eq!(code(&output), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn ac61_an_answer_that_comes_too_late_exits_4_and_says_who_was_first() {
    let home = Home::new();
    let up = Up::start(&home);
    // The holder stays, so that its word can be asked for.
    let agent = Agent::start(&home, &["--attach", "--prompt", "single"], &[], &[]);
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 200);
    let late = home.run(&["inbox", "answer", id(&ask), "question_0=SQLite"]);
    assert_eq!(code(&late), Some(4), "{}", stderr(&late));
    assert!(stderr(&late).contains("too late: tests answered “Postgres”"), "{}", stderr(&late));
    assert!(stderr(&late).contains("Your answer was not sent."), "{}", stderr(&late));
    let skip = home.run(&["inbox", "skip", id(&ask)]);
    assert_eq!(code(&skip), Some(4));
    assert_eq!(agent.responses().len(), 1);
}

#[test]
fn an_answer_whose_inbox_dies_exits_6_because_nobody_knows_whether_it_was_sent_on() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    // The verdict is waited for; the inbox ends meanwhile.
    pause(agent.child.id());
    let mut command = home.handraise(&["inbox", "answer", id(&ask), "question_0=Postgres"]);
    let answering = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    up.wait_for_state(&ask, "sent", true);
    kill(up.child.id());
    let output = answering.wait_with_output().unwrap();
    resume(agent.child.id());
    assert_eq!(code(&output), Some(6), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("nobody knows yet whether it counted") && said.contains("inbox show"), "{said}");
    assert!(output.stdout.is_empty());
    // One that cannot be reached at all got nothing.
    let refused = home.run(&["inbox", "answer", id(&ask), "question_0=Postgres"]);
    assert_eq!(code(&refused), Some(1));
    assert!(stderr(&refused).contains("is not running"), "{}", stderr(&refused));
}

#[test]
fn ac20a_without_its_holder_an_answer_exits_5() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    kill(agent.child.id());
    wait_for("the holder's end", || (!alive(agent.child.id())).then_some(()));
    wait_for("the disconnected ask", || (up.wait_for_ask()["holder_connected"] == false).then_some(()));
    assert!(home.stdout(&["inbox", "list"]).contains("not connected"));
    let output = home.run(&["inbox", "answer", id(&ask), "question_0=Postgres"]);
    assert_eq!(code(&output), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing was sent or queued, the ask is still open"));
}

#[test]
fn a_skip_declines_with_its_reason() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    let skipped = home.stdout(&["inbox", "skip", id(&ask), "--reason", "not on a Friday", "--json"]);
    let skipped: Value = serde_json::from_str(&skipped).unwrap();
    assert_eq!(skipped["settlement"]["outcome"], "decline");
    assert_eq!(skipped["settlement"]["reason"], "not on a Friday");
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses(), [json!({"action": "decline"})]);
}

#[test]
fn without_an_inbox_it_says_what_to_do() {
    let home = Home::new();
    let never = home.run(&["inbox", "list"]);
    assert_eq!(code(&never), Some(1));
    assert!(stderr(&never).contains("start one with `handraise up`"), "{}", stderr(&never));
    Up::start(&home).stop();
    for arguments in [&["inbox", "list"][..], &["inbox", "watch"], &["inbox", "answer", "ffffffff", "a=b"]] {
        let stopped = home.run(arguments);
        assert_eq!(code(&stopped), Some(1), "{arguments:?}");
        assert!(
            stderr(&stopped).contains("is not running; start it with `handraise up`"),
            "{}",
            stderr(&stopped)
        );
    }
}

#[test]
fn every_remedy_names_the_data_directory_that_was_named() {
    let home = Home::new();
    let file = home.data_dir().join("inbox.json");
    let folder = home.data_dir().display().to_string();
    let said = |arguments: &[&str]| {
        let command = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
        let (words, command) = arguments.split_at(command);
        let output = home.run(&[words, &["--data-dir", &folder], command].concat());
        assert_eq!(code(&output), Some(1), "{arguments:?}");
        let Output { stdout, stderr, .. } = output;
        String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
    };
    let remedy = |words: &str| format!("`handraise {words} --data-dir {folder}`");
    let up = Up::start(&home);
    for (arguments, words) in [
        (&["inbox", "show", "?"][..], "inbox list"),
        (&["inbox", "show", "ffffffff"], "inbox list"),
        (&["token", "revoke", "ffffffff"], "token list"),
    ] {
        assert!(said(arguments).contains(&remedy(words)), "{arguments:?}: {}", said(arguments));
    }
    up.stop();
    let commands: [&[&str]; 4] =
        [&["inbox", "list"], &["ask", "Go?", "--text"], &["agent", "--", "true"], &["doctor"]];
    let before = std::fs::read_to_string(&file).unwrap();
    for (what, mode) in [(before.as_str(), 0o644), ("{}", 0o600)] {
        std::fs::write(&file, what).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        for arguments in commands {
            let said = said(arguments);
            assert!(said.contains(&format!("restart {}", remedy("up"))), "{arguments:?}: {said}");
        }
    }
}

/// `handraise inbox watch`.
struct Watch {
    child: Child,
    said: Collected,
    log: Collected,
}

impl Watch {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.handraise(&["inbox", "watch"]);
        let mut child =
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Collected::from(child.stdout.take().unwrap());
        let log = Collected::from(child.stderr.take().unwrap());
        Self { child, said, log }
    }

    fn wait_for(&self, words: &str) {
        wait_for(words, || self.said.text().contains(words).then_some(()));
    }

    fn count(&self, word: &str) -> usize {
        self.said.text().lines().filter(|line| line.contains(word)).count()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_tells_everything_once_also_across_a_restart() {
    let home = Home::new();
    let up = Up::start(&home);
    let ask = |question: &str| {
        let mut command = home.handraise(&["ask", question, "--text"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let answer = |up: &Up, message: &str| {
        let find = || {
            let asks = up.get("/asks?state=open")["asks"].as_array().cloned()?;
            asks.into_iter().find(|ask| ask["message"] == message && ask["holder_connected"] == true)
        };
        let open = wait_for("the ask", find);
        home.stdout(&["inbox", "answer", id(&open), "answer=fine"]);
    };
    let mut asking = vec![ask("before?")];
    up.wait_for_asks(1);
    let mut watch = Watch::start(&home, &[]);
    watch.wait_for("before?");
    asking.push(ask("during?"));
    watch.wait_for("during?");
    answer(&up, "before?");
    watch.wait_for("local answered “fine”");

    up.stop();
    wait_for("the loss", || watch.log.text().contains("lost the inbox").then_some(()));
    let up = Up::start(&home);
    answer(&up, "during?");
    asking.push(ask("after?"));
    watch.wait_for("after?");
    answer(&up, "after?");
    wait_for("three endings", || (watch.count("  settled  ") == 3).then_some(()));
    assert_eq!(watch.count("  opened   "), 3, "{}", watch.said.text());
    assert!(watch.said.text().contains("script with token local, calls itself “handraise ask"));
    send(watch.child.id(), Signal::INT);
    assert_eq!(wait_for("its end", || watch.child.try_wait().unwrap()).code(), Some(0));
    for mut ask in asking {
        assert!(ask.wait().unwrap().success());
    }
}

#[test]
fn watch_json_is_an_event_a_line() {
    let home = Home::new();
    let up = Up::start(&home);
    let watch = Watch::start(&home, &["--json"]);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    watch.wait_for("ask.opened");
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 200);
    watch.wait_for("ask.settled");
    assert_eq!(agent.wait(), Some(0));
    let lines: Vec<Value> =
        watch.said.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&Value, &Value)> =
        lines.iter().map(|line| (&line["event"], &line["data"]["id"])).collect();
    assert_eq!(told, [(&json!("ask.opened"), &ask["id"]), (&json!("ask.settled"), &ask["id"])]);
    assert_eq!(lines[1]["data"]["settlement"]["by"], "tests");
}

#[test]
fn a_reader_that_goes_away_ends_a_list_without_a_word() {
    let home = Home::new();
    let _up = Up::start(&home);
    for arguments in [&["inbox", "list", "--json"][..], &["token", "list"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = home.handraise(arguments).stdout(writer).output().unwrap();
        assert_eq!((code(&output), stderr(&output).as_str()), (Some(141), ""), "{arguments:?}");
    }
}
