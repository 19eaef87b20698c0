//! `key=value` and `key:=text`: answers as they are written on a command line.

use std::collections::BTreeMap;

use anyhow::bail;
use handraise_api::{
    ask::{Answer, Question},
    words::Kind,
};

use super::words;

/// What the command line answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// In the order of the questions.
    pub(crate) answers: Vec<Answer>,
    /// Questions that look like secrets and are answered on the command line.
    pub(crate) exposed: Vec<String>,
}

/// Reads the answers. `typed` is the text for one question that came another way than by the command line.
///
/// # Errors
/// When an answer names no question, or says two things where one can be sent. Everything else is the holder's to judge.
pub(crate) fn read(
    questions: &[Question],
    given: &[String],
    typed: Option<(&str, String)>,
) -> anyhow::Result<Given> {
    let mut answers: BTreeMap<usize, Answer> = BTreeMap::new();
    let mut exposed = Vec::new();
    for argument in given {
        let (at, question, is_text, value) = split(questions, argument)?;
        let answer = answers.entry(at).or_insert_with(|| answer_to(question));
        if is_text || !matches!(question.kind, Kind::Single | Kind::Multi | Kind::Boolean) {
            say(answer, value)?;
        } else {
            answer.selected_options.push(picked(question, value));
        }
        if question.secret && !value.is_empty() {
            exposed.push(question.id.clone());
        }
    }
    if let Some((key, text)) = typed {
        let Some((at, question)) = find(questions, key) else { bail!("{}", unknown(questions, key)) };
        say(answers.entry(at).or_insert_with(|| answer_to(question)), &text)?;
    }
    Ok(Given { answers: answers.into_values().collect(), exposed })
}

fn answer_to(question: &Question) -> Answer {
    Answer { question_id: question.id.clone(), ..Answer::default() }
}

fn find<'a>(questions: &'a [Question], key: &str) -> Option<(usize, &'a Question)> {
    questions.iter().enumerate().find(|(_, question)| question.id == key)
}

/// The question of an argument, whether it is answered in words, and with what. A key may hold `=` and `:` itself, so the
/// longest key of the ask that fits is meant.
fn split<'a, 'b>(
    questions: &'a [Question],
    argument: &'b str,
) -> anyhow::Result<(usize, &'a Question, bool, &'b str)> {
    let fits = questions.iter().enumerate().filter_map(|(at, question)| {
        let rest = argument.strip_prefix(question.id.as_str())?;
        match (rest.strip_prefix(":="), rest.strip_prefix('=')) {
            (Some(text), _) => Some((at, question, true, text)),
            (None, Some(value)) => Some((at, question, false, value)),
            (None, None) => None,
        }
    });
    if let Some(split) = fits.max_by_key(|(_, question, ..)| question.id.len()) {
        return Ok(split);
    }
    match argument.split_once('=') {
        Some((key, _)) => bail!("{}", unknown(questions, key.strip_suffix(':').unwrap_or(key))),
        None => {
            bail!("{:?} is no answer; write key=value, or key:=text for words", words::brief(argument, 60))
        }
    }
}

fn unknown(questions: &[Question], key: &str) -> String {
    const MOST: usize = 10;
    let mut known: Vec<String> =
        questions.iter().take(MOST).map(|question| format!("\"{}\"", words::name(&question.id))).collect();
    if questions.len() > MOST {
        known.push(format!("{} more", questions.len() - MOST));
    }
    format!("this ask has no question \"{}\"; it has {}", words::name(key), known.join(", "))
}

fn say(answer: &mut Answer, text: &str) -> anyhow::Result<()> {
    if !answer.custom_text.is_empty() {
        bail!("question \"{}\" is given words twice; only one can be sent", words::name(&answer.question_id));
    }
    text.clone_into(&mut answer.custom_text);
    Ok(())
}

