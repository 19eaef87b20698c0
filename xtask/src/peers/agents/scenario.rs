//! The scenarios: what the model does, and what the operator does about it.

use serde_json::{Value, json};

use super::profile::{Agent, Question};
use crate::peers::model::Call;

/// One scenario.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// What it is about, for the page of results.
    pub(super) about: &'static str,
    /// What the model calls at once.
    pub(super) calls: fn(&Agent) -> Vec<Call>,
    pub(super) operator: Operator,
    /// Whether the MCP server that asks is there, and how many milliseconds it waits; 0 for ever.
    pub(super) mcp_patience: Option<u64>,
    /// `HANDRAISE_ELICITATION_ANSWER_TIMEOUT`, where it matters.
    pub(super) answer_timeout: Option<&'static str>,
    /// Whether forms are switched off for this agent.
    pub(super) is_off: bool,
    /// Whether it says something about an agent that sends no forms, too.
    pub(super) without_forms: bool,
}

/// What the operator does about forms. Permissions are always granted once, unless it says otherwise.
pub(super) enum Operator {
    /// Answers each form with what this makes of it. A refused answer is followed by a full one.
    Answers(fn(&Value) -> Value),
    /// Waits until so many forms are open, then answers the last one first.
    AnswersBackwards(usize),
    /// Cancels the session.
    CancelsSession,
    /// Ends `handraise agent`.
    EndsAgent,
    /// Waits until the form has ended, and answers then.
    ComesLate,
    /// Rejects the permission.
    Rejects,
}

const PLAIN: Scenario = Scenario {
    name: "",
    about: "",
    calls: |agent| vec![(agent.ask)(&[DATASTORE, ENVIRONMENTS])],
    operator: Operator::Answers(full),
    mcp_patience: None,
    answer_timeout: None,
    is_off: false,
    without_forms: false,
};

/// Every scenario, in the order of the table.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "accept", about: "every question is answered", without_forms: true, ..PLAIN },
    Scenario {
        name: "decline",
        about: "the form is skipped",
        operator: Operator::Answers(|_| json!({"answers": [], "rejected": true})),
        ..PLAIN
    },
    Scenario {
        name: "cancel",
        about: "`handraise agent` is ended while the form is open",
        operator: Operator::EndsAgent,
        ..PLAIN
    },
    Scenario {
        name: "partial",
        about: "only the last question is answered; where that is refused, all are",
        operator: Operator::Answers(|ask| {
            answers(ask, |index, last, question| (index == last).then(|| value(question)))
        }),
        ..PLAIN
    },
    Scenario {
        name: "custom text beside a pick",
        about: "own words stand beside a choice, where the form takes them",
        operator: Operator::Answers(custom),
        ..PLAIN
    },
    Scenario {
        name: "two parallel asks",
        about: "two forms in one turn, the last one answered first where both are open",
        calls: |agent| vec![(agent.ask)(&[DATASTORE]), (agent.ask)(&[REGION])],
        operator: Operator::AnswersBackwards(2),
        ..PLAIN
    },
    Scenario {
        name: "session cancel",
        about: "the session is cancelled while the form is open",
        operator: Operator::CancelsSession,
        ..PLAIN
    },
    Scenario {
        name: "late answer",
        about: "the answer comes after the deadline of three seconds",
        operator: Operator::ComesLate,
        answer_timeout: Some("3s"),
        ..PLAIN
    },
    Scenario {
        name: "MCP passthrough form",
        about: "an MCP server of the agent asks, and is answered",
        calls: deploy,
        mcp_patience: Some(0),
        without_forms: true,
        ..PLAIN
    },
    Scenario {
        name: "MCP server timeout",
        about: "an MCP server of the agent asks, and gives up after three seconds; the answer comes later",
        calls: deploy,
        operator: Operator::ComesLate,
        mcp_patience: Some(3000),
        ..PLAIN
    },
    Scenario {
        name: "capability off",
        about: "`--elicitation off`",
        is_off: true,
        without_forms: true,
        ..PLAIN
    },
    Scenario {
        name: "permission",
        about: "a command, allowed once",
        calls: |agent| vec![(agent.shell)("touch made-by-agent")],
        without_forms: true,
        ..PLAIN
    },
    Scenario {
        name: "permission rejected",
        about: "a command, rejected",
        calls: |agent| vec![(agent.shell)("touch made-by-agent")],
        without_forms: true,
        operator: Operator::Rejects,
        ..PLAIN
    },
];

