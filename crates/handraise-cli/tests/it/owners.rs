//! Whose answers count, through real processes: by the owners of the holder's token and of the operator's (S16).

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Agent, Answer, Collected, Home, Up, call, pick, wait_for};

fn token(home: &Home, scope: &str, owner: &str) -> String {
    let arguments = ["token", "create", "--scope", scope, "--name", owner, "--owner", owner];
    home.stdout(&arguments).trim_end().to_owned()
}

fn answer(up: &Up, token: &str, ask: &Value, submission: &Value) -> Answer {
    let path = format!("/api/v1/asks/{}/answer", ask["id"].as_str().unwrap());
    call(&up.url, "POST", &path, Some(token), Some(submission))
}

#[test]
fn s16_an_agents_asks_are_answered_by_the_owner_of_its_token_alone() {
    let home = Home::new();
    let up = Up::start(&home);
    let (adas, bobs) = (token(&home, "operator", "ada"), token(&home, "operator", "bob"));
    let holder = token(&home, "holder", "ada");
    let arguments = ["--who", "caller", "--prompt", "single"];
    let mut agent = Agent::start(&home, &arguments, &[], &[("HANDRAISE_TOKEN", &holder)]);
    let ask = up.wait_for_ask();
    assert_eq!((&ask["who"], &ask["origin"]["owner"]), (&json!("caller"), &json!("ada")));
    for (whose, token) in [("nobody's", &up.operator), ("bob's", &bobs)] {
        let refused = answer(&up, token, &ask, &pick("question_0", &["SQLite"]));
        assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("FORBIDDEN")), "{whose}");
    }
    assert_eq!((up.ask(&ask)["state"].clone(), agent.responses().len()), (json!("open"), 0));
    what_was_refused_is_listed(&home, &ask);
    let shown = home.stdout(&["inbox", "show", ask["id"].as_str().unwrap()]);
    assert!(shown.contains("Only ada may answer this"), "{shown}");
    assert_eq!(answer(&up, &adas, &ask, &pick("question_0", &["Postgres"])).status, 200);
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses()[0]["content"], json!({"question_0": "Postgres"}));
}

/// The two refused answers, the latest first, whole and page by page.
fn what_was_refused_is_listed(home: &Home, ask: &Value) {
    let all: Value = serde_json::from_str(&home.stdout(&["inbox", "audit", "--json"])).unwrap();
    let entries = all["entries"].as_array().unwrap();
    let said = |entry: &Value| (entry["what"].clone(), entry["about"].clone());
    let refused = (json!("answerers"), ask["id"].clone());
    assert_eq!(entries.iter().map(said).collect::<Vec<_>>(), [refused.clone(), refused], "{all}");
    let first = home.run(&["inbox", "audit", "--limit", "1"]);
    let line = String::from_utf8(first.stdout).unwrap();
    assert!(line.contains("answerers  bob") && line.lines().count() == 1, "{line}");
    let hint = format!("--before {}", entries[0]["id"]);
    assert!(String::from_utf8(first.stderr).unwrap().contains(&hint), "{hint}");
    let before = entries[0]["id"].to_string();
    let rest = home.stdout(&["inbox", "audit", "--before", &before]);
    assert!(rest.contains(ask["id"].as_str().unwrap()) && !rest.contains("bob"), "{rest}");
    let earlier = home.run(&["inbox", "audit", "--before", &entries[1]["id"].to_string()]);
    assert_eq!(String::from_utf8(earlier.stderr).unwrap(), "There is nothing earlier.\n");
    assert_eq!(home.run(&["inbox", "audit", "--limit", "501"]).status.code(), Some(2));
}

#[test]
fn s16_a_script_is_answered_by_somebody_else_than_its_owner() {
    let home = Home::new();
    let up = Up::start(&home);
    let (adas, bobs) = (token(&home, "operator", "ada"), token(&home, "operator", "bob"));
    let mut script = home.handraise(&["ask", "Deploy?", "--choice", "yes", "--choice", "no"]);
    // As the settings say.
    script.envs([
        ("HANDRAISE_TOKEN", token(&home, "holder", "ada")),
        ("HANDRAISE_WHO", "not-the-caller".into()),
    ]);
    let mut script = script.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let printed = Collected::from(script.stdout.take().unwrap());
    let ask = up.wait_for_ask();
    assert_eq!(answer(&up, &adas, &ask, &pick("answer", &["yes"])).status, 403);
    assert_eq!(answer(&up, &bobs, &ask, &pick("answer", &["yes"])).status, 200);
    let status = wait_for("the end of handraise ask", || script.try_wait().unwrap());
    assert_eq!((status.code(), printed.text().as_str()), (Some(0), "yes\n"));
}

#[test]
fn s16_a_script_whose_token_has_no_owner_is_told_at_once_why_nobody_can_answer_and_what_would_do() {
    let home = Home::new();
    let up = Up::start(&home);
    let ask = ["ask", "Deploy?", "--choice", "yes", "--choice", "no", "--json", "--who", "caller"];
    let asked = home.run(&ask);
    assert_eq!(asked.status.code(), Some(1), "{asked:?}");
    let stderr = String::from_utf8(asked.stderr).unwrap();
    for words in
        ["did not take the question", "has no owner", "--scope holder --owner NAME", "docs/agents.md"]
    {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(!stderr.contains("declin"), "nobody declined: {stderr}");
    let end: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let error = end["error"]["message"].as_str().unwrap();
    assert!(stderr.contains(error), "{stderr} does not say {error}");
    let code = json!("BAD_REQUEST");
    assert_eq!(
        (&end["provenance"], &end["content"], &end["error"]["code"]),
        (&json!("system"), &Value::Null, &code)
    );
    assert_eq!(up.wait_for_asks(0), Vec::<Value>::new());
    assert_eq!(up.metric("handraise_refused_total{what=\"answerers\"}"), 1);
}
