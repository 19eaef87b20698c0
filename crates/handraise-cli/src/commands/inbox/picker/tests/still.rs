//! S40: nothing answers a card that has not stood still, or by a run of keys that began before it.

use super::*;

#[test]
fn s40_no_key_answers_within_350_ms_of_a_card_appearing() {
    for wait in [0, 100, 349] {
        let mut rig = Rig::new(vec![sample::single(Source::Script)]);
        rig.press(&Key::Enter);
        rig.wait(wait);
        rig.press_now(&Key::Char('1'));
        rig.shows("( ) yes");
        rig.shows("That was pressed before the question stood still");
    }
    let mut rig = Rig::new(vec![sample::single(Source::Script)]);
    rig.press(&Key::Enter);
    rig.wait(350);
    rig.press_now(&Key::Char('1'));
    rig.shows("(•) yes");
}

#[test]
fn s40_a_run_of_keys_that_began_before_the_card_does_not_answer_it() {
    let mut rig = Rig::new(vec![sample::single(Source::Script)]);
    rig.press(&Key::Enter);
    for _ in 0..5 {
        rig.wait(300);
        rig.press_now(&Key::Char('1'));
        rig.press_now(&Key::Ctrl('s'));
    }
    rig.hides("(•)");
    assert_eq!(rig.sent(), []);
}

#[test]
fn s40_a_held_enter_opens_and_submits_nothing() {
    let mut rig = Rig::open(sample::ask());
    rig.press(&Key::End);
    rig.press(&Key::Char('u'));
    // Held from the list on, with the first repeat after 660 ms.
    rig.press(&Key::Enter);
    rig.wait(660);
    for _ in 0..100 {
        rig.press_now(&Key::Enter);
        rig.wait(30);
    }
    assert_eq!(rig.sent(), []);
}

#[test]
fn s40_a_held_enter_on_submit_sends_once() {
    let mut rig = Rig::open(sample::ask());
    rig.press(&Key::End);
    rig.wait(1_000);
    rig.press_now(&Key::Enter);
    rig.verdict(Verdict::NotConnected);
    rig.shows("its connection is down. Nothing was queued");
    rig.wait(610);
    for _ in 0..50 {
        rig.press_now(&Key::Enter);
        rig.wait(30);
    }
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn s40_a_change_of_the_card_starts_the_time_anew() {
    let mut rig = Rig::open(sample::single(Source::Script));
    let gone = Ask { holder_connected: false, ..sample::single(Source::Script) };
    rig.picker.changed(&gone);
    rig.wait(300);
    rig.press_now(&Key::Char('1'));
    rig.shows("( ) yes");
    rig.shows("Not connected: an answer cannot reach it now");
}

#[test]
fn s40_keys_that_were_read_before_a_card_is_painted_again_answer_nothing() {
    let mut rig = Rig::open(sample::single(Source::Script));
    rig.press(&Key::Char('?'));
    rig.wait(1_000);
    // It closes the help. What is read meanwhile is taken after the paint, which comes a second late.
    rig.effects.extend(rig.picker.key(rig.now, &Key::Escape));
    let read = rig.now + 400;
    // Not painted yet, and the key comes long after.
    rig.effects.extend(rig.picker.key(read, &Key::Char('1')));
    rig.wait(1_000);
    rig.shows("( ) yes");
    rig.effects.extend(rig.picker.key(read + 400, &Key::Char('1')));
    rig.shows("( ) yes");
    rig.wait(349);
    rig.press_now(&Key::Char('1'));
    rig.shows("( ) yes");
    rig.press(&Key::Char('1'));
    rig.shows("(•) yes");
}

#[test]
fn s40_painting_a_card_without_questions_again_is_no_change() {
    let mut ask = sample::single(Source::Elicitation);
    ask.content.url = Some("https://example.com/pay".into());
    ask.content.questions.clear();
    let mut rig = Rig::open(ask);
    rig.press(&Key::End);
    rig.wait(1_000);
    rig.paint();
    rig.press_now(&Key::Enter);
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn s40_pasted_text_answers_nothing() {
    let mut rig = Rig::open(sample::single(Source::Script));
    rig.press(&Key::Paste("1\rs\r".into()));
    rig.shows("( ) yes");
    assert_eq!(rig.sent(), []);
}

#[test]
fn s40_submitting_opens_no_other_card() {
    let mut rig = Rig::new(several(2));
    rig.press(&Key::Enter);
    rig.wait(1_000);
    rig.keys("1");
    rig.submit();
    let id = rig.picker.card.as_ref().unwrap().ask.id.clone();
    let settled = Ask { id: id.clone(), ..sample::settled(several(1).remove(0)) };
    rig.picker.verdict(&id, Ok(Verdict::Delivered(Box::new(settled))));
    rig.shows("You answered, and it was delivered.");
    assert_eq!(rig.picker.card.as_ref().unwrap().ask.id, id);
    assert_eq!(rig.picker.asks.len(), 1);
}

#[test]
fn s40_a_permission_needs_a_deliberate_choice() {
    let mut rig = Rig::open(sample::single(Source::Permission));
    rig.submit();
    assert_eq!(rig.sent(), []);
    rig.shows("Answer it first.");
    rig.keys("1");
    rig.submit();
    assert_eq!(rig.answers(), ["answer [yes] "]);
}