/// The scenarios of an agent.
pub(super) fn scenarios_of(agent: &Agent) -> impl Iterator<Item = &'static Scenario> {
    let sends_forms = agent.sends_forms;
    SCENARIOS.iter().filter(move |scenario| sends_forms || scenario.without_forms)
}

const DATASTORE: Question = Question {
    header: "Datastore",
    text: "Which database should the service use?",
    takes_many: false,
    choices: &["Postgres", "SQLite"],
};
const ENVIRONMENTS: Question = Question {
    header: "Envs",
    text: "Which environments should it deploy to?",
    takes_many: true,
    choices: &["dev", "staging", "prod"],
};
const REGION: Question = Question {
    header: "Region",
    text: "Which region comes first?",
    takes_many: false,
    choices: &["eu", "us"],
};

fn deploy(agent: &Agent) -> Vec<Call> {
    vec![(agent.deploy)()]
}

/// Picks and words for one question.
struct Given {
    picks: Vec<String>,
    words: &'static str,
}

/// A submission that answers the questions for which there is something.
fn answers(ask: &Value, give: impl Fn(usize, usize, &Value) -> Option<Given>) -> Value {
    let questions = ask["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let last = questions.len().saturating_sub(1);
    let given = questions.iter().enumerate().filter_map(|(index, question)| {
        let given = give(index, last, question)?;
        Some(json!({"question_id": question["id"], "selected_options": given.picks, "custom_text": given.words}))
    });
    json!({"answers": given.collect::<Vec<_>>()})
}

/// Everything is answered.
pub(super) fn full(ask: &Value) -> Value {
    answers(ask, |_, _, question| Some(value(question)))
}

/// As [`full`], with words where a question takes them beside a pick.
fn custom(ask: &Value) -> Value {
    answers(ask, |_, _, question| {
        let mut given = value(question);
        if question["allows_text"] == true {
            given.words = "  in my own words ";
        }
        Some(given)
    })
}

/// An answer that fits: the first choice, or the last and the first in that order, as somebody may click them.
fn value(question: &Value) -> Given {
    let choices = question["choices"].as_array().into_iter().flatten();
    let choices: Vec<String> =
        choices.filter_map(|choice| choice["value"].as_str().map(str::to_owned)).collect();
    let picks = |picks: Vec<String>| Given { picks, words: "" };
    let words = |words| Given { picks: Vec::new(), words };
    match question["kind"].as_str().unwrap_or_default() {
        "single" => picks(choices.into_iter().take(1).collect()),
        "multi" => picks(choices.last().into_iter().chain(choices.first()).cloned().collect()),
        "boolean" => picks(vec!["true".to_owned()]),
        "integer" | "number" => words("7"),
        _ if question["constraints"]["format"] == "email" => words("ada@example.org"),
        _ => words("typed by a human"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_follow_the_questions() {
        let choices = json!([{"value": "a"}, {"value": "b"}, {"value": "c"}]);
        let ask = json!({"questions": [
            {"id": "one", "kind": "single", "choices": choices, "allows_text": true},
            {"id": "many", "kind": "multi", "choices": choices, "allows_text": false},
        ]});
        let one =
            |words: &str| json!({"question_id": "one", "selected_options": ["a"], "custom_text": words});
        let many = json!({"question_id": "many", "selected_options": ["c", "a"], "custom_text": ""});
        assert_eq!(full(&ask), json!({"answers": [one(""), many]}));
        assert_eq!(custom(&ask), json!({"answers": [one("  in my own words "), many]}));
        let Some(Scenario { operator: Operator::Answers(partial), .. }) =
            SCENARIOS.iter().find(|scenario| scenario.name == "partial")
        else {
            panic!("no such scenario")
        };
        assert_eq!(partial(&ask), json!({"answers": [many]}));
    }
}
