//! The arguments of a call, read as the questions of one ask. Whoever wrote them is a model: what is wrong is said so that
//! it can be put right.

use std::{collections::BTreeSet, time::Duration};

use handraise_api::ask::Implementation;
use handraise_core::{
    Choice, Constraints, Kind, Mode, Question, Source,
    form::{AnswerRules, Form, says_secret},
};
use handraise_holder::NewAsk;
use handraise_transport::escape;
use serde_json::{Map, Value};

/// The most bytes of the arguments as text (form.md, "Size limits").
const MAX_ARGUMENTS_BYTES: usize = 256 * 1024;
/// The most questions of a call. More than a person answers in one go.
pub(crate) const MAX_QUESTIONS: usize = 20;
/// How few and how many options a question has (AC-57).
pub(crate) const CHOICES: (usize, usize) = (2, 6);
/// The most bytes of a question's id.
pub(crate) const MAX_ID_BYTES: usize = 128;
/// The most bytes of an option's label: it is one line of a list.
pub(crate) const MAX_LABEL_BYTES: usize = 1_024;
/// The most bytes of a title.
pub(crate) const MAX_TITLE_BYTES: usize = 1_024;
/// The most bytes of a prompt or a description.
pub(crate) const MAX_TEXT_BYTES: usize = 32 * 1024;
/// How much of each question stands in the message of an ask with several.
const HEADING: usize = 60;

/// The questions of one call.
#[derive(Debug, Clone)]
pub(crate) struct Questions {
    form: Form,
}

impl Questions {
    /// Reads the arguments, as JSON text.
    ///
    /// # Errors
    /// What is wrong and what would do, in words for a model.
    pub(crate) fn read(arguments: Option<&str>) -> Result<Self, String> {
        let text = arguments.unwrap_or("{}");
        if text.len() > MAX_ARGUMENTS_BYTES {
            return Err(format!(
                "the arguments have {} bytes; the most is {MAX_ARGUMENTS_BYTES}",
                text.len()
            ));
        }
        let arguments: Value =
            serde_json::from_str(text).map_err(|error| format!("the arguments are no JSON: {error}"))?;
        let arguments = Object::new("arguments", &arguments, &["questions"])?;
        let questions = arguments.list("questions", (1, MAX_QUESTIONS))?;
        let mut ids: BTreeSet<String> =
            questions.iter().filter_map(|question| Some(question.get("id")?.as_str()?.to_owned())).collect();
        let questions = questions
            .iter()
            .enumerate()
            .map(|(at, question)| self::question(at, question, &mut ids))
            .collect::<Result<Vec<_>, _>>()?;
        let form = Form::tool(questions).map_err(|refusal| refusal.to_string())?;
        Ok(Self { form })
    }

    /// The questions, in their order.
    pub(crate) fn all(&self) -> &[Question] {
        self.form.questions()
    }

    /// The ask that they are.
    pub(crate) fn ask(&self, client: Option<Implementation>, timeout: Duration) -> NewAsk {
        NewAsk {
            source: Source::Tool,
            mode: Mode::Form,
            session_id: None,
            tool_call_id: None,
            message: message(self.all()),
            url: None,
            confirm: None,
            // The model goes on without an answer, and is told so.
            on_deadline: None,
            form: self.form.clone(),
            rules: AnswerRules::for_source(Source::Tool),
            single_use: Vec::new(),
            client,
            server: None,
            timeout: Some(timeout),
        }
    }
}

/// What an ask with these questions says about itself: the one question, or what the several are about.
fn message(questions: &[Question]) -> String {
    if let [only] = questions {
        return only.prompt.clone();
    }
    let headings = questions.iter().map(|question| {
        let text = question.title.as_ref().unwrap_or(&question.prompt);
        escape::shortened(text.lines().next().unwrap_or_default(), HEADING)
    });
    format!("{} questions: {}", questions.len(), headings.collect::<Vec<_>>().join(" · "))
}

/// `ids` are those that are taken; one that is made up becomes one of them.
fn question(at: usize, question: &Value, ids: &mut BTreeSet<String>) -> Result<Question, String> {
    let place = format!("questions[{at}]");
    let question = Object::new(&place, question, &["id", "title", "prompt", "options", "multi"])?;
    let id = question.line("id", MAX_ID_BYTES)?.unwrap_or_else(|| {
        let mut number = at + 1;
        while !ids.insert(format!("question_{number}")) {
            number += 1;
        }
        format!("question_{number}")
    });
    let title = question.line("title", MAX_TITLE_BYTES)?;
    let prompt = question.text("prompt", MAX_TEXT_BYTES)?;
    let Some(prompt) = prompt else { return Err(format!("{place}.prompt is missing: the question itself")) };
    let is_multi = match question.get("multi") {
        None => false,
        Some(Value::Bool(is_multi)) => *is_multi,
        Some(_) => return Err(format!("{place}.multi is neither true nor false")),
    };
    let mut choices: Vec<Choice> = Vec::new();
    for (at, option) in question.list("options", CHOICES)?.iter().enumerate() {
        let choice = choice(&format!("{place}.options[{at}]"), option)?;
        let seen = visible(&choice.value);
        if seen.is_empty() {
            return Err(format!("{place}.options[{at}].label shows nothing"));
        }
        if choices.iter().any(|other| visible(&other.value) == seen) {
            let shown = escape::shortened(&choice.value, HEADING);
            return Err(format!(
                "{place}.options has the label \"{shown}\" twice; labels have to differ in what can be seen of them"
            ));
        }
        choices.push(choice);
    }
    Ok(Question {
        kind: if is_multi { Kind::Multi } else { Kind::Single },
        secret: says_secret(&id) || title.as_deref().is_some_and(says_secret),
        id,
        title,
        prompt,
        required: true,
        default: None,
        // Instead of a pick, never beside one (AC-57).
        allows_text: true,
        companion: None,
        choices,
        constraints: Constraints::default(),
    })
}

