//! The question of a script: what may be asked, and which exit status an end has.

use std::{collections::BTreeSet, time::Duration};

use anyhow::bail;
use handraise_api::ask::Implementation;
use handraise_core::{
    Choice, Constraints, Kind, Mode, Outcome, Provenance, Question, Source,
    form::{AnswerRules, Form, MAX_MESSAGE_BYTES},
};
use handraise_holder::{InboxRefusal, NewAsk};
use handraise_transport::escape;
use serde_json::{Value, json};

use crate::asking::{End, patience};

/// The id of the one question, and the key of its answer (product.md).
const ANSWER: &str = "answer";
/// The most bytes of a choice: it is one line of a list.
const MAX_CHOICE_BYTES: usize = 1_024;

/// What the exit status says; `handraise ask … && rest` goes on after the first alone.
pub(crate) mod status {
    pub(crate) const ACCEPT: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const DECLINE: u8 = 3;
    pub(crate) const CANCEL: u8 = 4;
    pub(crate) const NOBODY: u8 = 5;
    pub(crate) const ANOTHER: u8 = 6;
}

/// What a script asks.
#[derive(Debug, Clone)]
pub(crate) struct ScriptQuestion {
    message: String,
    form: Form,
    timeout: Duration,
    /// The one answer that exit status 0 stands for; `None`: every accepted one.
    expected: Option<String>,
}

/// What a script may say about its question.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) message: &'a str,
    pub(crate) choices: &'a [String],
    pub(crate) is_multi: bool,
    pub(crate) takes_text: bool,
    pub(crate) timeout: Option<&'a str>,
    pub(crate) expect: Option<&'a str>,
}

impl ScriptQuestion {
    /// Checks what the script wants.
    ///
    /// # Errors
    /// When it cannot be asked; the message names the flag, the value and what would do.
    pub(crate) fn new(wanted: Wanted<'_>) -> anyhow::Result<Self> {
        let Wanted { message, choices, is_multi, takes_text, timeout, expect } = wanted;
        if message.trim().is_empty() {
            bail!("the question is empty; say what you want to know");
        }
        if message.len() > MAX_MESSAGE_BYTES {
            bail!("the question has {} bytes; the most is {MAX_MESSAGE_BYTES}", message.len());
        }
        if choices.is_empty() && is_multi {
            bail!("--multi needs choices; give some with --choice VALUE");
        }
        if choices.is_empty() && !takes_text {
            bail!(
                "there is nothing to answer with; give choices with --choice VALUE, or say --text for free text"
            );
        }
        check_choices(choices)?;
        let expected = expected(choices, takes_text, expect)?;
        let kind = match (choices.is_empty(), is_multi) {
            (true, _) => Kind::Text,
            (false, false) => Kind::Single,
            (false, true) => Kind::Multi,
        };
        let question = Question {
            id: ANSWER.to_owned(),
            kind,
            title: None,
            prompt: message.to_owned(),
            required: true,
            default: None,
            allows_text: takes_text,
            companion: None,
            secret: false,
            choices: choices.iter().map(|value| choice(value)).collect(),
            constraints: Constraints::default(),
        };
        let form = Form::from_questions(vec![question]).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
        Ok(Self { message: message.to_owned(), form, timeout: patience(timeout)?, expected })
    }

