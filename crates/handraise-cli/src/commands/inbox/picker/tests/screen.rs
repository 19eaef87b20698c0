//! What is on the screen, whatever its size and whatever an ask says.

use super::*;

#[test]
fn s26_who_asks_stays_on_screen_and_labels_do_not_hide_values() {
    let mut rig = Rig::open(sample::ask());
    rig.size.rows = 14;
    for _ in 0..20 {
        rig.press(&Key::Down);
        rig.shows("agent with token laptop, calls itself “codex-acp”");
    }
    rig.size.rows = 40;
    rig.shows("A file  (sends “SQLite”)");
}

#[test]
fn s26_what_does_not_fit_is_counted() {
    let mut ask = sample::single(Source::Script);
    ask.content.message = "m".repeat(1_000_000);
    let mut rig = Rig::new(vec![ask]);
    rig.press(&Key::Enter);
    rig.size.rows = 200;
    rig.shows("992000 more characters; `handraise inbox show` has them all");
}

#[test]
fn what_is_needed_is_said_while_it_is_empty() {
    let mut ask = sample::ask();
    ask.content.questions[0].required = true;
    ask.content.questions[3].required = true;
    let mut rig = Rig::open(ask);
    rig.shows("0 of 5 answered; 2 more needed.");
    rig.keys("1");
    rig.shows("1 of 5 answered; 1 more needed.");
    let mut rig = Rig::open(sample::ask());
    rig.shows("0 of 5 answered; the rest is left out.");
}

#[test]
fn f10_what_the_holder_would_refuse_as_missing_is_not_sent() {
    let mut ask = sample::ask();
    ask.content.questions[0].required = true;
    let mut rig = Rig::open(ask);
    rig.submit();
    assert_eq!(rig.sent().len(), 0);
    rig.shows("Answer what is needed first.");
    rig.keys("1");
    rig.submit();
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn a_link_shows_its_whole_address_and_its_host() {
    let mut ask = sample::single(Source::Elicitation);
    ask.content.url = Some("https://good.example@xn--80ak6aa92e.com/pay?x=1".into());
    ask.content.questions.clear();
    let mut rig = Rig::open(ask);
    rig.size.columns = 120;
    rig.shows("https://good.example@xn--80ak6aa92e.com/pay?x=1");
    rig.shows("goes to xn--80ak6aa92e.com, never through the agent.");
    rig.shows("This host hides a letter of another alphabet.");
}

#[test]
fn s42_no_text_of_an_ask_moves_the_terminal() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\r\n\t\u{9b}2J\u{7f}";
    let mut ask = sample::ask();
    ask.content.message = hostile.into();
    ask.content.url = Some(hostile.into());
    ask.origin.holder_token = hostile.into();
    ask.origin.server = Some(hostile.into());
    for question in &mut ask.content.questions {
        question.title = Some(hostile.into());
        question.prompt = hostile.into();
        question.default = Some(hostile.into());
        question.constraints.pattern = Some(hostile.into());
        for choice in &mut question.choices {
            choice.label = hostile.into();
            choice.description = Some(hostile.into());
            choice.preview = Some(hostile.into());
        }
    }
    let mut rig = Rig::new(vec![ask]);
    rig.size = Size { columns: 40, rows: 100 };
    let mut screens = vec![rig.paint()];
    rig.press(&Key::Enter);
    for _ in 0..15 {
        rig.press(&Key::Down);
        screens.push(rig.paint());
    }
    for line in screens.iter().flatten() {
        assert!(!line.chars().any(escape::is_hazardous), "{line:?}");
        assert!(Line::new(super::super::text::Style::Plain, line).width() <= 40, "{line:?}");
    }
}

#[test]
fn any_size_of_a_screen_is_painted() {
    for (columns, rows) in [(1, 1), (20, 5), (37, 9), (300, 100)] {
        let mut rig = Rig::open(sample::ask());
        let size = Size { columns, rows };
        for key in
            [Key::Down, Key::End, Key::PageDown, Key::PageUp, Key::Char('s'), Key::Escape, Key::Char('?')]
        {
            rig.wait(500);
            rig.effects.extend(rig.picker.key(rig.now, &key));
            let frame = view::frame(&mut rig.picker, &sample::now().to_zoned_datetime(TimeZone::UTC), size);
            assert!(frame.lines.iter().all(|line| line.width() <= columns.max(20)));
            assert_eq!(frame.lines.len(), rows.max(5));
        }
    }
}

#[test]
fn the_keys_fit_a_terminal_of_80_columns() {
    let mut rig = Rig::new(vec![sample::ask()]);
    rig.press(&Key::Char('?'));
    let narrow = rig.paint();
    rig.size = Size { columns: 300, rows: 40 };
    assert_eq!(narrow, rig.paint(), "nothing of it is cut");
}

#[test]
fn the_cursor_begins_at_an_ask_for_which_somebody_waits() {
    let row = |id: &str, message: &str, is_connected| {
        let mut ask = sample::ask();
        (ask.id, ask.holder_connected) = (id.into(), is_connected);
        ask.content.message = message.into();
        ask
    };
    let mut rig = Rig::new(vec![row("a", "Left behind?\nsecond line", false), row("b", "Still here?", true)]);
    let screen = rig.paint();
    let at = |words: &str| screen.iter().position(|line| line.contains(words)).unwrap();
    assert!(at("Still here?") < at("Left behind?"), "{screen:?}");
    assert!(screen[at("Still here?")].starts_with('›'), "{screen:?}");
    rig.hides("\\u{a}");
    rig.keys("j");
    rig.press(&Key::Enter);
    rig.shows("Nobody waits for it now: its process is gone, or cut off from the inbox");
    rig.hides("left, then");
}