/// What a human sees of a label: without spaces around it and characters that show nothing.
fn visible(label: &str) -> String {
    let shows_nothing =
        |c: char| escape::is_hazardous(c) || matches!(c, '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}');
    label.chars().filter(|c| !shows_nothing(*c)).collect::<String>().trim().to_owned()
}

/// An option. Its label is also its value, so that what is shown is what comes back (S26).
fn choice(place: &str, option: &Value) -> Result<Choice, String> {
    let option = Object::new(place, option, &["label", "description"])?;
    let label = option.line("label", MAX_LABEL_BYTES)?;
    let Some(label) = label else { return Err(format!("{place}.label is missing: what is picked")) };
    let description = option.text("description", MAX_TEXT_BYTES)?;
    Ok(Choice { value: label.clone(), label, description, preview: None })
}

/// A JSON object of the arguments, and where it stands.
struct Object<'a> {
    place: &'a str,
    members: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// An object with no other members than these.
    fn new(place: &'a str, value: &'a Value, known: &[&str]) -> Result<Self, String> {
        let Value::Object(members) = value else { return Err(format!("{place} is no object")) };
        if let Some(other) = members.keys().find(|key| !known.contains(&key.as_str())) {
            let other = escape::shortened(other, HEADING);
            let known = known.join(", ");
            return Err(format!(
                "{place} has a member \"{other}\", which means nothing here; it takes {known}"
            ));
        }
        Ok(Self { place, members })
    }

    /// A member; `null` is none.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// A list with so many items.
    fn list(&self, name: &str, (least, most): (usize, usize)) -> Result<&'a [Value], String> {
        let place = self.place;
        let Some(Value::Array(items)) = self.get(name) else {
            return Err(format!("{place}.{name} is missing, or is no list"));
        };
        if (least..=most).contains(&items.len()) {
            return Ok(items);
        }
        Err(format!("{place}.{name} has {} items; it takes {least} to {most}", items.len()))
    }

    /// A text that is not empty and has no more bytes than this.
    fn text(&self, name: &str, most: usize) -> Result<Option<String>, String> {
        let place = self.place;
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Err(format!("{place}.{name} is empty")),
            Some(Value::String(text)) if text.len() > most => {
                Err(format!("{place}.{name} has {} bytes; the most is {most}", text.len()))
            }
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{place}.{name} is no text")),
        }
    }

    /// A text of one line.
    fn line(&self, name: &str, most: usize) -> Result<Option<String>, String> {
        let text = self.text(name, most)?;
        if text.as_deref().is_some_and(|text| text.contains(char::is_control)) {
            let place = self.place;
            return Err(format!("{place}.{name} holds a line break or another control character"));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;
    use serde_json::json;

    use super::*;

    fn read(arguments: &Value) -> Result<Questions, String> {
        Questions::read(Some(&arguments.to_string()))
    }

    fn two() -> Value {
        json!({"questions": [
            {"id": "db", "title": "Datastore", "prompt": "Which database?",
             "options": [{"label": "Postgres", "description": "as in production"}, {"label": "SQLite"}]},
            {"prompt": "Which environments?", "multi": true,
             "options": [{"label": "dev"}, {"label": "staging"}, {"label": "prod"}]},
        ]})
    }

    #[test]
    fn questions_are_asked_in_their_order_with_what_the_model_said() {
        let asked = read(&two()).unwrap().ask(None, Duration::from_secs(60));
        assert_eq!(asked.source, Source::Tool);
        assert_eq!(asked.message, "2 questions: Datastore · Which environments?");
        let [db, environments] = asked.form.questions() else { panic!() };
        assert_eq!((db.id.as_str(), db.kind, db.title.as_deref()), ("db", Kind::Single, Some("Datastore")));
        assert_eq!(db.choices[0].description.as_deref(), Some("as in production"));
        assert_eq!((environments.id.as_str(), environments.kind), ("question_2", Kind::Multi));
        assert!(asked.form.questions().iter().all(|question| question.required && question.allows_text));

        let one =
            read(&json!({"questions": [{"prompt": "Sure?", "options": [{"label": "a"}, {"label": "b"}]}]}));
        assert_eq!(one.unwrap().ask(None, Duration::from_secs(60)).message, "Sure?");
    }

    #[test]
    fn f3_ac57_all_are_required_and_each_takes_picks_or_words() {
        let ask = read(&two()).unwrap().ask(None, Duration::from_secs(60));
        let answer = |id: &str, picks: &[&str], text: &str| Answer {
            question_id: id.into(),
            selected_options: picks.iter().map(|&pick| pick.into()).collect(),
            custom_text: text.into(),
        };
        let check = |answers: &[Answer]| ask.form.answer(answers, ask.rules).map(Value::Object).ok();
        let db = || answer("db", &["SQLite"], "");
        assert_eq!(
            check(&[db(), answer("question_2", &["prod", "dev"], "")]),
            Some(json!({"db": "SQLite", "question_2": ["dev", "prod"]}))
        );
        assert_eq!(
            check(&[answer("db", &[], " none "), answer("question_2", &[], "all")]),
            Some(json!({"db": "none", "question_2": "all"}))
        );
        for second in [
            answer("question_2", &[], ""),
            answer("question_2", &["dev"], "and more"),
            answer("question_2", &["qa"], ""),
        ] {
            assert_eq!(check(&[db(), second]), None);
        }
        assert_eq!(check(&[db()]), None, "all are required");
        assert_eq!(
            check(&[answer("db", &["SQLite", "Postgres"], ""), answer("question_2", &["dev"], "")]),
            None
        );
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Value), words: &str) {
        let mut arguments = two();
        change(&mut arguments);
        let problem = read(&arguments).unwrap_err();
        assert!(problem.contains(words), "{problem}");
    }

    #[test]
    fn what_cannot_be_asked_is_said_with_its_place() {
        refused(|all| all["questions"] = json!([]), "arguments.questions has 0 items; it takes 1 to 20");
        refused(|all| all["questions"] = json!("x"), "arguments.questions is missing, or is no list");
        refused(|all| all["question"] = json!("x"), "has a member \"question\"");
        refused(|all| all["questions"][1]["prompt"] = json!(" "), "questions[1].prompt is empty");
        refused(|all| all["questions"][1]["prompt"] = json!(null), "questions[1].prompt is missing");
        refused(
            |all| all["questions"][0]["multiSelect"] = json!(true),
            "it takes id, title, prompt, options, multi",
        );
        refused(
            |all| all["questions"][0]["multi"] = json!("yes"),
            "questions[0].multi is neither true nor false",
        );
        refused(
            |all| all["questions"][0]["options"] = json!([{"label": "a"}]),
            "has 1 items; it takes 2 to 6",
        );
        refused(|all| all["questions"][0]["options"][1] = json!("a"), "questions[0].options[1] is no object");
        refused(
            |all| all["questions"][0]["options"][1] = json!({"label": "Postgres"}),
            "the label \"Postgres\" twice",
        );
        refused(|all| all["questions"][0]["options"][1]["label"] = json!("a\nb"), "holds a line break");
        refused(|all| all["questions"][0]["options"][1]["label"] = json!(7), "options[1].label is no text");
        refused(
            |all| {
                for at in [0, 1] {
                    all["questions"][at]["id"] = json!("same");
                }
            },
            "\"same\" stands twice",
        );
        for label in ["Postgres ", " Postgres", "Post\u{200b}gres", "Postgres\u{2060}", "Postgres\u{e0041}"] {
            refused(
                |all| all["questions"][0]["options"][1]["label"] = json!(label),
                "twice; labels have to differ in what can be seen",
            );
        }
        refused(
            |all| all["questions"][0]["options"][1]["label"] = json!("\u{200b}\u{2060}"),
            "options[1].label shows nothing",
        );
        refused(|all| all["questions"][0]["id"] = json!("x".repeat(129)), "has 129 bytes; the most is 128");
        assert_eq!(Questions::read(None).unwrap_err(), "arguments.questions is missing, or is no list");
        assert!(Questions::read(Some("[")).unwrap_err().contains("no JSON"));
        assert!(
            Questions::read(Some(&" ".repeat(MAX_ARGUMENTS_BYTES + 1))).unwrap_err().contains("the most is")
        );
    }

    #[test]
    fn an_id_that_is_made_up_is_one_that_is_free() {
        let mut arguments = two();
        arguments["questions"][0]["id"] = json!("question_2");
        let third = arguments["questions"][1].clone();
        arguments["questions"].as_array_mut().unwrap().push(third);
        let questions = read(&arguments).unwrap();
        let ids: Vec<_> = questions.all().iter().map(|question| question.id.as_str()).collect();
        assert_eq!(ids, ["question_2", "question_3", "question_4"]);
    }

    #[test]
    fn s33_a_question_whose_name_says_secret_is_one() {
        let mut arguments = two();
        arguments["questions"][0]["id"] = json!("password");
        let questions = read(&arguments).unwrap();
        assert_eq!(questions.all().iter().map(|question| question.secret).collect::<Vec<_>>(), [true, false]);
    }
}
