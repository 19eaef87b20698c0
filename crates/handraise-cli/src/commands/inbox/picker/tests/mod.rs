//! The picker without a terminal: keys, events and verdicts in, screens and effects out.

mod screen;
mod still;
mod together;

use handraise_api::{
    ask::{AnswerRequest, Ask},
    error::{ErrorBody, ErrorCode, ErrorDetail, NotFoundResponse},
    words::{AskState, Source},
};
use handraise_transport::escape;
use jiff::tz::TimeZone;

use super::{
    keys::Key,
    state::{Effect, Picker},
    text::Line,
    view::{self, Size},
};
use crate::commands::inbox::{client::Verdict, sample};

/// A picker, its screen, and a clock that a test moves.
struct Rig {
    picker: Picker,
    now: u64,
    size: Size,
    zone: TimeZone,
    effects: Vec<Effect>,
}

impl Rig {
    fn new(asks: Vec<Ask>) -> Self {
        let mut picker = Picker::default();
        picker.snapshot(asks, None);
        let (size, zone) = (Size { columns: 80, rows: 40 }, TimeZone::UTC);
        let mut rig = Self { picker, now: 10_000, size, zone, effects: Vec::new() };
        rig.paint();
        rig
    }

    /// With a card open and still.
    fn open(ask: Ask) -> Self {
        let mut rig = Self::new(vec![ask]);
        rig.press(&Key::Enter);
        rig.wait(2_000);
        rig
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
    }

    fn paint(&mut self) -> Vec<String> {
        let frame =
            view::frame(&mut self.picker, &sample::now().to_zoned_datetime(self.zone.clone()), self.size);
        self.effects.extend(self.picker.painted(self.now, frame.painted.as_ref()));
        assert_eq!(frame.lines.len(), self.size.rows);
        frame.lines.iter().map(Line::plain).collect()
    }

    #[track_caller]
    fn shows(&mut self, words: &str) {
        let screen = self.paint().join("\n");
        assert!(screen.contains(words), "no {words:?} on\n{screen}");
    }

    #[track_caller]
    fn hides(&mut self, words: &str) {
        let screen = self.paint().join("\n");
        assert!(!screen.contains(words), "{words:?} on\n{screen}");
    }

    /// A key, half a second after the one before.
    fn press(&mut self, key: &Key) {
        self.wait(500);
        self.press_now(key);
    }

    fn press_now(&mut self, key: &Key) {
        self.effects.extend(self.picker.key(self.now, key));
        self.paint();
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            self.press(&Key::Char(key));
        }
    }

    fn submit(&mut self) {
        self.wait(1_000);
        self.press(&Key::Ctrl('s'));
    }

    /// What was sent.
    fn sent(&mut self) -> Vec<AnswerRequest> {
        let effects = std::mem::take(&mut self.effects);
        let sent = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { request, .. } => Some(request),
            Effect::Quit | Effect::LoadMore(_) | Effect::Seen { .. } | Effect::SendTogether(_) => None,
        });
        sent.collect()
    }

    /// What was sent, as `id [picks] text`.
    fn answers(&mut self) -> Vec<String> {
        let sent = self.sent();
        let answers = sent.iter().flat_map(|request| &request.answers);
        answers
            .map(|answer| {
                format!(
                    "{} [{}] {}",
                    answer.question_id,
                    answer.selected_options.join("|"),
                    answer.custom_text
                )
            })
            .collect()
    }

    fn seen(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Seen { .. })).count()
    }

    fn verdict(&mut self, verdict: Verdict) {
        self.wait(50);
        let id = sample::ask().id;
        self.picker.verdict(&id, Ok(verdict));
        self.paint();
    }
}

fn several(count: usize) -> Vec<Ask> {
    let ask = |n: usize| {
        let mut ask = sample::single(Source::Script);
        ask.id = format!("ask-{n:04}");
        ask.content.message = format!("Question {n}?");
        ask
    };
    (0..count).map(ask).collect()
}

fn invalid(question: &str) -> Verdict {
    let detail = ErrorDetail {
        question_id: question.into(),
        rule: "maximum".into(),
        message: "“900” is too large. The most it takes is 600.".into(),
    };
    Verdict::Invalid(ErrorBody { details: vec![detail], ..ErrorBody::new(ErrorCode::Invalid, "m") })
}

#[test]
fn keys_move_through_the_list_and_the_cards() {
    let mut rig = Rig::new(several(3));
    rig.shows("› ");
    rig.keys("jj");
    rig.press(&Key::Enter);
    rig.shows("Question 2?");
    rig.keys("k");
    rig.shows("Question 1?");
    rig.keys("u");
    rig.shows("3 open");
    assert_eq!(rig.picker.selected.as_deref(), Some("ask-0001"));
    rig.keys("?");
    rig.shows("next, previous ask");
    rig.keys("q");
    rig.hides("next, previous ask");
    rig.keys("q");
    assert_eq!(rig.effects.last(), Some(&Effect::Quit));
}