/// Yes and no may be written as such; everything else is the holder's to judge.
fn picked(question: &Question, value: &str) -> String {
    let boolean = match (question.kind, value.to_ascii_lowercase().as_str()) {
        (Kind::Boolean, "yes") => "true",
        (Kind::Boolean, "no") => "false",
        _ => value,
    };
    boolean.to_owned()
}

#[cfg(test)]
mod tests {
    use handraise_api::ask::Constraints;

    use super::*;

    fn question(id: &str, kind: Kind) -> Question {
        Question {
            id: id.into(),
            kind,
            title: None,
            prompt: "?".into(),
            required: false,
            default: None,
            allows_text: true,
            companion: None,
            secret: id == "apiKey",
            choices: vec![],
            constraints: Constraints::default(),
        }
    }

    fn questions() -> Vec<Question> {
        vec![
            question("db", Kind::Single),
            question("envs", Kind::Multi),
            question("public", Kind::Boolean),
            question("port", Kind::Integer),
            question("note", Kind::Text),
            question("apiKey", Kind::Text),
            question("a=b", Kind::Single),
            question("a", Kind::Single),
            question("odd:", Kind::Text),
        ]
    }

    /// Answers as `id [picks] text`.
    #[track_caller]
    fn check(given: &[&str], expected: &[&str]) {
        let given: Vec<String> = given.iter().map(|&given| given.to_owned()).collect();
        let read = read(&questions(), &given, None).unwrap();
        let shown: Vec<String> = read
            .answers
            .iter()
            .map(|answer| {
                format!(
                    "{} [{}] {}",
                    answer.question_id,
                    answer.selected_options.join("|"),
                    answer.custom_text
                )
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[track_caller]
    fn check_refused(given: &[&str], words: &str) {
        let given: Vec<String> = given.iter().map(|&given| given.to_owned()).collect();
        let error = read(&questions(), &given, None).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_key_repeats_for_several_choices_and_words_stand_beside_a_pick() {
        check(
            &["envs=dev", "db=Postgres", "envs=prod", "db:=but only 17"],
            &["db [Postgres] but only 17", "envs [dev|prod] "],
        );
    }

    #[test]
    fn kinds_without_choices_take_the_value_as_words() {
        check(&["port=8080", "note=a=b"], &["port [] 8080", "note [] a=b"]);
        check(&["note:=x"], &["note [] x"]);
    }

    #[test]
    fn yes_and_no_are_what_they_are_on_the_wire() {
        check(&["public=Yes"], &["public [true] "]);
        check(&["public=false"], &["public [false] "]);
        check(&["public=maybe"], &["public [maybe] "]);
    }

    #[test]
    fn the_longest_key_that_fits_is_meant() {
        check(&["a=b=c"], &["a=b [c] "]);
        check(&["a=c"], &["a [c] "]);
        check(&["odd:=x"], &["odd: [] x"]);
        check(&["odd::=x"], &["odd: [] x"]);
    }

    #[test]
    fn what_is_no_answer_is_refused_by_name() {
        check_refused(&["dbb=x"], "no question \"dbb\"; it has \"db\", \"envs\"");
        check_refused(&["db"], "\"db\" is no answer; write key=value");
        check_refused(&["note=a", "note=b"], "\"note\" is given words twice");
        check_refused(&["\u{1b}[2J=x"], "\\u{1b}[2J");
    }

    #[test]
    fn a_secret_on_the_command_line_is_noticed_and_one_that_is_typed_is_not() {
        let exposed = read(&questions(), &["apiKey=hunter2".to_owned()], None).unwrap().exposed;
        assert_eq!(exposed, ["apiKey"]);
        let typed = read(&questions(), &[], Some(("apiKey", "hunter2".to_owned()))).unwrap();
        assert_eq!((typed.exposed.len(), typed.answers[0].custom_text.as_str()), (0, "hunter2"));
        assert!(read(&questions(), &[], Some(("nothing", String::new()))).is_err());
    }
}
