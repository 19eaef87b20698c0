//! What is never kept and never logged: secrets in the database, answers and questions in the logs (S33).

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, kill, say, wait_for};

const SECRET: &str = "canary-5f2d-secret";
const ANSWER: &str = "canary-5f2d-answer";
const REASON: &str = "canary-5f2d-reason";
const QUESTION: &str = "canary-5f2d-question";

fn form() -> Value {
    json!({"message": QUESTION, "requestedSchema": {"type": "object", "properties": {
        "password": {"type": "string", "title": "Database password"},
        "note": {"type": "string", "title": "Note"},
    }}})
}

/// The files of a directory that hold `text`, as bytes.
fn files_with(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .filter(|path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
        .collect()
}

#[test]
fn s33_a_secret_reaches_the_agent_and_is_in_no_file_of_the_data_directory() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, &format!("form {}", form()));
    let ask = up.wait_for_ask();
    assert_eq!(ask["questions"][0]["secret"], true, "{ask}");
    let answers = json!({"answers": [
        {"question_id": "password", "custom_text": SECRET},
        {"question_id": "note", "custom_text": ANSWER},
    ]});
    let answer = up.answer(&ask, &answers);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.body.to_string().contains(SECRET));
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let content = json!({"password": SECRET, "note": ANSWER});
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": content})]);
    assert_eq!(up.ask(&ask)["settlement"]["answers"][0]["custom_text"], "•");

    // Killed, so that nothing is tidied up: the write-ahead log is there too.
    kill(up.child.id());
    wait_for("the answer on disk", || (!files_with(&home.data_dir(), ANSWER).is_empty()).then_some(()));
    assert_eq!(files_with(&home.data_dir(), SECRET), [] as [std::path::PathBuf; 0]);
    drop(up);
    // Nor after the log has been written into the database.
    Up::start(&home).stop();
    assert_eq!(files_with(&home.data_dir(), SECRET), [] as [std::path::PathBuf; 0]);
}

#[test]
fn answers_and_questions_are_in_no_log_above_debug() {
    let home = Home::new();
    let info = [("HANDRAISE_LOG", "info")];
    let up = Up::start_with(&home, &[], &info);
    // An answer that counts, one that does not, a skip with a reason, and noise that holds half a question.
    for script in [format!("form {}", form()), "noise".to_owned(), format!("form {}", form())] {
        let mut agent = Agent::start(&home, &["--prompt", &script], &[], &info);
        let ask = up.wait_for_ask();
        let question = ask["questions"][1]["id"].as_str().unwrap_or("question_0").to_owned();
        let wrong = json!({"answers": [{"question_id": question, "selected_options": [ANSWER]}]});
        assert_eq!(up.answer(&ask, &wrong).status, 422);
        let skipped = json!({"answers": [], "rejected": true, "reject_reason": REASON});
        let answer = if script == "noise" { skipped } else { say(&question, ANSWER) };
        assert_eq!(up.answer(&ask, &answer).status, 200);
        assert_eq!(up.answer(&ask, &say(&question, "too late")).status, 404);
        assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
        let log = agent.log.text();
        for canary in [ANSWER, REASON, QUESTION, "Which database", "{not json", "red alert"] {
            assert!(!log.contains(canary), "{canary}: {log}");
        }
    }
    let log = up.log.clone();
    up.stop();
    let log = log.text();
    assert!(log.contains("a submission is forwarded"), "the log is on: {log}");
    for canary in [ANSWER, REASON, QUESTION, "Which database"] {
        assert!(!log.contains(canary), "{canary}: {log}");
    }
}