#[test]
fn a_form_is_answered_with_digits_and_words() {
    let mut rig = Rig::open(sample::ask());
    rig.keys("2");
    rig.press(&Key::Tab);
    rig.press(&Key::Tab);
    rig.press(&Key::Tab);
    rig.keys("31");
    rig.press(&Key::Tab);
    rig.keys("1");
    rig.press(&Key::Tab);
    rig.keys("8080");
    rig.press(&Key::Enter);
    rig.submit();
    assert_eq!(rig.answers(), ["db [SQLite] ", "envs [dev|prod] ", "public [true] ", "port [] 8080"]);
    rig.shows("Sent. Waiting for the agent to take it");
    rig.verdict(Verdict::Delivered(Box::new(sample::settled(sample::ask()))));
    rig.shows("You answered, and it was delivered.");
    rig.keys("u");
    rig.shows("No hands up");
}

#[test]
fn the_focus_moves_with_arrows_and_enter_chooses() {
    let mut rig = Rig::open(sample::single(Source::Script));
    rig.press(&Key::Down);
    rig.press(&Key::Down);
    rig.press(&Key::Enter);
    rig.shows("(•) no");
    rig.press(&Key::End);
    rig.wait(1_000);
    rig.press(&Key::Enter);
    assert_eq!(rig.answers(), ["answer [no] "]);
}

#[test]
fn letters_and_digits_do_nothing_in_a_field() {
    let mut ask = sample::ask();
    ask.content.questions.drain(..4);
    let mut rig = Rig::open(ask);
    rig.press(&Key::Tab);
    rig.keys("sujkq?/19");
    rig.shows("•••••••••");
    rig.hides("sujkq");
    rig.press(&Key::Escape);
    rig.submit();
    assert_eq!(rig.answers(), ["apiKey [] sujkq?/19"]);
}

#[test]
fn escape_closes_and_never_skips() {
    let mut rig = Rig::open(sample::ask());
    rig.keys("s");
    rig.shows("Why? (optional");
    rig.press(&Key::Escape);
    rig.hides("Why? (optional");
    rig.press(&Key::Escape);
    rig.shows("1 open");
    rig.press(&Key::Escape);
    assert_eq!(rig.sent(), []);
}

#[test]
fn a_skip_takes_its_key_an_optional_reason_and_enter() {
    let mut rig = Rig::open(sample::ask());
    rig.keys("snot today");
    rig.press(&Key::Enter);
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].rejected, sent[0].reject_reason.as_str()), (1, true, "not today"));
    assert!(sent[0].answers.is_empty());
}

#[test]
fn digits_and_skip_are_off_where_an_act_is_confirmed() {
    let mut rig = Rig::open(sample::single(Source::Confirm));
    rig.keys("1s");
    rig.submit();
    rig.shows("( ) yes");
    rig.hides("Why? (optional");
    rig.press(&Key::Down);
    rig.press(&Key::Enter);
    rig.submit();
    assert_eq!(rig.sent(), [], "Ctrl-S needs the focus on the button");
    rig.press(&Key::End);
    rig.submit();
    assert_eq!(rig.answers(), ["answer [yes] "]);
}

#[test]
fn s26_a_call_that_does_not_fit_its_card_is_not_accepted_there() {
    let mut ask = sample::confirm();
    let accepted = |ask: &Ask| {
        let mut rig = Rig::open(ask.clone());
        rig.press(&Key::Down);
        rig.press(&Key::Enter);
        rig.press(&Key::End);
        rig.submit();
        (rig.sent().len(), rig)
    };
    assert_eq!(accepted(&ask).0, 1);
    let call = ask.content.confirm.as_mut().unwrap();
    call.arguments = "\"key\":0\n".repeat(1_100);
    let (sent, mut rig) = accepted(&ask);
    assert_eq!(sent, 0);
    rig.shows("This call is not shown whole here");
}

#[test]
fn s15_seen_is_reported_once_and_after_every_question_was_painted() {
    let mut rig = Rig::new(vec![sample::ask()]);
    assert_eq!(rig.seen(), 0);
    rig.press(&Key::Enter);
    assert_eq!(rig.seen(), 1, "it fits on the screen");
    rig.keys("u");
    rig.press(&Key::Enter);
    assert_eq!(rig.seen(), 1);

    let mut small = Rig::new(vec![sample::ask()]);
    small.size.rows = 12;
    small.press(&Key::Enter);
    small.submit();
    assert_eq!((small.seen(), small.sent().len()), (0, 0));
    small.shows("You have not seen every question yet.");
    for _ in 0..20 {
        small.press(&Key::PageDown);
    }
    assert_eq!(small.seen(), 1);
    small.submit();
    assert_eq!(small.sent().len(), 1);
}