    /// How long it waits.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The ask that it is.
    pub(crate) fn ask(&self) -> NewAsk {
        NewAsk {
            source: Source::Script,
            mode: Mode::Form,
            session_id: None,
            tool_call_id: None,
            message: self.message.clone(),
            url: None,
            confirm: None,
            // The script goes on without an answer, in its own way.
            on_deadline: None,
            form: self.form.clone(),
            rules: AnswerRules::for_source(Source::Script),
            single_use: Vec::new(),
            client: Some(Implementation {
                name: "handraise ask".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            server: None,
            timeout: Some(self.timeout),
        }
    }

    /// The exit status that an end of this question has.
    pub(crate) fn status(&self, end: &End) -> u8 {
        match end.outcome {
            Outcome::Accept => match &self.expected {
                Some(expected) if end.answers() != [expected.as_str()] => status::ANOTHER,
                Some(_) | None => status::ACCEPT,
            },
            // A decline that is nobody's is an inbox that did not take the question.
            Outcome::Decline if end.provenance == Provenance::System => status::ERROR,
            Outcome::Decline => status::DECLINE,
            Outcome::Cancel | Outcome::Withdrawn => status::CANCEL,
            Outcome::Timeout => status::NOBODY,
            Outcome::Invalid
            | Outcome::Error
            | Outcome::NotOffered
            | Outcome::Disabled
            | Outcome::Remembered
            | Outcome::Asked => status::ERROR,
        }
    }

    /// The answer that exit status 0 stands for, when it stands for one alone.
    pub(crate) fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }
}

impl End {
    /// The answers, one for each line of stdout.
    pub(crate) fn answers(&self) -> Vec<&str> {
        match self.content.as_ref().and_then(|content| content.get(ANSWER)) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        }
    }

    /// `{outcome, provenance, content}` (product.md); `content` is null unless it was accepted. Where the inbox did not
    /// take the question, its `error` beside them says why.
    pub(crate) fn json(&self) -> Value {
        let mut end = json!({
            "outcome": self.outcome.as_str(),
            "provenance": self.provenance.as_str(),
            "content": self.content,
        });
        if let Some(InboxRefusal { code, message }) = &self.refused {
            end["error"] = json!({"code": code, "message": message});
        }
        end
    }
}

fn choice(value: &str) -> Choice {
    Choice { value: value.to_owned(), label: value.to_owned(), description: None, preview: None }
}

fn check_choices(choices: &[String]) -> anyhow::Result<()> {
    let mut known = BTreeSet::new();
    for value in choices {
        let shown = escape::shortened(value, 60);
        if value.trim().is_empty() {
            bail!("--choice {value:?} is empty; give it a word");
        }
        if value.len() > MAX_CHOICE_BYTES {
            bail!(
                "--choice \"{shown}\" has {} bytes; the most is {MAX_CHOICE_BYTES}, put the rest into the question",
                value.len()
            );
        }
        // A choice is one line of stdout.
        if value.contains(char::is_control) {
            bail!("--choice \"{shown}\" holds a line break or another control character; leave it out");
        }
        if !known.insert(value) {
            bail!("--choice \"{shown}\" stands twice; choices have to differ");
        }
    }
    Ok(())
}