#[test]
fn f10_a_refused_answer_goes_back_to_its_question() {
    let mut rig = Rig::open(sample::ask());
    rig.submit();
    assert_eq!(rig.sent().len(), 1, "a partial answer may be empty (AC-12b)");
    rig.verdict(invalid("port"));
    rig.shows("One answer was refused. Nothing was sent on, the ask is still open.");
    rig.shows("! “900” is too large.");
    rig.keys("30");
    rig.press(&Key::Escape);
    rig.submit();
    assert_eq!(rig.answers(), ["port [] 30"]);
}

#[test]
fn the_loser_of_a_race_sees_who_answered() {
    let mut rig = Rig::open(sample::ask());
    rig.submit();
    let settlement = sample::settled(sample::ask()).settlement;
    let error = ErrorBody::new(ErrorCode::NotFound, "m");
    rig.verdict(Verdict::Ended(Box::new(NotFoundResponse { error, settlement, recorded: false })));
    rig.shows("Ended: Ada answered nothing at 14:00:00 UTC (a human)");
    rig.shows("Your answer was not sent.");
    rig.hides("[ Submit ]");
}

#[test]
fn an_ask_that_ends_meanwhile_says_so_and_takes_no_answer() {
    let mut rig = Rig::open(sample::ask());
    rig.keys("s");
    rig.picker.changed(&sample::settled(sample::ask()));
    rig.press(&Key::Enter);
    rig.shows("Ended: Ada answered");
    rig.submit();
    assert_eq!(rig.sent(), []);
}

#[test]
fn an_answer_whose_verdict_is_unknown_is_not_sent_twice() {
    let mut rig = Rig::open(sample::ask());
    rig.submit();
    rig.verdict(Verdict::Unknown);
    rig.shows("has not said yet whether it took it");
    rig.submit();
    assert_eq!(rig.sent().len(), 1);
    let sent = Ask { state: AskState::Sent, ..sample::ask() };
    rig.picker.changed(&sent);
    rig.picker.changed(&sample::ask());
    rig.shows("Your answer did not arrive.");
    rig.submit();
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn drafts_survive_other_cards_and_events_and_secrets_do_not() {
    let mut other = sample::single(Source::Script);
    other.id = "other".into();
    let mut rig = Rig::new(vec![sample::ask(), other]);
    rig.press(&Key::Enter);
    rig.wait(1_000);
    rig.keys("1");
    for _ in 0..6 {
        rig.press(&Key::Tab);
    }
    rig.keys("hunter2");
    rig.press(&Key::Escape);
    rig.shows("•••••••");
    rig.keys("jk");
    rig.picker.changed(&Ask { holder_connected: false, ..sample::ask() });
    rig.shows("(•) Postgres");
    rig.hides("•••••••");
}

#[test]
fn new_asks_enter_at_their_place_and_leave_the_selection() {
    let mut rig = Rig::new(several(2));
    rig.keys("j");
    let mut urgent = sample::single(Source::Tool);
    urgent.id = "urgent".into();
    urgent.deadline = Some("2026-11-29T14:01:00Z".parse().unwrap());
    rig.picker.changed(&urgent);
    assert_eq!(rig.picker.asks[0].id, "urgent");
    assert_eq!(rig.picker.selected.as_deref(), Some("ask-0001"));
    assert!(rig.picker.fresh.contains("urgent"));
    rig.picker.changed(&Ask { id: "ask-0001".into(), ..sample::settled(sample::ask()) });
    assert_eq!(rig.picker.selected.as_deref(), Some("ask-0000"), "the neighbour");
}

#[test]
fn asks_are_found_by_what_they_say_and_who_asks() {
    let mut rig = Rig::new(several(30));
    rig.keys("/question 17");
    rig.shows("Find an ask: question 17");
    assert_eq!(rig.picker.shown().len(), 1);
    rig.press(&Key::Enter);
    rig.press(&Key::Enter);
    rig.shows("Question 17?");
    rig.keys("u");
    rig.press(&Key::Escape);
    assert_eq!(rig.picker.shown().len(), 30);
}

#[test]
fn a_choice_is_found_among_a_thousand_and_nothing_is_left_out() {
    let mut ask = sample::single(Source::Script);
    ask.content.questions[0].choices = (0..1_000).map(|n| sample::choice(&format!("choice {n}"))).collect();
    let mut rig = Rig::open(ask);
    rig.keys("/choice 777");
    rig.press(&Key::Enter);
    rig.shows("› ");
    rig.press(&Key::Enter);
    rig.shows("(•) choice 777");
    rig.submit();
    assert_eq!(rig.answers(), ["answer [choice 777] "]);
}

#[test]
fn more_asks_are_loaded_near_the_end_of_the_list() {
    let mut rig = Rig::new(several(20));
    rig.picker.snapshot(several(20), Some("next".into()));
    rig.press(&Key::End);
    rig.press(&Key::Up);
    assert_eq!(rig.effects, [Effect::LoadMore("next".into())], "asked for once");
    rig.picker.more(several(40), None);
    assert_eq!(rig.picker.asks.len(), 40);
    rig.press(&Key::End);
    assert_eq!(rig.picker.selected.as_deref(), Some("ask-0039"));
}