/// The answer that exit status 0 stands for: the one that is named, or `yes` of exactly yes and no, however written,
/// so that `&&` is safe.
fn expected(choices: &[String], takes_text: bool, expect: Option<&str>) -> anyhow::Result<Option<String>> {
    if let Some(expect) = expect {
        if !takes_text && !choices.iter().any(|choice| choice == expect) {
            bail!(
                "--expect is \"{}\", which is none of the choices, so nothing could ever match it",
                escape::shortened(expect, 60)
            );
        }
        return Ok(Some(expect.to_owned()));
    }
    let find = |word: &str| choices.iter().find(|choice| choice.trim().eq_ignore_ascii_case(word));
    Ok(match (choices.len(), find("yes"), find("no")) {
        (2, Some(yes), Some(_)) => Some(yes.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use handraise_api::error::ErrorCode;
    use handraise_core::{Answer, form::Content};

    use super::*;

    fn question(choices: &[&str], more: impl FnOnce(&mut Wanted<'_>)) -> anyhow::Result<ScriptQuestion> {
        let choices: Vec<String> = choices.iter().map(|&choice| choice.to_owned()).collect();
        let mut wanted = Wanted { message: "Deploy?", choices: &choices, ..Wanted::default() };
        more(&mut wanted);
        ScriptQuestion::new(wanted)
    }

    fn accepted(answer: Value) -> End {
        let content = Content::from_iter([(ANSWER.to_owned(), answer)]);
        End {
            outcome: Outcome::Accept,
            provenance: Provenance::Human,
            content: Some(content),
            by: Some("Ada".into()),
            reason: None,
            refused: None,
            was_cut_off: false,
        }
    }

    fn ended(outcome: Outcome, provenance: Provenance) -> End {
        End { outcome, provenance, content: None, by: None, reason: None, refused: None, was_cut_off: false }
    }

    #[track_caller]
    fn check_refused(made: anyhow::Result<ScriptQuestion>, names: &str) {
        let error = format!("{:#}", made.unwrap_err());
        assert!(error.contains(names), "{error}");
    }

    #[test]
    fn what_cannot_be_asked_is_refused_by_name_value_and_remedy() {
        check_refused(question(&[], |_| {}), "--choice VALUE, or say --text");
        check_refused(question(&[], |wanted| wanted.is_multi = true), "--multi needs choices");
        check_refused(question(&["a"], |wanted| wanted.message = " \n"), "the question is empty");
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        check_refused(
            ScriptQuestion::new(Wanted { message: &long, takes_text: true, ..Wanted::default() }),
            "the most is 65536",
        );
        check_refused(question(&["yes", "no", "yes"], |_| {}), "--choice \"yes\" stands twice");
        check_refused(question(&["a", " "], |_| {}), "--choice \" \" is empty");
        check_refused(question(&["a\nb"], |_| {}), "--choice \"a\\u{a}b\" holds a line break");
        check_refused(question(&["a", &"y".repeat(1_025)], |_| {}), "has 1025 bytes; the most is 1024");
        let many: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check_refused(question(&many, |_| {}), "1001 choices");
        check_refused(question(&["a", "b"], |wanted| wanted.expect = Some("c")), "--expect is \"c\"");
        for timeout in ["0s", "0", "-1s", "soon", ""] {
            check_refused(
                question(&["a"], |wanted| wanted.timeout = Some(timeout)),
                &format!("--timeout is {timeout:?}"),
            );
        }
    }

    #[test]
    fn the_question_waits_55_minutes_unless_told_otherwise() {
        assert_eq!(question(&["a"], |_| {}).unwrap().timeout(), Duration::from_secs(55 * 60));
        let short = question(&["a"], |wanted| wanted.timeout = Some("1h30m")).unwrap();
        assert_eq!(short.ask().timeout, Some(Duration::from_secs(90 * 60)));
        assert_eq!(short.ask().on_deadline, None, "the script goes on without an answer");
    }

    #[test]
    fn exit_status_0_is_yes_alone_where_the_choices_are_yes_and_no() {
        for (yes, no) in [("yes", "no"), ("Yes", "No"), ("YES", "no")] {
            for choices in [[yes, no], [no, yes]] {
                let question = question(&choices, |_| {}).unwrap();
                assert_eq!(question.status(&accepted(json!(yes))), 0);
                assert_eq!(question.status(&accepted(json!(no))), 6);
            }
        }
        let text_too = question(&["yes", "no"], |wanted| wanted.takes_text = true).unwrap();
        assert_eq!(text_too.status(&accepted(json!("yes, but tomorrow"))), 6);
        let several = question(&["yes", "no"], |wanted| wanted.is_multi = true).unwrap();
        assert_eq!(several.status(&accepted(json!(["yes"]))), 0);
        assert_eq!(several.status(&accepted(json!(["yes", "no"]))), 6);
    }

    #[test]
    fn exit_status_0_is_the_expected_value_alone_where_one_is_named() {
        let question = question(&["a", "b"], |wanted| wanted.expect = Some("b")).unwrap();
        assert_eq!(question.status(&accepted(json!("b"))), 0);
        assert_eq!(question.status(&accepted(json!("a"))), 6);
        // Against the usual reading, when that is what the script says.
        let on_no = self::question(&["yes", "no"], |wanted| wanted.expect = Some("no")).unwrap();
        assert_eq!((on_no.status(&accepted(json!("no"))), on_no.status(&accepted(json!("yes")))), (0, 6));
        let typed = self::question(&[], |wanted| {
            (wanted.takes_text, wanted.expect) = (true, Some("production"));
        })
        .unwrap();
        assert_eq!(typed.status(&accepted(json!("production"))), 0);
        assert_eq!(typed.status(&accepted(json!("Production"))), 6);
    }

    #[test]
    fn every_other_end_has_a_status_that_is_not_0() {
        let question = question(&["a", "b"], |_| {}).unwrap();
        assert_eq!(question.status(&accepted(json!("b"))), 0);
        for outcome in Outcome::ALL {
            for provenance in Provenance::ALL {
                let end = ended(*outcome, *provenance);
                let status = question.status(&end);
                match outcome {
                    Outcome::Accept => assert_eq!(status, 0),
                    Outcome::Decline if *provenance == Provenance::System => assert_eq!(status, 1),
                    Outcome::Decline => assert_eq!(status, 3),
                    Outcome::Cancel | Outcome::Withdrawn => assert_eq!(status, 4),
                    Outcome::Timeout => assert_eq!(status, 5),
                    _ => assert_eq!(status, 1),
                }
            }
        }
    }

    #[test]
    fn the_json_of_an_end_has_three_keys() {
        assert_eq!(
            accepted(json!(["a", "b"])).json(),
            json!({"outcome": "accept", "provenance": "human", "content": {"answer": ["a", "b"]}})
        );
        assert_eq!(
            ended(Outcome::Timeout, Provenance::System).json(),
            json!({"outcome": "timeout", "provenance": "system", "content": null})
        );
    }

    #[test]
    fn the_json_of_a_question_that_the_inbox_did_not_take_says_why() {
        let mut end = ended(Outcome::Decline, Provenance::System);
        end.refused = Some(InboxRefusal { code: ErrorCode::LimitExceeded, message: "full".into() });
        assert_eq!(
            end.json(),
            json!({"outcome": "decline", "provenance": "system", "content": null,
                "error": {"code": "LIMIT_EXCEEDED", "message": "full"}})
        );
    }

    #[test]
    fn f10_the_holder_takes_one_choice_or_several_or_words_as_the_script_says() {
        let answer = |picks: &[&str], text: &str| Answer {
            question_id: ANSWER.into(),
            selected_options: picks.iter().map(|&pick| pick.into()).collect(),
            custom_text: text.into(),
        };
        let check = |question: &ScriptQuestion, picks: &[&str], text: &str| {
            let ask = question.ask();
            ask.form.answer(&[answer(picks, text)], ask.rules).map(|content| content[ANSWER].clone()).ok()
        };
        let single = question(&["a", "b"], |_| {}).unwrap();
        assert_eq!(check(&single, &["b"], ""), Some(json!("b")));
        for (picks, text) in [(&["a", "b"][..], ""), (&[], ""), (&[], "c"), (&["c"], "")] {
            assert_eq!(check(&single, picks, text), None, "{picks:?} {text:?}");
        }
        let multi = question(&["a", "b"], |wanted| wanted.is_multi = true).unwrap();
        assert_eq!(check(&multi, &["b", "a"], ""), Some(json!(["a", "b"])), "F12");
        let either = question(&["a", "b"], |wanted| wanted.takes_text = true).unwrap();
        assert_eq!(check(&either, &[], " c "), Some(json!("c")));
        assert_eq!(check(&either, &["a"], "c"), None, "one or the other");
        let text = question(&[], |wanted| wanted.takes_text = true).unwrap();
        assert_eq!(check(&text, &[], "two\nlines"), Some(json!("two\nlines")));
        assert_eq!(check(&text, &[], "  "), None);
    }
}
